"""The frontier: against a parametric linear program of SciPy's, by hand, points on or below it, the command line, pictures."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from instances import uniform_instance
from reference.frontier import largest_share
from strategies import instances
from typer.testing import CliRunner, Result

import fairopt as fo
from fairopt.analysis.measures import dominant_shares, shares_per_task, takes_part
from fairopt.cli import app
from fairopt.instance import FloatArray
from fairopt.solvers import pareto_frontier
from fairopt.solvers.highs_model import HighsModel, Outcome, Status

EXAMPLES = Path(__file__).parents[2] / "examples"
POOL = fo.Instance([[9, 18]], [[1, 4], [6, 1]], users=["A", "B"], servers=["pool"], resources=["cpu", "memory"])
BARE: dict[str, Any] = {"alphas": [], "notions": []}


def run(*arguments: object, status: int = 0, width: int = 100) -> Result:
    """Run the command line in this process and check its exit status."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": str(width)})
    assert result.exit_code == status, result.output
    assert "Traceback" not in result.output
    return result


# The frontier itself -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sharing", ["rdm", "tdm"])
@given(instance=instances(max_users=6))
@settings(max_examples=15)
def test_it_is_what_a_fine_grid_of_programs_finds(sharing: Any, instance: fo.Instance) -> None:
    """At 15 totals, the vertices and points close to each of them."""
    if not takes_part(instance).any():
        return
    found = fo.frontier(instance, sharing=sharing, **BARE)
    totals, shares = found.vertices.T
    near = np.concatenate([totals, totals * (1 - 1e-3), totals * (1 + 1e-3)])
    for total in np.unique(np.concatenate([np.linspace(0, totals[-1], 15), near[near < totals[-1]]])):
        assert found.share_at(total) == pytest.approx(largest_share(instance, total * (1 - 1e-12), sharing), rel=1e-6, abs=1e-7 * shares[0])
    assert np.isnan(found.share_at(totals[-1] * 1.001 + 1))
    assert found.gap <= 1e-8


@given(instance=instances(max_users=6))
@settings(max_examples=25)
def test_it_is_a_concave_chain_with_the_right_ends(instance: fo.Instance) -> None:
    """Total up, share down, ever steeper; from the largest smallest share (drfh's) to the largest total."""
    if not takes_part(instance).any():
        return
    found = fo.frontier(instance, **BARE)
    totals, shares = found.vertices.T
    assert (np.diff(totals) > 0).all()
    assert (np.diff(shares) < 0).all()
    slopes = np.diff(shares) / np.diff(totals)
    assert (np.diff(slopes) < 0).all()
    most = fo.solve(instance.replace(weights=None), "efficiency").tasks.sum()
    assert totals[-1] == pytest.approx(most, rel=1e-8)
    lowest = dominant_shares(fo.solve(instance, "drfh"))[takes_part(instance)].min()
    assert shares[0] == pytest.approx(lowest, rel=1e-8)


def test_vertices_by_hand() -> None:
    """x + 6 y <= 9, 4 x + y <= 18; shares 2 x / 9 and 2 y / 3. Equal at (3, 1); both full at (99, 18) / 23, the most tasks.

    With three users of one server of capacity 6 and demands 1, 2, 3, weights 1, 1, 2, the shares are x / 6, y / 3, z / 4. Equal at 1/4,
    with 3/2, 3/4 and 1 tasks; else every unit goes to the first: the line to (6, 0).
    """
    np.testing.assert_allclose(fo.frontier(POOL, **BARE).vertices, np.array([[4, 2 / 3], [117 / 23, 12 / 23]]), rtol=1e-9)
    three = fo.Instance([[6]], [[1], [2], [3]], weights=[1, 1, 2])
    np.testing.assert_allclose(fo.frontier(three, **BARE).vertices, np.array([[3.25, 1 / 4], [6, 0]]), rtol=1e-9, atol=1e-12)


