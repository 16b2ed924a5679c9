"""What users hold of what queues are guaranteed, may hold, and keep.

Usage is a compensated sum, as on servers. A limit, or what queues keep, that leaves no room for a task bars its user from all servers or,
if it counts some rows only, from these rows. Without events usage only rises, so a user that is barred from all servers is finished.
"""

from __future__ import annotations

from fairopt.instance.tolerances import FITS
from fairopt.solvers.compiled import step
from fairopt.solvers.filling.kernel.codes import GUARANTEE, KEPT, LIMIT
from fairopt.solvers.filling.kernel.servers import column_of
from fairopt.solvers.filling.queue_state import CHANGED

__all__ = ["bar", "is_below_own", "is_unmet_guarantee", "record", "resize", "settle"]


@step(inline="always")
def _plus(total, lost, at, amount):  # type: ignore[no-untyped-def]
    """Add an amount to a compensated sum."""
    more = amount - lost[at]
    result = total[at] + more
    lost[at] = (result - total[at]) - more
    total[at] = result


@step()
def _counted(usage, lost, empty, one, worth, parts, n, sign):  # type: ignore[no-untyped-def]
    """Count a task of n, its worth (``one``) or its parts, in what a place uses, and return the share; 0 of an empty place."""
    if empty:  # rounding leaves nothing behind
        usage[:] = 0.0
        lost[:] = 0.0
        return 0.0
    if one:
        _plus(usage, lost, 0, sign * worth)
        return usage[0]
    largest = 0.0
    for r in range(usage.size):
        _plus(usage, lost, r, sign * parts[n, r])
        largest = max(largest, usage[r])
    return largest


@step(inline="always")
def is_unmet_guarantee(kind, held, amount, a):  # type: ignore[no-untyped-def]
    """Is account a a guarantee, and less held than it promises?"""
    return kind[a] == GUARANTEE and held[a] < amount[a] * (1.0 - FITS)


@step(inline="always")
def is_below_own(running, promised, leaf):  # type: ignore[no-untyped-def]
    """Has the leaf fewer tasks than are guaranteed to it?"""
    return running[leaf] < promised[leaf] * (1.0 - FITS)


@step()
def record(state, tree, n, row, sign):  # type: ignore[no-untyped-def]
    """A task of n begins (sign 1) or ends (-1) on a server of this row: count it everywhere above, and in the accounts."""
    running, parts, share, parent = tree.running, tree.parts, tree.share, tree.parent
    worth = state.worth[n, column_of(state.worth, row)]
    if tree.has_last and tree.tier[n] < tree.lowest_tier:  # it demands nothing that counts
        worth = 0.0
    leaf = tree.leaf[n]
    below_own = is_below_own(running, tree.promised, leaf)
    place = leaf
    while place >= 0:
        running[place] += sign
        one = place == leaf or not tree.dominant
        share[place] = _counted(tree.usage[place], tree.usage_lost[place], running[place] == 0, one, worth, parts, n, sign)
        place = parent[place]
    if tree.has_last:
        _record_plainly(tree, n, sign)
    if below_own != is_below_own(running, tree.promised, leaf):
        tree.marks[CHANGED] = 1
    accounts, rows, kind, held, amount, holders = tree.accounts, tree.rows, tree.kind, tree.held, tree.amount, tree.holders
    for entry in range(tree.accounts_from[n], tree.accounts_from[n + 1]):
        a = accounts[entry]
        if not rows[a, row] or (tree.on_row[entry] >= 0 and tree.on_row[entry] != row):
            continue
        unmet = is_unmet_guarantee(kind, held, amount, a)
        holders[a] += sign
        if holders[a] == 0:
            held[a] = tree.held_lost[a] = 0.0
        else:
            _plus(held, tree.held_lost, a, sign * tree.adds[entry])
        if kind[a] == LIMIT:
            bar(state, tree, a)
        elif kind[a] == KEPT:
            settle(state, tree, tree.keeping[a])
        elif unmet != is_unmet_guarantee(kind, held, amount, a):
            tree.marks[CHANGED] = 1


