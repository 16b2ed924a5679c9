"""What a notebook shows of an object: a heading, tables and sentences as HTML, programs as MathML.

All text is escaped, nothing is loaded and nothing runs. Long tables are cut in the middle and say how long they are; ``to_frame`` has all.

>>> import fairopt as fo
>>> page = html_of(fo.solve(fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "<b>"]), "drf"))
>>> "Dominant resource fairness" in page, "<b>" in page, "&lt;b&gt;" in page
(True, False, True)
"""

from __future__ import annotations

import html
from contextlib import suppress
from functools import singledispatch
from typing import Literal

import numpy as np
import pandas as pd

from fairopt.allocation import Allocation
from fairopt.analysis.auditing import Audit
from fairopt.analysis.comparison import Comparison
from fairopt.analysis.explanation import Explanation
from fairopt.analysis.frontiers import Frontier
from fairopt.analysis.regrets import Regret
from fairopt.analysis.what_ifs import UserChange, WhatIf, largest_changes
from fairopt.certificate import Certificate
from fairopt.errors import InvalidInstance
from fairopt.histories.result import History
from fairopt.instance import Instance
from fairopt.models import CRITERIA, NOTIONS
from fairopt.program import Program
from fairopt.simulation.result import Simulation
from fairopt.wording import figure, figures, percent, plural, printable, residual

__all__ = ["html_of"]

_ROWS, _COLUMNS = 20, 12  # of a table
_LINES, _TERMS = 12, 6  # of a program

Block = str | pd.DataFrame  # a sentence, or a table; `_Raw` is HTML already


class _Raw(str):
    """HTML that is escaped already."""

    __slots__ = ()


# Pages ---------------------------------------------------------------------------------------------------------------------------


@singledispatch
def html_of(subject: object) -> str:
    """Return an object as HTML."""
    return _page("", [_Raw(f"<pre>{html.escape(printable(repr(subject), keep=chr(10)))}</pre>")])


def _page(title: str, blocks: list[Block]) -> str:
    """Return a heading and what follows it."""
    head = f"<p><strong>{_text(title)}</strong></p>" if title else ""
    # These classes tell MathJax that a $ in a label begins no formula.
    return f'<div class="fairopt tex2jax_ignore mathjax_ignore">{head}{"".join(map(_block, blocks))}</div>'


def _block(block: Block) -> str:
    if isinstance(block, pd.DataFrame):
        return _table(block)
    return block if isinstance(block, _Raw) else f"<p>{_text(block)}</p>"


def _text(text: str) -> str:
    return html.escape(printable(text))


def _table(frame: pd.DataFrame) -> str:
    """Return a table, its numbers in six digits and with as many decimals as the column needs; numbers to the right, text to the left."""
    rows, columns = len(frame), frame.shape[1]
    cut = _ROWS // 2 if rows > _ROWS else rows
    shown = frame.iloc[[*range(cut), *range(max(cut, rows - cut), rows)], :_COLUMNS]
    cells = [[_text(_label(key)) for key in shown.index], *([_text(cell) for cell in _column(column)] for _, column in shown.items())]
    sides = ["left", *("right" if _is_numeric(column) else "left" for _, column in shown.items())]
    heads = [_text(str(frame.index.name or "")), *(_text(str(name)) for name in shown.columns)]
    lines = [
        "".join(f'<td style="text-align: {side}">{cell}</td>' for side, cell in zip(sides, line, strict=True))
        for line in zip(*cells, strict=True)
    ]
    if cut < rows:
        lines.insert(cut, f'<td colspan="{len(heads)}">…</td>')
    head = "".join(f'<th style="text-align: {side}">{name}</th>' for side, name in zip(sides, heads, strict=True))
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    notes = [*([plural(rows, "row")] if cut < rows else []), *([plural(columns - _COLUMNS, "more column")] if columns > _COLUMNS else [])]
    told = f"<p><small>{', '.join(notes)}: see to_frame()</small></p>" if notes else ""
    return f'<table style="margin-bottom: 1em"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{told}'


def _is_numeric(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype)


