"""What the rules of an instance are about: which users, which servers, and what each task there counts.

>>> from fairopt.instance import Instance
>>> names = {"users": ["a", "b"], "servers": ["new", "old"], "resources": ["gpu"]}
>>> pool = Instance([[8], [4]], [[1], [2]], rules=["x[a] >= 2 * amount['gpu', b]"], **names)
>>> rule_rows(pool)[0].coefficients(pool, np.array([0, 1, 1]), np.array([0, 0, 1])).tolist()
[1.0, -4.0, -4.0]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairopt.errors import InvalidInstance, Unsupported
from fairopt.instance.named import Named
from fairopt.instance.requirements import Attributes
from fairopt.instance.rules import Rule, Term
from fairopt.validation import BoolArray, FloatArray, IntArray
from fairopt.wording import brief, did_you_mean, joined

if TYPE_CHECKING:
    from fairopt.instance.derived import Derived
    from fairopt.instance.instance import Instance

__all__ = ["RuleRow", "refuse_rules", "rows_of", "rule_excess", "rule_rows"]


class RulePart(NamedTuple):
    """A term of a rule: its factor, its users, (users,), its servers, (servers,), and what counts: a resource, else work or tasks."""

    factor: Fraction
    users: BoolArray
    servers: BoolArray
    resource: int
    work: bool


@dataclass(frozen=True, slots=True, eq=False)
class RuleRow:
    """A rule, and what each of its terms is about.

    Attributes
    ----------
    rule : Rule
    parts : tuple of RulePart
        What each of its terms counts.
    """

    rule: Rule
    parts: tuple[RulePart, ...]

    def coefficients(self, instance: Instance, users: IntArray, servers: IntArray) -> Any:
        """Return what a task of each pair counts on the left side, (pairs,); in fractions of an instance in fractions."""
        exact = instance.demands_by_kind.dtype == object
        total: Any = np.zeros(users.size, dtype=object) if exact else np.zeros(users.size)
        for part in self.parts:
            task: Any = part.factor if exact else float(part.factor)
            if part.resource >= 0:
                task = instance.kinds.of_pairs(users, servers, part.resource) * task
            elif part.work and instance.speeds_given is not None:
                task = instance.speeds[users, servers] * task
            total = total + np.where(part.users[users] & part.servers[servers], task, 0)
        return total

    @property
    def sign(self) -> int:
        """-1 where it is the row  sum of -a x <= -bound,  else 1."""
        return -1 if self.rule.sense == ">=" else 1

    @property
    def is_limit(self) -> bool:
        """Is it a row  sum of a x <= bound  with a >= 0 and bound >= 0, which fewer tasks never break?"""
        return self.rule.sense != "==" and min(self.rule.bound * self.sign, *(part.factor * self.sign for part in self.parts)) >= 0

    @property
    def counted(self) -> BoolArray:
        """Whose tasks or work it counts, and not only the amounts that they take, (users,)."""
        found = [part.users for part in self.parts if part.resource < 0]
        return np.asarray(np.any(found, axis=0)) if found else np.zeros(self.users.size, bool)

    @property
    def bounded(self) -> BoolArray:
        """Whose tasks it bounds, whatever they demand, (users,)."""
        everywhere = [part.users for part in self.parts if part.resource < 0 and not part.work and part.servers.all()]
        return np.asarray(np.any(everywhere, axis=0)) if everywhere and self.is_limit else np.zeros(self.users.size, bool)

    @property
    def users(self) -> BoolArray:
        """Whom the rule names, directly or below a queue, (users,)."""
        return np.asarray(np.any([part.users for part in self.parts], axis=0))


def rule_rows(instance: Derived) -> tuple[RuleRow, ...]:
    """Return the rules of an instance, with what they are about."""
    return rows_of(instance.rules, Named.of(instance))


def rows_of(rules: Sequence[Rule], named: Named) -> tuple[RuleRow, ...]:
    """Return what rules are about.

    Raises
    ------
    InvalidInstance
        A name is not there, is both a user and a queue, or selects nobody.
    """
    if not rules:
        return ()
    users, servers, resources, tree = named.users, named.servers, named.resources, named.tree
    place = {name: n for n, name in enumerate(users)}
    below = {queue.name: tree.below[node] for node, queue in enumerate(tree.queues, 1)}

    def who(rule: Rule, name: str) -> BoolArray:
        kind, _, rest = name.partition(":")
        if name not in place and name not in below and kind in ("user", "queue") and rest in (place if kind == "user" else below):
            name, only = rest, kind
        else:
            only = ""
        if name in place and name in below and not only:
            raise InvalidInstance(
                f'{_of(rule)}: "{brief(name)}" is a user and a queue; write "user:{brief(name)}" or "queue:{brief(name)}"'
            )
        if name in place and only != "queue":
            chosen = np.zeros(len(users), bool)
            chosen[place[name]] = True
            return chosen
        if name in below:
            if not below[name].any():
                raise InvalidInstance(f'{_of(rule)}: nobody is in the queue "{brief(name)}"; name another one, or leave the rule out')
            return np.asarray(below[name])
        hint = did_you_mean(name, [*place, *below])
        there = f"; there are {joined([*place][:5], 5)}{f', and the queues {joined([*below], 5)}' if below else ''}"
        raise InvalidInstance(f'{_of(rule)}: there is no user or queue "{brief(name)}"{hint or there}')

    def where(rule: Rule, term: Term) -> BoolArray:
        if not term.servers:
            return np.ones(len(servers), bool)
        if term.servers in servers:
            return np.array([name == term.servers for name in servers], bool)
        try:
            chosen = Attributes([dict(each) for each in named.attributes]).where(term.servers)
        except InvalidInstance as error:
            raise InvalidInstance(f'{_of(rule)}: there is no server "{brief(term.servers)}", and as a requirement: {error}') from None
        if not chosen.any():
            raise InvalidInstance(f'{_of(rule)}: no server meets "{brief(term.servers)}"; compare it with the attributes of the servers')
        return chosen

    def what(rule: Rule, term: Term) -> int:
        if not term.resource:
            return -1
        if term.resource not in resources:
            hint = did_you_mean(term.resource, resources) or f"; there are {joined([*resources], 8)}"
            raise InvalidInstance(f'{_of(rule)}: there is no resource "{brief(term.resource)}"{hint}')
        return list(resources).index(term.resource)

    return tuple(
        RuleRow(
            rule,
            tuple(
                RulePart(factor, who(rule, term.name), where(rule, term), what(rule, term), term.measure == "work")
                for term, factor in rule.terms
            ),
        )
        for rule in rules
    )


def _of(rule: Rule) -> str:
    return f'the rule "{brief(rule.text)}"'


def refuse_rules(instance: Instance, what: str, instead: str = "leave the rules out") -> None:
    """Refuse an instance with rules where they are not obeyed; ``what`` says where that is, ``instead`` what to do.

    Raises
    ------
    Unsupported

    >>> from fairopt.instance import Instance
    >>> refuse_rules(Instance([[4]], [[1]], users=["a"], rules=["x[a] >= 2"]), "a page of answers does not obey them")
    Traceback (most recent call last):
    fairopt.errors.Unsupported: the instance has the rule "x[a] >= 2", and a page of answers does not obey them; leave the rules out
    """
    if instance.rules:
        rest = f" and {len(instance.rules) - 1} more" if len(instance.rules) > 1 else ""
        raise Unsupported(f'the instance has the rule "{brief(instance.rules[0].text)}"{rest}, and {what}; {instead}')


def rule_excess(instance: Instance, tasks: FloatArray) -> float:
    """Return the largest violation of a rule by tasks, (users, servers), in parts of what is compared."""
    worst = 0.0
    users, servers = np.nonzero(tasks)
    for row in rule_rows(instance):
        each = row.coefficients(instance, users, servers) * tasks[users, servers]
        over, bound = float(each.sum()) - float(row.rule.bound), abs(float(row.rule.bound))
        size = max(float(np.abs(each).sum()) + bound, 1e-300)
        worst = max(worst, (abs(over) if row.rule.sense == "==" else over if row.rule.sense == "<=" else -over) / size)
    return worst
