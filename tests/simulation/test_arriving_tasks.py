"""The allocation ratio as tasks arrive: the greedy engine against slow references, the bound against other programs, the figure."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.arriving_tasks import Reference
from reference.named_limits import with_limits
from scipy.optimize import linprog
from strategies import instances
from support.real_data import DATA, needs
from typer.testing import CliRunner

import fairopt as fo
from fairopt.cli import app
from fairopt.solvers import Placement, place_arrivals
from fairopt.specs import read_placement

OPENB = DATA / "openb"
RUNNER = CliRunner()

GPUS = fo.generate("gpus", seed=1)
TWO_SERVERS = fo.Instance([[4.0], [4.0]], [[0.6], [2.0]], tasks=[8, 2], users=["part", "two"], resources=["gpu"])


def place(instance: fo.Instance, turns: list[int], placement: str, cards: int | None = None, seed: int = 0) -> list[int]:
    """Place tasks by the engine."""
    chosen = read_placement(placement)[1]
    assert isinstance(chosen, Placement)
    return [int(i) for i in place_arrivals(instance, np.array(turns), chosen, cards=cards, seed=seed)]


# Another engine, in fractions ----------------------------------------------------------------------------------------------------


@st.composite
def gpu_clusters(draw: st.DrawFn, *, shared: bool = True) -> fo.Instance:
    """Whole cards on servers, some without; tasks that ask for none, a part of one or several, and for cores."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    k, n = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    capacities = np.column_stack([rng.integers(0, 5, k), rng.integers(4, 20, k)])
    capacities[0, 0] += 1
    parts = rng.integers(1, 10, n) / 10 if shared else np.ones(n)
    asked = np.where(rng.random(n) < 0.5, parts, rng.integers(0, 4, n))
    asked[0] = parts[0]
    return fo.Instance(
        capacities,
        np.column_stack([asked, rng.integers(1, 6, n)]),
        tasks=rng.integers(1, 8, n),
        counts=rng.integers(1, 3, k),
        eligibility=rng.random((n, k)) < 0.8 if draw(st.booleans()) else None,
        resources=["gpu", "cpu"],
    )


PLACEMENTS = ["first-fit", "best-fit", "best-fit:metric=l2", "best-fit:metric=tightest", "worst-fit"]


@given(gpu_clusters(), st.sampled_from(PLACEMENTS), st.sampled_from([None, 0]), st.randoms(use_true_random=False))
@settings(max_examples=150)
def test_every_task_goes_where_the_reference_puts_it(instance: fo.Instance, placement: str, cards: int | None, random: Random) -> None:
    """Server by server, with cards and without."""
    turns = [n for n in range(instance.n_users) for _ in range(int(instance.tasks[n]))]
    random.shuffle(turns)
    reference = Reference(instance, placement, cards)
    assert place(instance, turns, placement, cards) == [reference.put(n) for n in turns]


def elsewhere(instance: fo.Instance, seed: int) -> fo.Instance:
    """Return the cluster with tasks that take other amounts, and do other work, on other servers."""
    rng = np.random.default_rng(seed)
    shape = (instance.n_users, instance.n_servers)
    amounts = np.broadcast_to(instance.demands[:, None], (*shape, instance.n_resources)).copy()
    amounts[..., 0] *= rng.choice([0.0, 1.0, 1.0, 2.0], shape) if rng.random() < 0.8 else 1
    amounts[..., 0] = np.where((amounts[..., 0] > 1) & (amounts[..., 0] % 1 > 0), 1, amounts[..., 0])
    amounts[..., 1] *= rng.integers(1, 3, shape)
    return instance.replace(demands=amounts, speeds=rng.choice([0.25, 0.5, 1.0, 2.0], shape), eligibility=instance.eligibility)