def _label(key: object) -> str:
    return " / ".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _column(column: pd.Series) -> list[str]:
    """Return the cells of a column as text."""
    values = column.tolist()
    if all(isinstance(value, (bool, np.bool_)) or value is None for value in values):
        return ["" if value is None else "yes" if value else "no" for value in values]
    if _is_numeric(column):
        known = [not pd.isna(value) for value in values]
        texts = iter(figures([float(value) for value, there in zip(values, known, strict=True) if there]))
        return [next(texts) if there else "" for there in known]
    return ["" if pd.isna(value) else str(value) for value in values]


# Objects -------------------------------------------------------------------------------------------------------------------------


@html_of.register
def _instance(instance: Instance) -> str:
    tables: list[Literal["servers", "users", "queues"]] = ["servers", "users"]
    if instance.queues:
        tables.append("queues")
    blocks: list[Block] = []
    with suppress(InvalidInstance):  # a label that a table cannot hold
        blocks = [instance.to_frame(table) for table in tables]
    return _page(repr(instance)[len("Instance(") : -1], blocks)


@html_of.register
def _allocation(allocation: Allocation) -> str:
    notion = NOTIONS.get(allocation.notion, CRITERIA.get(allocation.notion))
    users = allocation.to_frame()
    users = users[[name for name in users if not str(name).startswith("tasks @ ")]]
    if allocation.shares_to_show is None and "share" in users:
        users = users.drop(columns="share")
    users = users.rename(columns={"share": allocation.share_heading})
    blocks: list[Block] = [users.dropna(axis="columns", how="all")]
    if allocation.instance.queues:
        queues = allocation.to_frame(by="queue")
        blocks.append(queues[[name for name in ("parent", "users", "tasks", "share", "dominant_share", "weight") if name in queues]])
    total = allocation.instance.total_capacity
    used = np.divide(allocation.usage.sum(axis=0), total, out=np.zeros(total.size), where=total > 0)
    parts = [f"{name} {percent(float(part))}" for name, part in zip(allocation.instance.resources, used, strict=True)]
    blocks += [f"In use: {', '.join(parts)}.", f"{allocation.proof}."]
    by = f"{allocation.certificate.qualifier} by {allocation.solver}".lstrip()
    return _page(f"{notion.title if notion else allocation.notion} ({allocation.notion}, {by})", blocks)


@html_of.register
def _certificate(certificate: Certificate) -> str:
    return _page("Certificate", [certificate.to_frame()])


@html_of.register
def _program(program: Program) -> str:
    return _page(f"{program.title} ({program.name})", [_Raw(program.to_mathml(_LINES, _TERMS))])


@html_of.register
def _comparison(comparison: Comparison) -> str:
    users = plural(comparison.instance.n_users, "user")
    return _page(f"Comparison of {plural(len(comparison), 'allocation')} of {users}", [_told(_measures(comparison))])


def _measures(comparison: Comparison) -> pd.DataFrame:
    """Return the rows of a comparison without what each user has."""
    frame = comparison.to_frame()
    return frame[[name for name in frame if not str(name).startswith(("tasks of ", "share of "))]]


