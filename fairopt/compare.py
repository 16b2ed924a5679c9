"""Several allocations of one instance side by side: exact ones, schedules, and your own.

Every row is one allocation, measured by `fairopt.measures` (use of the cluster, Jain's index, envy), by its *task efficiency*

    sum_n phi[n] x[n] / max over all allocations of divisible tasks of sum_n phi[n] x[n],

which "efficiency" solves (phi = 1 where weights are per resource), and by its `fairopt.regret` against an exact allocation. A row that
cannot be computed says why and does not stop the others; a row that is not feasible says where and by how much.

>>> import fairopt as fo
>>> instance = fo.Instance([[100, 30], [30, 100]], [[5, 1], [1, 5]], users=["A", "B"], resources=["cpu", "memory"])
>>> compare(instance, notions=["drfh", "tsf"], schedules=["drfh:best-fit", "tsf:first-fit"], allocations={"mine": [[20, 0], [0, 20]]})
Comparison of 5 allocations: 2 users, 2 servers, sharing rdm
                 kind    A    B  efficiency  Jain  envy against  level  total
drfh            exact 21.7 21.7           1     1     0
tsf             exact 21.7 21.7           1     1     0
drfh:best-fit  greedy   21   21       0.969     1     0    drfh 0.0308 0.0308
tsf:first-fit  greedy   10   10       0.462     1     0     tsf  0.538  0.538
mine            given   20   20       0.923     1     0    drfh 0.0769 0.0769
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fairopt.allocation import GIVEN, Allocation
from fairopt.certificate import Certificate, allocation_excess
from fairopt.errors import FairoptError, InvalidInstance, NoSolution, Unsupported
from fairopt.instance import FloatArray, Instance
from fairopt.measures import Envy, Violation, cluster_use, dominant_shares, jain_index, largest_envy, takes_part, violations
from fairopt.models import NOTIONS, Notion, Sharing, default_sharing
from fairopt.regret import Regret, regret
from fairopt.schedule import planned, schedule
from fairopt.solve import best_found, notion_of, solve
from fairopt.validation import check, numbers, require_labels
from fairopt.wording import did_you_mean, plural

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["BEST_FOUND", "Comparison", "NotionSpec", "Row", "ScheduleSpec", "compare", "read_schedule"]

NotionSpec: TypeAlias = str | Notion | type[Notion] | tuple[str, Mapping[str, Any]]
ScheduleSpec: TypeAlias = str | tuple[str, str] | Mapping[str, Any] | Allocation

_ROUNDED = 1e-6  # relative: numbers in files are rounded
_FEW = 6  # users whose tasks are shown
_EXACT_WHOLE = "exact, whole tasks"
BEST_FOUND = "whole tasks, best found"


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One allocation and what it is measured by; of a row that failed only ``name``, ``kind`` and ``message``.

    Attributes
    ----------
    name : str
    kind : str
        "exact", "exact, whole tasks", "whole tasks, best found" (where a time limit ended the search for the exact one), "greedy",
        "approximate" or "given".
    message : str
        Why there is no allocation; else empty.
    seconds : float
        To compute the allocation, without what it is compared with; not a number for given ones.
    allocation : Allocation or None
    smallest_share : float
        Smallest weighted global dominant share of those who take part (`fairopt.measures`).
    efficiency : float
        Weighted number of tasks, as a part of the largest possible one of divisible tasks.
    jain : float
        Jain's index of the weighted global dominant shares.
    envy : Envy or None
    use : dict
        Part of each resource of the cluster that is in use, or of its time.
    regret : Regret or None
    note : str
        Why there is no regret, or why it is against divisible tasks or the best whole ones that were found.
    violations : tuple of Violation
        Limits that the allocation does not keep.
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

    @property
    def tasks(self) -> float:
        """The number of tasks; not a number where there is no allocation."""
        return float("nan") if self.allocation is None else float(self.allocation.tasks.sum())


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison:
    """Rows of one instance; ``comparison["drfh"]`` is one of them, and a loop goes over all.

    Attributes
    ----------
    instance : Instance
    sharing : str
    rows : tuple of Row
    largest_total : float
        The largest possible weighted number of divisible tasks.
    """

    instance: Instance
    sharing: str
    rows: tuple[Row, ...]
    largest_total: float

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

    def to_frame(self) -> pd.DataFrame:
        """Return one row per allocation: kind, every measure, the regret, and last tasks and share of each user.

        The shares are those of the row's own notion, weighted dominant shares of given allocations, and missing where a notion has one
        for each server.
        """
        import pandas as pd

        frame = pd.DataFrame([self._plain(row) for row in self.rows], index=pd.Index([row.name for row in self.rows], name="allocation"))
        tasks = np.full((len(self.rows), self.instance.n_users), np.nan)
        shares = tasks.copy()
        for j, row in enumerate(self.rows):
            if row.allocation is not None:
                tasks[j] = row.allocation.tasks_per_user
                shares[j] = row.allocation.shares if row.allocation.shares.ndim == 1 else np.nan
        per_user = [
            pd.DataFrame(values, index=frame.index, columns=[f"{what} of {user}" for user in self.instance.users])
            for what, values in (("tasks", tasks), ("share", shares))
        ]
        return pd.concat([frame, *per_user], axis=1)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON: None where there is no number."""
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
                "regret": None if row.regret is None else row.regret.to_dict() | {"worst": row.regret.worst},
                "seconds": row.seconds,
                "violations": [dataclasses.asdict(violation) for violation in row.violations],
                "users": [{"name": name, "tasks": tasks, "share": share} for name, tasks, share in users],
            }
            rows.append({key: None if isinstance(value, float) and np.isnan(value) else value for key, value in entry.items()})
        return {"sharing": self.sharing, "largest_total": self.largest_total, "rows": rows}

    def plot(self) -> Figure:
        """Draw tasks per user and utilization per server of every row; returns a matplotlib figure."""
        from fairopt.comparison_plot import plot_comparison

        return plot_comparison(self)

    def _plain(self, row: Row) -> dict[str, Any]:
        own = row.regret
        entries: dict[str, Any] = {"kind": row.kind, "tasks": row.tasks, "smallest_share": row.smallest_share}
        entries |= {f"use of {thing}": part for thing, part in row.use.items()}
        entries |= {"efficiency": row.efficiency, "jain": row.jain, "envy": np.nan if row.envy is None else row.envy.tasks}
        entries["against"] = (
            "" if own is None else own.notion + (", whole tasks" if own.whole else "") + (", best found" if own.best_found else "")
        )
        for name in ("level", "leximin", "position", "largest", "goal", "condition", "total", "gap"):
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
            held = [np.nan] * instance.n_users if row.allocation is None else row.allocation.tasks_per_user
            own = row.regret
            lines.append(
                {"kind": row.kind}
                | (dict(zip(instance.users, held, strict=True)) if few else {"tasks": row.tasks})
                | {"efficiency": row.efficiency, "Jain": row.jain, "envy": np.nan if row.envy is None else row.envy.tasks}
                | {"against": "" if own is None else own.notion, "level": np.nan, "total": np.nan if own is None else own.total}
                | ({} if own is None else {"level": np.nan if own.level is None else own.level})
            )
        frame = pd.DataFrame(lines, index=[row.name for row in self.rows])
        table = frame.to_string(float_format=lambda value: f"{value:.3g}", na_rep="", line_width=None) if lines else "nothing to compare"
        text = [
            f"Comparison of {plural(len(self.rows), 'allocation')}: {plural(instance.n_users, 'user')}, "
            f"{plural(instance.counts.sum(), 'server')}, sharing {self.sharing}",
            *(line.rstrip() for line in table.splitlines()),
            *(f"{row.name}: {row.message}" for row in self.rows if row.message),
            *(f"{row.name} exceeds {'; '.join(map(str, row.violations[:3]))}" for row in self.rows if row.violations),
        ]
        return "\n".join(text)