def test_one_vertex_where_nothing_is_lost() -> None:
    """Users who do not meet: both goals have their best in one point."""
    found = fo.frontier(fo.Instance([[4, 0], [0, 6]], [[1, 0], [0, 2]]), **BARE)
    np.testing.assert_allclose(found.vertices, [[7, 1]])
    assert "1 vertex, up to 7 tasks" in repr(found)


def test_all_of_many_vertices() -> None:
    """Between two neighbours on a grid of 150 totals, SciPy's frontier bends only where there is a vertex, and at every vertex it bends."""
    instance = uniform_instance(9, 5, 3, demands=(0.1, 2))
    found = fo.frontier(instance, **BARE)
    inner = found.vertices[1:-1, 0]
    assert len(inner) >= 5
    grid = np.linspace(found.vertices[0, 0], found.vertices[-1, 0], 150)
    shares = np.array([largest_share(instance, total * (1 - 1e-12), "rdm") for total in grid])
    bends = np.diff(shares, 2) < -1e-8
    near = np.array([((inner > a) & (inner < b)).any() for a, b in zip(grid[:-2], grid[2:], strict=True)])
    np.testing.assert_array_equal(bends, near)


def test_weights_over_six_decades() -> None:
    """A user of weight 1000 counts with a millionth of what one of weight 1/1000 has: every edge is proved all the same."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        instance = fo.Instance(
            rng.uniform(1, 9, (4, 3)),
            rng.uniform(0.1, 2, (7, 3)),
            weights=10 ** rng.uniform(-3, 3, 7),
            tasks=np.where(rng.random(7) < 0.3, rng.uniform(0, 4, 7), np.inf),
        )
        found = fo.frontier(instance, alphas=[], notions=["drfh"])
        assert found.gap <= 2e-9
        assert found["drfh"].price_of_efficiency == 0
        middle = found.vertices.mean(axis=0)[0]
        assert found.share_at(middle) == pytest.approx(largest_share(instance, middle, "rdm"), rel=1e-5)


@pytest.mark.parametrize("alphas", [[0, 1, float("inf")]])
@pytest.mark.parametrize("of", ["tasks", "shares"])
@given(instance=instances(max_users=4, max_servers=3))
@settings(max_examples=8)
def test_every_point_is_on_or_below(of: Any, alphas: list[float], instance: fo.Instance) -> None:
    """Notions, families, schedules; and prices are what they say."""
    if not takes_part(instance).any():
        return
    found = fo.frontier(
        instance, alphas=alphas, notions=["drfh", "tsf", "uniform"], families={"fds": [(2, -1)]}, schedules=["drfh:best-fit"], of=of
    )
    for point in found:
        assert point.allocation is not None, point.message
        assert point.total == pytest.approx(point.allocation.tasks.sum())
        assert point.smallest_share <= found.share_at(point.total) * (1 + 1e-8) + 1e-12
        assert point.price_of_fairness == pytest.approx(1 - point.total / found.largest_total, abs=1e-8)
        assert point.price_of_efficiency == pytest.approx(1 - point.smallest_share / found.largest_share, abs=1e-8)
    assert found["drfh"].price_of_efficiency == 0
    if of == "tasks":
        assert found["alpha=0"].price_of_fairness == 0
    else:
        assert found["alpha=inf"].price_of_efficiency == 0


def test_rates_share_time() -> None:
    """Two users, one server: shares are parts of its time, so 1 - x / 4 = y / 2."""
    found = fo.frontier(fo.Instance([[1]], [[1], [1]], rates=[[4], [2]]), **BARE)
    np.testing.assert_allclose(found.vertices, np.array([[3, 0.5], [4, 0]]), atol=1e-12)


def test_users_who_demand_nothing_count_in_the_total() -> None:
    """Their tasks always run."""
    instance = fo.Instance([[4]], [[1], [2], [0]], tasks=[np.inf, np.inf, 7])
    np.testing.assert_allclose(fo.frontier(instance, **BARE).vertices, np.array([[2 + 1 + 7, 0.5], [4 + 7, 0]]), atol=1e-12)


def test_weights_per_resource() -> None:
    """They are in the shares."""
    instance = fo.Instance([[9, 18]], [[1, 4], [6, 1]], weights=[[1, 2], [1, 1]])
    found = fo.frontier(instance, alphas=[0, float("inf")], notions=["drfh"], of="shares")
    assert found["alpha=inf"].smallest_share == pytest.approx(found["drfh"].smallest_share)
    assert found["drfh"].price_of_efficiency == 0


def test_the_solver_behind_counts_only_whom_it_is_told_to() -> None:
    """Of three users the first alone: nobody else needs anything."""
    program = fo.formulate(fo.Instance([[6]], [[1], [2], [3]]), "efficiency")
    pareto = pareto_frontier(program, np.array([1 / 6, 1 / 3, 1 / 2]), np.array([True, False, False]))
    np.testing.assert_allclose(pareto.vertices, [[6, 1]])
    assert pareto.gap <= 1e-12


@given(instance=instances())
@settings(max_examples=20)
def test_shares_per_task_are_those_of_an_allocation(instance: fo.Instance) -> None:
    """sum_i x[n,i] times them."""
    allocation = fo.solve(instance, "asset")
    held = allocation.tasks_per_user > 0
    expected = allocation.tasks_per_user[held] * shares_per_task(instance)[held, 0]
    np.testing.assert_allclose(dominant_shares(allocation)[held], expected)


# What was asked for --------------------------------------------------------------------------------------------------------------


def test_the_alpha_path_and_its_ends() -> None:
    """alpha = 1 is proportional, weights or not; alpha = 0 the most tasks; inf max-min of tasks per weight, or drfh."""
    instance = POOL.replace(weights=[1, 3])
    notions = ["proportional", "max-min", "drfh"]
    for of, end in (("tasks", "max-min"), ("shares", "drfh")):
        found = fo.frontier(instance, alphas=[0, 1, 2, 200, np.inf], notions=notions, of=of)  # type: ignore[arg-type]
        held = {point.name: point.allocation.tasks_per_user for point in found if point.allocation is not None}
        np.testing.assert_allclose(held["alpha=1"], held["proportional"], rtol=1e-8)
        np.testing.assert_allclose(held["alpha=inf"], held[end], rtol=1e-8)
        np.testing.assert_allclose(held["alpha=200"], held["alpha=inf"], rtol=0.03)
        assert of == "shares" or found["alpha=0"].total == pytest.approx(found.largest_total)


def test_notions_that_cannot_say_why() -> None:
    """All of them by default; those of one server fail on two, and say so in every form."""
    instance = fo.Instance([[100, 30], [30, 100]], [[5, 1], [1, 5]])
    found = fo.frontier(instance, alphas=[])
    assert [point.name for point in found] == list(fo.NOTIONS)
    failed = {point.name for point in found if point.allocation is None}
    assert failed == {"drf", "bbf"}
    assert '"drf" is defined on one server' in found["drf"].message
    assert '\ndrf: "drf" is defined on one server' in repr(found)
    assert "defined on one server" in str(found.to_frame().loc["drf", "message"])
    entry = next(entry for entry in found.to_dict()["points"] if entry["name"] == "drf")
    assert (entry["total"], entry["kind"]) == (None, "notion")
    json.dumps(found.to_dict(), allow_nan=False)
    with pytest.raises(KeyError, match=r'no point "psdfs" \(did you mean "psdsf"\?\)'):
        found["psdfs"]


def test_names_are_unique_and_progress_is_told() -> None:
    """A second drf is "drf (2)"; every finished point is announced."""
    seen: list[str] = []
    found = fo.frontier(POOL, alphas=[1], notions=["drf", "drf"], families={"gfj": [(2, -4)]}, done=seen.append)
    assert seen == ["frontier", "alpha=1", "drf", "drf (2)", "gfj:beta=2:lam=-4"] == ["frontier", *(point.name for point in found)]
    assert len(found) == 4


def test_an_allocation_of_ones_own_as_a_schedule() -> None:
    """As in compare; one of another instance is a point that says so."""
    other = fo.schedule(POOL.replace(weights=[1, 2]), "drf")
    found = fo.frontier(POOL, alphas=[], notions=[], schedules=[fo.schedule(POOL, "drf"), other])
    assert found["drf:first-fit"].kind == "greedy"
    assert "of another instance" in found["drf:first-fit (2)"].message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alphas": [-1]}, "alpha is -1; give numbers >= 0, inf for max-min"),
        ({"alphas": ["x"]}, "alpha is 'x'"),
        ({"alphas": [float("nan")]}, "alpha is nan"),
        ({"notions": ["drff"]}, r'there is no notion "drff" \(did you mean "drf"\?\)'),
        ({"families": {"fsd": []}}, r'there is no family "fsd" \(did you mean "fds"\?\)'),
        ({"families": {"fds": [2]}}, r"a member of fds is 2; give pairs \(beta, lambda\)"),
        ({"families": {"fds": [(2, 1)]}}, "lam is 1, but at beta = 2 only"),
        ({"families": {"fds": [(1, 1)]}}, "beta is 1"),
        ({"schedules": ["drf:best"]}, 'there is no placement "best"'),
        ({"of": "jobs"}, 'cannot be of "jobs"; use "tasks" or "shares"'),
        ({"sharing": "both"}, 'there is no sharing "both"'),
        ({"time_limit": 0}, "time_limit is 0; give a number of seconds > 0"),
    ],
)
def test_what_no_point_can_be_made_of(arguments: dict[str, Any], message: str) -> None:
    """Said at once."""
    with pytest.raises((fo.InvalidInstance, fo.Unsupported), match=message):
        fo.frontier(POOL, **arguments)


def test_no_instance_and_nobody() -> None:
    """The path of an instance, and a cluster that nobody can use."""
    with pytest.raises(fo.InvalidInstance, match="expected an Instance, got str"):
        fo.frontier("cluster.yaml")  # type: ignore[arg-type]
    with pytest.raises(fo.InvalidInstance, match="no user can have anything"):
        fo.frontier(POOL.replace(tasks=[0, 0]))


def test_time_limit_of_the_frontier() -> None:
    """Too short for any program."""
    with pytest.raises(fo.NoSolution, match="time limit of 1e-09 s"):
        fo.frontier(POOL, time_limit=1e-9)


# The command line ----------------------------------------------------------------------------------------------------------------


def test_table(tmp_path: Path) -> None:
    """Vertices, prices, and who could not be asked."""
    arguments = ("--notions", "drfh,drf", "--alphas", "0,inf", "--fds", "2:-1", "--schedules", "drfh:best-fit")
    output = run("frontier", EXAMPLES / "psdsf-figure-1.yaml", *arguments, width=80).output
    assert max(map(len, output.splitlines())) <= 80
    lines = [line.split() for line in output.splitlines()]
    names = [line[0] for line in lines if line]
    assert {"alpha=0", "alpha=inf", "drfh", "fds:beta=2:lam=-1", "drfh:best-fit"} <= set(names)
    text = " ".join(output.split())
    assert 'drf: "drf" is defined on one server' in text
    assert "greedy is a schedule, not an optimum; all others are exact." in text
    (row,) = [line for line in lines if line[:1] == ["alpha=0"]]
    assert row[:3] == ["alpha=0", "alpha", "12"]
    assert row[4:6] == ["0.0", "%"]


def test_json_csv_and_files(tmp_path: Path) -> None:
    """With --json, --csv, and by the suffix of --output; the picture beside it."""
    arguments = ("frontier", EXAMPLES / "kesidis.yaml", "--notions", "drfh", "--alphas", "0,1", "--gfj", "2:-4")
    data = json.loads(run(*arguments, "--json").stdout)
    assert data["vertices"][0]["total"] == pytest.approx(130 / 3)
    assert [point["name"] for point in data["points"]] == ["alpha=0", "alpha=1", "drfh", "gfj:beta=2:lam=-4"]
    table = run(*arguments, "--csv").stdout.splitlines()
    assert table[0] == "point,kind,total,smallest_share,price_of_fairness,price_of_efficiency,below,seconds,message,name"
    assert len(table) == 5
    for name in ("out.csv", "out.json", "out.txt"):
        assert run(*arguments, "-o", tmp_path / name, "--plot", tmp_path / "out.svg", "--force").stdout == ""
    assert json.loads((tmp_path / "out.json").read_text())["vertices"] == data["vertices"]
    assert (tmp_path / "out.csv").read_text().splitlines()[0] == table[0]
    assert (tmp_path / "out.txt").read_text().startswith("Frontier of 2 users, 2 servers")
    assert "exact frontier" in (tmp_path / "out.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--notions", "drff"], 2, 'there is no notion "drff"'),
        (["--alphas", "0,x"], 2, '"x" is not a number'),
        (["--alphas", "-1"], 2, "alpha is -1"),
        (["--fds", "2"], 2, '"2" is not a pair; write BETA:LAMBDA'),
        (["--gfj", "2:1"], 2, "lam is 1, but at beta = 2"),
        (["--of", "jobs"], 2, '--of: there is no "jobs"'),
        (["--plot", "out.gif"], 2, "cannot tell the format of the picture"),
        (["-o", "no/out.csv"], 2, "there is no folder no"),
        (["--notions", "drf", "--alphas", ""], 3, '"drf" is defined on one server'),
        (["--notions", "drfh", "--time-limit", "1e-9"], 3, "no answer within the time limit"),
    ],
)
def test_status_of_bad_input(arguments: list[str], status: int, message: str) -> None:
    """2, and 3 where there is no point or no frontier."""
    output = run("frontier", EXAMPLES / "kesidis.yaml", *arguments, status=status).output
    assert message in " ".join(output.replace("│", " ").split())


def test_families_on_the_command_line() -> None:
    """solve takes beta and lambda too, and compare does in the names."""
    users = json.loads(run("solve", EXAMPLES / "kesidis.yaml", "--notion", "gfj", "--beta", "2", "--lam", "-4", "--json").stdout)["users"]
    data = json.loads(run("compare", EXAMPLES / "kesidis.yaml", "--notions", "gfj:beta=2:lam=-4", "--json").stdout)
    assert [user["tasks"] for user in users] == pytest.approx([user["tasks"] for user in data["rows"][0]["users"]])
    assert "lam is 3, but at beta = 2" in run("solve", EXAMPLES / "kesidis.yaml", "--notion", "gfj", "--lam", "3", status=2).output


# The picture ---------------------------------------------------------------------------------------------------------------------


def boxes(figure: Any) -> list[tuple[str, FloatArray]]:
    """The labels of points and where they are, in pixels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Annotation

    renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    notes = [text for text in figure.axes[0].texts if isinstance(text, Annotation) and text.get_text()]
    return [(note.get_text(), np.array(note.get_window_extent(renderer).extents)) for note in notes]


