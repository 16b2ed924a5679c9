"""The limits and the rules of an instance file: what some users hold together, and linear conditions on tasks.

:mod:`fairopt.formats.document` has the schema.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from fairopt.errors import InvalidInstance
from fairopt.formats.as_written import AsWritten
from fairopt.formats.entries import Document, Limit
from fairopt.formats.messages import Path, Source, check_known, check_unique, refuse, servers_meeting
from fairopt.instance import limits as named_limits
from fairopt.instance import queues as asked
from fairopt.instance.named import Named
from fairopt.instance.requirements import Attributes
from fairopt.instance.rule_rows import rows_of
from fairopt.instance.rules import Rule
from fairopt.tables import Mistakes

__all__ = ["limit_of", "rules_of"]


def limit_of(
    source: Source,
    path: Path,
    document: Document,
    limit: Limit,
    resources: dict[str, int],
    attributes: Attributes,
    numbers: AsWritten,
    mistakes: Mistakes,
) -> named_limits.Limit | None:
    """Return a named limit; None if it has a mistake."""
    users, servers = ({entry.name: None for entry in entries} for entries in (document.users, document.servers))
    queues = {queue.name: None for queue in document.queues}
    with mistakes:
        check_known(source, (*path, "resource"), [limit.resource] if limit.resource else [], resources, "resource")
        listed = limit.servers if isinstance(limit.servers, list) else None
        for word, names, known in (("users", limit.users, users), ("queues", limit.queues, queues), ("servers", listed, servers)):
            if names == []:
                refuse(source, (*path, word), f"the list is empty, so that nothing is selected; leave {word} out to select all")
            check_known(source, (*path, word), names or [], known, word[:-1])
            check_unique(source, (*path, word), names or [])
        if isinstance(limit.servers, str) and limit.servers not in servers:
            _check_conditions(source, (*path, "servers"), limit.servers, attributes, servers)
        amounts: dict[str, Any] | None = None
        if limit.amounts is not None:
            check_known(source, (*path, "amounts"), limit.amounts, users, "user")
            amounts = {}
            for user, own in limit.amounts.items():
                of_user = (*path, "amounts", user)
                if isinstance(own, dict):
                    check_known(source, of_user, own, servers, "server")
                    amounts[user] = {server: numbers.at(*of_user, server, given=amount) for server, amount in own.items()}
                else:
                    amounts[user] = numbers.at(*of_user, given=own)
        plain = {word: getattr(limit, word) for word in ("name", "resource", "users", "queues", "servers", "each")}
        try:
            return named_limits.Limit(**plain, bound=numbers.at(*path, "bound", given=limit.bound), amounts=amounts)
        except InvalidInstance as error:
            refuse(source, path, str(error).removeprefix(f'limit "{limit.name}": '))
    return None


def _check_conditions(source: Source, path: Path, conditions: str, attributes: Attributes, servers: Collection[str]) -> None:
    """Refuse conditions that cannot be read, or that no server meets."""
    if not servers_meeting(source, path, conditions, attributes, servers).any():
        refuse(source, path, f'no server meets "{conditions}", so that nothing is selected; compare it with the attributes of the servers')


def rules_of(source: Source, document: Document, resources: list[str], queues: list[asked.Queue], mistakes: Mistakes) -> list[Rule]:
    """Return the rules, each of which is read and names what is there."""
    users, rules = document.users, list[Rule]()
    named = Named(
        [user.name for user in users],
        [server.name for server in document.servers],
        resources,
        queues,
        [user.queue for user in users],
        [each.attributes for each in document.servers],
    )
    for r, text in enumerate(document.rules):
        with mistakes:
            try:
                rules.append(Rule(text))
                rows_of(rules[-1:], named)
            except InvalidInstance as error:
                refuse(source, ("rules", r), str(error))
    return rules
