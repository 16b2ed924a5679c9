"""Progressive filling: place one whole task at a time, for the user with the smallest share, until no task fits.

Progressive filling is greedy, not exact: it approximates no notion within a stated bound. Schedulers work this way, and fairopt compares
them with the optimum.

    repeat   n = a user with the smallest share, among the users who have a task left that fits on some server
             i = a server that a task of n fits on, chosen by the placement
             x[n,i] += 1

A placement may choose the server first. Then n is the user with the smallest share among the users whose task fits on server i. The result
is maximal: no further task fits. With queues, n is found by a walk down their tree (`fairopt.program.filling`), and no limit is exceeded.

The steps are in ``fairopt.solvers.filling.kernel``. This module runs them in batches, so that it can report progress.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fairopt.errors import InvalidInstance, Unsupported
from fairopt.instance import FloatArray, IntArray, safe_ratio
from fairopt.instance.tolerances import SAME
from fairopt.program.filling import Filling, Kind, Measure, Queues, Rule
from fairopt.solvers.compiled import Steps
from fairopt.solvers.filling import kernel
from fairopt.solvers.filling.placements import Chooser, Placement
from fairopt.solvers.filling.queue_state import QueueState
from fairopt.solvers.filling.settings import SETTINGS
from fairopt.solvers.filling.state import BLOCKED_BY, State
from fairopt.wording import plural

__all__ = ["Filled", "chosen_server", "demand_of", "fill", "room_of", "state_of", "tree_of"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Filled:
    """The result of progressive filling.

    Attributes
    ----------
    tasks : int array (users, rows)
    users, servers : int arrays (tasks,)
        The user and the single server of each task, in the order of placement.
    blocked_by : int or None
        The user whose task did not fit, if ``first_block`` ended the filling.
    loading : float
        Seconds to load the compiled steps; 0 if they are loaded already.
    """

    tasks: IntArray
    users: IntArray
    servers: IntArray
    blocked_by: int | None
    loading: float = 0.0


def fill(filling: Filling, placement: Placement | Chooser, *, random_ties: bool, seed: int, first_block: bool) -> Filled:
    """Place tasks until no more fit.

    Parameters
    ----------
    placement : Placement or function
    random_ties : bool
        Draw one of the users with the smallest share at random. Otherwise take the first of them in ``filling.order``.
    first_block : bool
        Stop when the task of the user with the smallest share does not fit. Otherwise continue with the other users.
    """
    steps = Steps(kernel)
    rng = np.random.default_rng(seed)
    state = state_of(filling, placement, random_ties, first_block)
    tree = None
    if filling.queues is not None:
        tree = tree_of(state, filling, filling.queues, np.argsort(filling.order), steps)
    by_server = isinstance(placement, Placement) and placement.server_first
    name = ("fill" if tree is None else "fill_tree") + ("_by_server" if by_server else "")
    once = SETTINGS.seconds_of_choice * (filling.eligibility.size + state.row.size)  # all shares and all servers, looked at for one task
    batches: list[tuple[IntArray, IntArray]] = []
    number = 0
    while True:
        batch = steps.size(name, SETTINGS.tasks_at_once)
        users, servers = np.empty(batch, np.int64), np.empty(batch, np.int64)
        if not isinstance(placement, Placement):
            placed = _fill_by(state, tree, filling, placement, rng, users, servers, steps)
        else:
            placed = steps.run(name, state, tree, rng, users, servers, seconds=once)
        batches.append((users[:placed], servers[:placed]))
        number += placed
        if placed < batch:
            break
        if batch == SETTINGS.tasks_at_once:
            log.info("%s placed", plural(number, "task"))
    blocked = int(state.progress[BLOCKED_BY])
    return Filled(
        state.tasks,
        np.concatenate([users for users, _ in batches]),
        np.concatenate([servers for _, servers in batches]),
        None if blocked < 0 else blocked,
        steps.loading,
    )


def state_of(filling: Filling, placement: Placement | Chooser, random_ties: bool, first_block: bool) -> State:
    """Return the arrays of the kernel, with resources as fractions of an average server: units do not matter, scores are near 1."""
    scale = np.ones(filling.capacities.shape[1])
    scale[: filling.n_scored] = safe_ratio(filling.counts.sum(), filling.counts @ filling.capacities[:, : filling.n_scored])
    scale[np.isinf(scale)] = 1.0  # no server has the resource, so no task that demands it can run
    counts, worth = filling.counts, filling.criterion.per_task
    rows = filling.eligibility.shape[1]
    own_order = filling.criterion.measure is Measure.SERVER
    return State.begin(
        rule=int(placement.rule) if isinstance(placement, Placement) else int(Rule.FIRST),
        measure=int(filling.criterion.measure),
        random_ties=random_ties,
        first_block=first_block,
        start=np.concatenate([[0], np.cumsum(counts)]),
        row=np.repeat(np.arange(rows), counts),
        capacity=np.ascontiguousarray(filling.capacities * scale),
        demand=np.ascontiguousarray(filling.demands * scale),
        eligible=filling.eligibility if filling.queues is None else filling.eligibility.copy(),  # limits of queues change it
        wanted=filling.tasks - (0 if filling.held is None else filling.held.sum(axis=1)),
        worth=np.ascontiguousarray(worth[:, None] if worth.ndim == 1 else worth),
        cost=_cost(filling),
        order=filling.order,
        held=filling.held,
        scored=filling.n_scored,
        rows_by_worth=_by_worth(worth, filling) if own_order else np.arange(rows)[None, :],
    )


def _cost(filling: Filling) -> FloatArray:
    """Return what a unit of work takes on each row, in parts of the most that it takes anywhere, (users, 1 or rows)."""
    if filling.costs is None:
        return np.zeros((filling.eligibility.shape[0], 1))
    return np.ascontiguousarray(safe_ratio(filling.costs, filling.costs.max(axis=1, initial=0.0, keepdims=True)))


def tree_of(state: State, filling: Filling, queues: Queues, rank: IntArray, steps: Steps) -> QueueState:
    """Return the arrays of the queues, with the tasks that already run counted, and the users barred whose first task exceeds a limit."""
    if filling.criterion.measure is not Measure.OWN:
        raise Unsupported("queues compare one share for all servers, and the shares of this criterion differ between servers")
    tree = QueueState.begin(filling, queues, rank)
    for account in np.flatnonzero(queues.kinds == Kind.LIMIT):
        steps.run("bar", state, tree, int(account))
    for keeping in range(tree.keeping_from.size - 1):
        steps.run("settle", state, tree, keeping)
    for n, row in np.argwhere(state.tasks > 0):
        for _ in range(state.tasks[n, row]):
            steps.run("record", state, tree, int(n), int(row), 1)
    return tree


def _by_worth(worth: FloatArray, filling: Filling) -> IntArray:
    """Return the rows for each user, ascending by the share of a task; rows whose shares differ only by rounding keep their order."""
    table = np.where(filling.eligibility, np.broadcast_to(worth if worth.ndim == 2 else worth[:, None], filling.eligibility.shape), np.inf)
    order = np.argsort(table, axis=1, kind="stable")
    ranked = np.take_along_axis(table, order, axis=1)
    with np.errstate(invalid="ignore"):  # inf - inf for pairs that may not run
        steps = np.cumsum(ranked[:, 1:] > ranked[:, :-1] * (1 + SAME), axis=1)
    level = np.zeros(order.shape, np.int64)
    np.put_along_axis(level, order, np.hstack([np.zeros((len(order), 1), np.int64), steps]), axis=1)
    return np.argsort(level, axis=1, kind="stable")


def chosen_server(choose: Chooser, user: int, free: FloatArray, demand: FloatArray, fits: IntArray) -> int:
    """Return the server that a function chooses.

    Raises
    ------
    InvalidInstance
        If it is none of those on which the task fits.
    """
    i = choose(user, free, demand, fits)
    if not isinstance(i, int | np.integer) or i not in fits:
        raise InvalidInstance(
            f"the placement {getattr(choose, '__name__', choose)!r} returned {i!r} for user number {user}, which is no server that "
            "its task fits on; return one whole number of those in its last argument"
        )
    return int(i)


def room_of(filling: Filling, state: State) -> Callable[[], FloatArray]:
    """Return a function that returns what is free on each server in the units of the instance, (servers, resources)."""
    scored = filling.n_scored
    scale = safe_ratio(filling.capacities[:, :scored], state.capacity[:, :scored])[state.row]
    capacity = filling.capacities[state.row, :scored]
    return lambda: np.asarray(capacity - scale * state.used[:, :scored])


def demand_of(filling: Filling, state: State, n: int) -> FloatArray:
    """Return the demand of a task of n for the resources that placements look at, (resources,), or (servers, resources) if it differs."""
    demand = filling.demands[n, 0] if filling.demands.shape[1] == 1 else filling.demands[n, state.row]
    return np.asarray(demand[..., : filling.n_scored])


def _fill_by(
    state: State,
    tree: QueueState | None,
    filling: Filling,
    choose: Chooser,
    rng: np.random.Generator,
    users: IntArray,
    servers: IntArray,
    steps: Steps,
) -> int:
    """Fill as the kernel's `fill` does, but let the function ``choose`` choose the server, in the units of the instance."""
    room = room_of(filling, state)
    for placed in range(users.size):
        n = steps.run("next_user", state, rng) if tree is None else steps.run("next_in_tree", state, tree, rng)
        if n < 0:
            return placed
        number = steps.run("fitting", state, n) if tree is None else steps.run("fitting_in_tree", state, tree, n)
        if number == 0:
            state.progress[BLOCKED_BY] = n
            return placed
        i = chosen_server(choose, int(n), room(), demand_of(filling, state, n), state.fits[:number].copy())
        if tree is None:
            steps.run("place", state, n, int(i))
        else:
            steps.run("place_in_tree", state, tree, n, int(i))
        users[placed], servers[placed] = n, i
    return users.size