def overlap(a: FloatArray, b: FloatArray) -> bool:
    """Do two boxes share more than a pixel?"""
    return bool((np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]) > 1).all())


def test_labels_of_a_crowd_do_not_overlap() -> None:
    """The lab with every notion, path, family and two schedules: no label on another or on a point of another, none outside."""
    found = fo.frontier(fo.load(EXAMPLES / "gpu-lab"), families={"fds": [(2, -0.5), (2, -4)]}, schedules=["drfh:best-fit", "tsf:first-fit"])
    figure = found.plot()
    placed = boxes(figure)
    for (_, a), (_, b) in itertools.combinations(placed, 2):
        assert not overlap(a, b)
    axes = figure.axes[0]
    frame = np.array(axes.get_window_extent().extents)
    marks = axes.transData.transform([(point.total, point.smallest_share) for point in found if point.allocation is not None])
    for text, box in placed:
        assert (box[:2] >= frame[:2]).all(), text
        assert (box[2:] <= frame[2:]).all(), text
        assert not ((marks > box[:2]) & (marks < box[2:])).all(axis=1).any(), text
    words = ", ".join(text.replace("\n", " ").replace("\u00a0", " ") for text, _ in placed)
    for name in ("DRFH", "DRF per server", "Uniform", "TSF, first-fit", "(2, -4)", "= 0.5"):
        assert name in words


