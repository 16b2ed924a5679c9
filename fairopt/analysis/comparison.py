"""The result of `fairopt.compare`: allocations of one instance side by side, with their measures."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fairopt.allocation import Allocation
from fairopt.analysis.finish_ratios import columns_of_ratios, ratios_of_owners
from fairopt.analysis.measures import Envy, Violation, dominant_shares
from fairopt.analysis.owners import owner_holdings
from fairopt.analysis.regrets import Regret
from fairopt.errors import Unsupported
from fairopt.instance import FloatArray, Instance
from fairopt.results import finite, result
from fairopt.show.drawing import ShowsItself, draw
from fairopt.show.equality import ComparesItself
from fairopt.wording import did_you_mean, figure, plural

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["BEST_FOUND", "Comparison", "Row"]

_FEW = 6  # users whose tasks are shown
BEST_FOUND = "whole tasks, best found"


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One allocation and its measures; a row that failed has only ``name``, ``kind`` and ``message``.

    Attributes
    ----------
    name : str
    kind : str
        "exact", "exact, whole tasks", "whole tasks, best found" (a time limit ended the search for the exact one), "greedy",
        "approximate" or "given".
    message : str
        Why there is no allocation; else empty.
    seconds : float
        Time to compute the allocation, without its reference; NaN for given allocations.
    allocation : Allocation or None
    smallest_share : float
        Smallest weighted global dominant share of the users who take part (`fairopt.analysis.measures`).
    efficiency : float
        Weighted number of tasks, as a part of the largest possible weighted number of divisible tasks.
    jain : float
        Jain's index of the weighted global dominant shares.
    envy : Envy or None
        None if envy has no meaning (`fairopt.analysis.measures.envy_applies`).
    use : dict
        Part of each resource of the cluster that is in use; under time division, part of its time.
    regret : Regret or None
    note : str
        Why there is no regret, or why its reference is of divisible tasks, or is the best allocation of whole tasks that was found.
    violations : tuple of Violation
        Limits that the allocation exceeds.
    exact : dict or None
        With ``exact=True``, the measures that are rational as Fractions: tasks, smallest_share, efficiency, envy. Else None.
    finish_ratios : array (users,) or None
        Finish-time ratios (`fairopt.analysis.finish_ratios`), if "finish-time" is the reference or among the notions. Else None.
    """

    name: str
    kind: str
    message: str = ""
    seconds: float = float("nan")
    allocation: Allocation | None = None
    smallest_share: float = float("nan")
    efficiency: float = float("nan")
    jain: float = float("nan")
    envy: Envy | None = None
    use: dict[str, float] = dataclasses.field(default_factory=dict)
    regret: Regret | None = None
    note: str = ""
    violations: tuple[Violation, ...] = ()
    exact: dict[str, Fraction] | None = None
    finish_ratios: FloatArray | None = None

    def measure(self, name: str) -> Any:
        """Return the measure of that name, in fractions where it is known so."""
        value = getattr(self, name)
        return (self.exact or {}).get(name, value.tasks if isinstance(value, Envy) else value)

    @property
    def dominant_shares(self) -> FloatArray:
        """Weighted global dominant share of each user, (users,); empty if there is no allocation."""
        return np.zeros(0) if self.allocation is None else dominant_shares(self.allocation)

    @property
    def tasks(self) -> float:
        """The number of tasks; NaN if there is no allocation."""
        return float("nan") if self.allocation is None else float(self.allocation.tasks.sum())

    @property
    def work(self) -> float:
        """The work of all tasks, their number where no speeds are given; NaN if there is no allocation."""
        return float("nan") if self.allocation is None else float(self.allocation.work.sum())


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison(ComparesItself, ShowsItself):
    """The rows of one instance; ``comparison["drfh"]`` is one row, and iteration yields all rows.

    Attributes
    ----------
    instance : Instance
    sharing : str
    rows : tuple of Row
    largest_total : float
        The largest possible weighted number of divisible tasks; NaN if it could not be computed (the notes of the rows say why).
    question : mapping
        The arguments of `fairopt.compare`, as plain data.
    """

    instance: Instance
    sharing: str
    rows: tuple[Row, ...]
    largest_total: float
    question: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> Row:
        for row in self.rows:
            if row.name == name:
                return row
        names = [row.name for row in self.rows]
        raise KeyError(f'there is no row "{name}"{did_you_mean(name, names)}; there are {", ".join(names)}')

    @property
    def has_finish_ratios(self) -> bool:
        """Does a row have finish-time ratios? Then the tables show them."""
        return any(row.finish_ratios is not None for row in self.rows)

    def finish_ratios_frame(self) -> pd.DataFrame:
        """Return one row per allocation: the largest finish-time ratio of a user, quantiles, and how many are above 1; else no columns."""
        import pandas as pd

        ratios = [np.zeros(0) if row.finish_ratios is None else row.finish_ratios for row in self.rows]
        columns = columns_of_ratios(ratios) if self.has_finish_ratios else {}
        return pd.DataFrame(columns, index=pd.Index([row.name for row in self.rows], name="allocation"))

    @property
    def of_work(self) -> bool:
        """Do users do work, because speeds are given? Then efficiency and envy count it, and not tasks."""
        return self.instance.speeds_given is not None

    def to_frame(self, by: Literal["user", "queue", "owner"] = "user") -> pd.DataFrame:
        """Return one row per allocation: kind, measures, regret, then the tasks, with speeds the work, and the share of each user.

        A share is that of the row's notion; for a given allocation, it is the weighted dominant share. It is missing if the notion has
        one share per server.

        With ``by="queue"``: one row per allocation and queue, with the columns of `Allocation.to_frame`, and ``regret``, the relative
        shortfall of the queue's share (`fairopt.regret`).

        With ``by="owner"``: one row per allocation and owner of tasks (`fairopt.analysis.owners`): its users, its tasks, and the dominant
        share of what it holds, not divided by weights.

        Raises
        ------
        Unsupported
            There are no rows by ``by``.
        """
        import pandas as pd

        if by not in ("user", "queue", "owner"):
            raise Unsupported(f'there are no rows by "{by}"; use by="user", by="queue" or by="owner"')
        if by == "owner":
            owners = {row.name: pd.DataFrame(_owners(row, float)).set_index("name") for row in self.rows if row.allocation is not None}
            return pd.concat(owners, names=["allocation", "owner"]) if owners else pd.DataFrame()
        if by == "queue":
            frames = {
                row.name: row.allocation.to_frame(by="queue").assign(
                    regret=np.nan if row.regret is None else row.regret.to_frame(by="queue")["shortfall"].to_numpy()
                )
                for row in self.rows
                if row.allocation is not None
            }
            if not frames:
                return pd.DataFrame()
            return pd.concat(frames, names=["allocation", "queue"])
        frame = pd.DataFrame([self._plain(row) for row in self.rows], index=pd.Index([row.name for row in self.rows], name="allocation"))
        tasks = np.full((len(self.rows), self.instance.n_users), np.nan)
        shares, work = tasks.copy(), tasks.copy()
        for j, row in enumerate(self.rows):
            if row.allocation is not None:
                tasks[j], work[j] = row.allocation.tasks_per_user, row.allocation.work
                shares[j] = row.allocation.shares if row.allocation.shares.ndim == 1 else np.nan
        per_user = [
            pd.DataFrame(values, index=frame.index, columns=[f"{what} of {user}" for user in self.instance.users])
            for what, values in (("tasks", tasks), *([("work", work)] if self.of_work else []), ("share", shares))
        ]
        return pd.concat([frame, self.finish_ratios_frame(), *per_user], axis=1)

    def to_dict(self, by: Literal["user", "queue", "owner"] = "user") -> dict[str, Any]:
        """Return plain data, ready for JSON; None stands for a missing number.

        With ``by="owner"``, each row also has what each owner of tasks holds.
        """
        rows = []
        for row in self.rows:
            held, shares = ((), ()) if row.allocation is None else (row.allocation.tasks_per_user.tolist(), row.allocation.shares.tolist())
            users = zip(self.instance.users[: len(held)], held, shares, strict=True)
            entry: dict[str, Any] = {
                "name": row.name,
                "kind": row.kind,
                "message": row.message,
                "note": row.note,
                "tasks": row.tasks,
                "smallest_share": row.smallest_share,
                "efficiency": row.efficiency,
                "jain": row.jain,
                "envy": None if row.envy is None else dataclasses.asdict(row.envy),
                "use": row.use,
                "regret": None if row.regret is None else row.regret.numbers(),
                "time_s": row.seconds,
                "seconds": row.seconds,  # until 1.0
                "violations": [violation.to_dict() for violation in row.violations],
                "users": [{"name": name, "tasks": tasks, "share": share} for name, tasks, share in users],
            }
            if self.of_work and row.allocation is not None:
                entry["work"] = row.work
                for user, work in zip(entry["users"], row.allocation.work.tolist(), strict=True):
                    user["work"] = work
            if row.exact is not None and row.allocation is not None and row.allocation.exact is not None:
                entry["exact"] = {name: str(value) for name, value in row.exact.items()}
                for n, user in enumerate(entry["users"]):
                    user["exact"] = row.allocation.exact.of_user(n, self.instance.servers)
            if row.finish_ratios is not None:
                entry |= {word: finite(of_all) for word, (of_all,) in columns_of_ratios([row.finish_ratios]).items()}
                for user, ratio in zip(entry["users"], row.finish_ratios.tolist(), strict=True):
                    user["finish_ratio"] = finite(ratio)
            if self.instance.queues:
                entry["queues"] = self._queues(row)
            if by == "owner":
                entry["owners"] = _owners(row, finite)
            rows.append({key: None if isinstance(value, float) and np.isnan(value) else value for key, value in entry.items()})
        largest = None if np.isnan(self.largest_total) else self.largest_total
        return result("compare", self.question, self.instance.units, {"sharing": self.sharing, "largest_total": largest, "rows": rows})

    def _queues(self, row: Row) -> list[dict[str, Any]]:
        """Return plain data of what each queue holds in a row, with the shortfall of its share."""
        if row.allocation is None:
            return []
        short = {} if row.regret is None else row.regret.to_frame(by="queue")["shortfall"].to_dict()
        return [each.to_dict() | {"regret": short.get(each.name)} for each in row.allocation.as_known.queue_holdings()[1:]]

    def plot(
        self,
        by: Literal["user", "queue"] = "user",
        *,
        ax: Sequence[Axes] | None = None,
        figsize: tuple[float, float] | None = None,
        title: str | None = None,
    ) -> Figure:
        """Draw tasks per user (``by="user"``) or the dominant share of what each queue holds (``by="queue"``), and utilization per server.

        Returns a matplotlib figure.

        ``ax``: axes of yours to draw into (two). ``figsize``: of a new figure, in inches. ``title``: in place of the default ("": none).
        """
        return draw("comparison", self, by=by, ax=ax, figsize=figsize, title=title)

    def _plain(self, row: Row) -> dict[str, Any]:
        own = row.regret
        work = {"work": row.work} if self.of_work else {}
        entries: dict[str, Any] = {"kind": row.kind, "tasks": row.tasks, **work, "smallest_share": row.smallest_share}
        entries |= {f"use of {thing}": part for thing, part in row.use.items()}
        entries |= {"efficiency": row.efficiency, "jain": row.jain, "envy": np.nan if row.envy is None else row.envy.tasks}
        entries["against"] = (
            "" if own is None else own.notion + (", whole tasks" if own.whole else "") + (", best found" if own.best_found else "")
        )
        for name in (
            "level",
            "leximin",
            "position",
            "largest",
            "goal",
            "condition",
            "total",
            "gap",
            *(("queue",) if self.instance.queues else ()),
        ):
            value = None if own is None else getattr(own, name)
            entries[f"regret {name}"] = np.nan if value is None else value
        entries["seconds"] = row.seconds
        entries["message"] = "; ".join([text for text in (row.message, row.note) if text] + [str(each) for each in row.violations])
        return entries

    def __repr__(self) -> str:
        import pandas as pd

        instance = self.instance
        few = instance.n_users <= _FEW
        lines = []
        for row in self.rows:
            held = [np.nan] * instance.n_users if row.allocation is None else row.allocation.work
            own = row.regret
            lines.append(
                {"kind": row.kind}
                | (dict(zip(instance.users, held, strict=True)) if few else {"work": row.work} if self.of_work else {"tasks": row.tasks})
                | {"efficiency": row.efficiency, "Jain": row.jain, "envy": np.nan if row.envy is None else row.envy.tasks}
                | {"against": "" if own is None else own.notion, "level": np.nan, "total": np.nan if own is None else own.total}
                | ({} if own is None else {"level": np.nan if own.level is None else own.level})
            )
        frame = pd.DataFrame(lines, index=[row.name for row in self.rows])
        table = frame.to_string(float_format=figure, na_rep="", line_width=None) if lines else "nothing to compare"
        text = [
            f"Comparison of {plural(len(self.rows), 'allocation')}: {plural(instance.n_users, 'user')}, "
            f"{plural(instance.counts.sum(), 'server')}, sharing {self.sharing}",
            *(line.rstrip() for line in table.splitlines()),
            *(f"{row.name}: {row.message}" for row in self.rows if row.message),
            *(f"{row.name} exceeds {'; '.join(map(str, row.violations[:3]))}" for row in self.rows if row.violations),
        ]
        return "\n".join(text)


def _owners(row: Row, number: Callable[[float], float | None]) -> list[dict[str, Any]]:
    """Return what each owner holds in a row, with the largest finish-time ratio of its users where there are ratios."""
    if row.allocation is None:
        return []
    found = [each.to_dict() for each in owner_holdings(row.allocation)]
    if row.finish_ratios is not None:
        largest = ratios_of_owners(row.allocation.instance, row.finish_ratios)
        found = [each | {"finish_ratio": number(largest[each["name"]])} for each in found]
    return found
