"""Names that a scheduler's grammar allows, one for each label.

A label that the grammar allows keeps its name. In any other, each run of forbidden characters becomes a hyphen; a name that is taken gets
a number. So two labels never have one name, and an export says which names it changed.

>>> Names(DNS_LABEL, "namespace").of(["team-a", "Team A", "team/a"])
{'team-a': 'team-a', 'Team A': 'team-a-2', 'team/a': 'team-a-3'}
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from fairopt.wording import joined, named

__all__ = ["DNS_LABEL", "DNS_SUBDOMAIN", "LABEL_VALUE", "SLURM", "YARN", "YUNIKORN", "Grammar", "Names", "changed"]

_MOST = 8  # changes that a note lists


class Grammar(NamedTuple):
    """What a name may be: a pattern for the whole of it, the characters that it may not have, its length, and whether case counts."""

    pattern: re.Pattern[str]
    forbidden: re.Pattern[str]
    longest: int
    lower: bool


def _grammar(pattern: str, forbidden: str, longest: int, *, lower: bool = False) -> Grammar:
    return Grammar(re.compile(pattern, re.ASCII), re.compile(forbidden, re.ASCII), longest, lower)


DNS_LABEL = _grammar(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", r"[^-a-z0-9]+", 63, lower=True)  # namespaces, values of labels
DNS_SUBDOMAIN = _grammar(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", r"[^-a-z0-9]+", 253, lower=True)
LABEL_VALUE = DNS_SUBDOMAIN._replace(longest=63)  # objects that pods name in a label
SLURM = _grammar(r"[a-z0-9_][-a-z0-9_.@]*", r"[^-a-z0-9_.@]+", 64, lower=True)  # sacctmgr writes names of accounts in small letters
YUNIKORN = _grammar(r"[a-z0-9_-]+", r"[^a-z0-9_-]+", 64, lower=True)  # names are compared in small letters
YARN = _grammar(r"[a-zA-Z0-9_][-a-zA-Z0-9_]*", r"[^-a-zA-Z0-9_]+", 64)


@dataclass(frozen=True, slots=True)
class Names:
    """The names of one kind of thing.

    Attributes
    ----------
    grammar : Grammar
    word : str
        What is named, for the fallback of a label without a usable character.
    taken : tuple of str
        Names that no label may have.
    """

    grammar: Grammar
    word: str
    taken: tuple[str, ...] = ()

    def of(self, labels: Iterable[str]) -> dict[str, str]:
        """Return the name of each label."""
        listed = list(dict.fromkeys(labels))
        names = {label: label for label in listed if self._allowed(label)}
        used = {*names.values(), *self.taken}
        for label in listed:
            if label not in names:
                names[label] = self._free(self._near(label), used)
                used.add(names[label])
        return {label: names[label] for label in listed}

    def _allowed(self, name: str) -> bool:
        fits = len(name) <= self.grammar.longest and name not in self.taken
        return fits and self.grammar.pattern.fullmatch(name) is not None and not (self.grammar.lower and name != name.lower())

    def _near(self, label: str) -> str:
        plain = unicodedata.normalize("NFKD", label).encode("ascii", "ignore").decode()
        if self.grammar.lower:
            plain = plain.lower()
        return self.grammar.forbidden.sub("-", plain).strip("-.@") or self.word

    def _free(self, name: str, used: set[str]) -> str:
        name, number = name[: self.grammar.longest].rstrip("-.@"), 1
        free = name
        while free in used:
            number += 1
            ending = f"-{number}"
            free = name[: self.grammar.longest - len(ending)].rstrip("-.@") + ending
        return free


def changed(names: Mapping[str, str], what: str) -> list[str]:
    """Return a note that says which names were changed, or nothing."""
    pairs = [f"{named(label)} is {name}" for label, name in names.items() if name != label]
    return [f"{what} that the scheduler's grammar forbids have other names: {joined(pairs, _MOST)}"] if pairs else []
