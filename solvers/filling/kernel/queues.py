"""Whose turn it is in a tree of queues, and the server and the placement of its task.

The user is found by a walk from the root down. For each place, ``need`` and ``top`` say which tasks below can be placed. They are found
anew when a user, a guarantee or a limit has changed. ``measure`` is what the children of a node are compared by.
"""

from __future__ import annotations

import math

from fairopt.instance.tolerances import SAME
from fairopt.solvers.compiled import step
from fairopt.solvers.filling.kernel.accounts import is_below_own, is_unmet_guarantee, record
from fairopt.solvers.filling.kernel.servers import choose, column_of, draw, first_fit, fits, fits_on_row, fits_on_rows, fitting
from fairopt.solvers.filling.kernel.users import place as place_task
from fairopt.solvers.filling.kernel.users import retire
from fairopt.solvers.filling.queue_state import CHANGED, LEVEL

__all__ = [
    "choose_in_tree",
    "fitting_in_tree",
    "narrow_rows",
    "need_of",
    "next_in_tree",
    "next_on_server_in_tree",
    "offer",
    "place_in_tree",
    "walk",
    "widen_rows",
]


@step()
def need_of(state, tree, n, row):  # type: ignore[no-untyped-def]
    """Return the depth of the deepest unmet guarantee that a task of n can add to on a server of this row (-1: on any), 0 without one."""
    level, kind, held, amount, accounts = tree.level, tree.kind, tree.held, tree.amount, tree.accounts
    leaf = tree.leaf[n]
    if is_below_own(tree.running, tree.promised, leaf):
        return tree.depth[leaf]
    need = 0
    for entry in range(tree.accounts_from[n], tree.accounts_from[n + 1]):
        a = accounts[entry]
        if level[a] > need and is_unmet_guarantee(kind, held, amount, a) and _counts_there(state, tree, n, entry, row):
            need = level[a]
    return need


@step()
def _counts_there(state, tree, n, entry, row):  # type: ignore[no-untyped-def]
    """Does the account of an entry count this row (-1: any where a task of n fits)?"""
    a, only = tree.accounts[entry], tree.on_row[entry]
    if row >= 0:
        return tree.rows[a, row] and (only < 0 or only == row)
    if tree.everywhere[a]:
        return True
    used, capacity, demand, eligible, rows = state.used, state.capacity, state.demand, state.eligible, tree.rows[a]
    if only >= 0:
        tree.at[entry] = fits_on_row(used, capacity, demand, state.start, eligible, only, n, tree.at[entry])
        return tree.at[entry] < state.row.size
    tree.at[entry] = fits_on_rows(used, capacity, demand, state.row, state.start, eligible, rows, n, tree.at[entry])
    return tree.at[entry] < state.row.size


@step()
def offer(tree, n, need):  # type: ignore[no-untyped-def]
    """Tell the places above that a task of n can be placed, which adds to an unmet guarantee at depth ``need``."""
    needs, top, parent = tree.need, tree.top, tree.parent
    place = tree.leaf[n]
    tree.value[n] = -1
    if need < tree.closed[place]:  # a weight of 0 below that guarantee
        return
    tree.value[n] = need
    tier = tree.tier[n]
    while place >= 0 and (need > needs[place] or (need == needs[place] and tier > top[place])):
        needs[place] = need
        top[place] = tier
        place = parent[place]


@step()
def _part_of_guarantee(tree, node, neediest):  # type: ignore[no-untyped-def]
    """Return use / guarantee of a queue, of which ``neediest`` is the smallest among its children below a guarantee."""
    kind, held, amount, resource = tree.kind, tree.held, tree.amount, tree.resource
    use = largest = 0.0
    last, is_unmet = -1, False
    accounts = tree.given[tree.given_from[node] : tree.given_from[node + 1]]
    for a in accounts:
        is_unmet = is_unmet or is_unmet_guarantee(kind, held, amount, a)
        use = (use if resource[a] == last else 0.0) + min(held[a], amount[a]) / tree.total[resource[a]]
        largest = max(largest, use)
        last = resource[a]
    if is_unmet:
        return largest / tree.promised[node]
    return neediest + 1.0 if accounts.size > 0 else neediest


@step()
def _measure_needs(tree):  # type: ignore[no-untyped-def]
    """Measure the places at or below which a guarantee is unmet by use / guarantee."""
    need, depth, parent, measure = tree.need, tree.depth, tree.parent, tree.measure
    running, promised, nodes = tree.running, tree.promised, tree.children_from.size - 1
    measure[:] = math.inf
    for place in tree.upwards:
        if need[place] >= depth[place]:
            measure[place] = running[place] / promised[place] if place >= nodes else _part_of_guarantee(tree, place, measure[place])
            measure[parent[place]] = min(measure[parent[place]], measure[place])


