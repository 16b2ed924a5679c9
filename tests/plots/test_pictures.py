"""Pictures of shares, utilization, envy, the polytope and convergence: what is drawn is what the numbers say."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle
from scipy.optimize import linprog
from strategies import instances

import fairopt as fo
from fairopt.analysis.measures import envy_matrix, largest_envy
from fairopt.plots import plot_allocation, plot_convergence, plot_envy, plot_polytope, plot_shares, plot_utilization

PSDSF = fo.Instance([[9, 12, 100], [12, 12, 0]], np.array([[1.5, 1, 10], [1, 2, 10], [0.5, 1, 0], [1, 0.5, 0]]))
ODD = ["$x^$", "a$\\frac$b", "bell\a", "a name that is far too long to be shown", "שלום עולם", "مرحبا بالعالم", "<b>&amp;"]


def lines(axes: Axes) -> dict[str, np.ndarray]:
    """Return the labelled lines of a picture, (points, 2)."""
    return {str(line.get_label()): np.column_stack(line.get_data()).astype(float) for line in axes.lines}


# Halves of the allocation --------------------------------------------------------------------------------------------------------


def test_shares_are_the_bars() -> None:
    """With the tasks beside; in the picture of the allocation it is the other way round."""
    allocation = fo.solve(PSDSF, "tsf")
    (alone,) = plot_shares(allocation).axes
    assert [bar.get_width() for bar in alone.patches if isinstance(bar, Rectangle)] == allocation.shares.tolist()
    assert alone.texts[0].get_text() == f"{allocation.shares[0]:.4g}  ({allocation.tasks_per_user[0]:.4g} tasks)"
    left = plot_allocation(allocation).axes[0]
    assert [bar.get_width() for bar in left.patches if isinstance(bar, Rectangle)] == allocation.tasks_per_user.tolist()


@pytest.mark.parametrize("sharing", ["rdm", "tdm"])
def test_parts_of_users_add_up_to_the_utilization(sharing: str) -> None:
    """Server by server, thing by thing, and each user is in the legend."""
    allocation = fo.solve(PSDSF, "drfh", sharing=sharing)  # type: ignore[arg-type]
    figure = plot_utilization(allocation)
    (axes,) = figure.axes
    ends = [text.get_text() for text in axes.texts]
    used = allocation.utilization.ravel() if sharing == "rdm" else allocation.time_utilization
    exists = (PSDSF.row_capacity > 0).ravel() if sharing == "rdm" else np.ones(2, bool)
    assert ends == [f"{100 * part:.1f} %" if there else "none here" for part, there in zip(used, exists, strict=True)]
    assert [text.get_text() for text in figure.legends[0].texts] == list(PSDSF.users)


def test_resources_of_the_cluster_and_limits_have_bars() -> None:
    """Of limits the four fullest; 4 + 2 of 6 licences, 4 of 5 tasks of a, 1 of the 2 GPUs that each server may give to b."""
    limits = [
        fo.Limit("few a", 5, users=["a"]),
        fo.Limit("gpu of b", 2, users=["b"], resource="gpu", each="server"),
        *(fo.Limit(f"wide {k}", 100 + k) for k in range(4)),
    ]
    pool = fo.Instance(
        [[9], [9]], [[1, 1], [1, 1]], shared={"ansys": 6}, resources=["gpu", "ansys"], users=["a", "b"], servers=["s", "t"], limits=limits
    )
    allocation = dataclasses.replace(fo.solve(pool, "drfh"), tasks=np.array([[4.0, 0.0], [1.0, 1.0]]))
    (axes,) = plot_utilization(allocation).axes
    names, ends = ([text.get_text() for text in texts] for texts in (axes.get_yticklabels(), axes.texts))
    assert names == ["s", "t", "the whole cluster", "ansys", "limits", "few a", "gpu of b on s", "gpu of b on t", "wide 0"]
    assert ends == ["55.6 %", "11.1 %", "100.0 %", "80.0 %", "50.0 %", "50.0 %", "6.0 %"]
    assert axes.get_title(loc="left") == "Use of each server, of the cluster and of limits"


# Envy ----------------------------------------------------------------------------------------------------------------------------


def envy_by_loops(allocation: fo.Allocation) -> np.ndarray:
    """The definition at the top of fairopt/analysis/measures.py, pair by pair."""
    instance, x = allocation.instance, allocation.tasks
    phi = np.broadcast_to(instance.weights.reshape(instance.n_users, -1), instance.demands.shape)
    envy = np.zeros((instance.n_users, instance.n_users))
    for n in range(instance.n_users):
        if not instance.eligibility[n].any() or instance.tasks[n] == 0:
            continue
        for m in range(instance.n_users):
            could = 0.0
            for i in np.flatnonzero(instance.eligibility[n]):
                could += min(
                    phi[n, r] / phi[m, r] * x[m, i] * instance.demands[m, r] / instance.demands[n, r]
                    for r in range(instance.n_resources)
                    if instance.demands[n, r] > 0
                )
            envy[n, m] = max(min(could, instance.tasks[n]) - x[n].sum(), 0.0) if n != m else 0.0
    return envy


@given(instances())
@settings(max_examples=40, deadline=None)
def test_envy_is_what_its_definition_says(instance: fo.Instance) -> None:
    """Pair by pair; the largest is `largest_envy`."""
    for allocation in (fo.solve(instance, "efficiency"), fo.solve(instance, "drfh")):
        envy = envy_matrix(allocation)
        scale = max(float(allocation.tasks.max(initial=0.0)), 1.0)
        np.testing.assert_allclose(envy, envy_by_loops(allocation), atol=1e-6 * scale, rtol=1e-6)
        assert largest_envy(allocation).tasks == envy.max()


def test_the_worst_forty_of_many_users_are_shown() -> None:
    """And the picture says so. One pair far apart envies most."""
    rng = np.random.default_rng(0)
    envy = rng.uniform(0, 1, (1000, 1000))
    envy[700, 3] = 9.0
    figure = plot_envy(envy, [f"user-{n}" for n in range(1000)], "mine")
    figure.draw_without_rendering()
    axes = figure.axes[0]
    rows = [label.get_text() for label in axes.get_yticklabels()]
    cells = np.asarray(axes.images[0].get_array())
    assert cells.shape == (40, 40)
    assert cells[rows.index("user-700"), rows.index("user-3")] == 9.0
    assert axes.get_title(loc="left") == "the 40 of 1,000 users with the largest envy, as envying or envied"


def test_rows_and_columns_without_envy_are_left_out_of_many() -> None:
    """Two users envy one of 30, and the picture says so; 12 users are all shown."""
    envy = np.zeros((30, 30))
    envy[[4, 9], 7] = 1.0, 2.0
    axes = plot_envy(envy, [f"user-{n}" for n in range(30)]).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["user-4", "user-9"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["user-7"]
    assert [text.get_text() for text in axes.texts] == ["1", "2"]
    assert " ".join(axes.get_title(loc="left").split()) == "2 who envy and 1 who are envied, of 30 users"
    few = plot_envy(envy[:12, :12], [f"user-{n}" for n in range(12)]).axes[0]
    assert np.asarray(few.images[0].get_array()).shape == (12, 12)


@pytest.mark.parametrize("users", [1, 2, 12, 40])
def test_no_envy_is_white(users: int) -> None:
    """And said in words, without a scale that would mean nothing."""
    figure = plot_envy(np.zeros((users, users)), [f"u{n}" for n in range(users)])
    figure.draw_without_rendering()
    assert len(figure.axes) == 1
    assert figure.axes[0].get_title(loc="left") == "nobody envies anybody"
    assert len(figure.axes[0].images) == (users <= 12)  # an empty grid of many says no more
    assert all(image.cmap(0.0) == (1.0, 1.0, 1.0, 1.0) for image in figure.axes[0].images)


def test_pictures_for_papers() -> None:
    """Without a title; a narrow frontier has no axes of prices, and calls notions as a study does."""
    from fairopt.plots.sheets import untitled

    pool = fo.Instance([[9, 18]], [[1, 4], [6, 1]])
    with untitled():
        figure = fo.frontier(pool, notions=["drf", "psdsf"]).plot(figsize=(3.4, 2.8))
    assert figure.get_suptitle() == ""
    (axes,) = figure.axes
    assert not axes.child_axes
    assert {"DRF", "PS-DSF"} <= set(re.split(r", |\n", "\n".join(text.get_text() for text in axes.texts)))
    assert figure.axes[0].get_ylabel() == "smallest weighted\ndominant share"
    assert fo.frontier(pool, notions=["drf"]).plot().get_suptitle() != ""


# Polytope ------------------------------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 3]))
@settings(max_examples=25, deadline=None)
def test_the_polygon_holds_what_is_feasible(seed: int, users: int) -> None:
    """A linear program of scipy's in random directions finds the corners of each polygon, and the path stays in the outer one."""
    rng = np.random.default_rng(seed)
    pool = fo.Instance(rng.uniform(1, 5, (1, 3)), rng.uniform(0.1, 2, (users, 3)), tasks=rng.uniform(0.3, 4, users))
    trace = fo.solve(pool, "proportional", solver="trajectory").trace
    figure = plot_polytope(trace)
    planes = [(0, 1)] if users == 2 else [(0, 1), (0, 2), (1, 2)]
    for axes, plane in zip(figure.axes, planes, strict=True):
        faces = [patch.get_xy() for patch in axes.patches if isinstance(patch, Polygon)]
        fixed = [np.zeros(users)] * (users == 3) + [trace.x[-1] * [n not in plane for n in range(users)]]
        assert len(faces) == len(fixed)
        for corners, held in zip(faces, fixed, strict=True):
            room = pool.capacities[0] - held @ pool.demands
            for direction in rng.normal(size=(4, 2)):
                bounds = [(0, pool.tasks[n]) for n in plane]
                best = linprog(-direction, A_ub=pool.demands[list(plane)].T, b_ub=room, bounds=bounds)
                assert best.fun is not None
                assert (corners @ direction).max() == pytest.approx(-best.fun, rel=1e-6, abs=1e-7)
        drawn = lines(axes)
        np.testing.assert_allclose(drawn["path"], trace.x[:, plane])
        np.testing.assert_allclose(drawn["its end"][0], fo.solve(pool, "proportional").tasks_per_user[list(plane)], rtol=1e-5)


