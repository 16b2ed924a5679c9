"""Who gets which tasks, and what becomes of those whose worker is lost: with a pool that does as it is told, and with processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.processes import crew as module
from fairopt.processes.batches import Done, Lost, own_versions, work
from fairopt.processes.crew import Crew, run
from fairopt.processes.pools import Ended


class Told:
    """A pool whose workers end on some tasks. ``together``: all batches that are there end with one of them."""

    seconds = 1.0

    def __init__(self, deadly: Sequence[int], *, together: bool) -> None:
        self.deadly, self.isolates = set(deadly), not together
        self.there: dict[int, Sequence[Any]] = {}
        self.seen: list[list[int]] = []

    def slots(self) -> int:
        """Three."""
        return 3

    def missing(self) -> str:
        """Nothing is."""
        return ""

    def share(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """The function itself."""
        self.function = function
        return function

    def submit(self, number: int, function: Callable[[Any], Any], tasks: Sequence[Any]) -> None:
        """Remember what is asked."""
        assert len(self.there) < self.slots()
        self.there[number] = tasks
        self.seen.append(list(tasks))

    def wait(self, seconds: float) -> list[Ended]:
        """End all that is there."""
        there, self.there = self.there, {}
        hit = any(self.deadly & set(tasks) for tasks in there.values())
        return [
            (number, Lost("told")) if self.deadly & set(tasks) or (hit and not self.isolates) else (number, self.done(tasks))
            for number, tasks in there.items()
        ]

    def done(self, tasks: Sequence[int]) -> Done:
        """Three tasks a batch at most, a hundred a second."""
        some = list(tasks)[:3]
        return Done([self.function(task) for task in some], 0.01 * len(some), "worker")

    def drop(self, numbers: Sequence[int]) -> None:
        """Forget."""


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("deadly", [(), (7,), (0, 1, 2), (5, 39), range(40)])
def test_every_task_has_one_result_and_the_deadly_ones_alone_are_lost(deadly: Sequence[int], together: bool) -> None:
    """Whoever was lost with them is computed all the same."""
    pool, team = Told(deadly, together=together), Crew()
    vars(team)["_pool"] = pool
    found = list(team.each(lambda task: 10 * task, range(40), lambda task, why: f"{task}: {why}"))
    assert sorted(position for position, _ in found) == list(range(40))
    assert dict(found) == {j: f"{j}: told" if j in deadly else 10 * j for j in range(40)}
    for task in deadly:  # the last try was of this task alone
        assert [tasks for tasks in pool.seen if task in tasks][-1] == [task]
        assert sum(task in tasks for tasks in pool.seen) >= 2
    assert max(map(len, pool.seen)) > 1 or len(deadly) == 40  # batches grow


def test_a_deadly_task_ends_a_run_that_has_nothing_in_its_place() -> None:
    """And what to do is said."""
    team = Crew()
    vars(team)["_pool"] = Told([3], together=False)
    with pytest.raises(fo.NoSolution, match=r"ended its worker \(loky\) twice, the second time alone: told; .* use fewer workers"):
        team.map(abs, range(5))


def test_a_batch_ends_with_its_time() -> None:
    """The rest is for others; at least one task is done."""
    done = work(time.sleep, [0.02] * 50, 0.05, own_versions())
    assert 1 <= len(done.results) < 50
    assert len(work(time.sleep, [0.02] * 3, 0.0, own_versions()).results) == 1


def test_another_version_is_refused_by_name() -> None:
    """Before anything is computed."""
    other = own_versions() | {"highspy": "0.1"}
    done = work(abs, [-1], 1.0, other, "tcp://10.0.0.7:1")
    assert done.results == []
    own = own_versions()["highspy"]
    assert done.refused == (
        f"the worker tcp://10.0.0.7:1 has highspy {own}, and the process that asks has 0.1; install the same version on all workers"
    )


def wrong(task: int) -> int:
    """Fail on one task."""
    if task == 2:
        raise fo.InvalidInstance("no such trace")
    return -task


@pytest.mark.parametrize(("workers", "backend"), [(1, "loky"), (2, "loky"), (2, "threading")])
def test_what_a_task_raises_is_raised_and_the_workers_go_on(workers: int, backend: str) -> None:
    """The next run has the same workers."""
    with Crew(workers, backend) as team:
        with pytest.raises(fo.InvalidInstance, match="no such trace"):
            team.map(wrong, range(4))
        assert team.map(wrong, [0, 1, 3, 4]) == [0, -1, -3, -4]


def test_a_large_function_goes_by_a_file_that_the_next_one_replaces(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Not with every batch; nothing is left at the end."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Crew(2) as team:
        for factor in (2, 3):
            table = np.full(200_000, factor)
            assert team.map(partial(np.take, table), range(4)) == [factor] * 4
            assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1
    assert not list(tmp_path.rglob("*"))


def test_a_crew_that_travels_starts_no_workers_where_it_arrives() -> None:
    """On a worker, it is that worker."""
    with Crew(2) as team:
        assert team.map(is_alone, [team]) == [True]


def is_alone(team: Crew) -> bool:
    """Say whether a crew computes here."""
    return team.alone


def test_without_workers_it_is_said_once_and_ends_after_a_time(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Then with what to do; if workers come, that is said."""

    class Empty(Told):
        waits = 0

        def missing(self) -> str:
            return "the cluster has 0 workers" if self.waits < 3 else ""

        def wait(self, seconds: float) -> list[Ended]:
            self.waits += 1
            return [] if self.waits < 5 else super().wait(seconds)

    team = Crew()
    vars(team)["_pool"] = Empty([], together=False)
    assert team.map(abs, [-1, -2]) == [1, 2]
    assert [record.getMessage() for record in caplog.records] == [
        "loky: the cluster has 0 workers; waiting for workers",
        "loky: there are workers now",
    ]
    monkeypatch.setattr(module, "_WITHOUT_WORKERS", 0.0)
    vars(team)["_pool"] = Empty([], together=False)
    with pytest.raises(fo.NoSolution, match="the cluster has 0 workers, for 0 minutes; start workers"):
        team.map(abs, [-1])


def test_nothing_to_do_starts_nothing() -> None:
    """Not even a cluster that is not there."""
    assert list(run(abs, [], workers=2, backend="dask", address="tcp://127.0.0.1:1")) == []