@given(gpu_clusters(), st.sampled_from([*PLACEMENTS, "fastest"]), st.sampled_from([None, 0]), st.integers(0, 10_000))
@settings(max_examples=60)
def test_so_it_does_where_tasks_take_other_amounts_elsewhere(instance: fo.Instance, placement: str, cards: int | None, seed: int) -> None:
    """Amounts, cards and speeds by server."""
    other = elsewhere(instance, seed)
    turns = np.random.default_rng(seed).permutation([n for n in range(other.n_users) for _ in range(int(other.tasks[n]))]).tolist()
    reference = Reference(other, placement, cards)
    assert place(other, turns, placement, cards) == [reference.put(n) for n in turns]


@given(gpu_clusters(), st.sampled_from(PLACEMENTS), st.sampled_from([None, 0]), st.integers(0, 10_000))
@settings(max_examples=60)
def test_so_it_does_within_limits(instance: fo.Instance, placement: str, cards: int | None, seed: int) -> None:
    """Named limits of all selections, and licences."""
    rng = np.random.default_rng(seed)
    licences = rng.integers(0, 3, (instance.n_users, 1))
    instance = instance.replace(
        demands=np.hstack([instance.demands, licences]), shared={"licences": 6}, resources=["gpu", "cpu", "licences"]
    )
    instance = with_limits(instance, seed, round_to=10)
    turns = rng.permutation([n for n in range(instance.n_users) for _ in range(int(instance.tasks[n]))]).tolist()
    reference = Reference(instance, placement, cards)
    assert place(instance, turns, placement, cards) == [reference.put(n) for n in turns]


def test_the_bound_is_one_within_limits() -> None:
    """By hand: 10 of 40 cards at most on the two large servers together, and 12 licences; nothing that is placed exceeds the bound."""
    cluster = fo.Instance(
        *([[4.0], [8.0]], [[1.0, 1], [2.0, 0]]),
        counts=[6, 2],
        tasks=[20, 30],
        resources=["gpu"],
        shared={"licences": 12},
        limits=[fo.Limit("large", 10, resource="gpu", servers=["server-2"]), fo.Limit("few of 2", 11, users=["user-2"])],
    )
    found = fo.arrivals(cluster, "gpu", ["first-fit", "best-fit"], until=2.0, step=1.0, seeds=[1, 2], workers=1)
    assert found.bound[:, -1].tolist() == pytest.approx([34 / 40] * 2)  # 24 + 10 of servers; of users 12 + 22
    for allocated in found.allocated.values():
        assert (allocated <= found.bound + 1e-9).all()
        assert allocated[:, -1].tolist() == pytest.approx([34 / 40] * 2)


@given(instances(whole=True), st.sampled_from([*PLACEMENTS, "best-fit:metric=cosine", "best-fit:metric=dot", "slots:slots=5"]))
@settings(max_examples=60)
def test_without_cards_it_is_a_simulation_in_which_nothing_ends(instance: fo.Instance, placement: str) -> None:
    """The engine of `fairopt.simulate`, to which each task is a job that never ends: what does not fit at once waits for ever."""
    turns = np.random.default_rng(instance.n_users).integers(0, instance.n_users, 25)
    trace = fo.Trace(
        [instance.users[n] for n in turns],
        np.arange(turns.size, dtype=float),
        np.ones(turns.size, int),
        instance.demands[turns],
        np.full(turns.size, np.inf),
        eligibility=instance.eligibility[turns],
        resources=instance.resources,
    )
    word, *options = placement.split(":")
    found = fo.simulate(trace, instance.replace(weights=None), ":".join(["drfh", word, *options]))
    assert found.task_server is not None
    assert place(instance, turns.tolist(), placement) == found.task_server.tolist()


def test_random_takes_any_server_that_fits() -> None:
    """Each as likely, the same for the same seed, and none that has no room."""
    instance = fo.Instance([[1.0], [3.0], [0.5], [2.0]], [[1.0]], tasks=[1])
    drawn = [place(instance, [0], "random", seed=seed)[0] for seed in range(600)]
    assert set(drawn) == {0, 1, 3}
    assert max(abs(drawn.count(i) - 200) for i in (0, 1, 3)) < 50  # 4.3 standard deviations
    assert place(instance, [0] * 6, "random", seed=3) == place(instance, [0] * 6, "random", seed=3)
    assert sorted(place(instance, [0] * 8, "random", seed=4)) == [-1, -1, 0, 1, 1, 1, 3, 3]