def test_the_ends_of_the_paper() -> None:
    """Dolev et al., section 4: BBF grants (1, 1/2), DRF (2/3, 2/3), and resource 1 is a bottleneck."""
    pool = fo.Instance([[1, 1, 1, 1]], np.array([[0.5, 0, 0, 1], [1, 1, 1, 0]]))
    trace = fo.solve(pool, "bbf", solver="trajectory").trace
    drawn = lines(plot_polytope(trace, {"DRF": [2 / 3, 2 / 3]}).axes[0])
    np.testing.assert_allclose(drawn["its end"], [[1, 0.5]], rtol=1e-3)  # two limits meet there: 1e-4 from it at c = 1e8
    np.testing.assert_allclose(drawn["resource-1 @ server-1 (full)"] @ [0.5, 1], 1)
    np.testing.assert_allclose(drawn["DRF"] @ [0.5, 1], 1)


def test_a_polytope_of_more_pairs_is_refused() -> None:
    """And of one; the message says what draws them."""
    for users in (1, 4):
        trace = fo.solve(fo.Instance([[1, 1]], np.eye(4, 2)[:users] + 0.1), "bbf", solver="trajectory").trace
        with pytest.raises(fo.Unsupported, match=rf"this path moves {users}; trace.plot\(\)"):
            trace.plot_polytope()