@step()
def walk(tree, rng, random_ties):  # type: ignore[no-untyped-def]
    """Return the leaf of the next task, -1 if no task can be placed. Its task must have at least the need ``marks[LEVEL]``."""
    need, tops, measure, weight, share, all_children = tree.need, tree.top, tree.measure, tree.weight, tree.share, tree.children
    if need[0] < 0:
        return -1
    if need[0] > 0:
        _measure_needs(tree)
    nodes, listed = tree.children_from.size - 1, tree.listed
    place = depth = level = 0
    while place < nodes:
        depth += 1
        children = all_children[tree.children_from[place] : tree.children_from[place + 1]]
        top, first = 0, True
        for child in children:
            if need[child] >= depth:
                level = depth
            if need[child] >= 0 and (first or tops[child] > top):
                top, first = tops[child], False
        smallest = math.inf
        for child in children:
            if need[child] < level or (level == 0 and tops[child] < top):
                measure[child] = math.inf
                continue
            if level < depth:  # all weights below the guarantee are positive
                held = tree.plain_share[child] if tree.has_last and tops[child] < tree.lowest_tier else share[child]
                measure[child] = child if listed[place] else held / weight[child]
            smallest = min(smallest, measure[child])
        number = 0
        for child in children:
            if measure[child] <= smallest * (1.0 + SAME):
                tree.tied[number] = child
                number += 1
                if not random_ties:
                    break
        place = tree.tied[draw(rng, number)]
    tree.marks[LEVEL] = level
    return place


@step()
def _adds(tree, n, row, level):  # type: ignore[no-untyped-def]
    """Does a task of n on a server of this row add to an unmet guarantee at this depth or below?"""
    for entry in range(tree.accounts_from[n], tree.accounts_from[n + 1]):
        a = tree.accounts[entry]
        counts = tree.rows[a, row] and (tree.on_row[entry] < 0 or tree.on_row[entry] == row)
        if tree.level[a] >= level and counts and is_unmet_guarantee(tree.kind, tree.held, tree.amount, a):
            return True
    return False


@step()
def narrow_rows(state, tree, n):  # type: ignore[no-untyped-def]
    """Leave the user only the rows where its task adds to a guarantee of the need that was found; return whether there are others."""
    level = tree.marks[LEVEL]
    if level == 0 or not _on_some_rows(tree) or is_below_own(tree.running, tree.promised, tree.leaf[n]):
        return False
    narrow = False
    for row in range(tree.kept.size):
        tree.kept[row] = state.eligible[n, row]
        if tree.kept[row] and not _adds(tree, n, row, level):
            state.eligible[n, row] = False
            narrow = True
    return narrow


@step()
def widen_rows(state, tree, n):  # type: ignore[no-untyped-def]
    """Give the user back the rows that `narrow_rows` took."""
    for row in range(tree.kept.size):
        state.eligible[n, row] = tree.kept[row]


@step()
def fitting_in_tree(state, tree, n):  # type: ignore[no-untyped-def]
    """Put the servers on which the next task of n may be placed into ``fits``, ascending; return how many."""
    narrow = narrow_rows(state, tree, n)
    number = fitting(state, n)
    if narrow:
        widen_rows(state, tree, n)
    return number


@step()
def choose_in_tree(state, tree, n, rng):  # type: ignore[no-untyped-def]
    """Return the server of the next task of n."""
    narrow, first = narrow_rows(state, tree, n), state.first[n]
    i = choose(state, n, rng)
    if narrow:
        state.first[n] = first
        widen_rows(state, tree, n)
    return i


@step()
def _survey(state, tree):  # type: ignore[no-untyped-def]
    """Find which tasks can be placed, and which guarantees they add to."""
    wanted, barred, value = state.wanted, tree.barred, tree.value
    tree.need[:] = -1
    for n in range(wanted.size):
        value[n] = -1
        if wanted[n] == 0:
            continue
        if barred[n] > 0 or first_fit(state, n) < 0:
            retire(state, n)
        else:
            offer(tree, n, need_of(state, tree, n, -1))
    tree.marks[CHANGED] = 0


@step()
def _on_some_rows(tree):  # type: ignore[no-untyped-def]
    """Is a guarantee on some rows only unmet? Then the needs may change with every task."""
    everywhere, kind, held, amount = tree.everywhere, tree.kind, tree.held, tree.amount
    for a in range(amount.size):  # noqa: SIM110
        if not everywhere[a] and is_unmet_guarantee(kind, held, amount, a):
            return True
    return False


@step()
def next_in_tree(state, tree, rng):  # type: ignore[no-untyped-def]
    """Return the user of the next task, -1 if no task can be placed."""
    if tree.marks[CHANGED] or _on_some_rows(tree):
        _survey(state, tree)
    leaf = walk(tree, rng, state.random_ties)
    return leaf - (tree.children_from.size - 1) if leaf >= 0 else -1


@step()
def place_in_tree(state, tree, n, i):  # type: ignore[no-untyped-def]
    """Place one task of user n on server i."""
    place_task(state, n, i)
    record(state, tree, n, state.row[i], 1)
    if state.wanted[n] == 0:
        tree.marks[CHANGED] = 1
    first, wanted = state.first, state.wanted
    for other in range(wanted.size):
        if first[other] == i and wanted[other] > 0 and first_fit(state, other) < 0:
            retire(state, other)
            tree.marks[CHANGED] = 1


@step(inline="always")
def next_on_server_in_tree(state, tree, i, rng):  # type: ignore[no-untyped-def]
    """Return the user of the next task on server i, -1 if no task can be placed there."""
    wanted, barred, eligible, used, capacity, demand = state.wanted, tree.barred, state.eligible, state.used, state.capacity, state.demand
    row = state.row[i]
    tree.need[:] = -1
    for n in range(wanted.size):
        if wanted[n] > 0 and barred[n] == 0 and eligible[n, row] and fits(used, i, capacity, row, demand, n, column_of(demand, row)):
            offer(tree, n, need_of(state, tree, n, row))
    leaf = walk(tree, rng, state.random_ties)
    return leaf - (tree.children_from.size - 1) if leaf >= 0 else -1
