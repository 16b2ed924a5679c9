"""Who gets what under the first notion that has an allocation: sentences, one table with its bars, and the complaints, for a page."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fairopt.analysis.explanation.queues import reached_limits
from fairopt.reporting.bars import Axis, axis_html, bar, sign
from fairopt.reporting.complaints import Complaint, asked, complaints, none_of
from fairopt.reporting.findings import Findings
from fairopt.reporting.tables.answers import Answer, answer_of
from fairopt.reporting.tables.phrases import of_the_most
from fairopt.show.html import Html, table_html
from fairopt.wording import joined, percent, plural

__all__ = ["Answered", "answered"]


@dataclass(frozen=True, slots=True)
class Answered:
    """What a page says first.

    Attributes
    ----------
    name : str
        The notion.
    says : list of str
    table : Html
        With a bar in each row.
    legend : list of (Html, str)
        The signs of the bars, and what each means.
    left_out : str
        The users that the table does not show.
    complaints, asked : list of Complaint
    none : str
        Where there is no complaint.
    proof : str
    """

    name: str
    says: list[str]
    table: Html
    legend: list[tuple[Html, str]]
    left_out: str
    complaints: list[Complaint]
    asked: list[Complaint]
    none: str
    proof: str


def answered(findings: Findings, *, one_page: bool = False) -> Answered | None:
    """Return who gets what; None if no notion has an allocation. Given allocations stand beside it; on one page all others, too."""
    if not findings.solved:
        return None
    found = findings.solved[0]
    row, allocation = found.row, found.allocation
    assert allocation is not None
    answer = answer_of(row, [other for other in findings.made if other is not row] if one_page else findings.given)
    axis = Axis.of(held.largest for held in answer.bars if held is not None)
    says = [
        f"{found.notion.title} ({found.name}): {plural(row.tasks, 'task')} in all{of_the_most(row.efficiency, allocation.instance)}.",
        "In use: " + joined([f"{percent(part, 1)} of {thing}" for thing, part in row.use.items()], 8) + ".",
    ]
    if reached := [stop.words(allocation.instance) for stop in reached_limits(allocation) if stop.row.selection is not None]:
        says.append(f"Limits that stop users: {joined(reached, 6)}.")
    wrong = complaints(found)
    whose = answer.table.columns[0].title.replace(", ", " and ")
    table = replace(answer.table, title=f"What each {whose} gets under {found.name}")
    return Answered(
        found.name,
        says,
        table_html(table, missing="", drawn={0: [axis_html(axis), *(bar(held, axis) for held in answer.bars)]}),
        _legend(answer),
        answer.left_out,
        wrong,
        asked(found),
        none_of(found),
        f"{allocation.proof}.",
    )


def _legend(answer: Answer) -> list[tuple[Html, str]]:
    meanings = {
        "part": f"held: a part of the {answer.measure}",
        "by_weight": "by weight: its weight as a part of all weights",
        "guarantee": "guarantee",
        "limit": "limit",
        "missing": "missing of a guarantee",
    }
    return [(sign(mark), text) for mark, text in meanings.items() if mark == "part" or answer.any(mark)]