def compare(
    instance: Instance,
    *,
    notions: Sequence[NotionSpec] = ("drfh",),
    schedules: Sequence[ScheduleSpec] = (),
    allocations: Mapping[str, npt.ArrayLike | Allocation | str | os.PathLike[str]] | None = None,
    integral: bool = False,
    sharing: Sharing | None = None,
    time_limit: float | None = None,
    reference: NotionSpec | None = None,
    done: Callable[[str], object] | None = None,
) -> Comparison:
    """Compute several allocations of one instance and measure them alike.

    Parameters
    ----------
    instance : Instance
    notions : sequence
        Exact allocations: identifiers ("drfh"), with options "proportional:alpha=2" or ("proportional", {"alpha": 2}), or notions.
    schedules : sequence
        Greedy ones: "criterion:placement" ("drfh:best-fit"), with options "drfh:best-fit:metric=cosine:ties=random" or as a mapping of
        the arguments of `schedule`; (criterion, placement); or an allocation that is there already.
    allocations : mapping, optional
        Those of your own, by name: arrays or frames (users, servers) of tasks, an `Allocation`, or the path of a CSV file
        (`fairopt.formats.allocations`). One that exceeds a limit is a row all the same, which says where and by how much.
    integral : bool
        Also compute the best allocation of whole tasks of every notion, and measure schedules against that. Where the time limit ends the
        search, the best that was found until then is taken, with its gap, and named so.
    sharing : {"rdm", "tdm"}, optional
        Of all rows.
    time_limit : float, optional
        Seconds for each exact allocation; where it passes, the row says what was known by then.
    reference : optional
        The notion that every row's regret is against. The default is each schedule's own criterion, and the first of ``notions`` for
        those that have no optimum of their own and for given allocations.
    done : function, optional
        Called with the name of each row when it is finished.

    Raises
    ------
    InvalidInstance, Unsupported
        For what no row can be made of: a notion or placement that does not exist, a file or array that is not about this instance.

    Examples
    --------
    >>> import fairopt as fo
    >>> instance = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"])
    >>> comparison = compare(instance, notions=["drfh", "efficiency"], schedules=["drfh:first-fit"], integral=True)
    >>> comparison["drfh:first-fit"].regret
    Regret(drfh, whole tasks: level 0, leximin 0, largest 0, total 0)
    >>> [(row.name, round(row.efficiency, 3)) for row in comparison]
    [('drfh', 0.873), ('drfh, whole tasks', 0.873), ('efficiency', 1.0), ('efficiency, whole tasks', 0.873), ('drfh:first-fit', 0.873)]
    """
    if not isinstance(instance, Instance):
        raise InvalidInstance(f"expected an Instance, got {type(instance).__name__}; build one with fairopt.Instance or fairopt.load")
    if time_limit is not None and not (isinstance(time_limit, int | float) and time_limit > 0):
        raise Unsupported(f"time_limit is {time_limit!r}; give a number > 0")
    how = default_sharing(instance) if sharing is None else sharing
    wanted = [_notion(spec) for spec in ([notions] if isinstance(notions, str) else notions)]
    plans = [read_schedule(spec) for spec in ([schedules] if isinstance(schedules, str) else schedules)]
    for name, plan in plans:
        if isinstance(plan, Allocation):
            _tasks(plan, instance, how, name)
    own = {name: _tasks(value, instance, how, name) for name, value in (allocations or {}).items()}
    against = None if reference is None else _notion(reference)[1]
    first = against or next((notion for _, notion in wanted), None)
    work = _Work(instance, how, integral, time_limit)
    names = _Names()
    rows: list[Row] = []

    def add(row: Row) -> None:
        rows.append(row)
        if done is not None:
            done(row.name)

    for name, notion in wanted:
        add(work.exact(names.new(name), notion, against, whole=False))
        if integral:
            add(work.exact(names.new(f"{name}, whole tasks"), notion, against or notion, whole=True))
    for name, plan in plans:
        add(work.greedy(names.new(name), plan, against, first))
    for name, tasks in own.items():
        add(work.given(names.new(name), tasks, first))
    return Comparison(instance, how, tuple(rows), work.largest_total)


