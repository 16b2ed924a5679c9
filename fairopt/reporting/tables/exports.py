"""An export: the whole tasks, where they run, and the notes."""

from __future__ import annotations

from collections.abc import Iterator

from fairopt.clusters.exported import Export
from fairopt.show.blocks import GAP, Block, Note
from fairopt.show.table import Table, names, numbers, words
from fairopt.wording import figure, joined, plural

__all__ = ["export_blocks"]

_ROWS = 20  # users that are shown


def export_blocks(found: Export, *, everything: bool = False) -> Iterator[Block]:
    """Yield the whole tasks, where they run, and the notes."""
    whole = found.whole
    instance = whole.instance
    users, servers = plural(instance.n_users, "user"), plural(instance.counts.sum(), "server")
    yield Note(f": {whole.allocation.notion}, {users}, {servers} in {plural(len(whole.groups), 'row')}", found.kind)
    yield GAP
    order = range(instance.n_users if everything else min(instance.n_users, _ROWS))
    where = (
        joined([f"{figure(whole.tasks[n, g], 10)} on {group.name}" for g, group in enumerate(whole.groups) if whole.tasks[n, g]])
        for n in order
    )
    yield Table.of(
        names("user", (instance.users[n] for n in order)),
        numbers("tasks", (whole.allocation.tasks_per_user[n] for n in order), 6),
        numbers("whole", (whole.tasks_per_user[n] for n in order), 10),
        words("where", where),
    )
    if len(order) < instance.n_users:
        yield f"and {plural(instance.n_users - len(order), 'more user')} (--all shows them)"
    yield GAP
    for note in found.notes:
        yield Note(f"Note: {note}", whole=True)
