"""What a notebook shows of an object: the tables and sentences that the command line prints, as HTML, and programs as MathML.

All text is escaped, nothing is loaded and nothing runs. Long tables are cut in the middle and say how long they are; ``to_frame`` has all.

>>> import fairopt as fo
>>> page = html_of(fo.solve(fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "<b>"]), "drf"))
>>> "Dominant resource fairness" in page, "<b>" in page, "&lt;b&gt;" in page
(True, False, True)
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from contextlib import suppress
from functools import singledispatch
from typing import Literal

from fairopt.allocation import Allocation
from fairopt.analysis.auditing import Audit
from fairopt.analysis.comparison import Comparison
from fairopt.analysis.explanation import Explanation
from fairopt.analysis.frontiers import Frontier
from fairopt.analysis.regrets import Regret
from fairopt.analysis.what_ifs import WhatIf
from fairopt.certificate import Certificate
from fairopt.errors import InvalidInstance
from fairopt.histories.result import History
from fairopt.instance import Instance
from fairopt.program import Program
from fairopt.reporting.tables.allocation import allocation_blocks
from fairopt.reporting.tables.audits import audit_blocks
from fairopt.reporting.tables.comparison import comparison_blocks
from fairopt.reporting.tables.explanation import explanation_blocks
from fairopt.reporting.tables.frontiers import frontier_blocks
from fairopt.reporting.tables.histories import history_blocks
from fairopt.reporting.tables.simulation import simulation_blocks
from fairopt.reporting.tables.what_ifs import effect_blocks
from fairopt.show.blocks import Block, Note
from fairopt.show.html import Html, blocks_html
from fairopt.show.table import Table
from fairopt.simulation.result import Simulation
from fairopt.studies.paper_tables import StudyTable
from fairopt.wording import plural, printable

__all__ = ["html_of"]

_LINES, _TERMS = 12, 6  # of a program
_DIFFERENCES = 20  # listed
_WIDTH = 160  # characters: what a notebook has room for


@singledispatch
def html_of(subject: object) -> str:
    """Return an object as HTML."""
    return _page([Html(f"<pre>{html.escape(printable(repr(subject), keep=chr(10)))}</pre>")])


def _page(blocks: Iterable[Block | Html]) -> str:
    # These classes tell MathJax that a $ in a label begins no formula.
    return f'<div class="fairopt tex2jax_ignore mathjax_ignore">{blocks_html(blocks)}</div>'


def _title(text: str) -> Note:
    return Note("", text)


@html_of.register
def _instance(instance: Instance) -> str:
    tables: list[Literal["servers", "users", "queues"]] = ["servers", "users", *(["queues"] if instance.queues else [])]  # type: ignore[list-item]
    blocks: list[Block] = []
    with suppress(InvalidInstance):  # a label that a table cannot hold
        blocks = [Table.of_frame(instance.to_frame(table), alike=True) for table in tables]
    return _page([_title(repr(instance)[len("Instance(") : -1]), *blocks])


@html_of.register
def _allocation(allocation: Allocation) -> str:
    return _page(allocation_blocks(allocation, width=_WIDTH, everything=True))


@html_of.register
def _certificate(certificate: Certificate) -> str:
    return _page([_title("Certificate"), Table.of_frame(certificate.to_frame())])


@html_of.register
def _program(program: Program) -> str:
    return _page([_title(f"{program.title} ({program.name})"), Html(program.to_mathml(_LINES, _TERMS))])


@html_of.register
def _comparison(comparison: Comparison) -> str:
    return _page(comparison_blocks(comparison, _WIDTH))


@html_of.register
def _what_if(found: WhatIf) -> str:
    number = plural(len(found.differences), "difference") if found.differences else "no difference"
    differences = [str(own[0]) if len(own) == 1 else what for what, own in found.groups[:_DIFFERENCES]]
    if len(found.groups) > _DIFFERENCES:
        differences.append(f"And {plural(len(found.groups) - _DIFFERENCES, 'more difference')}")
    effects = (block.with_digits(6) if isinstance(block, Table) else block for block in effect_blocks(found))
    return _page([_title(f"What if: {number}, {plural(len(found.users), 'user')}"), *differences, *effects])


@html_of.register
def _audit(audit: Audit) -> str:
    return _page(audit_blocks(audit, everything=True))


@html_of.register
def _explanation(explanation: Explanation) -> str:
    subject = explanation.user if explanation.queue is None else explanation.queue
    return _page([_title(f"Why {subject} has {plural(explanation.tasks, 'task')}"), *explanation_blocks(explanation)])


@html_of.register
def _frontier(frontier: Frontier) -> str:
    return _page(frontier_blocks(frontier))


@html_of.register
def _regret(regret: Regret) -> str:
    compared = [Table.of_frame(regret.to_frame(), alike=True)] if regret.compared is not None else []
    return _page([_title(f"Regret against {regret.notion}"), *compared, repr(regret)])


@html_of.register
def _simulation(simulation: Simulation) -> str:
    return _page(simulation_blocks(simulation))


@html_of.register
def _history(history: History) -> str:
    return _page(history_blocks(history))


@html_of.register
def _study_table(table: StudyTable) -> str:
    return _page(table.blocks())
