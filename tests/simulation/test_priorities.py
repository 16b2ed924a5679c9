"""Why a priority is what it is: the published example, and the first change of a rank against a walk through time."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from support.command_line import flat, run

import fairopt as fo
from fairopt.simulation.baselines.fair_tree import FairTree


def lab() -> fo.Instance:
    """Return two accounts, one inside the other's neighbour, and four users."""
    queues = [fo.Queue("lab", weight=2), fo.Queue("optics", parent="lab"), fo.Queue("club")]
    users = ["ada", "bob", "eve", "ann"]
    return fo.Instance(
        [[64, 256]], [[4, 1], [1, 8], [2, 2], [1, 1]], users=users, queues=queues, queue_of=["optics", "optics", "club", "lab"],
        tasks=[8, 8, 8, 8], resources=["cpu", "memory"], weights=[1, 2, 1, 1],
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("half_life", ["1h", "inf"])
def test_the_first_change_in_a_walk_through_time(seed: int, half_life: str) -> None:
    """Ranks by the definition, at steps of time: they change where the explanation says, and not before."""
    rng = np.random.default_rng(seed)
    cluster, h = lab(), math.inf if half_life == "inf" else 3600.0
    usage = dict(zip(cluster.users, rng.integers(1, 9000, 4).tolist(), strict=True))
    held = rng.integers(0, 8, (4, 1)).astype(float)
    found = fo.explain_priority(cluster, "bob", f"fairtree:half_life={half_life}", usage=usage, held=held)
    tree, rate = FairTree(cluster.tree, cluster.weights), held[:, 0] * cluster.demands[:, 0]

    def rank(seconds: float) -> int:
        z = 2 ** (-seconds / h) if math.isfinite(h) else 1.0
        grown = (1 - z) * h / math.log(2) if math.isfinite(h) else seconds
        return int(tree.ranks(np.array([usage[name] for name in cluster.users]) * z + rate * grown)[1]) + 1

    assert rank(0.0) == found.rank
    for change, sign in ((found.better, -1), (found.worse, 1)):
        walk = np.linspace(0, 40_000, 4001)[1:]
        first = next((time for time in walk if sign * (rank(time) - found.rank) > 0), None)
        if first is None:
            assert change is None or change.seconds > 39_000
        else:
            assert change is not None
            assert first - 10.0001 <= change.seconds <= first
            assert rank(change.seconds + 0.01) == change.rank


def test_nothing_changes_where_nothing_runs() -> None:
    """All usage fades alike; and it says that it does not know what runs."""
    usage = {"ada": 4000, "bob": 100, "eve": 50, "ann": 10}
    found = fo.explain_priority(lab(), "ada", usage=usage, held=np.zeros((4, 1)))
    assert (found.better, found.worse) == (None, None)
    assert "It does not get better while what runs goes on" in str(found)
    found = fo.explain_priority(lab(), "ada", usage=usage)
    assert "What runs is not known" in str(found)
    assert [place.name for place in found.way] == ["lab", "optics", "ada"]
    assert found.way[0].used == pytest.approx(4110 / 4160)


def test_htcondor() -> None:
    """Priorities 10 and 5: a third and two thirds of the free cores; with 12 cores in use the better one falls behind."""
    cluster = fo.Instance([[30]], np.ones((2, 1)), users=["a", "b"], resources=["cpu"])
    faded = {name: priority * 100 / math.log(2) for name, priority in (("a", 10), ("b", 5))}
    found = fo.explain_priority(cluster, "a", "priority:half_life=100", usage=faded, held=[[0.0], [12.0]])
    assert (found.rank, round(found.priority, 9), round(found.best, 9), round(found.part, 9)) == (2, 10, 5, round(1 / 3, 9))
    assert found.better is not None
    z = 12 / 17  # 10 z = 5 z + 12 (1 - z)
    assert found.better.seconds == pytest.approx(-100 * math.log2(z))
    with pytest.raises(fo.InvalidInstance, match='there is no user "c"'):
        fo.explain_priority(cluster, "c", "priority:half_life=100")
    with pytest.raises(fo.Unsupported, match='the order of "fifo" is not explained'):
        fo.explain_priority(cluster, "a", "fifo")
    with pytest.raises(fo.Unsupported, match='the order of "fairtre:half_life=7d" is not explained \\(did you mean "fairtree"'):
        fo.explain_priority(cluster, "a", "fairtre:half_life=7d")


@pytest.mark.parametrize("seed", range(6))
def test_windows_in_a_walk_through_time(seed: int) -> None:
    """Targets minus usage in windows by the definition, at steps of time: ranks change where the explanation says, and not before."""
    rng = np.random.default_rng(seed)
    cluster, interval, depth, decay = lab(), 1000.0, 3, 0.5
    past = {name: rng.integers(0, 4000, depth).tolist() for name in cluster.users}
    held = rng.integers(0, 3, (4, 1)).astype(float)
    found = fo.explain_priority(cluster, "bob", f"maui:interval={interval}:depth={depth}:decay={decay}", usage=past, held=held)
    wanted = [2 / 3 * 1 / 2 * 1 / 3, 2 / 3 * 1 / 2 * 2 / 3, 1 / 3, 2 / 3 * 1 / 2]
    rate = held[:, 0] * cluster.demands[:, 0]

    def rank(seconds: float) -> int:
        began = int(seconds // interval)
        windows = [[*([r * interval] * began), *past[name]] for r, name in zip(rate, cluster.users, strict=True)]
        for n, own in enumerate(windows):
            own[began] = past[cluster.users[n]][0] + rate[n] * min(seconds, interval)
            if began:
                own[0] = rate[n] * (seconds - began * interval)
        used = [sum(decay**k * own[k] for k in range(depth)) for own in windows]
        distance = np.round([w - u / max(sum(used), 1e-12) for w, u in zip(wanted, used, strict=True)], 10)
        return 1 + len({d for d in distance if d > distance[1]})

    assert found.rank == rank(0.0)
    steps = np.arange(1.0, 5 * interval, 5.0)
    ranks = np.array([rank(s) for s in steps])
    for change, differs in ((found.better, ranks < found.rank), (found.worse, ranks > found.rank)):
        first = steps[differs][0] if differs.any() else math.inf
        assert (change is None) == math.isinf(first), (change, first)
        assert change is None or first - 5.0 <= change.seconds <= first


def test_the_windows_of_moab() -> None:
    """55.81, 51.16, 44.05 and 21.45 % of four windows with decay 0.5 are 50.3 %."""
    totals = np.array([8154.0, 11533.0, 10236.0, 9346.0])
    used = np.array([0.5581, 0.5116, 0.4405, 0.2145]) * totals
    cluster = fo.Instance([[30]], np.ones((2, 1)), users=["a", "b"], resources=["cpu"])
    found = fo.explain_priority(cluster, "a", "maui:depth=4:decay=0.5", usage={"a": used.tolist(), "b": (totals - used).tolist()})
    assert (found.rank, round(found.way[0].used, 3), found.way[0].shares, found.next) == (2, 0.503, 0.5, ("b", "a"))
    assert 'At the root, "a" has 50 % of the shares and 50.3 % of the usage: place 2 of 2' in str(found)


def test_on_the_command_line(tmp_path: Path) -> None:
    """As a table and as JSON, which the schema allows; a queue as well."""
    jsonschema = pytest.importorskip("jsonschema")
    fo.save(lab(), tmp_path / "lab.yaml")
    (tmp_path / "usage.csv").write_text("name,usage\nada,4000\nbob,100\neve,50\nlab,900\n")
    (tmp_path / "held.csv").write_text("user,server,tasks\nada,server-1,1\neve,server-1,8\n")
    line = ("explain", tmp_path / "lab.yaml", "--scheduler", "fairtree:half_life=1h", "--usage", tmp_path / "usage.csv")
    text = flat(run(*line, "--user", "bob", "--allocation", tmp_path / "held.csv").stdout)
    assert 'At the root, "lab" has 66.7 % of the shares and 99 % of the usage: place 2 of 2. That decides first.' in text
    assert "It gets better in" in text
    data = json.loads(run(*line, "--queue", "optics", "--json").stdout)
    assert [place["name"] for place in data["way"]] == ["lab", "optics"]
    jsonschema.validate(data, json.loads(run("schema", "result").stdout))
    message = flat(run(*line, "--user", "bob", "--only", "cpu", "--time-limit", 5, status=2).stderr)
    assert "a scheduler of jobs has no notion; leave --only and --time-limit out" in message
    assert "give --scheduler" in flat(run("explain", tmp_path / "lab.yaml", "--user", "bob", "--billing", "cpu=1", status=2).stderr)
