"""Allocations that obey rules, of their instance or of their program, and what does not know rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairopt.errors import Unsupported
from fairopt.instance.rule_rows import refuse_rules
from fairopt.program import Program

if TYPE_CHECKING:
    from fairopt.allocation.allocation import Allocation

__all__ = ["refuse_ruled"]


def refuse_ruled(allocation: Allocation, what: str) -> None:
    """Refuse an allocation that obeys rules; ``what`` says what does not know them.

    Raises
    ------
    Unsupported
    """
    refuse_rules(allocation.instance, what)
    program = getattr(getattr(allocation.question, "notion", None), "program", None)
    if isinstance(program, Program) and not program.down_closed:
        raise Unsupported(f'the program of "{allocation.notion}" has rules, and {what}; leave them out')