def test_points_in_one_place_share_a_label() -> None:
    """One resource and two users alike: everything fair is the same."""
    found = fo.frontier(fo.Instance([[4]], [[1], [1]]), notions=["drf", "drfh", "tsf", "bbf"])
    texts = [text.replace("\n", " ") for text, _ in boxes(found.plot())]
    assert any(text.startswith("DRF; DRFH; TSF") for text in texts)
    assert len(texts) <= 3


def test_a_frontier_without_points_is_drawn() -> None:
    """Only the line."""
    figure = fo.frontier(POOL, **BARE).plot()
    assert boxes(figure) == []
    (line,) = [line for line in figure.axes[0].lines if line.get_label() == "exact frontier"]
    np.testing.assert_allclose(line.get_xydata(), [[4, 2 / 3], [117 / 23, 12 / 23]])  # type: ignore[arg-type]


@pytest.mark.parametrize("lost", [1, 2])
def test_a_simplex_that_loses_its_way_is_sent_again(monkeypatch: pytest.MonkeyPatch, lost: int) -> None:
    """HiGHS ends one warm start in hundreds without an answer, as on 200 users and 80 servers of "uniform": the frontier is still found."""
    instance = fo.generate("uniform", users=6, servers=3)
    whole, runs, plain = fo.frontier(instance, **BARE), itertools.count(), HighsModel.run

    def run_or_fail(model: HighsModel, time_limit: float) -> Outcome:
        outcome = plain(model, time_limit)
        return outcome if next(runs) % (lost + 1) == lost else replace(outcome, status=Status.FAILED)

    monkeypatch.setattr(HighsModel, "run", run_or_fail)
    np.testing.assert_allclose(fo.frontier(instance, **BARE).vertices, whole.vertices, rtol=1e-9)


