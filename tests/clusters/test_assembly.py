"""How owners, shapes and weights become users, and nodes rows; on instances that are worked out by hand or by an independent program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import fairopt as fo
from fairopt.clusters.account import Account
from fairopt.clusters.assembly import Nodes, assemble
from fairopt.clusters.queue_tree import Forest
from fairopt.clusters.shapes import SOMEWHERE, Tasks
from fairopt.instance.hosts import folded

GROUPS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 3), st.integers(0, 2), st.integers(1, 4)), min_size=1, max_size=6)


def tasks(groups: list[tuple[str, list[float], float]], nodes: int, running: list[tuple[int, int, float]] | None = None) -> Tasks:
    """Groups (owner, demand, number) that may run anywhere."""
    return Tasks(
        owner=[owner for owner, _, _ in groups],
        demands=np.array([demand for _, demand, _ in groups], float),
        number=np.array([number for _, _, number in groups], float),
        allowed=np.ones((1, nodes), bool),
        place=np.zeros(len(groups), int),
        where=[f"line {j}" for j in range(len(groups))],
        running=running or [],
    )


UNITS = {"cpu": "cores", "memory": "GiB"}


def test_an_owner_with_several_shapes_is_a_queue() -> None:
    """The weight of the owner is that of its queue; its shapes have the same weight in it. An owner with one shape is a queue too."""
    nodes = Nodes(["n1"], np.array([[10.0, 100.0]]))
    imported = assemble(
        "test", nodes, tasks([("a", [1, 1], 4), ("a", [3, 0], 2), ("b", [1, 0], 9)], 1), Account(False), units=UNITS, own_weights={"a": 5}
    )
    instance = imported.instance
    assert instance.users == ("a/3 cpu", "a/1 cpu 1 memory", "b")
    assert instance.queues == (fo.Queue("a", weight=5), fo.Queue("b"))
    assert instance.queue_of == ("a", "a", "b")
    assert instance.weights.tolist() == [1, 1, 1]
    assert imported.owners == ("a", "a", "b")
    assert imported.queues == {"a": ("a",), "b": ("b",)}
    assert imported.to_frame()["weight"].to_dict() == {"a": 5, "b": 1}
    assert imported.options == {}


@pytest.mark.parametrize("demand", ["shapes", "mean"])
def test_owners_with_one_shape_each_need_no_tree(demand: Any) -> None:
    """They are users with the weights of owners."""
    groups = [("a", [1.0, 1.0], 4.0), ("b", [1.0, 0.0], 9.0)]
    imported = assemble(
        "test", Nodes(["n"], np.array([[9.0, 9.0]])), tasks(groups, 1), Account(False), units=UNITS, own_weights={"b": 2}, demand=demand
    )
    assert imported.instance.weights.tolist() == [1, 2]
    assert (imported.instance.queues, imported.queues) == ((), {})
    assert imported.to_frame()["weight"].to_dict() == {"a": 1, "b": 2}


def test_quotas_on_nodes_become_quotas_on_rows() -> None:
    """Four equal nodes, of which a quota names two, one of them closed: three rows become two; what nobody has is left out."""
    groups = tasks([("a", [1, 1], 1)], 3)
    queue = fo.Queue(
        "top",
        limit={"cpu": 4, "disk": 1},
        quotas=[fo.Quota(["n1", "n3", "closed"], {"cpu": 2}, name="fast"), fo.Quota(["closed"], {"cpu": 1})],
    )
    forest = Forest((queue, fo.Queue("a", "top", 2)), "clamp", "Test")
    imported = assemble("test", Nodes(["n1", "n2", "n3"], np.full((3, 2), 4.0)), groups, Account(False), units=UNITS, forest=forest)
    instance = imported.instance
    assert (instance.servers, instance.counts.tolist()) == (("n1 +1", "n2"), [2, 1])
    assert instance.queues == (
        fo.Queue("top", limit={"cpu": 4}, quotas=[fo.Quota(["n1 +1"], {"cpu": 2}, name="fast")]),
        fo.Queue("a", "top", 2),
    )
    assert (imported.options, imported.summary["guarantees"]) == ({"guarantees": "clamp"}, "clamp")
    assert any(note.startswith("what a guarantee means in Test: shares rise by weights") for note in imported.notes)


def test_guarantees_that_do_not_fit_are_said() -> None:
    """Children with 3 and 4 in a queue with 5, on a node of 4."""
    queues = (fo.Queue("top", guarantee={"cpu": 5}), fo.Queue("a", "top", guarantee={"cpu": 3}), fo.Queue("b", "top", guarantee={"cpu": 4}))
    groups = tasks([("a", [1, 1], 1), ("b", [1, 1], 1)], 1)
    for excess in ("", "Test refuses it"):
        forest = Forest(queues, "surplus", "Test", excess=excess)
        notes = assemble("test", Nodes(["n"], np.array([[4.0, 4.0]])), groups, Account(False), units=UNITS, forest=forest).notes
        assert any("guarantees of cpu exceed the cluster by 3" in note for note in notes)
        assert any("2 more than the queue itself (5)" in note for note in notes)
        assert any("top: children's guarantees exceed the parent's. Test refuses it; fairopt" in note for note in notes) == bool(excess)


@settings(max_examples=40)
@given(GROUPS)
def test_an_owner_has_its_share_whatever_its_shapes(groups: list[tuple[str, int, int, int]]) -> None:
    """One resource, no constraints: the sums over shapes are the max-min fair shares of the owners, by a program of its own.

    Water filling over owners: the least over k of (capacity - what k satisfied owners ask for) / the rest.
    """
    asked: dict[str, float] = {}
    for owner, demand, _, number in groups:
        asked[owner] = asked.get(owner, 0.0) + demand * number
    capacity = 6.0
    left, owners, expected = capacity, sorted(asked, key=lambda name: asked[name]), {}
    for j, owner in enumerate(owners):
        expected[owner] = min(asked[owner], left / (len(owners) - j))
        left -= expected[owner]
    imported = assemble(
        "test", Nodes(["n"], np.array([[capacity]])), tasks([(o, [d], t) for o, d, _, t in groups], 1), Account(False), units={"cpu": ""}
    )
    allocation = fo.solve(imported.instance, "drfh")
    got = dict.fromkeys(asked, 0.0)
    for n, owner in enumerate(imported.owners):
        got[owner] += allocation.tasks_per_user[n] * imported.instance.demands[n, 0]
    assert got == pytest.approx(expected, abs=1e-6)
    frame = imported.to_frame({"drfh": allocation})
    assert frame["drfh"].to_dict() == pytest.approx({owner: share / capacity for owner, share in expected.items()}, abs=1e-6)


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_rows_lose_nothing(seed: int) -> None:
    """The most weighted tasks on the rows and on single nodes, by an independent linear program each."""
    rng = np.random.default_rng(seed)
    nodes, groups = 6, 4
    capacities = rng.integers(2, 4, (nodes, 2)).astype(float)
    allowed = rng.random((2, nodes)) < 0.7
    allowed[:, 0] = True
    demands = rng.integers(1, 3, (groups, 2)).astype(float)
    place, number = rng.integers(0, 2, groups), rng.integers(1, 5, groups).astype(float)
    given_tasks = Tasks([f"u{j}" for j in range(groups)], demands, number, allowed, place, [""] * groups)
    instance = assemble("test", Nodes([f"n{i}" for i in range(nodes)], capacities), given_tasks, Account(False), units=UNITS).instance

    def most(capacity: np.ndarray, demand: np.ndarray, may: np.ndarray, limit: np.ndarray) -> float:
        pairs = np.argwhere(may)
        rows, bounds = [], []
        for i in range(len(capacity)):
            for r in range(2):
                rows.append(np.where(pairs[:, 1] == i, demand[pairs[:, 0], r], 0.0))
                bounds.append(capacity[i, r])
        for n in range(len(demand)):
            rows.append(np.where(pairs[:, 0] == n, 1.0, 0.0))
            bounds.append(limit[n])
        solved = linprog(-np.ones(len(pairs)), A_ub=np.array(rows), b_ub=bounds)
        assert solved.status == 0
        return -float(solved.fun or 0.0)

    single = most(capacities, demands, allowed[place], number)
    merged = most(instance.row_capacity, instance.demands, instance.eligibility, instance.tasks)
    assert merged == pytest.approx(single)
    assert instance.counts.sum() == nodes


def test_nodes_differ_where_a_user_may_run_on_one_only() -> None:
    """Equal capacity is not enough; the row is named after the first, in natural order."""
    groups = tasks([("a", [1, 1], 1), ("b", [1, 1], 1)], 4)
    groups.allowed, groups.place = np.array([[True] * 4, [True, True, True, False]]), np.array([0, 1])
    nodes = Nodes(["n10", "n2", "n1", "n3"], np.full((4, 2), 8.0))
    instance = assemble("test", nodes, groups, Account(False), units=UNITS).instance
    assert instance.servers == ("n1 +2", "n3")
    assert instance.counts.tolist() == [3, 1]
    assert instance.eligibility.tolist() == [[True, True], [True, False]]


def test_what_runs_is_summed_by_row() -> None:
    """Two nodes of a row; a third of its own capacity."""
    nodes = Nodes(["n1", "n2", "big"], np.array([[4.0, 4], [4, 4], [8, 8]]))
    imported = assemble(
        "test", nodes, tasks([("a", [1, 1], 5), ("b", [2, 1], 1)], 3, [(0, 0, 2), (0, 1, 1), (1, 2, 1)]), Account(False), units=UNITS
    )
    assert imported.current is not None
    assert imported.instance.servers == ("big", "n1 +1")
    assert imported.current.tasks.tolist() == [[0, 3], [1, 0]]
    assert imported.current_csv() == "user,server,tasks\na,n1 +1,3\nb,big,1\n"
    assert (imported.current.notion, imported.current.solver) == ("given", "given")


def test_rows_have_the_names_of_their_nodes_and_users_their_owners() -> None:
    """In natural order, whatever the order of the export; labels are as ever, and nothing has to be read from them."""
    nodes = Nodes(["n10", "gpu", "n2", "n1"], np.array([[4.0, 9.0], [8.0, 9.0], [4.0, 9.0], [4.0, 9.0]]))
    groups = [("lab/vision", [1.0, 1.0], 4.0), ("lab/speech", [1.0, 0.0], 9.0), ("lab/speech", [2.0, 0.0], 9.0)]
    instance = assemble("test", nodes, tasks(groups, 4), Account(False), units=UNITS).instance
    assert instance.servers == ("gpu", "n1 +2")
    assert instance.hosts == (("gpu",), ("n1", "n2", "n10"))
    assert instance.users == ("lab/speech/2 cpu", "lab/speech/1 cpu", "lab/vision")
    assert instance.owners == ("lab/speech", "lab/speech", "lab/vision")


E = Path(__file__).parent / "exports"
EXPORTED: dict[str, tuple[Callable[[], fo.Import], list[str], set[str]]] = {
    "kubernetes": (
        lambda: fo.import_kubernetes(E / "kubernetes_nodes.json", E / "kubernetes_pods.json"),
        ["control-1", "gpu-1", "worker-2", "worker-10"],
        {"ml", "sandbox", "shop"},
    ),
    "slurm": (
        lambda: fo.import_slurm(E / "slurm_nodes.json", E / "slurm_jobs.json", E / "slurm_associations.json"),
        ["cn[1-2]", "gn1", "gn2"],
        {"biology", "optics"},
    ),
    "pbs": (lambda: fo.import_pbs(E / "pbs_nodes.json", E / "pbs_jobs.json"), ["pbs[1-2]", "pbs3"], {"ann", "ben", "carl"}),
    "htcondor": (
        lambda: fo.import_htcondor(E / "htcondor_slots.json", E / "htcondor_jobs.json", users="user"),
        ["g1.example", "old.example", "w[1-2].example"],
        {"ada", "ben", "cyd"},
    ),
    "yarn": (lambda: fo.import_yarn(E / "yarn_nodes.json", E / "yarn_apps.json"), ["h[1-2]:45454"], {"adhoc", "etl"}),
    "ray": (
        lambda: fo.import_ray(E / "ray_nodes.json", E / "ray_tasks.json", jobs=E / "ray_jobs.json", users="job"),
        ["10.0.0.1", "10.0.0.2", "10.0.0.3"],
        {"job 01000000", "job 02000000"},
    ),
    "openb": (lambda: fo.import_openb(E / "openb_nodes.csv", E / "openb_pods.csv", users="qos"), ["n0", "n[1-2]", "n3"], {"BE", "LS"}),
    "google2011, events": (
        lambda: fo.import_google2011(E / "google_machine_events.csv", E / "google_tasks.csv"),
        ["[1-2]", "3"],
        {"U1", "U2"},
    ),
    "google2011, kinds": (lambda: fo.import_google2011(E / "google_machines.csv", E / "google_tasks.csv"), [], {"U1", "U2"}),
    "swf": (lambda: fo.import_swf(E / "log.swf"), [], {"user 1", "user 2", "user 3"}),
}


@pytest.mark.parametrize("kind", EXPORTED)
def test_every_import_names_hosts_and_owners(kind: str) -> None:
    """Where the export does: not of kinds of machine, nor of logs that only count processors. A file keeps them."""
    imported, hosts, owners = EXPORTED[kind]
    instance = imported().instance
    assert [folded(each) for each in instance.hosts if each] == hosts
    assert set(instance.owners) == owners
    assert instance.owners == imported().owners


def test_kinds_of_machine_are_no_hosts() -> None:
    """Nor is a name that no host can have: then the hosts of the whole row are not known."""
    group = [("a", [1.0, 1.0], 4.0)]
    kinds = Nodes(["small", "large"], np.array([[4.0, 9.0], [8.0, 9.0]]), np.array([1.0, 7.0]))
    assert assemble("test", kinds, tasks(group, 2), Account(False), units=UNITS).instance.hosts == ((), ())
    kinds.hosts = [["m7"], []]
    assert assemble("test", kinds, tasks(group, 2), Account(False), units=UNITS).instance.hosts == ((), ("m7",))
    strange = Nodes(["a", "two words", "c"], np.array([[4.0, 9.0], [4.0, 9.0], [8.0, 9.0]]))
    assert assemble("test", strange, tasks(group, 3), Account(False), units=UNITS).instance.hosts == ((), ("c",))


def test_a_node_that_holds_more_than_it_has_is_named() -> None:
    """Six tasks on a node of four; with its empty twin they would fit, so the sum alone would not show it."""
    nodes = Nodes(["n1", "n2"], np.full((2, 2), 4.0))
    imported = assemble("test", nodes, tasks([("a", [1, 1], 6)], 2, [(0, 1, 6)]), Account(False), units=UNITS)
    assert imported.instance.servers == ("n1 +1",)
    assert imported.notes == ("running tasks ask for more than the capacity of 1 node, such as n2",)


def test_a_task_that_runs_somewhere_is_placed_only_if_there_is_one_row() -> None:
    """One row: there. Two: nobody knows."""
    groups = [("a", [1.0, 1.0], 5.0)]
    alike = assemble("test", Nodes(["n1", "n2"], np.full((2, 2), 4.0)), tasks(groups, 2, [(0, SOMEWHERE, 3)]), Account(False), units=UNITS)
    assert alike.current is not None
    assert alike.current.tasks.tolist() == [[3]]
    nodes = Nodes(["n1", "n2"], np.array([[4.0, 4.0], [5.0, 5.0]]))
    unlike = assemble("test", nodes, tasks(groups, 2, [(0, SOMEWHERE, 3)]), Account(False), units=UNITS)
    assert unlike.current is None
    assert unlike.current_csv() is None
    assert unlike.held.tolist() == [3]


def test_a_task_that_runs_against_its_constraints_may_stay() -> None:
    """Constraints are looked at when a task starts."""
    groups = tasks([("a", [1, 1], 2)], 2, [(0, 1, 1)])
    groups.allowed = np.array([[True, False]])
    imported = assemble("test", Nodes(["n1", "n2"], np.array([[4.0, 4.0], [5.0, 5.0]])), groups, Account(False), units=UNITS)
    assert imported.instance.eligibility.tolist() == [[True, True]]
    assert imported.current is not None
    assert imported.current.certificate.feasibility == 0


def test_the_mean_is_the_mean() -> None:
    """(3 * (1, 0) + 1 * (5, 4)) / 4."""
    imported = assemble(
        "test",
        Nodes(["n1"], np.array([[9.0, 9.0]])),
        tasks([("a", [1, 0], 3), ("a", [5, 4], 1)], 1, [(0, 0, 2)]),
        Account(False),
        units=UNITS,
        demand="mean",
    )
    assert (imported.instance.users, imported.instance.demands.tolist(), imported.instance.tasks.tolist()) == (("a",), [[2, 1]], [4])
    assert imported.held.tolist() == [2]
    assert any("approximation" in note for note in imported.notes)


def test_what_can_never_start_is_left_out_and_counted() -> None:
    """Too large, and without demand; the rest is imported."""
    account = Account(False)
    imported = assemble(
        "test",
        Nodes(["n1"], np.array([[4.0, 4.0]])),
        tasks([("a", [1, 1], 2), ("b", [5, 1], 3), ("c", [0, 0], 7)], 1),
        account,
        units=UNITS,
    )
    assert imported.instance.users == ("a",)
    assert {why.split(" ")[0]: number for (_, why), (number, _) in imported.why_left_out.items()} == {"asks": 7, "larger": 3}


def test_a_queue_may_be_given_a_weight() -> None:
    """By its name, beside the owners."""
    forest = Forest((fo.Queue("top"), fo.Queue("a", "top")))
    nodes = Nodes(["n"], np.array([[4.0, 4.0]]))
    imported = assemble("test", nodes, tasks([("a", [1, 1], 2)], 1), Account(False), units=UNITS, forest=forest, own_weights={"top": 3})
    assert [queue.weight for queue in imported.instance.queues] == [3, 1]


def test_a_weight_for_nobody_is_refused() -> None:
    """With the owner that may have been meant."""
    with pytest.raises(fo.InvalidInstance, match=r'weight is given for "alise".*did you mean "alice"'):
        assemble(
            "test",
            Nodes(["n"], np.array([[4.0, 4.0]])),
            tasks([("alice", [1, 1], 2)], 1),
            Account(False),
            units=UNITS,
            own_weights={"alise": 2},
        )


@given(st.data())
@settings(max_examples=60)
def test_nodes_merge_only_if_nothing_tells_them_apart(data: st.DataObject) -> None:
    """Host by host: its row has its capacity, and a shape may run there if its constraints allow it, or if one of its tasks runs there."""
    nodes, groups, places = 5, 4, 2
    capacities = np.array(data.draw(st.lists(st.sampled_from([4.0, 8.0]), min_size=nodes, max_size=nodes)))
    allowed = np.array(data.draw(st.lists(st.lists(st.booleans(), min_size=nodes, max_size=nodes), min_size=places, max_size=places)))
    of = data.draw(
        st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([1.0, 2.0]), st.integers(0, 1)), min_size=groups, max_size=groups)
    )
    running = data.draw(st.lists(st.tuples(st.integers(0, groups - 1), st.integers(0, nodes - 1), st.integers(1, 3)), max_size=4))
    own = {(owner, demand, tuple(allowed[place])): np.zeros(nodes) for owner, demand, place in of}
    for j, i, number in running:
        own[of[j][0], of[j][1], tuple(allowed[of[j][2]])][i] += number
    expected = sorted(
        (owner, demand, (np.array(where) | (held > 0)).tolist(), held.tolist()) for (owner, demand, where), held in own.items()
    )
    expected = [row for row in expected if any(row[2])]
    if not expected:
        return
    imported = assemble(
        "test",
        Nodes([f"n{i}" for i in range(nodes)], capacities[:, None]),
        Tasks(
            owner=[owner for owner, _, _ in of],
            demands=np.array([[demand] for _, demand, _ in of]),
            number=np.ones(groups),
            allowed=allowed,
            place=np.array([place for _, _, place in of]),
            where=[""] * groups,
            running=[(j, i, float(number)) for j, i, number in running],
        ),
        Account(False),
        units={"cpu": "cores"},
    )
    instance = imported.instance
    row_of = {host: i for i, hosts in enumerate(instance.hosts) for host in hosts}
    rows = [row_of[f"n{i}"] for i in range(nodes)]
    assert instance.capacities[rows, 0].tolist() == capacities.tolist()
    assert imported.current is not None
    found = []
    for n, owner in enumerate(imported.owners):
        found.append((owner, float(instance.demands[n, 0]), instance.eligibility[n][rows].tolist()))
        held = next(row[3] for row in expected if row[:3] == found[-1])
        of_rows = np.bincount(rows, weights=held, minlength=instance.n_servers)
        assert np.isclose(imported.current.tasks[n], of_rows).all() or len([row for row in expected if row[:3] == found[-1]]) > 1
    assert sorted(found) == [row[:3] for row in expected]
    distinct = {(capacities[i], *(bool(instance.eligibility[n, rows[i]]) for n in range(instance.n_users))) for i in range(nodes)}
    assert instance.n_servers == len(distinct)
