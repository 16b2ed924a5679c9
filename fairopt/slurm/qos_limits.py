"""QOS in an export to Slurm (level ``qos``): their limits, as an import calls them, and who is held by them alone.

============================  ==============================================================
``qos/small cpu``             ``GrpTRES=cpu``: of all jobs of the QOS ``small``
``qos/small of user u cpu``   ``MaxTRESPerUser=cpu``; ``of account`` ``MaxTRESPerAccount``
``qos/small jobs``            ``GrpJobs``; of a user or an account ``MaxJobsPerUser``, ...
============================  ==============================================================

Slurm holds jobs to the ``GrpTRES`` of their QOS *instead* of that of their accounts, TRES by TRES. So limits of accounts do not carry what
an allocation gives to such jobs; ``GrpTRES`` of the QOS does: it is set to what the tasks of the QOS hold together, within its limit. The
other limits are set as they are in the instance. Where several accounts share a QOS, nothing in Slurm tells them apart.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fairopt.clusters.account import Account
from fairopt.clusters.amounts import Measures, enlarged, whole_part
from fairopt.clusters.rounding import Whole
from fairopt.instance import BoolArray, Instance
from fairopt.instance.limits import Limit
from fairopt.slurm.licenses import PREFIX
from fairopt.slurm.qos import Qos, QosLimits, read_qos
from fairopt.slurm.tiers import qos_in
from fairopt.wording import joined, named

__all__ = ["QosExport", "Setting", "held_by_qos"]

_NAME = re.compile(r"qos/(?P<qos>.+?)(?: of (?P<of>user|account) .+)? (?P<what>\S+)")
_SETTINGS = {  # of TRES, of numbers of jobs
    "": ("GrpTRES", "GrpJobs"),
    "user": ("MaxTRESPerUser", "MaxJobsPerUser"),
    "account": ("MaxTRESPerAccount", "MaxJobsPerAccount"),
}
_MOST = 5  # names in a note


@dataclass(frozen=True, slots=True)
class Setting:
    """A limit of a QOS: ``GrpTRES`` of ``cpu``, or ``GrpJobs`` of "" (no TRES); what it is set to, and what it was (-1: none)."""

    qos: str
    name: str
    key: str
    amount: int
    before: int


def held_by_qos(instance: Instance) -> dict[str, BoolArray]:
    """Return which users Slurm holds to the ``GrpTRES`` of a QOS instead of that of their account, (users,), by resource."""
    found: dict[str, BoolArray] = {}
    for limit in instance.limits:
        match = _NAME.fullmatch(limit.name)
        if match and not match["of"] and limit.resource and limit.servers is None and limit.users:
            mask = np.isin(instance.users, limit.users)
            found[limit.resource] = found.get(limit.resource, np.zeros(instance.n_users, bool)) | mask
    return found


@dataclass(frozen=True, slots=True)
class QosExport:
    """What an export does to QOS.

    Attributes
    ----------
    settings : tuple of Setting
    new : tuple of str
        QOS that Slurm does not have.
    preempt : tuple of (str, str)
        A QOS that preempts none in Slurm and is in a tier above others here, and one of these.
    bounds : mapping
        The bounds of the named limits that are written, by name, as they are written.
    notes : tuple of str
    """

    settings: tuple[Setting, ...]
    new: tuple[str, ...]
    preempt: tuple[tuple[str, str], ...]
    bounds: Mapping[str, float]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, whole: Whole, measures: Measures, headroom: float, path: str | os.PathLike[str] | None) -> QosExport:
        """Return it, for whole tasks; ``path`` is the table of QOS as they are: without it they are taken to be as the instance says."""
        instance = whole.instance
        current = None if path is None else read_qos(path, Account(False))
        real = {name.replace(".", "_"): name for name in current or {}}
        settings: dict[tuple[str, str, str], Setting] = {}
        bounds: dict[str, float] = {}
        relative: dict[str, None] = {}
        for limit in instance.limits:
            match = _NAME.fullmatch(limit.name)
            found = None if match is None else _amount(limit, match["what"], whole, measures, headroom if not match["of"] else None)
            if match is None or found is None:
                continue
            key, amount, bound, step = found
            name = real.get(match["qos"], match["qos"])
            if current is not None and name in current and current[name].relative:
                relative[name] = None
                continue
            setting = _SETTINGS[match["of"] or ""][not key]
            before = bound if current is None else _before(current.get(name), match["of"] or "", key)
            settings[name, setting, key] = Setting(name, setting, key, amount, before)
            bounds[limit.name] = amount / step
        tiers = _tiers(instance, real)
        names = dict.fromkeys([*(name for name, _, _ in settings), *tiers])
        new = () if current is None else tuple(name for name in names if name not in current)
        preempt = () if current is None else tuple(_preempting(tiers, names, current))
        notes = _notes(instance, settings, tiers, new, current)
        if relative:
            notes.append(f"limits of the QOS {joined(list(relative), _MOST)} are percentages (Relative): they are left as they are")
        return cls(tuple(settings.values()), new, preempt, bounds, tuple(notes))


def _amount(limit: Limit, what: str, whole: Whole, measures: Measures, headroom: float | None) -> tuple[str, int, int, float] | None:
    """Return the TRES of a limit ("": jobs), its amount and its bound in Slurm's units, and how many of these are one of the instance.

    With ``headroom`` the amount is what its tasks hold together, within the bound; without, it is the bound.
    """
    instance = whole.instance
    if limit.resource is None:
        if limit.amounts is None or any(isinstance(each, Mapping) for each in limit.amounts.values()):
            return None
        key, step = ("", 1.0) if what == "jobs" else (f"{PREFIX}{what.removeprefix(PREFIX)}", 1.0)
        per_task = np.array([float(limit.amounts.get(user, 0.0)) for user in instance.users])
        held = float(per_task @ whole.tasks_per_user)
    elif limit.resource in measures:
        measure = measures[limit.resource]
        key, step = (f"gres/{what}" if ":" in what else measure.key), measure.steps
        users = np.isin(instance.users, limit.users or instance.users)
        column = instance.resources.index(limit.resource)
        held = sum(float(whole.demands(g)[users, column] @ whole.tasks[users, g]) for g in range(len(whole.groups))) * step
    else:
        return None
    bound = whole_part(limit.bound * step)
    if headroom is None or not key or limit.servers is not None:
        return key, bound, bound, step
    least = enlarged(1, held)
    return key, min(enlarged(least, headroom), max(least, bound)), bound, step


def _before(qos: Qos | None, of: str, key: str) -> int:
    """Return a limit that a QOS has now, -1 if it has none."""
    own: QosLimits = QosLimits() if qos is None else {"": qos.together, "user": qos.user, "account": qos.account}[of]
    value = own.tres.get(key, math.inf) if key else own.jobs
    return -1 if value == math.inf else round(value)


def _tiers(instance: Instance, real: Mapping[str, str]) -> dict[str, int]:
    """Return the tiers of QOS that have queues of their own."""
    tiers: dict[str, int] = {}
    for queue in instance.queues:
        name = qos_in(queue.name)
        if name:
            tiers[real.get(name.replace(".", "_"), name)] = queue.tier
    return tiers


def _preempting(tiers: Mapping[str, int], names: Mapping[str, None], current: Mapping[str, Qos]) -> list[tuple[str, str]]:
    """Return which QOS must preempt which others that are known here; one that preempts some in Slurm is left as it is."""
    return [
        (name, other)
        for name, tier in tiers.items()
        if not (name in current and current[name].preempts)
        for other in names
        if tiers.get(other, 0) < tier
    ]


def _notes(
    instance: Instance,
    settings: Mapping[tuple[str, str, str], Setting],
    tiers: Mapping[str, int],
    new: tuple[str, ...],
    current: Mapping[str, Qos] | None,
) -> list[str]:
    notes = []
    if not settings and not tiers:
        notes.append("the instance has no limits of QOS (an import with --qos has them): the level qos limits accounts alone")
    if settings:
        notes.append("a QOS is one in all clusters of its slurmdbd: so are these limits of QOS")
    if settings and current is None:
        notes.append(
            "QOS are taken to be as the instance says, and --undo sets them to that; --qos (sacctmgr -P show qos) restores what they have"
        )
    if tiers and current is None:
        notes.append(f"the QOS {joined(list(tiers), _MOST)} must preempt others, as now: --qos checks that, and adds what is missing")
    if new:
        notes.append(f"Slurm has no QOS {joined(list(new), _MOST)}: the script adds them; who may use them is up to you (set qos+=NAME)")
    shared = []
    for limit in instance.limits:
        match = _NAME.fullmatch(limit.name)
        if match and not match["of"] and limit.users:
            whose = {str(instance.queue_of[n]).partition("/")[0] for n, user in enumerate(instance.users) if user in limit.users}
            shared += [match["qos"]] if len(whose) > 1 else []
    if shared:
        several = joined(list(dict.fromkeys(map(named, shared))), _MOST)
        notes.append(f"several accounts share the GrpTRES of {several}: how they divide it is left to Slurm's priorities")
    return notes
