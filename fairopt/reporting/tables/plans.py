"""A plan: each user now and at the end, then what stops and what starts, step by step."""

from __future__ import annotations

from collections.abc import Iterator

from fairopt.analysis.planning import Plan
from fairopt.show.blocks import GAP, Block, Note
from fairopt.show.table import Table, ids, names, numbers, words
from fairopt.wording import joined, plural

__all__ = ["plan_blocks"]

_ROWS = 40  # actions, and users, that are shown
_NAMES = 4


def plan_blocks(found: Plan, *, everything: bool = False) -> Iterator[Block]:
    """Yield the users, the actions, and how few stops there must be."""
    changes = found.changes()
    some = [user for user, (stops, starts) in changes.items() if stops or starts]
    as_now = len(changes) - len(some)
    shown = list(changes) if everything else some[:_ROWS]
    yield Note(f": {_summary(found)}", f"plan to {found.notion}")
    yield GAP
    if shown:
        yield Table.of(
            names("user", shown),
            numbers("tasks now", (found.held[user] for user in shown), 10),
            numbers("stop", (changes[user][0] for user in shown), 10),
            numbers("start", (changes[user][1] for user in shown), 10),
            numbers("moved", (min(changes[user]) for user in shown), 10),
            numbers("tasks then", (found.target[user] for user in shown), 10),
            *([] if found.fair == found.target else [numbers("without budget", (found.fair[user] for user in shown), 10)]),
        )
    if not everything:
        if len(some) > len(shown):
            yield f"and {plural(len(some) - len(shown), 'more user')} (--all shows them)"
        if as_now and some:
            yield f"{plural(as_now, 'user keeps', 'users keep')} what runs."
    actions = found.actions()
    part = actions if everything else actions[:_ROWS]
    if part:
        yield GAP
        own = [("names", [joined(list(each.names), _NAMES) for _, each in part])] if any(each.names for _, each in part) else []
        yield Table.of(
            ids("step", (str(each.step) for _, each in part)),
            words("action", (what for what, _ in part)),
            numbers("tasks", (each.tasks for _, each in part), 10),
            names("user", (each.user for _, each in part)),
            names("server", (each.server for _, each in part)),
            *(words(title, values) for title, values in own),
        )
        if len(part) < len(actions):
            yield f"and {plural(len(actions) - len(part), 'more action')} (--all shows them)"
        if any(each.step == 2 for _, each in actions):
            yield "Step 2 begins when all of step 1 is done; the actions of a step may be taken in any order."
    for note in found.notes:
        yield GAP
        yield Note(f"Note: {note}", whole=True)


def _summary(found: Plan) -> str:
    """Say how many tasks stop and start, and how few stops there must be."""
    if not found.stops and not found.starts:
        return "what runs is the target already; nothing stops, nothing starts"
    proof = "no plan to these tasks by user has fewer stops" if found.n_stops <= found.bound else f"at least {found.bound} are needed"
    moved = f", {found.moved} of them {'moves' if found.moved == 1 else 'move'} to another server" if found.moved else ""
    return f"{plural(found.n_stops, 'stop')}{moved}, {plural(found.n_starts, 'start')}; {proof}"
