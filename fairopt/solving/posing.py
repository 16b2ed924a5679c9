"""From a question to the program that is solved: merge identical rows, formulate, and add rules; in floats and in fractions alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairopt.allocation import Optimum
from fairopt.certificate import Certificate
from fairopt.instance import FloatArray, Instance, IntArray
from fairopt.instance.aggregation import Merging
from fairopt.instance.fractions import ExactArray
from fairopt.models import Notion, Sharing
from fairopt.program import Program
from fairopt.program.checking import check_program
from fairopt.solvers.backend import Deadline
from fairopt.solving.answer import unexpanded
from fairopt.solving.formulation import with_rules
from fairopt.solving.kept_guarantees import with_guarantees
from fairopt.solving.merged_notion import MergedNotion, with_utility
from fairopt.solving.single_servers import columns, expanded

__all__ = ["Posed", "pose"]


@dataclass(frozen=True, slots=True, eq=False)
class Posed:
    """A question as it is solved, and the way back to the rows that were given.

    Attributes
    ----------
    asked, notion : Notion
        As asked for, and with its data of the rows of ``small``; in fractions where these are asked for.
    instance, small : Instance
        The instance with what its guarantees give as rules, and that of the program: merged rows, or single servers of whole tasks.
    sharing : str
    merging : Merging, optional
        From ``small`` to ``instance``; None of whole tasks, where ``row``, (single servers,), has the row of each.
    utility : array (users, servers) or (users, 1), optional
        Of the notion, on the rows of ``instance``.
    program : Program
        In floats. In fractions it gives the structure, and the notion its numbers.
    of_stages : list of Certificate
        Of the stages that give the guarantees.
    """

    asked: Notion
    notion: Notion
    instance: Instance
    small: Instance
    sharing: Sharing
    merging: Merging | None
    row: IntArray
    utility: FloatArray | ExactArray | None
    program: Program
    of_stages: list[Certificate]

    def tasks(self, pairs: Any) -> Any:
        """Return tasks on the rows that were given, (users, servers), from a table of the program; fractions from fractions."""
        if self.merging is None:
            counted = unexpanded(self.instance, pairs, self.row, self.utility)
        else:
            counted = self.merging.spread(pairs, self.utility)
        return self.asked.in_tasks(self.instance.exact if counted.dtype == object else self.instance, counted)


def pose(instance: Instance, question: Optimum, sharing: Sharing, deadline: Deadline) -> Posed:
    """Return the program of a question.

    Raises
    ------
    Unsupported
        Nothing can answer it: `fairopt.solving.formulation.with_rules`, `fairopt.solving.kept_guarantees.with_guarantees`.
    CertificateError
        The stages that give the guarantees are not proved within the tolerance.
    NoSolution
        At the deadline, before the stages of guarantees end, or before it is known which users can have something under rules.
    """
    notion, exact = question.notion, question.exact
    instance, of_stages = with_guarantees(
        instance, notion, sharing, exact=exact, integral=question.integral, tolerance=question.tolerance, deadline=deadline
    )
    if question.integral:
        small, row = expanded(instance)
        own = floats = with_utility(notion, None if notion.utility is None else columns(notion.utility, row))
        merging, utility = None, notion.utility
    else:
        alpha = notion.merge_alpha if notion.treats_alike(instance) and not instance.rules else None
        merged = MergedNotion.of(instance, notion, alpha, exact=exact)
        small, row = merged.merging.instance, np.empty(0, np.int64)
        own, floats, merging, utility = merged.notion, merged.in_floats, merged.merging, merged.utility
    program = floats.formulate(small, sharing=sharing, integral=question.integral)
    if not notion.is_symmetric:
        check_program(program)
    program = with_rules(program, notion, instance, row if question.integral else None, deadline)
    return Posed(notion, own, instance, small, sharing, merging, row, utility, program, of_stages)
