"""Where jobs of HTCondor may run: their ``Requirements``, evaluated for each slot, and ``Start`` of the slot, evaluated for each job.

A slot counts with all that it has: what is left of a partitionable slot now says nothing of where a job may run. An expression with
something that is not understood, or with attributes that no slot has, does not count, and is named.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from fairopt.clusters.account import Account
from fairopt.clusters.htcondor.expressions import UNDEFINED, Unreadable, evaluated, is_expression
from fairopt.clusters.htcondor.slots import Slot
from fairopt.instance import BoolArray, IntArray
from fairopt.wording import plural

__all__ = ["Requirements"]

_NAME = re.compile(r"[A-Za-z_]\w*")
_SHOWN = 3  # reasons that notes name
_START = "start"


class Requirements:
    """The slots on which jobs may run, a row for each kind of requirement.

    Attributes
    ----------
    allowed : list of bool arrays (slots,)
    """

    def __init__(self, slots: Sequence[Slot]) -> None:
        self._slots = slots
        self._rows: dict[tuple[object, ...], int] = {}
        self.allowed: list[BoolArray] = []
        self._reasons: dict[tuple[object, ...], str] = {}
        self._same: dict[bytes, int] = {}
        self._kinds: dict[tuple[str, ...], tuple[IntArray, list[Slot]]] = {}  # of slots that are alike in some attributes
        self._unread: Counter[str] = Counter()
        self._closed: dict[str, int] = {}  # slots whose Start does not count, by why
        self._of_slots: dict[str, dict[str, None]] = {}  # the expressions that an attribute is in slots
        for slot in slots:
            for name, value in slot.values.items():
                if is_expression(value):
                    self._of_slots.setdefault(name, {})[value] = None

    def row(self, job: Mapping[str, Any]) -> int:
        """Return the row of a job with these attributes."""
        text = job.get("requirements", True)
        names = _names([text, *self._of_slots.get(_START, ())], job, self._of_slots)
        key = (repr(text), *((name, repr(job.get(name))) for name in names))
        if key not in self._rows:
            allowed, reason = self._allowed(text, job, tuple(names))
            self._rows[key] = self._same.setdefault(allowed.tobytes(), len(self.allowed))
            if self._rows[key] == len(self.allowed):
                self.allowed.append(allowed)
            self._reasons[key] = reason
        if self._reasons[key]:
            self._unread[self._reasons[key]] += 1
        return self._rows[key]

    def _allowed(self, text: object, job: Mapping[str, Any], names: tuple[str, ...]) -> tuple[BoolArray, str]:
        everywhere = np.ones(len(self._slots), bool)
        if names not in self._kinds:
            kinds: dict[tuple[object, ...], int] = {}
            of_slot = [kinds.setdefault(tuple(repr(slot.values.get(name)) for name in names), len(kinds)) for slot in self._slots]
            first = dict(zip(reversed(of_slot), reversed(self._slots), strict=True))
            self._kinds[names] = np.array(of_slot, int), [first[kind] for kind in range(len(kinds))]
        of_slots, different = self._kinds[names]
        results = []
        for slot in different:
            try:
                value = evaluated(text, job, slot.values)
                results.append(value if value is UNDEFINED else bool(value))
            except Unreadable as error:
                return self._starts(everywhere, job, names), f"an expression that is not understood ({error})"
        if results and all(value is UNDEFINED for value in results):
            return self._starts(everywhere, job, names), "attributes that no slot has"
        return self._starts(np.array([value is True for value in results], bool)[of_slots], job, names), ""

    def _starts(self, allowed: BoolArray, job: Mapping[str, Any], names: tuple[str, ...]) -> BoolArray:
        """Return the slots among these that would start a job, by their ``Start``; one that is not known does not count."""
        if _START not in self._of_slots:
            return allowed
        of_slots, different = self._kinds[names]
        number = np.bincount(of_slots, minlength=len(different)).tolist()
        takes = []
        for slot, slots in zip(different, number, strict=True):
            try:
                value = evaluated(slot.values.get(_START, True), slot.values, job)
            except Unreadable as error:
                value, why = UNDEFINED, f"an expression that is not understood ({error})"
            else:
                why = "attributes that these jobs, or the slots, do not have"
            if value is UNDEFINED:
                self._closed[why] = max(self._closed.get(why, 0), slots)
            takes.append(value is UNDEFINED or bool(value))
        return np.asarray(allowed & np.array(takes, bool)[of_slots])

    def note(self, account: Account) -> None:
        """Say which requirements do not count."""
        for reason, number in self._unread.most_common(_SHOWN):
            account.note(f"the Requirements of {plural(number, 'job')} have {reason}: they do not count, so that these run anywhere")
        for why, number in self._closed.items():
            account.note(f"Start of {plural(number, 'slot')} has {why}: it does not count, so that these take any job")
        rest = sum(number for _, number in self._unread.most_common()[_SHOWN:])
        if rest:
            account.note(f"the Requirements of {plural(rest, 'other job')} are not understood, and do not count")


def _names(texts: Sequence[object], job: Mapping[str, Any], of_slots: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the names in expressions, and in the expressions of a job and of slots that these refer to."""
    found: dict[str, None] = dict.fromkeys([_START] if _START in of_slots else [])
    left = list(texts)
    while left:
        each = left.pop()
        if is_expression(each):
            for name in dict.fromkeys(map(str.lower, _NAME.findall(str(each)))):
                if name not in found:
                    found[name] = None
                    left += [job.get(name), *of_slots.get(name, ())]
    return sorted(found)
