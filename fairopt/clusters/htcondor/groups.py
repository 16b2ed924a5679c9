"""Group quotas and user priorities of HTCondor as a tree of queues.

**Groups** are queues; ``group_physics.hep`` is a queue in ``group_physics``. The quota of a group is its guarantee of cores: a number
(``GROUP_QUOTA_x``), or a part (``GROUP_QUOTA_DYNAMIC_x``) of what these numbers leave of the pool, or of the quota of the group above;
parts that add up to more than 1 are scaled to 1. Numbers that add up to more than there is above are scaled only without
``NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION``, which is true by default. A group that accepts no surplus (``GROUP_ACCEPT_SURPLUS_x``,
``GROUP_AUTOREGROUP_x``) is limited to its quota. HTCondor divides a surplus by quotas, so a quota is the weight of a group, too. What they
leave of the pool belongs to those without a group, in the queue ``<none>``, and what they leave of a group to its own submitters, in the
queue ``GROUP itself``; both accept surplus. If they leave nothing, the weight of that queue is one core, as is that of a group without a
quota.

**Submitters** are queues in their group. The weight of a submitter is 1 / priority factor; its ceiling is a limit of cores, its floor a
guarantee.

Quotas are in slot weights, which are cores unless a site has changed ``SLOT_WEIGHT``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fairopt.clusters.account import Account
from fairopt.clusters.htcondor.priorities import Priority
from fairopt.clusters.queue_tree import Forest
from fairopt.errors import InvalidInstance
from fairopt.files import read_text
from fairopt.instance.queues import Queue
from fairopt.wording import figure, joined, named

__all__ = [
    "NONE",
    "Group",
    "Groups",
    "bound_of",
    "groups_of_config",
    "groups_of_priorities",
    "is_oversubscribed",
    "limits_of_config",
    "quotas_of",
    "read_config",
]

NONE = "<none>"
_LINE = re.compile(r"\s*([A-Za-z_][\w.]*)\s*=\s*(.*?)\s*", re.DOTALL)
_MACRO = re.compile(r"\$\(([^()$:]+)(?::([^()$]*))?\)")
_TRUE, _FALSE = ("true", "t", "yes", "1"), ("false", "f", "no", "0", "")
_DEFAULT_LIMIT = "concurrency_limit_default"
_OVERSUBSCRIBED = "negotiator_allow_quota_oversubscription"
_READ = ("group_", "concurrency_", _OVERSUBSCRIBED)
_DEEPEST = 20  # macros within macros
_LONGEST = 10_000


@dataclass(frozen=True, slots=True)
class Group:
    """A group: its name, its quota in cores or as a part of what is above it, and whether it accepts surplus."""

    name: str
    quota: float
    is_part: bool = False
    surplus: bool = False

    @property
    def parent(self) -> str:
        """The group that it is in; empty: none."""
        return self.name.rpartition(".")[0]


def read_config(path: str | os.PathLike[str]) -> dict[str, str]:
    """Return the macros of groups and limits of a configuration, or of what ``condor_config_val -dump`` prints, in small letters.

    A macro that refers to itself means its value before.

    Raises
    ------
    InvalidInstance
        With the file: macros refer to each other in a circle.
    """
    text = re.sub(r"\\\r?\n", " ", read_text(Path(path)))
    found: dict[str, str] = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is not None:
            name = match[1].lower()
            itself = re.compile(rf"\$\({re.escape(name)}\)", re.IGNORECASE)
            found[name] = found.get(name, "").join(itself.split(match[2]))[:_LONGEST]
    read = {name: value for name, value in found.items() if name.startswith(_READ) or name.endswith("_limit")}
    return {name: _expanded(value, found, Path(path), name) for name, value in read.items()}


def _expanded(value: str, macros: Mapping[str, str], path: Path, name: str) -> str:
    for _ in range(_DEEPEST):
        inner = _MACRO.sub(lambda match: macros.get(match[1].strip().lower(), match[2] or ""), value)
        if inner == value:
            return value
        value = inner[:_LONGEST]
    raise InvalidInstance(f"{path}: the macro {name} refers to itself")


def groups_of_config(macros: Mapping[str, str], path: str | os.PathLike[str], account: Account) -> list[Group]:
    """Return the groups of a configuration, each after its parent.

    A group whose parent ``GROUP_NAMES`` does not list is none, as HTCondor ignores it: a note names it.

    Raises
    ------
    InvalidInstance
        With the file and the macro: a quota is no number, or a switch neither true nor false.
    """
    names, alone = _spelled(re.split(r"[,\s]+", macros.get("group_names", "")))
    for name in macros:  # a quota of a group that GROUP_NAMES lacks says nothing
        if name.startswith("group_quota_") and not names:
            raise InvalidInstance(f"{path}: there are quotas, and no GROUP_NAMES; give the whole configuration: condor_config_val -dump")
    if alone:
        account.note(
            f"GROUP_NAMES lists {joined([named(name) for name in alone], 3)}, but not the group above: HTCondor ignores "
            f"{'its quota' if len(alone) == 1 else 'their quotas'}, and jobs there count in the nearest group above that it knows"
        )
    groups = []
    for name in sorted(names, key=lambda name: (name.count("."), name)):
        low = name.lower()
        static, dynamic = macros.get(f"group_quota_{low}"), macros.get(f"group_quota_dynamic_{low}")
        key = f"GROUP_QUOTA_{name}" if static is not None else f"GROUP_QUOTA_DYNAMIC_{name}"
        quota = _number(static if static is not None else dynamic or "0", path, key)
        if static is None and quota > 1:
            raise InvalidInstance(f"{path}: {key} is {quota:g}; a dynamic quota is a part of the pool, at most 1")
        surplus = any(
            _truth(macros.get(f"{switch}_{low}", macros.get(switch, "")), path, f"{switch}_{name}".upper())
            for switch in ("group_accept_surplus", "group_autoregroup")
        )
        groups.append(Group(name, quota, static is None, surplus))
    return groups


def is_oversubscribed(macros: Mapping[str, str], path: str | os.PathLike[str]) -> bool:
    """Return whether quotas that are numbers count in full even where they add up to more than there is above."""
    return _truth(macros.get(_OVERSUBSCRIBED, "true"), path, _OVERSUBSCRIBED.upper())


def _spelled(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the names of groups, once each, in the first spelling: case does not count; and those whose group above is not listed.

    >>> _spelled(["Physics", "physics.hep", "", "bio.lab"])
    (['Physics', 'Physics.hep'], ['bio.lab'])
    """
    found: dict[str, str] = {}
    alone = []
    for name in sorted(dict.fromkeys(filter(None, names)), key=lambda name: name.count(".")):
        above, dot, last = name.rpartition(".")
        if dot and above.lower() not in found:
            alone.append(name)
        else:
            found.setdefault(name.lower(), f"{found[above.lower()]}.{last}" if dot else name)
    return list(found.values()), alone