# Rows ----------------------------------------------------------------------------------------------------------------------------


class _Work:
    """Computes rows, and every exact allocation once."""

    def __init__(self, instance: Instance, sharing: Sharing, integral: bool, time_limit: float | None) -> None:
        self.instance, self.sharing, self.integral, self.time_limit = instance, sharing, integral, time_limit
        self.solved: dict[tuple[Any, ...], Allocation | FairoptError] = {}
        # Weights per resource say nothing of a task as a whole: tasks are counted then.
        counted = instance if instance.weights.ndim == 1 else instance.replace(weights=None)
        self.weights = counted.weights
        self.largest_total = self._total(solve(counted, "efficiency", sharing=sharing))

    def _total(self, allocation: Allocation) -> float:
        return float(self.weights @ allocation.tasks_per_user)

    def exact(self, name: str, notion: Notion, against: Notion | None, *, whole: bool) -> Row:
        kind = _EXACT_WHOLE if whole else "exact"
        started = time.perf_counter()
        try:
            allocation = self._solved(notion, whole)
        except FairoptError as error:
            return Row(name, kind, str(error))
        seconds = time.perf_counter() - started
        if not allocation.certificate.best_found:
            return self._measured(name, kind, allocation, seconds, against, whole=False)
        row = self._measured(name, BEST_FOUND, allocation, seconds, against, whole=False)
        note = f"the best found, not proved to be an optimum: {allocation.details['why']}"
        return dataclasses.replace(row, note="; ".join(text for text in (note, row.note) if text))

    def greedy(self, name: str, plan: Mapping[str, Any] | Allocation, against: Notion | None, first: Notion | None) -> Row:
        if isinstance(plan, Allocation):
            exact = _EXACT_WHOLE if plan.certificate.whole_tasks else "exact"
            kind = BEST_FOUND if plan.certificate.best_found else plan.certificate.reservation or exact
            seconds = float("nan")
            allocation, own = plan, notion_of(plan.notion) if plan.notion in NOTIONS else first
        else:
            kind, started = "greedy", time.perf_counter()
            try:
                allocation = schedule(self.instance, sharing=self.sharing, **plan)
            except FairoptError as error:
                return Row(name, kind, str(error))
            seconds = time.perf_counter() - started
            criterion = plan["criterion"]
            has_optimum = not isinstance(criterion, str) or criterion in NOTIONS
            own = notion_of(criterion, **{key: plan[key] for key in ("utility",) if key in plan}) if has_optimum else first
        return self._measured(name, kind, allocation, seconds, against or own, whole=self.integral)

    def given(self, name: str, tasks: FloatArray | Allocation, against: Notion | None) -> Row:
        allocation = tasks if isinstance(tasks, Allocation) else self._allocation(tasks)
        return self._measured(name, GIVEN, allocation, float("nan"), against, whole=self.integral)

    def _allocation(self, tasks: FloatArray) -> Allocation:
        excess = allocation_excess(self.instance, tasks, self.sharing)
        allocation = Allocation(
            instance=self.instance,
            notion=GIVEN,
            solver=GIVEN,
            sharing=self.sharing,
            tasks=tasks,
            shares=np.zeros(self.instance.n_users),
            prices=None,
            levels=(),
            certificate=Certificate(excess, np.nan, np.nan, whole_tasks=bool((tasks == np.round(tasks)).all()), greedy=True),
        )
        return dataclasses.replace(allocation, shares=dominant_shares(allocation))

    def _solved(self, notion: Notion, whole: bool) -> Allocation:
        key = (*_identity(notion), whole)
        if key not in self.solved:
            try:
                self.solved[key] = solve(self.instance, notion, sharing=self.sharing, integral=whole, time_limit=self.time_limit)
            except NoSolution as error:
                self.solved[key] = best_found(self.instance, notion, self.sharing, error) or error
            except FairoptError as error:
                self.solved[key] = error
        found = self.solved[key]
        if isinstance(found, FairoptError):
            raise found
        return found

    def _measured(self, name: str, kind: str, allocation: Allocation, seconds: float, against: Notion | None, *, whole: bool) -> Row:
        part = takes_part(self.instance)
        shares = dominant_shares(allocation)[part]
        found, note = (None, "") if against is None else self._regret(allocation, against, whole)
        return Row(
            name,
            kind,
            seconds=seconds,
            allocation=allocation,
            smallest_share=float(shares.min()) if shares.size else float("nan"),
            efficiency=self._total(allocation) / self.largest_total if self.largest_total > 0 else float("nan"),
            jain=jain_index(shares),
            envy=largest_envy(allocation),
            use=cluster_use(allocation),
            regret=found,
            note=note,
            violations=tuple(violations(self.instance, allocation.tasks, self.sharing, _ROUNDED)),
        )

    def _regret(self, allocation: Allocation, against: Notion, whole: bool) -> tuple[Regret | None, str]:
        """Return the regret, against whole tasks where asked for and found, and a note where not."""
        note = ""
        for reference in (True, False) if whole and allocation.certificate.whole_tasks else (False,):
            try:
                found = regret(allocation, against, exact=self._solved(against, reference))
                if found.best_found:
                    note = (
                        f"regret against the best whole tasks that were found for {against.name} within the time limit, "
                        f"which reach a bound up to {100 * found.gap:.2g} %: a lower bound"
                    )
                return found, note
            except FairoptError as error:
                note = f"no regret against {against.name}{', whole tasks' if reference else ''}: {error}"
        return None, note