def _told(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table without the columns that say nothing."""
    known = frame.dropna(axis="columns", how="all")
    return known.loc[:, (known != "").any()]


@html_of.register
def _what_if(found: WhatIf) -> str:
    blocks: list[Block] = [str(difference) for difference in found.differences[:_ROWS]]
    if len(found.differences) > _ROWS:
        blocks.append(f"And {plural(len(found.differences) - _ROWS, 'more difference')}")
    for row in found.rows:
        changes = found.changes(row)
        if changes:
            blocks.append(_changes(found, row, changes))
            if len(changes) > _ROWS:
                blocks.append(f"The {_ROWS} users with the largest changes of {len(changes):,}")
        blocks.append(f"{row}: {found.summary(row)}")
    sides = [_measures(comparison).drop(columns=["kind", "seconds"]) for comparison in (found.before, found.after)]
    for side, name in zip(sides, found.names, strict=True):
        side.index = pd.Index([f"{row}, {name}" for row in side.index], name="allocation")
    blocks.append(_told(pd.concat([side.iloc[[j]] for j in range(len(found.rows)) for side in sides])))
    number = plural(len(found.differences), "difference") if found.differences else "no difference"
    return _page(f"What if: {number}, {plural(len(found.users), 'user')}", blocks)


def _changes(found: WhatIf, row: str, changes: tuple[UserChange, ...]) -> pd.DataFrame:
    """Return what users have before and after, those with the largest changes where there are many."""
    shown = largest_changes(changes, _ROWS)
    first, second = found.names
    table = {
        first: [each.before for each in shown],
        second: [each.after for each in shown],
        "change": [_rounded(each.change) for each in shown],
        **{f"only {effect.what}": [_rounded(effect.changes.get(each.name)) for each in shown] for effect in found.effects.get(row, ())},
        f"share {first}": [each.shares[0] for each in shown],
        f"share {second}": [each.shares[1] for each in shown],
    }
    frame = pd.DataFrame(table, index=pd.Index([each.name for each in shown], name=f"{row}: tasks of"), dtype=float)
    return frame.dropna(axis="columns", how="all")


def _rounded(change: float | None) -> float | None:
    """Return a change of tasks without the rounding of the two numbers that it is between."""
    return None if change is None else round(change, 6) + 0.0


@html_of.register
def _audit(audit: Audit) -> str:
    of = audit.allocation
    outcomes = {
        "outcome": [verdict.outcome for verdict in audit.verdicts.values()],
        "by": [plural(verdict.violation, "task", digits=4) if verdict.holds is False else "" for verdict in audit.verdicts.values()],
        "what it says": [verdict.statement for verdict in audit.verdicts.values()],
        "witness": ["" if verdict.witness is None else verdict.witness.text for verdict in audit.verdicts.values()],
    }
    blocks: list[Block] = [pd.DataFrame(outcomes, index=pd.Index(list(audit.verdicts), name="property"))]
    blocks += [f"The allocation exceeds {violation}." for violation in audit.violations]
    return _page(f"Audit of {of.notion} by {of.solver}", blocks)


@html_of.register
def _explanation(explanation: Explanation) -> str:
    subject = explanation.user if explanation.queue is None else explanation.queue
    gains = explanation.to_frame().dropna(axis="columns", how="all")
    return _page(f"Why {subject} has {plural(explanation.tasks, 'task')}", [*explanation.sentences, *([gains] if len(gains) else [])])


@html_of.register
def _frontier(frontier: Frontier) -> str:
    points = frontier.to_frame().drop(columns="message", errors="ignore").dropna(axis="columns", how="all")
    ends = [f"{plural(total, 'task')} with a smallest share of {figure(share, 6)}" for total, share in frontier.vertices[[0, -1]].tolist()]
    told = f"The frontier runs from {ends[0]} to {ends[1]}; nothing lies above it by more than {residual(frontier.gap)}."
    blocks: list[Block] = [points, told]
    return _page("Fairness against efficiency", blocks)


@html_of.register
def _regret(regret: Regret) -> str:
    blocks: list[Block] = [repr(regret)]
    if regret.compared is not None:
        blocks.insert(0, regret.to_frame())
    return _page(f"Regret against {regret.notion}", blocks)


@html_of.register
def _simulation(simulation: Simulation) -> str:
    blocks: list[Block] = [simulation.users_frame]
    if simulation.cluster.queues:
        blocks.append(simulation.queues_frame)
    return _page(repr(simulation)[len("Simulation(") : -1], blocks)


@html_of.register
def _history(history: History) -> str:
    columns = ["entitled", "received", "shortfall", "surplus", "envy", "waiting"]
    blocks: list[Block] = [history.to_frame()[columns].dropna(axis="columns", how="all")]
    if history.setting.groups:
        blocks.append(history.to_frame("queue"))
    blocks += [f"{plural(each.jobs, 'job')} not judged: {each.why}." for each in history.setting.log.unjudged]
    return _page(repr(history)[len("History(") : -1], blocks)
