"""The verdict of a check: whether the property holds; if not, by how many tasks it fails, and a witness."""

from __future__ import annotations

import builtins
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.allocation.exact_answer import as_text
from fairopt.instance import FloatArray, Instance
from fairopt.instance.fractions import ExactArray
from fairopt.validation import restore_read_only

__all__ = ["Verdict", "Witness", "does_not_apply", "holds", "judged_in_floats", "violated"]


@dataclass(frozen=True, slots=True, eq=False)
class Witness:
    """An example that proves a violation and can be checked by hand.

    Attributes
    ----------
    text : str
        A few sentences, with the numbers.
    users, servers : tuples of str
        The users and servers of the example; the user who has too little comes first.
    tasks : array (users, servers), or None
        The allocation that proves the violation, if there is one: of ``instance`` if that is given, else of the audited instance.
    exact : array (users, servers) of Fraction, or None
        The same in fractions, where the audited allocation is.
    instance : Instance, or None
        The instance with the lie, or without the user who left.
    """

    text: str
    users: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    tasks: FloatArray | None = None
    instance: Instance | None = None
    exact: ExactArray | None = None

    def __post_init__(self) -> None:
        if self.tasks is not None and self.tasks.dtype == object:
            object.__setattr__(self, "exact", self.tasks)
            object.__setattr__(self, "tasks", self.tasks.astype(np.float64))
        for array in (self.tasks, self.exact):
            if array is not None:
                array.setflags(write=False)

    __setstate__ = restore_read_only

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return {
            "text": self.text,
            "users": list(self.users),
            "servers": list(self.servers),
            "tasks": None if self.tasks is None else self.tasks.tolist(),
            **({} if self.exact is None else {"exact": as_text(self.exact)}),
            "instance": None if self.instance is None else self.instance.to_dict(),
        }


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """One property of one allocation.

    Attributes
    ----------
    property : str
        Identifier, a key of ``fairopt.analysis.properties.CHECKS``.
    holds : bool or None
        None: the property does not apply, or could not be decided; the statement says which. If a search finds no violation, ``holds`` is
        True, and the statement says that it was a search.
    violation : float
        In tasks: 0.0 if the property holds, NaN if ``holds`` is None.
    exact : Fraction or None
        The violation in fractions, decided without a tolerance: of an allocation in fractions, where the check is; else None.
    statement : str
        One sentence: what was found, and how.
    witness : Witness or None
        The example that proves a violation.
    promised : str or None
        The source that proves the property for the notion, under the conditions of that source; None if there is none.
    searched : int or None
        How many lies, or users who leave, were tried; None if the check is no search.
    not_found : str
        If ``holds`` is True only because a search found no violation: what it did not find, and how often it tried; else empty.
    """

    property: str
    holds: bool | None
    violation: float
    statement: str
    witness: Witness | None = None
    promised: str | None = None
    searched: int | None = None
    not_found: str = ""
    exact: Fraction | None = None

    @builtins.property  # `property` is a field here
    def amount(self) -> float | Fraction:
        """The violation: in fractions, where it is known so."""
        return self.violation if self.exact is None else self.exact

    @builtins.property
    def outcome(self) -> str:
        """The printed outcome: "holds", "violated", "-", or that a search found nothing, as in "no lie found (12 tried)"."""
        return self.not_found or {True: "holds", False: "violated", None: "-"}[self.holds]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON; None stands for a missing number."""
        return {
            "name": self.property,
            "property": self.property,  # until 1.0
            "holds": self.holds,
            "violation": None if np.isnan(self.violation) else self.violation,
            **({} if self.exact is None else {"exact": str(self.exact)}),
            "statement": self.statement,
            "witness": None if self.witness is None else self.witness.to_dict(),
            "promised": self.promised,
            "searched": self.searched,
        }


def holds(name: str, statement: str, searched: int | None = None) -> Verdict:
    """Return the verdict that a property holds."""
    return Verdict(name, True, 0.0, statement, searched=searched)


def violated(name: str, tasks: float | Fraction, statement: str, witness: Witness, searched: int | None = None) -> Verdict:
    """Return the verdict that a property is violated by a number of tasks."""
    exact = tasks if isinstance(tasks, Fraction) else None
    return Verdict(name, False, float(tasks), statement, witness, searched=searched, exact=exact)


def does_not_apply(name: str, reason: str, searched: int | None = None) -> Verdict:
    """Return the verdict that a property does not apply, or is undecided."""
    return Verdict(name, None, float("nan"), reason, searched=searched)


def judged_in_floats(verdict: Verdict) -> Verdict:
    """Return the verdict with a statement that says that it rests on floats; an undecided verdict is returned unchanged."""
    if verdict.holds is None:
        return verdict
    return replace(verdict, statement=f"Judged in floats: {verdict.statement[:1].lower()}{verdict.statement[1:]}")