# Cards ---------------------------------------------------------------------------------------------------------------------------


def test_a_part_lies_on_one_card() -> None:
    """Two cards hold two tasks of 0.6, though 1.2 of 2 is in use; then no whole card is left."""
    assert place(TWO_SERVERS, [0] * 9, "first-fit", cards=0) == [0, 0, 0, 0, 1, 1, 1, 1, -1]
    assert place(TWO_SERVERS, [0] * 9, "first-fit") == [0] * 6 + [1] * 3
    assert place(TWO_SERVERS, [0, 1, 1, 1, 1, 0, 0], "first-fit", cards=0) == [0, 0, 1, 1, -1, 0, -1]


def test_which_card() -> None:
    """One server of three cards, 0.5 and 0.3 on the first two: the next 0.3 decides whether 0.7 still fits."""
    instance = fo.Instance([[3.0]], [[0.5], [0.7], [0.3], [1.0]], tasks=[9, 9, 9, 9])
    # first-fit: 0.5 | 0.7 | 0.3 goes to the first card, 0.3 to the second; best-fit puts the first 0.3 where 0.7 is, which is then full.
    assert place(instance, [0, 1, 2, 2, 0, 3], "first-fit", cards=0) == [0, 0, 0, 0, 0, -1]
    assert place(instance, [0, 1, 2, 0, 3], "best-fit", cards=0) == [0, 0, 0, 0, 0]
    assert place(instance, [0, 2, 3, 3], "worst-fit", cards=0) == [0, 0, 0, -1]
    assert place(instance, [0, 2, 3, 3], "best-fit", cards=0) == [0, 0, 0, 0]


@given(gpu_clusters(shared=False), st.sampled_from([*PLACEMENTS, "random"]))
@settings(max_examples=50)
def test_whole_cards_add_up(instance: fo.Instance, placement: str) -> None:
    """Where nobody shares a card, cards make no difference."""
    turns = [n for n in range(instance.n_users) for _ in range(int(instance.tasks[n]))] * 2
    assert place(instance, turns, placement, cards=0) == place(instance, turns, placement)


# The figure ----------------------------------------------------------------------------------------------------------------------


def what_counts(instance: fo.Instance, resource: int) -> np.ndarray:
    """Return what a task counts where it runs: work, at the least of the resource that a unit of it takes; nothing where it takes none."""
    counted = np.zeros((instance.n_users, instance.n_servers))
    for n in range(instance.n_users):
        taken = instance.demands_by_row(n)[:, resource]
        if not instance.differs_by_server:
            counted[n] = taken
            continue
        there = [i for i in range(instance.n_servers) if taken[i] > 0 and instance.eligibility[n, i]]
        for i in there:
            counted[n, i] = instance.speeds[n, i] * min(taken[j] / instance.speeds[n, j] for j in there)
    return counted


def bound_by_another_program(instance: fo.Instance, arrived: np.ndarray, resource: int) -> float:
    """The linear program with a column for each user and each row, as SciPy solves it."""
    n, k, m = instance.n_users, instance.n_servers, instance.n_resources
    rows = np.zeros((k * m + n, n * k))
    taken = np.array([instance.demands_by_row(user) for user in range(n)])
    for user, server in itertools.product(range(n), range(k)):
        rows[server * m : (server + 1) * m, user * k + server] = taken[user, server]
        rows[k * m + user, user * k + server] = 1.0
    limits = np.concatenate([(instance.counts[:, None] * instance.capacities).ravel(), arrived])
    holds = instance.eligibility & (taken <= instance.capacities + 1e-9).all(axis=2)
    upper = np.where(holds.ravel(), 1e9, 0.0)
    lowest = linprog(
        -what_counts(instance, resource).ravel(), rows, limits, bounds=list(zip([0.0] * (n * k), upper.tolist(), strict=True))
    ).fun
    assert lowest is not None
    return -float(lowest)


