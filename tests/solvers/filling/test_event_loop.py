"""Filling over time, without a trace around it: who starts when and where, by hand, and that nothing is ever on a server that it lacks."""

from __future__ import annotations

import numpy as np
import pytest

from fairopt.program.events import Change, Work
from fairopt.program.filling import Criterion, Filling
from fairopt.solvers.filling.event_loop import run_events
from fairopt.solvers.filling.event_state import EVENT, FREED, IN_LINE, IN_POOL, RUNNING, STARTED, Run
from fairopt.solvers.filling.placements import FirstFit


def filling(capacities: list[list[float]], counts: list[int], demands: list[list[float]]) -> Filling:
    """Streams that may run everywhere, each task a share of 1."""
    n = len(demands)
    return Filling(
        capacities=np.array(capacities),
        counts=np.array(counts),
        demands=np.array(demands)[:, None, :],
        eligibility=np.ones((n, len(counts)), bool),
        tasks=np.zeros(n, np.int64),
        criterion=Criterion(np.ones(n)),
        order=np.arange(n),
    )


def work(
    stream: list[int],
    tasks: list[int],
    durations: list[float],
    submit: list[float],
    *,
    servers: list[int],
    others: list[tuple[float, Change, int, int]] | None = None,
) -> Work:
    """Streams that are users of their own, all there from the beginning."""
    events = [(time, Change.SUBMIT, job, 1) for job, time in enumerate(submit)] + (others or [])
    events.sort(key=lambda event: event[:2])
    n = max(stream) + 1
    return Work(
        stream=np.array(stream),
        tasks=np.array(tasks),
        durations=np.array(durations, float),
        owner=np.arange(n),
        rank=np.arange(n),
        present=np.ones(n, bool),
        servers=np.array(servers),
        times=np.array([event[0] for event in events], float),
        changes=np.array([int(event[1]) for event in events]),
        subjects=np.array([event[2] for event in events]),
        amounts=np.array([event[3] for event in events]),
    )


def run(filling: Filling, work: Work, until: float = np.inf) -> tuple[list[float], list[int]]:
    """Return starts and servers of the tasks, with -1 for never."""
    start, server, _ = run_events(
        filling, work, FirstFit(), random_ties=False, seed=0, until=until, done=lambda *_: None, stopped=lambda: False
    )
    return np.where(np.isnan(start), -1, start).tolist(), server.tolist()


def test_whoever_has_less_is_next_when_a_task_ends() -> None:
    """Room for three: A starts three of four at 0. One ends at 4, and B, who came at 1, is next; A has the room of its task at 5."""
    servers = filling([[3.0]], [1], [[1.0], [1.0]])
    jobs = work([0, 1], [4, 1], [4.0, 9.0, 9.0, 5.0, 1.0], [0.0, 1.0], servers=[1])
    assert run(servers, jobs) == ([0, 0, 0, 5, 4], [0, 0, 0, 0, 0])


def test_a_server_that_goes_ends_what_runs_and_takes_no_more() -> None:
    """Removed at 1, the second server runs its task to 3; one that is added at 5 takes the last."""
    servers = filling([[1.0]], [3], [[1.0]])
    changes = [(1.0, Change.REMOVE, 0, 1), (5.0, Change.ADD, 0, 1)]
    starts, where = run(servers, work([0], [4], [3.0], [0.0], servers=[2], others=changes))
    assert starts == [0, 0, 3, 5]
    assert where[0] == where[2] == 0
    assert where[1] == 1


def test_a_user_who_leaves_starts_nothing_until_it_is_back() -> None:
    """Gone from 1 to 7: what ends at 2 is followed only then."""
    servers = filling([[1.0]], [1], [[1.0]])
    changes = [(1.0, Change.LEAVE, 0, 1), (7.0, Change.JOIN, 0, 1)]
    assert run(servers, work([0], [2], [2.0], [0.0], servers=[1], others=changes))[0] == [0, 7]


def test_what_happens_later_is_not_known() -> None:
    """Until 3: the task that would start at 4 has not."""
    servers = filling([[1.0]], [1], [[1.0]])
    assert run(servers, work([0], [2], [4.0], [0.0], servers=[1]), until=3.0)[0] == [0, -1]


@pytest.mark.parametrize("seed", range(10))
def test_no_server_holds_more_than_it_has(seed: int) -> None:
    """At every start; no task starts before its job is submitted, and those of a job start in turn."""
    rng = np.random.default_rng(seed)
    servers = filling((rng.integers(3, 9, (2, 2)) / 10).tolist(), [2, 1], (rng.integers(1, 4, (3, 2)) / 10).tolist())
    submit = np.sort(rng.integers(0, 12, 8)).astype(float)
    jobs = work(
        [*rng.integers(0, 3, 7).tolist(), 2],
        rng.integers(1, 4, 8).tolist(),
        rng.integers(1, 6, 8).tolist(),
        submit.tolist(),
        servers=[2, 1],
    )
    starts, where = run(servers, jobs)
    job = np.repeat(np.arange(8), jobs.tasks)
    begins, ends = np.array(starts), np.array(starts) + jobs.durations[job]
    assert (begins >= submit[job]).all()
    row = np.repeat(np.arange(2), servers.counts)
    for now in set(starts):
        running = (begins <= now) & (now < ends)
        for i in range(3):
            used = servers.demands[jobs.stream[job[running & (np.array(where) == i)]], 0].sum(axis=0)
            assert (used <= servers.capacities[row[i]] + 1e-9).all()
    for each in range(8):
        assert (np.diff(begins[job == each]) >= 0).all()


def test_before_anything_happens() -> None:
    """Tasks job by job, jobs by stream, and servers that are not there yet are closed."""
    begun = Run.begin(
        filling([[1.0], [2.0]], [2, 2], [[1.0], [1.0]]), work([1, 0, 1], [2, 1, 3], [1.0] * 3, [0.0, 1.0, 2.0], servers=[2, 1])
    )
    assert begun.jobs.tolist() == [1, 0, 2]
    assert begun.head.tolist() == [0, 1]
    assert begun.job_of.tolist() == [0, 0, 1, 2, 2, 2]
    assert begun.closed.tolist() == [False, False, False, True]
    assert np.isnan(begun.start).all()
    assert sorted((EVENT, RUNNING, STARTED, IN_LINE, IN_POOL, FREED)) == list(range(begun.progress.size))
