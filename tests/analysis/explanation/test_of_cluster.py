"""Resources of the whole cluster in explanations, comparisons, reports, pictures, what-ifs and exports."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import fairopt as fo
from fairopt.analysis.explanation.of_cluster import blockers_of_cluster, full_of_cluster
from fairopt.reporting.tables.instance import shared_table

POOL = fo.Instance(
    [[20, 64], [10, 32]],
    [[1, 1, 1, 0], [1, 0, 0, 0], [1, 1, 2, 1], [0, 0, 0, 2]],
    shared={"ansys": 10, "uplink": 6},
    resources=["cpu", "memory"],
    users=["L", "C", "M", "U"],
    servers=["a", "b"],
)


@pytest.mark.parametrize("exact", [False, True])
def test_what_stops_a_user(exact: bool) -> None:
    """The licences stop L and M, the uplink U; of M the uplink is full as well, but U, who is ahead, would give way."""
    answer = fo.solve(POOL, "drfh", exact=exact)
    view = answer.as_known
    assert view.tasks_per_user.astype(float) == pytest.approx([5, 22.5, 2.5, 1.75])
    explained = fo.explain(answer, "L")
    assert "Bottleneck: all 10 ansys of the cluster are in use." in explained.sentences
    assert "Who has that ansys: M 50 %, L itself 50 %." in explained.sentences
    (blocker,) = explained.blockers
    assert (blocker.server, blocker.resource, blocker.bottleneck) == ("", "ansys", True)
    best = explained.gains[0] if explained.gains[0].kind == "capacity" else explained.gains[1]
    assert best.change == "+1 ansys in the cluster"
    assert best.by_solving == (Fraction(1, 2) if exact else pytest.approx(0.5))
    assert best.by_price == (Fraction(1, 2) if exact else pytest.approx(0.5))
    assert [(each.resource, each.stops) for each in full_of_cluster(view, 2)] == [(2, True), (3, False)]
    assert [each.resource for each in blockers_of_cluster(view, 1)] == []


def test_what_it_pays() -> None:
    """Under a sum, the shared resource has a price, and takes its part of what is spent."""
    explained = fo.explain(fo.solve(POOL, "proportional"), "U")
    assert "At the prices that prove this optimum it pays 100 % for uplink of the cluster." in explained.sentences


def test_a_queue() -> None:
    """Its users, what stops them, and what would help."""
    queued = POOL.replace(queues=[fo.Queue("lab", guarantee={"ansys": 4})], queue_of=["lab", None, "lab", None])
    told = fo.explain(fo.solve(queued, "drfh"), queue="lab").sentences
    assert "It is guaranteed 4 ansys, which it has; it borrows 6 beyond that." in told
    assert "L is stopped: all 10 ansys of the cluster are in use." in told


def test_nobody_may_have_what_is_not_there() -> None:
    """S = 0."""
    none = POOL.replace(shared={"ansys": 0})
    assert fo.explain(fo.solve(none), "L").sentences[0] == "L gets nothing: its tasks need ansys, and the cluster has none."


def test_use_in_comparisons_and_data() -> None:
    """Of the whole cluster beside that of servers."""
    found = fo.compare(POOL, notions=["drfh"])
    assert found["drfh"].use == pytest.approx({"cpu": 1.0, "memory": 7.5 / 96, "ansys": 1.0, "uplink": 1.0})
    allocation = fo.solve(POOL)
    assert [each["name"] for each in allocation.to_dict()["shared"]] == ["ansys", "uplink"]
    assert set(allocation.to_dict()["servers"][0]["usage"]) == {"cpu", "memory"}
    table = shared_table(POOL)
    assert table is not None
    assert shared_table(fo.Instance([[1]], [[1]])) is None


def test_pictures() -> None:
    """A bar of the whole cluster, or a line where servers are many."""
    pytest.importorskip("matplotlib")
    page = fo.solve(POOL).plot()
    assert "Use of each server and of the cluster" in {axes.get_title(loc="left") for axes in page.axes}
    ticks = [label.get_text() for axes in page.axes for label in axes.get_yticklabels()]
    assert {"the whole cluster", "ansys", "uplink"} <= set(ticks)
    many = fo.generate("uniform", users=4, servers=60, shared=1, seed=2)
    labels = [text.get_text() for legend in fo.solve(many).plot().legends for text in legend.get_texts()]
    assert "licence-1 of the cluster" in labels
    fo.compare(POOL, notions=["drfh", "proportional"]).plot()


def test_what_if() -> None:
    """Each difference by itself, named as in --set."""
    found = fo.what_if(POOL, POOL.replace(shared={"ansys": 12, "uplink": 9}))
    assert [str(each) for each in found.differences] == ["shared.ansys: 10 -> 12", "shared.uplink: 6 -> 9"]
    assert {effect.what: round(effect.changes["L"], 6) for effect in found.effects["drfh"]} == {"shared.ansys": 1.0, "shared.uplink": 0.0}


def test_exports_say_what_they_do_not_limit(tmp_path: Path) -> None:
    """Whole tasks keep within the licences; Slurm's file limits them, those of other schedulers do not."""
    whole = POOL.replace(tasks=[5, 5, 2, 1])
    export = fo.export_slurm(fo.solve(whole))
    assert not any("of the whole cluster" in note for note in export.notes)
    assert "license/ansys=" in export.text
    others = fo.export_volcano(fo.solve(whole)).notes
    assert any("10 ansys and 6 uplink of the whole cluster" in note for note in others)
    tasks = export.allocation.tasks_per_user
    assert (tasks @ whole.shared_demands <= whole.shared_capacity).all()


