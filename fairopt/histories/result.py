"""The result of `fairopt.history`: what owners were due and what they received, in all and over time."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fairopt.allocation import Allocation
from fairopt.analysis.finish_ratios import columns_of_ratios
from fairopt.analysis.rerun import given
from fairopt.errors import Unsupported
from fairopt.files import write_files
from fairopt.formats.results import KINDS, rendered
from fairopt.histories.across import Across, across
from fairopt.histories.judging import Sums
from fairopt.histories.received import Received
from fairopt.histories.setting import Setting
from fairopt.instance import FloatArray, Instance
from fairopt.instance.tolerances import NOTHING, TINY
from fairopt.results import finite, records, result
from fairopt.show.drawing import ShowsItself, draw
from fairopt.show.equality import ComparesItself
from fairopt.solving import solve
from fairopt.wording import did_you_mean, duration, figure, plural

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["History", "Interval"]

By = Literal["owner", "queue", "limit", "hour", "window", "time", "worst", "job"]
_HOUR = 3600.0
_NAMED = 3  # owners of an interval


@dataclass(frozen=True, slots=True)
class Interval:
    """A part of the time with a large shortfall, in share-hours; the owners with the most shortfall and surplus, in mean shares."""

    start: float
    end: float
    shortfall: float
    lacked: tuple[tuple[str, float], ...]
    beyond: tuple[tuple[str, float], ...]


@dataclass(frozen=True, eq=False, repr=False)
class History(ComparesItself, ShowsItself):
    """What owners were due by the exact allocation of a notion, and what they received.

    A *share-hour* is the whole cluster for an hour, as a dominant share: an owner that holds a quarter of the cluster's GPUs, and less of
    everything else, for two hours has received half a share-hour.

    Attributes
    ----------
    notion : str
    setting : Setting
        Owners, streams, the cluster and the log.
    windows : tuple of (float, float)
        In seconds of the log.
    exact : tuple of bool (windows,)
        Whether every change of the window was judged; else random moments, and the shortfall and the surplus have an error.
    contended_changes, moments : int
        Changes while work waited, and how many moments were judged.
    contended : tuple of float (windows,)
        Seconds in which work waited.
    received : Received
    sums : Sums
    bin_edges : array
        Times between the parts of the picture.
    notes : tuple of str
    seconds : float
    question : mapping
        The arguments of `fairopt.history`, as plain data.
    """

    notion: str
    setting: Setting
    windows: tuple[tuple[float, float], ...]
    exact: tuple[bool, ...]
    contended_changes: int
    moments: int
    contended: tuple[float, ...]
    received: Received
    sums: Sums
    bin_edges: FloatArray
    notes: tuple[str, ...]
    seconds: float
    question: Mapping[str, Any] = field(default_factory=dict)

    @property
    def owners(self) -> tuple[str, ...]:
        """The owners, sorted by name."""
        return self.setting.owners

    @property
    def hours(self) -> float:
        """Hours in all windows."""
        return sum(b - a for a, b in self.windows) / _HOUR

    @property
    def is_exact(self) -> bool:
        """Whether every change was judged."""
        return all(self.exact)

    @property
    def judges_envy(self) -> bool:
        """Whether the log says on which servers jobs ran."""
        return self.setting.log.placed

    # Tables -----------------------------------------------------------------------------------------------------------------------

    def to_frame(self, by: By = "owner") -> pd.DataFrame:
        """Return a table, in share-hours and task-hours.

        ========  ==========================================================================================================
        owner     weight, queue; entitled, received, shortfall, surplus; the same of tasks; envy; waiting; errors; finish ratios
        queue     entitled, received, shortfall, surplus of what the owners in it have together
        limit     resources of the cluster and named limits: amount or bound, the part of it in use on average and at most
        hour      mean shares by hour of the day, of all owners together
        window    start, end; the sums over owners
        time      for each part of the picture and owner: mean shares
        worst     parts of the time with the largest shortfall
        job       for each run that ended in a window: job, owner, end, finish ratio
        ========  ==========================================================================================================

        Raises
        ------
        Unsupported
            There is no such table.
        """

        tables = {
            "owner": lambda: self._owners(slice(None)).assign(**columns_of_ratios(self._ratios())),
            "queue": self._queues,
            "limit": self._limits,
            "hour": self._hours,
            "window": self._windows,
            "time": self._times,
            "worst": self._worst,
            "job": self._jobs,
        }
        if by not in tables:
            raise Unsupported(f'there is no table by "{by}"{did_you_mean(str(by), tables)}; there are {", ".join(tables)}')
        frame: pd.DataFrame = tables[by]()
        return frame

    @cached_property
    def finish_ratios(self) -> pd.DataFrame:
        """How much later than alone each run that ended in a window did so: `fairopt.histories.finish_ratios`, with ``end`` in seconds."""
        from fairopt.histories.finish_ratios import finish_ratios

        found = finish_ratios(self.setting)
        return found[np.logical_or.reduce([(found["end"] >= a) & (found["end"] <= b) for a, b in self.windows])].reset_index(drop=True)

    def _ratios(self) -> list[FloatArray]:
        """Return the finish ratios of each owner."""
        found = dict(iter(self.finish_ratios.groupby("owner")["ratio"]))
        return [found[name].to_numpy() if name in found else np.zeros(0) for name in self.owners]

    def _jobs(self) -> pd.DataFrame:
        found, clock = self.finish_ratios, self.setting.log.clock
        return found.assign(end=[clock.iso(time) for time in found["end"]]).rename(columns={"ratio": "finish_ratio"})

    def _owners(self, window: Any) -> pd.DataFrame:
        import pandas as pd

        sums, received = self.sums.owners[window].reshape(-1, len(self.owners), 5).sum(axis=0) / _HOUR, self.received
        shares, tasks, waiting = (
            values[window].reshape(-1, len(self.owners)).sum(axis=0) / _HOUR
            for values in (received.shares, received.tasks, received.waiting)
        )
        error = np.sqrt(self.sums.squares[window].reshape(-1, len(self.owners) + 1, 2).sum(axis=0)[:-1]) / _HOUR
        columns: dict[str, Any] = {
            **({"queue": list(self.setting.queue_of)} if self.setting.groups else {}),
            "weight": self.setting.weights,
            "entitled": shares + sums[:, 0] - sums[:, 1],
            "received": shares,
            "shortfall": sums[:, 0],
            "surplus": sums[:, 1],
            "entitled_tasks": tasks + sums[:, 2] - sums[:, 3],
            "received_tasks": tasks,
            "shortfall_tasks": sums[:, 2],
            "surplus_tasks": sums[:, 3],
            "envy": sums[:, 4] if self.judges_envy else np.full(len(self.owners), np.nan),
            "waiting": waiting,
        }
        if not self.is_exact:
            columns |= {"shortfall_error": error[:, 0], "surplus_error": error[:, 1]}
        return pd.DataFrame(columns, index=pd.Index(self.owners, name="owner"))

    def _queues(self) -> pd.DataFrame:
        import pandas as pd

        members, sums = self.setting.members, self.sums.queues.sum(axis=0) / _HOUR
        received = members @ self.received.shares.sum(axis=0) / _HOUR
        return pd.DataFrame(
            {
                "owners": members.sum(axis=1),
                "entitled": received + sums[:, 0] - sums[:, 1],
                "received": received,
                "shortfall": sums[:, 0],
                "surplus": sums[:, 1],
            },
            index=pd.Index(self.setting.groups, name="queue"),
        )

    def _limits(self) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame(across(self.setting, self.windows), columns=list(Across._fields))

    def _hours(self) -> pd.DataFrame:
        import pandas as pd

        seconds = self.received.hour_seconds
        with np.errstate(divide="ignore", invalid="ignore"):
            received = self.received.hours.sum(axis=1) / seconds
            short, surplus = (self.sums.hours.sum(axis=1) / seconds[:, None]).T
        columns = {"hours": seconds / _HOUR, "entitled": received + short - surplus, "received": received, "shortfall": short}
        return pd.DataFrame({**columns, "surplus": surplus}, index=pd.Index(range(24), name="hour"))[seconds > 0]

    def _windows(self) -> pd.DataFrame:
        import pandas as pd

        clock = self.setting.log.clock
        rows = []
        for w, (a, b) in enumerate(self.windows):
            table = self._owners(slice(w, w + 1))
            error = np.sqrt(self.sums.squares[w, -1]) / _HOUR
            rows.append(
                {
                    "start": clock.iso(a),
                    "end": clock.iso(b),
                    "hours": (b - a) / _HOUR,
                    "contended_hours": self.contended[w] / _HOUR,
                    **{name: float(table[name].sum()) for name in ("entitled", "received", "shortfall", "surplus")},
                    "exact": self.exact[w],
                    "shortfall_error": float(error[0]),
                    "surplus_error": float(error[1]),
                }
            )
        return pd.DataFrame(rows)

    def _times(self) -> pd.DataFrame:
        import pandas as pd

        clock, seconds = self.setting.log.clock, self.received.bin_seconds
        some = np.flatnonzero(seconds > 0)
        received, sums = self.received.bins[some] / seconds[some, None], self.sums.bins[some] / seconds[some, None, None]
        number = len(self.owners)
        return pd.DataFrame(
            {
                "start": np.repeat(np.array([clock.iso(t) for t in self.bin_edges[some]], object), number),
                "end": np.repeat(np.array([clock.iso(t) for t in self.bin_edges[some + 1]], object), number),
                "owner": np.tile(np.array(self.owners, object), some.size),
                "entitled": (received + sums[:, :, 0] - sums[:, :, 1]).ravel(),
                "received": received.ravel(),
                "shortfall": sums[:, :, 0].ravel(),
                "surplus": sums[:, :, 1].ravel(),
            }
        )

    def worst(self, most: int = 5) -> tuple[Interval, ...]:
        """Return at most ``most`` parts of the time, those with the largest shortfall, the worst first."""
        seconds, sums = self.received.bin_seconds, self.sums.bins
        total = sums[:, :, 0].sum(axis=1)
        found = []
        for k in np.argsort(-total, kind="stable")[:most]:
            if total[k] <= 0:
                break

            def named(values: FloatArray, seconds: float = float(seconds[k])) -> tuple[tuple[str, float], ...]:
                first = np.argsort(-values, kind="stable")[:_NAMED]
                return tuple((self.owners[n], float(values[n] / seconds)) for n in first if values[n] > 0)

            first, last = self.windows[0][0], self.windows[-1][1]
            start, end = max(float(self.bin_edges[k]), first), min(float(self.bin_edges[k + 1]), last)
            found.append(Interval(start, end, float(total[k]) / _HOUR, named(sums[k, :, 0]), named(sums[k, :, 1])))
        return tuple(found)

    def _worst(self) -> pd.DataFrame:
        import pandas as pd

        clock = self.setting.log.clock

        def text(pairs: tuple[tuple[str, float], ...]) -> str:
            return ", ".join(f"{name} {figure(share)}" for name, share in pairs)

        rows = [
            {
                "start": clock.iso(each.start),
                "end": clock.iso(each.end),
                "shortfall": each.shortfall,
                "lacked": text(each.lacked),
                "beyond": text(each.beyond),
            }
            for each in self.worst(20)
        ]
        return pd.DataFrame(rows, columns=["start", "end", "shortfall", "lacked", "beyond"])

    # Averages over time -----------------------------------------------------------------------------------------------------------

    @cached_property
    def instance(self) -> Instance:
        """The cluster with the mean number of tasks that each stream asked for: the instance of `held` and `due`."""
        return self.setting.instance(self._mean(self.received.wanted))[0]

    @cached_property
    def held(self) -> Allocation:
        """What ran, averaged over time, as an allocation of `instance`: for `fairopt.compare`, `fairopt.audit` and the exporters.

        Where the log does not say on which servers jobs ran, the tasks are placed where they fit.
        """
        return self._average(self.received.held)

    @cached_property
    def due(self) -> Allocation:
        """The exact allocation, averaged over time, as an allocation of `instance`. While no work waits, it is what ran."""
        calm = np.maximum(self.received.held - self.received.held_contended, 0.0)
        calm[:, :-1] += self.sums.due
        return self._average(calm)

    def _mean(self, values: FloatArray) -> FloatArray:
        mean: FloatArray = values / (self.hours * _HOUR)
        return np.where(mean > NOTHING * max(float(mean.max(initial=0.0)), TINY), mean, 0.0)

    def _average(self, seconds: FloatArray) -> Allocation:
        """Return tasks times seconds, (streams, rows + 1), as an allocation."""
        active = np.flatnonzero(self._mean(self.received.wanted))
        tasks = seconds[active] / (self.hours * _HOUR)
        placed, somewhere = tasks[:, :-1], tasks[:, -1]
        if self.instance.n_servers == 1:
            placed = placed + somewhere[:, None]
        elif (somewhere > 0).any():
            total = np.minimum(tasks.sum(axis=1), self.instance.tasks)
            small = self.instance.replace(tasks=total, queues=(), queue_of=[None] * total.size, weights=np.ones(total.size), limits=())
            placed = solve(small.replace(guarantees=np.zeros(total.size)), "drfh").tasks
        return given(self.instance, placed, "rdm")

    # Output -----------------------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON. None stands for what is not known."""
        clock, log = self.setting.log.clock, self.setting.log
        total = np.sqrt(self.sums.squares[:, -1].sum(axis=0)) / _HOUR
        owners = self.to_frame()
        found = {
            "notion": self.notion,
            "start": clock.iso(self.windows[0][0]),
            "end": clock.iso(self.windows[-1][1]),
            "duration_s": self.hours * _HOUR,
            "hours": self.hours,  # until 1.0
            "contended_s": sum(self.contended),
            "contended_hours": sum(self.contended) / _HOUR,  # until 1.0
            "jobs": log.n_jobs,
            "exact": self.is_exact,
            "contended_changes": self.contended_changes,
            "moments": self.moments,
            "solved": int(self.sums.facts[1]),
            "residual": float(self.sums.facts[2]),
            **{name: float(owners[name].sum()) for name in ("entitled", "received", "shortfall", "surplus")},
            "shortfall_error": float(total[0]),
            "surplus_error": float(total[1]),
            **{word: finite(of_all) for word, (of_all,) in columns_of_ratios([self.finish_ratios["ratio"].to_numpy()]).items()},
            "owners": [{"name": each["owner"], **each} for each in records(owners.reset_index())],
            "queues": [{"name": each["queue"], **each} for each in records(self._queues().reset_index())] if self.setting.groups else [],
            "limits": records(self._limits()),
            "by_hour": [{**each, "duration_s": each["hours"] * _HOUR} for each in records(self._hours().reset_index())],
            "windows": [
                {**each, "duration_s": each["hours"] * _HOUR, "contended_s": each["contended_hours"] * _HOUR}
                for each in records(self._windows())
            ],
            "worst": [
                {
                    "start": clock.iso(each.start),
                    "end": clock.iso(each.end),
                    "shortfall": each.shortfall,
                    "lacked": dict(each.lacked),
                    "beyond": dict(each.beyond),
                }
                for each in self.worst()
            ],
            "unjudged": [{"why": each.why, "jobs": each.jobs, "task_hours": each.task_hours, "first": each.first} for each in log.unjudged],
            "notes": list(self.notes),
            "time_s": self.seconds,
            "seconds": self.seconds,  # until 1.0
        }
        return result("history", self.question, self.setting.cluster.units, found)

    def save(self, path: str | os.PathLike[str], table: By = "owner") -> None:
        """Write a table, as `to_frame` returns it: .parquet or .csv, or for people .xlsx, .md or .tex.

        The file is written completely or not at all.

        Raises
        ------
        Unsupported, InvalidInstance
            The table or the kind of file does not exist. The file cannot be written.
        """
        frame = self.to_frame(table)
        kind = next((each for each in KINDS if Path(path).suffix.lower() == f".{each}"), None)
        if kind is None:
            raise Unsupported(
                f'cannot tell which kind of table "{path}" shall be; end its name in .parquet or .csv (or .xlsx, .md or .tex)'
            )
        frame = frame.reset_index() if frame.index.name else frame
        write_files({Path(path): rendered(frame, kind, str(path))})

    def plot(self, *, ax: Sequence[Axes] | None = None, figsize: tuple[float, float] | None = None, title: str | None = None) -> Figure:
        """Draw what owners received over time, and what they were due; return a matplotlib figure.

        ``ax``: your axes, one a panel. ``figsize``: inches of a new figure. ``title``: instead of the default, "" for none.
        """
        return draw("history", self, ax=ax, figsize=figsize, title=title)

    def __repr__(self) -> str:
        data = self._owners(slice(None))
        where = f"{plural(len(self.owners), 'owner')} on {plural(self.setting.cluster.counts.sum(), 'server')}"
        total = f"shortfall {figure(float(data['shortfall'].sum()))} of {figure(float(data['entitled'].sum()))} share-hours"
        return f"History({self.notion}: {where}, {duration(self.hours * _HOUR)}; {total}{'' if self.is_exact else ', estimated'})"