@step()
def _record_plainly(tree, n, sign):  # type: ignore[no-untyped-def]
    """Count the task everywhere above in the shares where all resources count once."""
    running, parts, share, parent = tree.running, tree.plain_parts, tree.plain_share, tree.parent
    place = leaf = tree.leaf[n]
    while place >= 0:
        one = place == leaf or not tree.dominant
        usage, lost = tree.plain_usage[place], tree.plain_usage_lost[place]
        share[place] = _counted(usage, lost, running[place] == 0, one, tree.plain_worth[n], parts, n, sign)
        place = parent[place]


@step()
def bar(state, tree, a):  # type: ignore[no-untyped-def]
    """Bar the users whose task is larger than what is left of a limit; let the others in again."""
    members, adds = tree.members, tree.adds
    left = tree.amount[a] * (1.0 + FITS) - tree.held[a]
    first, last, at = tree.members_from[a], tree.members_from[a + 1], tree.barred_to[a]
    while True:
        if at < last and adds[members[at]] > left:
            entry, number = members[at], 1
            at += 1
        elif at > first and adds[members[at - 1]] <= left:
            at -= 1
            entry, number = members[at], -1
        else:
            break
        n, row = tree.user_of[entry], tree.on_row[entry]
        tree.marks[CHANGED] = 1
        if row >= 0:
            tree.barred_on[n, row] += number
            state.eligible[n, row] = tree.eligible[n, row] and tree.barred_on[n, row] == 0
            tree.again[n] |= number < 0
        elif tree.everywhere[a]:
            tree.barred[n] += number
        else:
            _bar_on_rows(state.eligible, tree.eligible, tree.barred_on, tree.rows[a], n, number)
            tree.again[n] |= number < 0
    tree.barred_to[a] = at


@step()
def settle(state, tree, keeping):  # type: ignore[no-untyped-def]
    """Find how much each user may hold beside what queues keep of a resource on a group of servers, and bar those who may hold no more."""
    first, root = tree.keeping_from[keeping], tree.keeping_from[keeping + 1] - 1
    above, keeps, held, counted, amount = tree.above, tree.keeps, tree.held, tree.counted, tree.amount
    for a in range(first, root + 1):
        counted[a] = held[a]
    for a in range(root - 1, first - 1, -1):  # children before parents
        counted[above[a]] += max(keeps[a], counted[a])
    amount[root] = keeps[root] - counted[root]
    for a in range(first, root):  # what may be held in addition, parents before children
        amount[a] = amount[above[a]] + max(keeps[a] - counted[a], 0.0)
    for a in range(first, root + 1):
        amount[a] += held[a]
        bar(state, tree, a)


@step()
def resize(state, run, tree):  # type: ignore[no-untyped-def]
    """Scale what queues keep to the servers that are there, as `fairopt.instance.keeping.Keeping.with_capacity` does."""
    above, keeps, asked, counted = tree.above, tree.keeps, tree.asked, tree.counted
    for keeping in range(tree.keeping_from.size - 1):
        first, root = tree.keeping_from[keeping], tree.keeping_from[keeping + 1] - 1
        capacity = 0.0
        for row in range(tree.of_server.shape[0]):
            if tree.rows[root, row]:
                there = 0
                for i in range(state.start[row], state.start[row + 1]):
                    there += not run.closed[i]
                capacity += there * tree.of_server[row, tree.resource[root]]
        for a in range(first, root + 1):
            counted[a] = 0.0
        for a in range(root - 1, first - 1, -1):  # children before parents
            counted[above[a]] += max(asked[a], counted[a])
        part = capacity / counted[root] if counted[root] > capacity else 1.0
        for a in range(first, root):
            keeps[a] = asked[a] * part
        keeps[root] = capacity
        settle(state, tree, keeping)


@step()
def _bar_on_rows(eligible, without_limits, barred_on, rows, n, number):  # type: ignore[no-untyped-def]
    """Count a limit that bars user n from these rows (number 1), or does so no longer (-1)."""
    for row in range(rows.size):
        if rows[row]:
            barred_on[n, row] += number
            eligible[n, row] = without_limits[n, row] and barred_on[n, row] == 0