# What was asked for --------------------------------------------------------------------------------------------------------------


def _notion(spec: NotionSpec) -> tuple[str, Notion]:
    """Return the name of a row and its notion."""
    if isinstance(spec, str):
        word, *rest = spec.split(":")
        return spec, notion_of(word, **_options(rest, spec))
    if isinstance(spec, tuple):
        if len(spec) != 2 or not isinstance(spec[1], Mapping):
            raise Unsupported(f'a notion is {spec!r}; give "drfh", or with its options ("proportional", {{"alpha": 2}})')
        chosen = notion_of(spec[0], **spec[1])
        return _name([chosen.name], spec[1]), chosen
    chosen = notion_of(spec)
    return chosen.name, chosen


def read_schedule(spec: ScheduleSpec) -> tuple[str, Mapping[str, Any] | Allocation]:
    """Return the name of a row, and the arguments of `schedule` or what it returned."""
    if isinstance(spec, Allocation):
        return f"{spec.notion}:{spec.solver.rpartition(':')[2]}", spec
    plan: dict[str, Any]
    if isinstance(spec, str):
        criterion, *rest = spec.split(":")
        placement = [rest.pop(0)] if rest and "=" not in rest[0] else []
        plan = {"criterion": criterion} | ({"placement": placement[0]} if placement else {}) | _options(rest, spec)
    elif isinstance(spec, tuple) and len(spec) == 2:
        plan = {"criterion": spec[0], "placement": spec[1]}
    elif isinstance(spec, Mapping):
        plan = {"criterion": "drfh"} | dict(spec)
    else:
        raise Unsupported(f'a schedule is {spec!r}; give "drfh:best-fit", or a mapping of the arguments of fairopt.schedule')
    if "sharing" in plan:
        raise Unsupported("all rows share alike; give sharing to compare, not to a schedule")
    planned(**plan)  # refuses what is misspelt, before anything is computed
    criterion, placement = plan["criterion"], plan.get("placement", "first-fit")
    words = [word if isinstance(word, str) else getattr(word, "name", getattr(word, "__name__", "own")) for word in (criterion, placement)]
    return _name(words, {key: value for key, value in plan.items() if key not in ("criterion", "placement")}), plan