# Convergence ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["sequential", "asynchronous"])
def test_convergence_ends_at_the_answer(order: str) -> None:
    """The last violation is that of the certificate, and the last tasks those of the allocation."""
    allocation = fo.solve(PSDSF, "psdsf", order=order)
    trace = allocation.trace
    assert trace.changes.shape == trace.violations.shape == (len(trace.tasks),)
    assert trace.violations[-1] <= 1e-9 < trace.violations[0]
    np.testing.assert_allclose(trace.tasks[-1], allocation.tasks_per_user)
    left, right = plot_convergence(trace).axes
    assert left.get_yscale() == "log"
    drawn = lines(right)
    assert list(drawn) == list(trace.users)
    np.testing.assert_allclose([drawn[user][-1, 1] for user in PSDSF.users], [3.6, 3.6, 8, 8])  # figure 3 of Khamse-Ashari et al.


def test_convergence_in_a_few_sweeps_can_be_read() -> None:
    """Each mark has its number, and what is 0 to rounding is written so, a decade below the rest instead of sixteen."""
    allocation = fo.solve(PSDSF, "psdsf", solver="best-response")
    trace = allocation.trace
    assert trace.changes.size == 3
    axes = plot_convergence(trace).axes[0]
    texts = [text.get_text() for text in axes.texts]
    assert texts == ["1", "0.5", "0", "0.64", "0", "0", "0 to rounding"]
    low, high = axes.get_ylim()
    assert high / low < 1e5


# Odd input -----------------------------------------------------------------------------------------------------------------------

PICTURES: dict[str, Callable[[fo.Allocation], Figure]] = {
    "shares": plot_shares,
    "utilization": plot_utilization,
    "envy": lambda allocation: plot_envy(envy_matrix(allocation), allocation.instance.users, allocation.notion),
    "convergence": lambda allocation: allocation.trace.plot() if allocation.trace else Figure(),
}


@pytest.mark.parametrize("picture", PICTURES)
@pytest.mark.parametrize(
    "instance",
    [
        fo.Instance([[1]], [[1]]),
        fo.Instance([[1, 1]], [[1, 1], [1, 0]], tasks=[0, 0]),
        fo.Instance([[9, 9]], np.ones((7, 2)), users=ODD, servers=["$server$"], resources=["$cpu$", "\\memory_{"]),
        fo.Instance(np.ones((60, 2)), np.ones((1000, 2)) * np.linspace(0.1, 1, 1000)[:, None], eligibility=np.eye(1000, 60) + 1 > 0),
    ],
    ids=["one user", "zero tasks", "odd labels", "1,000 users"],
)
def test_odd_input_is_drawn(picture: str, instance: fo.Instance) -> None:
    """Without a warning."""
    PICTURES[picture](fo.solve(instance, "psdsf" if picture == "convergence" else "drfh")).draw_without_rendering()