def groups_of_priorities(priorities: Iterable[Priority], path: str | os.PathLike[str]) -> list[Group]:
    """Return the groups that user priorities list, each after its parent.

    Raises
    ------
    InvalidInstance
        With the file and the group: its parent has no quota there.
    """
    found = [
        Group(each.name, each.quota, False, each.surplus) for each in priorities if each.is_group and each.name != NONE and each.quota >= 0
    ]
    names = {group.name for group in found}
    for group in found:
        if group.parent and group.parent not in names:
            raise InvalidInstance(
                f'{path}: the group "{group.name}" has a quota, and the group "{group.parent}" that it is in has none; '
                "export all of them: condor_userprio -allusers -json > priorities.json"
            )
    return sorted(found, key=lambda group: (group.name.count("."), group.name))


def limits_of_config(macros: Mapping[str, str], path: str | os.PathLike[str]) -> dict[str, float]:
    """Return the concurrency limits of a configuration by name; "small." is the default of small.NAME, "" that of all."""
    found = {
        name.removesuffix("_limit"): _number(value, path, name.upper())
        for name, value in macros.items()
        if name.endswith("_limit") and re.fullmatch(r"\d{1,18}(\.\d+)?", value)
    }
    for name, value in macros.items():
        first, sign, kind = name.partition(_DEFAULT_LIMIT)
        if sign and not first and value and kind[:1] in ("", "_"):
            found[f"{kind[1:]}." if kind else ""] = _number(value, path, name.upper())
    return found


def bound_of(name: str, limits: Mapping[str, float]) -> float | None:
    """Return the bound of a concurrency limit: its own, else the default of its kind, else that of all; None if there is none.

    >>> [bound_of(name, {"matlab": 5, "small.": 3, "": 10}) for name in ("matlab", "small.x", "ansys")], bound_of("ansys", {})
    ([5, 3, 10], None)
    """
    kind, dot, _ = name.partition(".")
    return next((limits[key] for key in (name, kind + dot if dot else "", "") if key in limits), None)


def _number(text: str, path: str | os.PathLike[str], key: str) -> float:
    if not re.fullmatch(r"\d{1,18}(\.\d{0,18})?|\.\d{1,18}", text, re.ASCII):
        raise InvalidInstance(f'{path}: {key} is "{text[:40]}", which is no number >= 0; expressions are not evaluated')
    return float(text)


def _truth(text: str, path: str | os.PathLike[str], key: str) -> bool:
    if text.lower() not in (*_TRUE, *_FALSE):
        raise InvalidInstance(f'{path}: {key} is "{text[:40]}", which is neither true nor false; expressions are not evaluated')
    return text.lower() in _TRUE