# Queues --------------------------------------------------------------------------------------------------------------------------


def test_limits_of_queues_bound_the_frontier() -> None:
    """At most 3 of 10 cores for a's user: the total falls from 10 to 3 + 3.5, as b's tasks take 2 cores."""
    instance = fo.Instance([[10]], [[1], [2]], queues=[fo.Queue("a", limit={"resource-1": 3}), fo.Queue("b")], queue_of=["a", "b"])
    found = fo.frontier(instance, alphas=[0], notions=["drfh"])
    assert found.vertices[-1].tolist() == pytest.approx([6.5, 0.3])
    assert found["drfh"].total == pytest.approx(6.5)


@pytest.mark.parametrize(
    ("queue", "changes", "what"),
    [
        ({"guarantee": {"cpu": 2}}, {}, 'queue "a" has a guarantee'),
        ({"tier": 1}, {}, 'queue "a" has a tier'),
        ({"weight": 2}, {}, 'queue "a" has a weight'),
        ({}, {"guarantees": [0, 1]}, 'user "user-2" has a guarantee'),
        ({}, {"weights": [0, 1]}, 'user "user-1" has the weight 0'),
    ],
)
def test_what_asks_for_unequal_shares_is_refused(queue: dict[str, Any], changes: dict[str, Any], what: str) -> None:
    """In a sentence that says why, and what to do."""
    instance = fo.Instance([[10]], [[1], [2]], resources=["cpu"], queues=[fo.Queue("a", **queue)], queue_of=["a", None], **changes)
    with pytest.raises(fo.Unsupported, match=f"the smallest share of all users, .* {what}: leave these out"):
        fo.frontier(instance)


def test_workers_find_the_same_points() -> None:
    """To the last bit, in the same order; a point that fails says why."""
    instance = fo.generate("uniform", users=4, servers=3, size=10, seed=2)
    ask: dict[str, Any] = {"alphas": [0, 1, 1], "notions": ["drfh", "drf", "tsf"], "schedules": ["drfh:best-fit"]}
    one, two = fo.frontier(instance, **ask), fo.frontier(instance, **ask, workers=2)
    pd.testing.assert_frame_equal(one.to_frame().drop(columns="seconds"), two.to_frame().drop(columns="seconds"), check_exact=True)
    assert two["drf"].message