@pytest.mark.parametrize("kind", ["uniform", "google", "gpus", "constrained", "correlated"])
def test_generators(kind: str) -> None:
    """The same draw, and licences beside it."""
    plain, shared = (fo.generate(kind, users=6, servers=4, seed=5, **more) for more in ({}, {"shared": 2}))
    assert shared.server_demands.tolist() == plain.demands.tolist()
    assert shared.capacities.tolist() == plain.capacities.tolist()
    assert (shared.shared_demands.sum(axis=0) >= 1).all()
    assert fo.solve(shared).certificate.worst <= 1e-8
    assert fo.generate(kind, users=6, servers=4, seed=5, shared=2) == shared


def test_a_lower_tier_finds_them_in_use() -> None:
    """All 4 licences are those of tier 1; whoever comes later has none of them, and room on the server."""
    pool = fo.Instance(
        [[20]],
        [[1, 1], [1, 1], [1, 0]],
        resources=["cpu"],
        shared={"ansys": 4},
        users=["late", "first", "plain"],
        queues=[fo.Queue("q"), fo.Queue("r", tier=1)],
        queue_of=["q", "r", "r"],
        tasks={"plain": 3},
    )
    allocation = fo.solve(pool, "drfh")
    assert allocation.tasks_per_user == pytest.approx([0, 4, 3])
    by = {user: names for stops in allocation.stopped_by for user, names in stops.items()}
    assert by == {"late": ("ansys of the cluster",), "first": ("ansys of the cluster",), "plain": ("tasks of plain",)}
    text = str(fo.explain(allocation, "late", resolves=0))
    assert "Bottleneck: all 4 ansys of the cluster are in use." in text
    assert "2 users of higher tiers are served first." in text
    assert "there is room" not in text


def test_a_limit_is_no_reason_to_envy() -> None:
    """b holds 9 tasks, of which a could run all; its limit of 3 is what stops it."""
    pool = fo.Instance([[12]], [[1], [1]], resources=["cpu"], users=["a", "b"], limits=[fo.Limit("three", 3, users=["a"])])
    text = str(fo.explain(fo.solve(pool, "drf"), "a", resolves=0))
    assert "could run 9 tasks, 6 more than it has, but a limit stops it: all 3 tasks of limit three are in use." in text