def quotas_of(groups: Sequence[Group], cores: float, *, oversubscribed: bool = True) -> dict[str, float]:
    """Return the quotas of groups in cores, each group after its parent.

    Of the quota Q of what is above, numbers take S = sum of them (at most Q, scaled, unless ``oversubscribed``), and a part f takes
    f (Q - S) / max(1, sum of parts).

    >>> chemistry, biology = Group("chemistry", 12), Group("biology", 0.5, is_part=True)
    >>> quotas_of([chemistry, biology], 16), quotas_of([chemistry, biology], 6, oversubscribed=False)
    ({'chemistry': 12.0, 'biology': 2.0}, {'chemistry': 6.0, 'biology': 0.0})
    """
    quotas: dict[str, float] = {}
    for group in groups:
        whole = quotas[group.parent] if group.parent else cores
        beside = [each for each in groups if each.parent == group.parent]
        static = sum(each.quota for each in beside if not each.is_part)
        taken = static if oversubscribed else min(static, whole)
        if group.is_part:
            parts = sum(each.quota for each in beside if each.is_part)
            quotas[group.name] = group.quota * max(whole - taken, 0.0) / max(parts, 1.0)
        else:
            quotas[group.name] = group.quota * (taken / static if static else 1.0) if whole > 0 else 0.0
    return quotas


def _note_scaled(groups: Sequence[Group], quotas: Mapping[str, float], account: Account) -> None:
    """Note the quotas that are less than the configuration states, as those beside them leave less."""
    cut = [
        f"{named(each.name)} {figure(each.quota)} to {figure(quotas[each.name])}"
        for each in groups
        if not each.is_part and quotas[each.name] < each.quota
    ]
    if cut:
        account.note(f"quotas add up to more than there is above, so HTCondor scales them: {joined(cut, 5)}")


def _beside(group: str) -> str:
    """Return the queue of the submitters of a group that has groups in it, or of those that have none."""
    return f"{group} itself" if group else NONE


@dataclass(slots=True)
class Groups:
    """The tree of groups and submitters.

    Attributes
    ----------
    groups : sequence of Group
    priorities : mapping
        By submitter.
    cores : float
        Of the pool.
    oversubscribed : bool
        Whether quotas that are numbers count in full even where they add up to more than there is above.
    """

    groups: Sequence[Group]
    priorities: Mapping[str, Priority]
    cores: float
    oversubscribed: bool = True
    _known: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._known = {group.name.lower(): group.name for group in self.groups}

    def group_of(self, group: str) -> str:
        """Return the group whose quota a job counts in: its own, or the nearest above; empty: none."""
        while group and group.lower() not in self._known:
            group = group.rpartition(".")[0]
        return self._known.get(group.lower(), "")

    def forest(self, submitters: Mapping[str, tuple[str, str]], account: Account) -> Forest:
        """Return the queues.

        Parameters
        ----------
        submitters : mapping
            The group and the submitter of each queue in which jobs are.
        """
        quotas = quotas_of(self.groups, self.cores, oversubscribed=self.oversubscribed)
        _note_scaled(self.groups, quotas, account)
        empty = [group.name for group in self.groups if not quotas[group.name] and not group.surplus]
        if empty:
            account.note(
                f"{joined([named(name) for name in empty], 3)}: without a quota, and accept no surplus: their jobs get nothing"
                if len(empty) > 1
                else f"{named(empty[0])}: without a quota, and accepts no surplus: its jobs get nothing"
            )
        queues = []
        for group in self.groups:
            quota = quotas[group.name]
            queues.append(
                Queue(
                    group.name,
                    group.parent or None,
                    weight=quota or 1.0,
                    guarantee={"cpu": quota} if quota else {},
                    limit={} if group.surplus else {"cpu": quota},
                )
            )
        within = {name: self.group_of(group) for name, (group, _) in submitters.items()}
        for above in dict.fromkeys(within.values()):  # beside groups, submitters have what these leave
            inside = [quotas[group.name] for group in self.groups if group.parent == above]
            if inside:
                left = max((quotas[above] if above else self.cores) - sum(inside), 0.0)
                queues.append(Queue(_beside(above), above or None, weight=left or 1.0, guarantee={"cpu": left} if left else {}))
        parents = {group.parent for group in self.groups}
        without: list[str] = []
        for name, (_, submitter) in submitters.items():
            priority = self.priorities.get(submitter.lower())
            if priority is None and self.priorities:
                without.append(name)
            known = priority or Priority(submitter)
            queues.append(
                Queue(
                    name,
                    _beside(within[name]) if within[name] in parents else within[name] or None,
                    weight=1 / known.factor,
                    guarantee={"cpu": known.floor} if known.floor > 0 else {},
                    limit={"cpu": known.ceiling} if known.ceiling >= 0 else {},
                )
            )
        if without:
            account.note(f"{joined([named(name) for name in without], 3)}: not among the user priorities; their factor is taken as 1,000")
        return Forest(tuple(queues), system="HTCondor")
