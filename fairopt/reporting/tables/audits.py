"""An audit: the verdicts, the witnesses of violations, and why some properties could not be judged."""

from __future__ import annotations

from collections.abc import Iterator

from fairopt.allocation import GIVEN
from fairopt.analysis.auditing import Audit
from fairopt.reporting.tables.phrases import size_of
from fairopt.show.blocks import GAP, Block, Note
from fairopt.show.table import Style, Table, ids, numbers, words
from fairopt.specs import asked, written
from fairopt.wording import joined

__all__ = ["audit_blocks"]

_STYLES: dict[str, Style] = {"holds": "good", "violated": "bad", "-": "soft"}
_LINES = 3  # exceeded limits that are listed


def audit_blocks(found: Audit, *, everything: bool = False) -> Iterator[Block]:
    """Yield the verdicts, then witnesses of violations and why some properties could not be judged; if asked, all other reasons, too."""
    made = found.allocation
    how = (
        "given"
        if made.solver == made.notion
        else f"given, measured by {written(made.measured_by) if made.measured_by else made.notion}"
        if made.solver == GIVEN
        else f"{asked(made)}, {made.certificate.qualifier or 'exact'} by {made.solver}"
    )
    yield Note(f" of {how}: {size_of(made.instance, made.sharing)}", "Audit")
    yield GAP
    verdicts, what = list(found.values()), "tasks" if made.instance.speeds_given is None else "work"
    yield Table.of(
        ids("property", found),
        ids("", (each.outcome for each in verdicts), styles=tuple(_STYLES.get(each.outcome, "") for each in verdicts)),
        numbers(what, (each.amount for each in verdicts), 4),
        words("promised", (each.promised or "" for each in verdicts)),
    )
    for limit in found.violations[:_LINES]:
        yield GAP
        yield Note(str(limit), "not feasible: ", warns=True)
    if len(found.violations) > _LINES:
        yield f"and {len(found.violations) - _LINES:,} more limits that are exceeded"
    for grouped, verdict in found.grouped():
        if verdict.holds and not everything and verdict.searched is None:
            continue
        lines = [verdict.statement] if verdict.witness is None else [verdict.statement, verdict.witness.text]
        yield GAP
        yield Note(" ".join(lines), f"{joined(list(grouped))}: ")
    if any(verdict.promised for verdict in verdicts):
        kind = "" if made.exact is None else ", in fractions"
        yield GAP
        promised = "promised: the source that proves the property for this notion, under its own conditions."
        yield f"{what}: size of the violation{kind}.\n{promised}"
