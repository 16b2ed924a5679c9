"""Which notion has which property: table I of Khamse-Ashari et al. (2017), checked by random search.

A *yes* of the table is supported by random instances: none refutes it. (That proves nothing; the papers prove it.) A *no* is shown by a
counterexample: the first random instance that refutes the property, shrunk until every smaller one would satisfy it. (A quick run does not
shrink.)

Instances have few users and servers, whole numbers, and random placement constraints. Each cell draws from random numbers of its own.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fairopt.analysis.auditing import audit
from fairopt.analysis.properties import Verdict as Outcome
from fairopt.analysis.worst_cases.small_instances import SmallInstances, shrink
from fairopt.errors import FairoptError
from fairopt.instance import Instance, safe_ratio
from fairopt.instance.tolerances import NOTHING
from fairopt.papers import read
from fairopt.reproduction.trials import Row, Run, Verdict
from fairopt.solving import solve
from fairopt.wording import figure, plural

__all__ = ["number_of_instances", "psdsf_table_1"]

_SHAPES = ((3, 2, 2), (3, 2, 3))  # users, servers and resources, in turn
_CAPACITIES, _DEMANDS = (4, 12), (0, 3)


def number_of_instances(quick: bool) -> int:
    """Return how many instances the cells of the table draw for every yes."""
    table = read("psdsf").more["table-1"]
    return sum(_instances(table, cell, quick) for cell in table["cell"])


def psdsf_table_1(run: Run) -> Iterator[Row]:
    """Yield a row for each cell."""
    table = read("psdsf").more["table-1"]
    for cell in table["cell"]:
        title = table["titles"][cell["notion"]] + (", time division" if cell.get("sharing") == "tdm" else "")
        refuted, tried = _search(table, cell, run)
        ours = "no" if refuted else "yes"
        agrees, known = ours == cell["published"], ours == cell.get("ours")
        notes = [f"{title}, {cell['property']}: {refuted}" if refuted else "", cell.get("differs", "") if known and not agrees else ""]
        yield Row(
            id=f"psdsf-table-1-{cell['notion']}-{cell['property']}",
            what=f"{title}, {cell['property']}",
            citation=cell.get("citation", "table I"),
            published=[cell["published"]],
            ours=[ours if refuted else f"yes: {plural(tried, 'instance')}"],
            tolerance=0.0,
            mean=False,
            verdict=Verdict.AGREES if agrees else Verdict.KNOWN if known else Verdict.DIFFERS,
            note=" ".join(filter(None, notes)),
            kind="exact",
        )


def _instances(table: dict[str, Any], cell: dict[str, Any], quick: bool) -> int:
    searched = cell["property"] == "strategy-proofness"
    return int(table["quick" if quick else "instances"][searched])


def _search(table: dict[str, Any], cell: dict[str, Any], run: Run) -> tuple[str, int]:
    """Return a counterexample in words, "" if none was found; and the number of instances to which the property applies."""
    rng = np.random.default_rng(zlib.crc32(f"{cell['notion']} {cell['property']}".encode()))
    drawn = [SmallInstances(*shape, _CAPACITIES, _DEMANDS, ("constraints",)) for shape in _SHAPES]
    effort = int(table["quick-lies" if run.quick else "lies"])
    wanted, tried = _instances(table, cell, run.quick), 0
    expected = cell.get("ours", cell["published"])

    def outcome(instance: Instance) -> Outcome | None:
        """Return the verdict on an instance, None where it does not apply or the notion has no answer."""
        if cell["property"] == "bottleneck-fairness" and not _has_bottleneck(instance):
            return None
        try:
            allocation = solve(instance, cell["notion"], sharing=cell.get("sharing"))
            verdict = audit(allocation, [cell["property"]], effort=effort)[cell["property"]]
        except FairoptError:
            return None
        return None if verdict.holds is None and not verdict.searched else verdict

    for number in range(wanted if expected == "yes" else table["most"]):
        instance = drawn[number % len(drawn)].draw(rng)
        verdict = outcome(instance)
        run.done(int(number < wanted))
        tried += verdict is not None
        if verdict is not None and verdict.holds is False:
            run.done(max(0, wanted - number - 1))
            return _told(instance, None if run.quick else outcome, verdict), tried
    return "", tried


def _has_bottleneck(instance: Instance) -> bool:
    """Return whether one resource is dominant for every user on every server where it may run: the paper's condition, section III-B.

    The audit judges instances, too, in which that holds of the whole cluster only.
    """
    parts = safe_ratio(instance.demands[:, None], instance.capacities[None])  # (users, servers, resources)
    dominant = (parts >= parts.max(axis=2, keepdims=True) * (1 - NOTHING)) | ~instance.eligibility[:, :, None]
    return bool(dominant.all(axis=(0, 1)).any())


def _told(instance: Instance, outcome: Callable[[Instance], Outcome | None] | None, verdict: Outcome) -> str:
    """Return a counterexample in words, and with ``outcome`` the smallest that shrinking finds."""

    def refutes(candidate: Instance) -> bool:
        nonlocal verdict
        assert outcome is not None
        found = outcome(candidate)
        if found is None or found.holds is not False:
            return False
        verdict = found
        return True

    for smaller in shrink(instance, refutes) if outcome is not None else ():
        instance = smaller
    assert verdict.witness is not None
    where = "" if instance.eligibility.all() else f", may run {_rows(instance.eligibility)}"
    numbers = f"capacities {_rows(instance.capacities)}, demands {_rows(instance.demands)}{where}"
    return f"a counterexample has {numbers}. {verdict.witness.text}"


def _rows(matrix: Any) -> str:
    return "; ".join(" ".join(figure(float(value), 6) for value in row) for row in matrix)