def _options(parts: Sequence[str], spec: str) -> dict[str, Any]:
    """Read ``["alpha=2", "order=random"]``: whole numbers, numbers, else words."""
    options: dict[str, Any] = {}
    for part in parts:
        word, sign, text = part.partition("=")
        if not (word and sign and text):
            raise Unsupported(f'"{spec}": "{part}" is no option; write option=value, as in "proportional:alpha=2"')
        value: Any = text
        for kind in (float, int):
            try:
                value = kind(text)
            except ValueError:
                break
        options[word] = value
    return options


def _name(words: Sequence[str], options: Mapping[str, Any]) -> str:
    written = [f"{key}={value}" if np.ndim(value) == 0 else key for key, value in options.items()]
    return ":".join([*words, *written])


def _identity(notion: Notion) -> tuple[Any, ...]:
    """Return what tells notions apart: class and options."""
    names: list[str] = [field.name for field in dataclasses.fields(notion)] if dataclasses.is_dataclass(notion) else []
    values = [getattr(notion, name) for name in names]
    return type(notion), *(np.asarray(value).tobytes() if np.ndim(value) else value for value in values)


class _Names:
    """Names of rows, each once: the second "drfh" is "drfh (2)"."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def new(self, name: str) -> str:
        number, unique = 2, name
        while unique in self.taken:
            unique, number = f"{name} ({number})", number + 1
        self.taken.add(unique)
        return unique


def _tasks(
    value: npt.ArrayLike | Allocation | str | os.PathLike[str], instance: Instance, sharing: str, name: str
) -> FloatArray | Allocation:
    """Return an allocation of the caller's own; refuse what is not about this instance."""
    if isinstance(value, Allocation):
        if value.instance != instance or value.sharing != sharing:
            raise InvalidInstance(
                f'the allocation "{name}" is of another instance or sharing ({value.sharing}, here {sharing}); compare within one'
            )
        return value
    if isinstance(value, str | os.PathLike):
        from fairopt.formats.allocations import read

        return read(Path(value), instance)
    what = f'tasks of the allocation "{name}"'
    require_labels(value, what, instance.users, instance.servers)
    tasks = numbers(value, what, (instance.n_users, instance.n_servers), "(users, servers)")
    check(tasks, np.isfinite(tasks) & (tasks >= 0), f'number of tasks in "{name}"', "finite and >= 0", instance.users, instance.servers)
    return tasks