def turns_of(instance: fo.Instance, seed: int, number: int) -> list[int]:
    """Return who arrives first, as documented: all tasks in a random order."""
    tasks = np.repeat(np.arange(instance.n_users), instance.tasks.astype(int))
    np.random.default_rng(seed).shuffle(tasks)
    return tasks[:number].tolist()  # type: ignore[no-any-return]


@given(gpu_clusters(), st.integers(0, 99), st.booleans())
@settings(max_examples=40)
def test_ratios_and_bounds(instance: fo.Instance, seed: int, differs: bool) -> None:
    """What arrives only grows; what is given out is the reference's, and never above the bound, which is another program's too."""
    instance = elsewhere(instance, seed) if differs else instance
    counted = what_counts(instance, 0)
    if counted.max() == 0:
        return
    capacity = instance.total_capacity[0]
    found = fo.arrivals(instance, "gpu", ["first-fit", "best-fit"], cards="gpu", seeds=[seed], until=1.3, step=0.13, workers=1)
    (arrived,), (bound,) = found.arrived, found.bound
    assert (np.diff(arrived) >= 0).all()
    assert (arrived <= found.points + 1e-9).all()
    assert (found.points - arrived < counted.max() / capacity + 1e-9).all()
    assert (np.diff(bound) >= -1e-9).all()
    assert (bound <= np.minimum(arrived, 1.0) + 1e-9).all()
    for ratios in found.allocated.values():
        assert (np.diff(ratios[0]) >= 0).all()
        assert (ratios[0] <= bound + 1e-9).all()
    # Up to all the tasks there are, the order is known: compare each point.
    every = turns_of(instance, seed, 10**6)
    for name in found.allocated:
        reference = Reference(instance, name, 0)
        on = [reference.put(n) for n in every]
        got = [counted[n, reference.rows[i]] if i >= 0 else 0.0 for n, i in zip(every, on, strict=True)]
        sums = np.concatenate([[0.0], np.cumsum(counted.max(axis=1)[every])]) / capacity
        for k, point in enumerate(found.points):
            if point < sums[-1]:
                number = int((sums <= point + 1e-12).sum()) - 1
                assert found.allocated[name][0, k] == pytest.approx(sum(got[:number]) / capacity)
                counts = np.bincount(every[:number], minlength=instance.n_users).astype(float)
                assert bound[k] == pytest.approx(bound_by_another_program(instance, counts, 0) / capacity, abs=1e-9)
    assert found.residual <= 1e-9


def test_the_bound_holds_for_the_best_whole_tasks() -> None:
    """Brute force over every way to put five tasks on two servers of two cards: none gives out more, and greed may give out less."""
    instance = fo.Instance([[2.0, 4.0], [2.0, 9.0]], [[0.6, 1.0], [2.0, 3.0], [1.0, 4.0]], tasks=[2, 1, 2], resources=["gpu", "cpu"])
    turns = [0, 0, 2, 1, 2]
    best = 0.0
    for servers in itertools.product([-1, 0, 1], repeat=len(turns)):
        whole = [sum(np.ceil(instance.demands[n, 0]) for n, i in zip(turns, servers, strict=True) if i == server) for server in (0, 1)]
        cores = [sum(instance.demands[n, 1] for n, i in zip(turns, servers, strict=True) if i == server) for server in (0, 1)]
        if max(whole) <= 2 and cores[0] <= 4 and cores[1] <= 9:  # 0.6 fits no card twice, so that each takes one
            best = max(best, sum(instance.demands[n, 0] for n, i in zip(turns, servers, strict=True) if i >= 0))
    found = fo.arrivals(
        instance, "gpu", ["first-fit", "best-fit", "worst-fit"], cards="gpu", seeds=range(6), until=1.3, step=1.3, workers=1
    )
    assert found.arrived[:, -1] * 4 == pytest.approx(5.2)  # of every order, all five
    assert best == pytest.approx(4.0)
    assert (found.bound[:, -1] * 4 >= best - 1e-9).all()
    greedy = np.array([values[:, -1] for values in found.allocated.values()]) * 4
    assert greedy.max() <= best + 1e-9
    assert greedy.min() < best - 0.1


