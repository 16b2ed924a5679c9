"""Rules of a program as rules of its instance, so that audits and explanations judge within both alike.

A rule that `fairopt.Program.with_rule` adds is a condition on the tasks of pairs, and so is a rule of an instance (`fairopt.Rule`). The
same allocation answers both questions: a program with a rule, and the instance with that rule.

>>> import fairopt as fo
>>> lab = fo.Instance([[12]], [[1], [1]], users=["vision", "course"], servers=["s"])
>>> program = fo.formulate(lab, "drfh").with_rule("twice", {("vision", "s"): 1, ("course", "s"): -2}, ">=", 0)
>>> [(rule.text, len(rule.terms), rule.sense) for rule in with_rules_of_program(fo.solve(program), "").instance.rules]
[('twice', 2, '>=')]
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.allocation import Allocation, Optimum
from fairopt.errors import Unsupported
from fairopt.instance import Instance
from fairopt.instance.fractions import fraction_of
from fairopt.instance.rules import Expression, Rule, Term
from fairopt.models import Stated
from fairopt.program import LimitKind
from fairopt.program.stated_rows import StatedRow

__all__ = ["with_rules_of_program"]


def with_rules_of_program(allocation: Allocation, what: str) -> Allocation:
    """Return the allocation as an answer for its instance with the rules of its program; itself where the program has none.

    Raises
    ------
    Unsupported
        Somebody's notion makes rules in its program, or the program was changed by hand: they hold for this instance alone. ``what`` says
        what they cannot be asked.
    """
    question = allocation.question
    if not isinstance(question, Optimum) or question.notion.is_symmetric:
        return allocation
    notion, sharing = question.notion, allocation.sharing
    if isinstance(notion, Stated) and notion.program is None:
        rows = notion.rows_for(allocation.instance)
        rules = [rule for row in rows if row.sense is not None and (rule := _rule(allocation.instance, row)) is not None]
        if rules:
            left = tuple(row for row in notion.rows if row.sense is None)
            instance = allocation.instance.replace(rules=[*allocation.instance.rules, *rules])
            notion = notion.changed(rows=left) if left else notion.notion
            allocation = replace(allocation, instance=instance, question=replace(question, notion=notion))
    own: Any = allocation.question
    program = own.notion.formulate(allocation.instance, sharing=sharing, integral=False)
    if not program.down_closed:
        name = program.limit_name(int(np.flatnonzero(program.limits.kinds == LimitKind.RULE)[0]))
        raise Unsupported(
            f'"{allocation.notion}" makes the rule "{name}" itself, and {what}; give the rule to the instance instead, as in '
            "instance.replace(rules=[...]), or to a program, by with_rule"
        )
    return allocation


def _rule(instance: Instance, row: StatedRow) -> Rule | None:
    """Return a row as a rule with its name, about tasks on each server, or everywhere where all are counted alike; None: of no pair."""
    assert row.sense is not None
    terms: dict[Term, Fraction] = {}
    for n in dict.fromkeys(row.at_users.tolist()):
        eligible, name = instance.eligibility[n], f"user:{row.users[n]}"
        own = {int(row.at_servers[k]): fraction_of(row.values[k]) for k in np.flatnonzero((row.at_users == n) & eligible[row.at_servers])}
        if len(own) == np.count_nonzero(eligible) and len(set(own.values())) == 1:
            terms[Term("x", name)] = next(iter(own.values()))
        else:
            terms |= {Term("x", name, row.servers[i]): value for i, value in own.items()}
    if not terms:
        return None
    return Rule.between(Expression(terms), row.sense, Expression({}, fraction_of(row.bound))).called(row.name)
