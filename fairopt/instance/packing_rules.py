"""Rules that are limits: sum of a[n,i] x[n,i] <= bound with a >= 0 and bound >= 0.

Fewer tasks never break such a rule. A greedy schedule, a simulation and a history, which add tasks one after the other or see other tasks
than those of the instance, keep such rules as they keep named limits, and refuse all others.

>>> from fairopt.instance import Instance
>>> pool = Instance([[9]], [[1], [2]], users=["a", "b"], resources=["gpu"], rules=["x[a] + x[b] <= 4", "6 >= amount['gpu', b]"])
>>> as_limits(pool, "a greedy schedule").limits
(Limit("x['a'] + x['b'] <= 4", 4, users=['a', 'b']), Limit("amount['gpu', 'b'] <= 6", 6, resource='gpu', users=['b']))
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance.limits import Limit
from fairopt.instance.rule_rows import RuleRow, rule_rows
from fairopt.instance.rules import Expression
from fairopt.validation import BoolArray
from fairopt.wording import brief

if TYPE_CHECKING:
    from fairopt.instance.instance import Instance

__all__ = ["REWRITE", "as_limits"]

SOLVE = "use fairopt.solve, or leave the rule out"
REWRITE = "write such a rule, or leave this one out"
"""What to do where `fairopt.solve` does not answer the question."""


def as_limits(instance: Instance, who: str, *, instead: str = SOLVE, tasks_of_others: bool = False) -> Instance:
    """Return the instance with its rules as named limits; itself where it has none.

    Parameters
    ----------
    who : str
        Keeps limits, and no other rules: the subject of the message.
    instead : str
        What to do about a rule that is no limit.
    tasks_of_others : bool
        Do the tasks come from elsewhere, with demands of their own? Then a rule about amounts must count one resource, everywhere alike.

    Raises
    ------
    Unsupported
        A rule is no limit.

    >>> from fairopt.instance import Instance
    >>> as_limits(Instance([[4]], [[1]], users=["a"], rules=["x[a] >= 2"]), "a greedy schedule")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    fairopt.errors.Unsupported: the rule "x[a] >= 2" asks for at least something, and a greedy schedule keeps only rules that are limits...
    """
    if not instance.rules:
        return instance
    taken = {limit.name for limit in instance.limits}
    limits = []
    for number, row in enumerate(rule_rows(instance), 1):
        made = _limit(instance, row, _free_name(row, number, taken), (who, instead), tasks_of_others)
        taken.add(made.name)
        limits.append(made)
    return instance.replace(rules=[], limits=[*instance.limits, *limits])


def _limit(instance: Instance, row: RuleRow, name: str, refusal: tuple[str, str], tasks_of_others: bool) -> Limit:
    """Return a rule as a limit; a refusal names who keeps limits alone, and what to do."""
    (who, instead), rule = refusal, row.rule
    parts, bound = row.parts, rule.bound * row.sign
    if not row.is_limit:
        _refuse(row, who, instead)
    first = parts[0]
    works = any(part.work for part in parts) and instance.speeds_given is not None
    alike = len({(part.factor, part.resource, part.servers.tobytes()) for part in parts}) == 1 and not works
    if alike and np.sum([part.users for part in parts], axis=0).max() == 1:
        resource = None if first.resource < 0 else instance.resources[first.resource]
        return Limit(
            name,
            _plain(bound / abs(first.factor)),
            resource=resource,
            users=_users(instance, row),
            servers=_servers(instance, first.servers),
        )
    if tasks_of_others and any(part.resource >= 0 for part in parts):
        raise Unsupported(
            f'the rule "{brief(rule.text)}" adds amounts of several resources, or with several factors; tasks in {who} have demands of '
            "their own, so a rule on amounts is kept only for one resource with one factor, such as amount[cpu, a] + amount[cpu, b] <= 8; "
            "write such a rule, or leave it out"
        )
    return Limit(name, _plain(bound), amounts=_amounts(instance, row))


def _amounts(instance: Instance, row: RuleRow) -> dict[str, Any]:
    """Return what a task of each user counts; server by server where that differs."""
    exact, servers = instance.exact, np.arange(instance.n_servers)
    found: dict[str, Any] = {}
    for n in np.flatnonzero(row.users).tolist():
        each = [abs(value) for value in row.coefficients(exact, np.full(servers.size, n), servers)]
        if len(set(each)) == 1:
            found[instance.users[n]] = _plain(each[0])
        else:
            found[instance.users[n]] = {instance.servers[i]: _plain(value) for i, value in enumerate(each) if value}
    return found


def _users(instance: Instance, row: RuleRow) -> list[str]:
    return [instance.users[n] for n in np.flatnonzero(row.users).tolist()]


def _servers(instance: Instance, chosen: BoolArray) -> list[str] | None:
    return None if chosen.all() else [instance.servers[i] for i in np.flatnonzero(chosen).tolist()]


def _plain(value: Any) -> int | Fraction:
    number = Fraction(value)
    return int(number) if number.denominator == 1 else number


def _free_name(row: RuleRow, number: int, taken: set[str]) -> str:
    """Return the rule as the name of a limit, which has no dot and is the only one."""
    text = f"{Expression(dict(row.rule.terms)) * row.sign} <= {row.rule.bound * row.sign}"
    name = f"rule {number}" if "." in text else text
    while name in taken:
        name += "'"
    return name


def _why(row: RuleRow) -> str:
    """Return why a rule is no limit."""
    if row.rule.sense == "==":
        return "is an equation"
    factors = [part.factor * row.sign for part in row.parts]
    if max(factors) < 0:
        return "asks for at least something"
    return "lets more tasks of one allow more of another" if min(factors) < 0 else "allows less than nothing"


def _refuse(row: RuleRow, who: str, instead: str) -> NoReturn:
    raise Unsupported(
        f'the rule "{brief(row.rule.text)}" {_why(row)}, and {who} keeps only rules that are limits, such as x[a] + 2 * x[b] <= 8; '
        f"{instead}"
    )