def test_by_hand() -> None:
    """Eight cards. All ten tasks ask for 8.8; without cards 8 can be given out, with each 0.6 on a card of its own 0.6 a card is most."""
    found = fo.arrivals(TWO_SERVERS, "gpu", ["first-fit"], cards="gpu", seeds=range(5), until=1.1, step=0.05, workers=1)
    assert found.at(1.1)["bound"] == pytest.approx(1.0)
    assert set(np.round(8 * found.at(1.1)["first-fit"], 9)) <= {round(0.6 * a + 2 * b, 9) for a in range(9) for b in range(3)}
    assert (found.at(1.1)["first-fit"] <= 6.4 / 8 + 1e-9).all()  # two pairs of whole cards and four parts
    assert np.isfinite(found.leaves("first-fit")).all()
    assert np.isnan(found.leaves("first-fit", gap=1.0)).all()


def test_tasks_come_again_beyond_the_instance() -> None:
    """Ten tasks ask for 110 %; to 500 % they are drawn again, with replacement, in proportion to their numbers."""
    found = fo.arrivals(TWO_SERVERS, "gpu", ["first-fit"], until=500.0, step=500.0, seeds=[1], workers=1)
    assert found.arrived[0, -1] == pytest.approx(500, abs=2 / 8)
    assert found.at(500.0)["bound"] == pytest.approx(1.0)


