"""Resources of the cluster and named limits in a history: numbers by hand, a slow loop, owners and the users of the cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from reference.history import slow_loop

import fairopt as fo

WORDS = ["entitled", "received", "shortfall", "surplus"]
SHAPES = {"A": [1, 1], "B": [2, 1], "C": [1, 0]}
SHARED = fo.Instance([[6], [6]], list(SHAPES.values()), weights=[2, 1, 1], shared={"licences": 8}, resources=["cpu"], users=["A", "B", "C"])


def jobs_of(seed: int) -> pd.DataFrame:
    """Return random jobs, some of which never start, that exceed nothing much."""
    rng, rows = np.random.default_rng(seed), []
    for _ in range(12):
        user = "ABC"[rng.integers(3)]
        submit, wait, run = rng.integers(0, 60), rng.integers(0, 30), rng.integers(1, 30)
        never = rng.random() < 0.15
        rows.append((user, submit, np.nan if never else submit + wait, submit + wait + run, rng.integers(1, 4), *SHAPES[user]))
    return pd.DataFrame(rows, columns=["user", "submit", "start", "end", "tasks", "cpu", "licences"])


@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_a_slow_loop(seed: int) -> None:
    """Every change solved anew: licences, a limit of all and one of each user."""
    frame = jobs_of(seed)
    for limits in ([], [fo.Limit("few", 5), fo.Limit("each", 4, resource="cpu", each="user", servers=["server-1"])]):
        cluster = SHARED.replace(limits=limits)
        found = fo.history(frame, cluster, moments="all", lenient=True).to_frame()
        for name, sums in slow_loop(frame, cluster, SHAPES).items():
            assert found.loc[name, WORDS].to_numpy().tolist() == pytest.approx(sums.tolist(), rel=1e-8, abs=1e-11)


def test_licences_are_like_a_resource_of_the_only_server() -> None:
    """The same of everything, envy and the averages included."""
    frame = jobs_of(5).assign(server="server-1")
    one = fo.Instance([[12, 8]], list(SHAPES.values()), weights=[2, 1, 1], resources=["cpu", "licences"], users=["A", "B", "C"])
    other = SHARED.replace(capacities=[[12]], counts=None, eligibility=None, servers=["server-1"])
    expected, found = (fo.history(frame, cluster, moments="all", lenient=True) for cluster in (one, other))
    assert found.judges_envy
    for column in found.to_frame().columns:
        assert found.to_frame()[column].tolist() == pytest.approx(expected.to_frame()[column].tolist(), abs=1e-9)
    assert found.due.tasks_per_user == pytest.approx(expected.due.tasks_per_user)
    assert found.to_frame("limit")[["kind", "name", "bound"]].to_numpy().tolist() == [["shared", "licences", 8.0]]


def log(*rows: tuple[Any, ...]) -> pd.DataFrame:
    """Return a log of rows of user, submit, start, end in hours, tasks and gpu."""
    frame = pd.DataFrame(list(rows), columns=["user", "submit", "start", "end", "tasks", "gpu"])
    return frame.assign(**{name: frame[name] * 3600.0 for name in ("submit", "start", "end")})


def test_how_full_limits_were_by_hand() -> None:
    """ann holds 4 GPUs for 2 of 4 hours, then none; bob holds 2 for an hour. Of each, 4 at most; of long jobs, of both, 8."""
    frame = log(("ann", 0, 0, 2, 4, 1), ("bob", 1, 1, 2, 1, 2), ("bob", 2, 3, 4, 2, 1))
    limits = [fo.Limit("each", 4, resource="gpu", each="user"), fo.Limit("both", 8, resource="gpu"), fo.Limit("tasks", 10)]
    cluster = fo.Instance([[8]], [[1]], users=["x"], resources=["gpu"], limits=limits)
    found = fo.history(frame, cluster).to_frame("limit").set_index("name")
    assert found["most_use"].tolist() == pytest.approx([1, 6 / 8, 5 / 10])
    assert found["mean_use"].tolist() == pytest.approx([(2 * 1 + 2 / 4) / 4, (4 + 6 + 0 + 2) / 8 / 4, (4 + 5 + 0 + 2) / 10 / 4])


def test_a_limit_of_each_user_is_one_of_each_owner() -> None:
    """ann has two shapes, and a limit of 2 tasks on both together; the cluster lists a user for each shape, and their owner."""
    frame = log(("ann", 0, 1, 2, 4, 1), ("ann", 0, 1, 2, 4, 2), ("bob", 0, 1, 2, 8, 1))
    limits = [fo.Limit("two", 2, each="user")]
    cluster = fo.Instance(
        [[24]], [[1], [2], [1]], users=["ann/1", "ann/2", "bob"], owners=["ann", "ann", None], resources=["gpu"], limits=limits
    )
    assert fo.history(frame, cluster).to_frame()["entitled_tasks"].tolist() == pytest.approx([2 + 8, 2 + 8])


def test_limits_of_users_of_an_owner() -> None:
    """A limit on the large shape of ann is one on its large jobs; a job like neither of its users is refused where it matters."""
    frame = log(("ann", 0, 1, 2, 4, 1), ("ann", 0, 1, 2, 4, 2), ("bob", 0, 1, 2, 1, 1))
    cluster = fo.Instance(
        *([[16]], [[1], [2], [1]]),
        users=["ann/1", "ann/2", "bob"],
        owners=["ann", "ann", None],
        resources=["gpu"],
        limits=[fo.Limit("large", 1, users=["ann/2"])],
    )
    found = fo.history(frame, cluster)
    assert found.to_frame().loc["ann", "entitled_tasks"] == pytest.approx(4 + 1 + 8)
    with pytest.raises(fo.Unsupported, match='counts users "ann/1" and "ann/2" differently, both are of "ann"'):
        fo.history(log(("ann", 0, 1, 2, 4, 3)), cluster)


def test_limits_of_users_whom_the_log_does_not_know() -> None:
    """Where the cluster knows nobody of the log, a limit that names users would do nothing."""
    cluster = fo.Instance([[8]], [[1]], users=["x"], resources=["gpu"], limits=[fo.Limit("one", 1, users=["x"])])
    with pytest.raises(fo.InvalidInstance, match='limit "one" is of users of the cluster, and the log has none of them'):
        fo.history(log(("ann", 0, 0, 2, 4, 1)), cluster)


def test_rules_that_are_limits_hold_as_these_do() -> None:
    """x[ann] <= 2 and amount[gpu, ann] <= 6 are limits of ann's tasks and GPUs, of all its shapes together; other rules are refused."""
    frame = log(("ann", 0, 1, 2, 4, 1), ("ann", 0, 1, 2, 4, 2), ("bob", 0, 1, 2, 8, 1))
    cluster = fo.Instance([[24]], [[1], [1]], users=["ann", "bob"], resources=["gpu"])
    same = {
        "x[ann] <= 2": fo.Limit("limit", 2, users=["ann"]),
        "18 >= 2 * amount[gpu, ann] + 2 * amount[gpu, bob]": fo.Limit("limit", 9, resource="gpu"),
        "x[ann] + 1/2 * x[bob] <= 5.5": fo.Limit("limit", 5.5, amounts={"ann": 1, "bob": 0.5}),
    }
    for rule, limit in same.items():
        found, expected = (fo.history(frame, cluster.replace(**change)) for change in ({"rules": [rule]}, {"limits": [limit]}))
        assert found.to_frame()["entitled_tasks"].tolist() == expected.to_frame()["entitled_tasks"].tolist()
        assert found.to_frame("limit")["most_use"].tolist() == pytest.approx(expected.to_frame("limit")["most_use"].tolist())
    assert fo.history(frame, cluster.replace(rules=["x[ann] <= 2"])).to_frame()["entitled_tasks"].tolist() == pytest.approx([2 + 8, 8 + 8])
    with pytest.raises(fo.Unsupported, match="asks for at least something, and a history keeps only rules that are limits"):
        fo.history(frame, cluster.replace(rules=["x[ann] >= 2"]))