def test_workers_and_order_of_seeds_change_nothing() -> None:
    """A seed is an order of arrival, whoever computes it."""
    one = fo.arrivals(GPUS, "gpu", cards="gpu", seeds=[3, 1], step=0.1, workers=1)
    two = fo.arrivals(GPUS, "gpu", cards="gpu", seeds=[1, 3], step=0.1, workers=2)
    for name, values in one.curves.items():
        np.testing.assert_array_equal(values, two.curves[name][::-1])
    told: list[tuple[int, int]] = []
    fo.arrivals(GPUS, "gpu", seeds=range(3), step=1.0, workers=1, done=lambda now, total: told.append((now, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_tables_hold_the_curves() -> None:
    """A row for each seed, point and curve; quantiles in the data."""
    found = fo.arrivals(GPUS, "gpu", ["first-fit"], cards="gpu", seeds=range(3), step=0.65, workers=1)
    frame = found.to_frame()
    assert list(frame.columns) == ["seed", "point", "arrived", "schedule", "ratio"]
    assert len(frame) == 2 * 3 * 3
    last = frame[(frame["schedule"] == "first-fit") & (frame["point"] == 1.3)]
    np.testing.assert_array_equal(last["ratio"], found.at(1.3)["first-fit"])
    data = json.loads(json.dumps(found.to_dict()))
    assert data["curves"][0]["quantiles"]["0.5"][-1] == np.median(found.at(1.3)["first-fit"])
    assert [curve["kind"] for curve in data["curves"]] == ["greedy", "fluid bound, a relaxation"]


def test_the_picture_is_what_the_numbers_say() -> None:
    """Medians above, and what is missing to the bound below."""
    found = fo.arrivals(GPUS, "gpu", cards="gpu", seeds=range(4), step=0.1, workers=1)
    upper, lower = found.plot().axes
    drawn = {str(line.get_label()): np.asarray(line.get_ydata(), float) for line in upper.lines}
    for name in ("first-fit", "best-fit"):
        np.testing.assert_array_equal(drawn[name], np.median(found.allocated[name], axis=0))
        below = {str(line.get_label()): np.asarray(line.get_ydata(), float) for line in lower.lines}[name]
        np.testing.assert_array_equal(below, np.median(found.bound - found.allocated[name], axis=0))
    np.testing.assert_array_equal(drawn["fluid bound"], np.median(found.bound, axis=0))


# Bad input -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "arguments", "message"),
    [
        ({}, {"resource": "gpus"}, 'there is no resource "gpus" (did you mean "gpu"?)'),
        ({}, {"cards": "cpu"}, 'there is no resource "cpu"'),
        ({"tasks": None}, {}, "user part has no limit on its tasks"),
        ({"tasks": [1.5, 2]}, {}, "user part has 1.5 tasks"),
        ({"tasks": [0, 0]}, {}, "there is no gpu in what any task asks for"),
        ({"capacities": [[0.0], [0.0]]}, {}, "there is no gpu on any server"),
        ({"capacities": [[1.5], [4.0]]}, {"cards": "gpu"}, 'server "server-1" has 1.5 gpu, and cards are whole'),
        ({"demands": [[1.5], [2.0]]}, {"cards": "gpu"}, 'a task of user "part" asks for 1.5 gpu'),
        ({"capacities": [[2.9999999], [4.0]]}, {"cards": "gpu"}, 'server "server-1" has 2.9999999 gpu, and cards are whole'),
        ({"demands": [[1.00000001], [2.0]]}, {"cards": "gpu"}, 'a task of user "part" asks for 1.00000001 gpu'),
        ({"rates": [[1, 1], [1, 1]]}, {}, "the instance gives rates"),
        ({"parallelism": [np.inf, 1]}, {}, 'of how many servers their user is on, and "two" is limited to 1 at once'),
        ({"tasks": [1e9, 1]}, {}, "tasks would arrive, more than"),
        ({}, {"placements": ["joint"]}, "tasks here come one by one"),
        ({}, {"placements": ["random-round-robin"]}, "tasks here come one by one"),
        ({}, {"placements": ["slots"], "cards": "gpu"}, '"slots" does not support cards'),
        ({}, {"placements": ["best-fitt"]}, 'there is no placement "best-fitt" (did you mean "best-fit"?)'),
        ({}, {"placements": ["best-fit:metrik=l2"]}, '"best-fit" takes no option "metrik"'),
        ({}, {"placements": []}, "give a placement and a seed"),
        ({}, {"seeds": [-1]}, "a seed is -1; give a whole number >= 0"),
        ({}, {"until": 0}, "until is 0; give a part of the capacity > 0"),
        ({}, {"step": 1e-9}, "which makes more than 10,000 points"),
        ({}, {"workers": 0}, "workers is 0"),
    ],
)
def test_bad_input_says_what_to_do(changes: dict[str, object], arguments: dict[str, object], message: str) -> None:
    """Before anything is computed."""
    with pytest.raises(fo.FairoptError) as caught:
        fo.arrivals(TWO_SERVERS.replace(**changes), **({"resource": "gpu", "workers": 1} | arguments))  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_parallelism_that_nobody_feels_changes_nothing() -> None:
    """A limit of as many servers as there are, on users of whom one alone has tasks that fit."""
    cluster = fo.Instance([[4.0], [2.0]], [[5.0], [0.6], [2.0]], tasks=[1, 9, 9], resources=["gpu"])
    found, same = (fo.arrivals(each, "gpu", seeds=[1], workers=1) for each in (cluster, cluster.replace(parallelism=[2.0, 2.0, 3.0])))
    np.testing.assert_array_equal(same.bound, found.bound)


def test_a_placement_of_your_own_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot be compiled."""
    monkeypatch.setitem(fo.PLACEMENTS, "mine", lambda user, free, demand, fits: fits[0])
    with pytest.raises(fo.Unsupported, match="cannot be compiled"):
        fo.arrivals(TWO_SERVERS, "gpu", ["mine"])


def test_what_there_is_not_is_refused() -> None:
    """Points, and placements, of the answer."""
    found = fo.arrivals(TWO_SERVERS, "gpu", step=0.5, seeds=[0], workers=1)
    with pytest.raises(fo.Unsupported, match="no point at"):
        found.at(0.7)
    with pytest.raises(fo.Unsupported, match='no placement "best"'):
        found.leaves("best")


# The command ---------------------------------------------------------------------------------------------------------------------


def test_the_command(tmp_path: Path) -> None:
    """A table, JSON, CSV and a picture."""
    picture, table, cluster = tmp_path / "ratio.svg", tmp_path / "ratio.csv", tmp_path / "gpus.yaml"
    fo.save(GPUS, cluster)
    common = ["arrivals", str(cluster), "--resource", "gpu", "--cards", "gpu", "--seeds", "2", "--load-step", "0.1", "--workers", "1"]
    shown = RUNNER.invoke(app, [*common, "--plot", str(picture)])
    assert shown.exit_code == 0, shown.output
    assert [word in shown.output for word in ("first-fit", "best-fit", "fluid bound", "a relaxation")] == [True] * 4
    assert picture.read_text(encoding="utf-8").startswith("<?xml")
    data = json.loads(RUNNER.invoke(app, [*common, "--json"]).output)
    assert [curve["name"] for curve in data["curves"]] == ["first-fit", "best-fit", "bound"]
    assert RUNNER.invoke(app, [*common, "-o", str(table)]).exit_code == 0
    assert table.read_text(encoding="utf-8").startswith("seed,point,arrived,schedule,ratio,name\n")
    bad = RUNNER.invoke(app, ["arrivals", str(cluster), "--resource", "gpus"])
    assert (bad.exit_code, "did you mean" in bad.output) == (2, True)


# The real cluster ----------------------------------------------------------------------------------------------------------------


@needs("openb")
def test_openb_by_other_means() -> None:
    """1,523 nodes and 6,212 GPUs: first-fit on cards with arrays of NumPy, all servers at once; no ratio above the bound."""
    instance = fo.import_openb(OPENB / "openb_nodes.csv.gz", OPENB / "openb_pods_default_gpuspec33.csv.gz").instance
    gpu = instance.resources.index("gpu")
    found = fo.arrivals(instance, "gpu", cards="gpu", seeds=[0], step=0.13, workers=1)
    assert found.instance.total_capacity[gpu] == 6212
    for values in found.allocated.values():
        assert (values <= found.bound + 1e-9).all()
    turns = turns_of(instance, 0, 7000)
    row = np.repeat(np.arange(instance.n_servers), instance.counts.astype(int))
    free, left = instance.capacities[row], np.zeros((row.size, 8))
    left[np.arange(8) < instance.capacities[row, gpu, None]] = 1.0
    placed = np.zeros(len(turns), bool)
    for j, n in enumerate(turns):
        asked, demand = instance.demands[n, gpu], instance.demands[n]
        cards = (left >= min(asked, 1.0) - 1e-9).sum(axis=1) >= max(asked, float(asked > 0)) - 1e-9
        fits = cards & instance.eligibility[n, row] & (demand <= free + 1e-6).all(axis=1)
        if fits.any():
            i = int(fits.argmax())
            placed[j] = True
            free[i] -= demand
            for _ in range(max(1, round(asked)) if asked > 0 else 0):
                left[i, int((left[i] >= min(asked, 1.0) - 1e-9).argmax())] -= min(asked, 1.0)
    demand = instance.demands[turns, gpu]
    sums = np.concatenate([[0.0], np.cumsum(demand)])
    given_out = np.concatenate([[0.0], np.cumsum(demand * placed)])
    for k, point in enumerate(found.points):
        if point * 6212 < sums[-1]:
            number = int((sums <= point * 6212 + 1e-9).sum()) - 1
            assert found.allocated["first-fit"][0, k] * 6212 == pytest.approx(given_out[number])
