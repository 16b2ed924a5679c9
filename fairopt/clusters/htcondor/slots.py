"""Slots of HTCondor as servers.

A partitionable slot is a server with all that it has, in use or not: its dynamic slots are parts of it, and no servers of their own. A
static slot is a server that runs one job at a time, whatever the job asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fairopt.clusters.account import Account
from fairopt.clusters.htcondor.ads import Ad
from fairopt.clusters.json_export import Part
from fairopt.wording import plural

__all__ = ["Slot", "read_slot", "renamed", "servers_of"]

_NAMES = {"cpus": "cpu", "gpus": "gpu"}
_ENOUGH = 10**15  # KiB of disk: a slot has what any job asks for, as disk does not count
_NOT_SHARED = ("disk", "swap")  # of the resources of a machine: noted where jobs ask for them
_KIND_OF_CARD = ("devicename", "capability", "globalmemorymb")
_CLOSED_STATES = ("owner", "drained", "delete", "shutdown")
_OPEN_STATES = ("unclaimed", "claimed", "matched", "preempting", "backfill")


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot.

    Attributes
    ----------
    name, machine : str
    kind : str
        "partitionable", "dynamic" or "static".
    offers : dict
        All that it has, memory in GiB.
    values : dict
        Its attributes as a job sees them: with all that it has, not with what is left; disk does not count.
    closed : str
        Why it offers nothing; else empty.
    """

    part: Part
    name: str
    machine: str
    kind: str
    offers: dict[str, float]
    values: Mapping[str, Any]
    closed: str

    @property
    def cards(self) -> set[tuple[Any, ...]]:
        """The kinds of its GPUs, as far as it says them: name, capability and memory."""
        return {tuple(card.get(key) for key in _KIND_OF_CARD) for card in self.values.get("availablegpus") or () if isinstance(card, dict)}


def renamed(resource: str) -> str:
    """Return the name of a resource in an instance."""
    return _NAMES.get(resource.lower(), resource.lower())


def read_slot(ad: Ad) -> Slot:
    """Read a slot."""
    name = ad.text("Name")
    kind = ad.text("SlotType", "").lower()
    if kind not in ("partitionable", "dynamic", "static"):
        kind = "partitionable" if ad.is_true("PartitionableSlot") else "dynamic" if ad.is_true("DynamicSlot") else "static"
    has = ad.text("MachineResources", "").split()
    resources = dict.fromkeys(["Cpus", "GPUs", *(each for each in has if each.lower() not in ("cpus", "gpus", "memory", *_NOT_SHARED))])
    offers = {}
    values = dict(ad.values)
    for resource in resources:
        offers[renamed(resource)] = _total(ad, resource)
        values[resource.lower()] = _as_written(offers[renamed(resource)])
    memory = _total(ad, "Memory")
    offers["memory"] = memory / 1024
    values["memory"] = _as_written(memory)
    values |= dict.fromkeys(("disk", "totalslotdisk", "totaldisk"), _ENOUGH)
    cards = [value for key, value in ad.values.items() if key.startswith("gpus_") and isinstance(value, dict)]
    if cards:  # all GPUs, whether a job has them now or not
        values["availablegpus"] = [{key.lower(): value for key, value in card.items()} for card in cards]
    state = ad.text("State", "Unclaimed").lower()
    if state not in (*_OPEN_STATES, *_CLOSED_STATES):
        ad.get("State").refuse(f'there is no state "{state[:40]}" of a slot; the version of this export may be newer')
    closed = "offline" if ad.is_true("Offline") else f"in the state {state}" if state in _CLOSED_STATES else ""
    closed = closed or ("Start is false" if ad.values.get("start") is False else "")
    machine = ad.text("Machine", "") or name.rpartition("@")[2]
    return Slot(ad.part, name, machine, kind, {key: value for key, value in offers.items() if value}, values, closed)


def _total(ad: Ad, resource: str) -> float:
    """Return all that a slot has of a resource: of a partitionable one, what its dynamic slots have, too."""
    return ad.number(f"TotalSlot{resource}", ad.number(resource, 0.0))


def _as_written(amount: float) -> int | float:
    """Return an amount as ads write it: expressions divide whole numbers as such, and ``=?=`` compares kinds."""
    return int(amount) if amount.is_integer() else amount


def servers_of(slots: Iterable[Slot], account: Account, *, closed: bool = False) -> tuple[list[Slot], dict[str, str]]:
    """Return the slots that are servers, and for each slot by name the one that it is a part of.

    With ``closed``, those that offer nothing now are servers, too.
    """
    listed = list(slots)
    parents = {slot.name for slot in listed if slot.kind == "partitionable"}
    servers, part_of, orphans = [], {}, 0
    for slot in listed:
        whole = slot.name
        if slot.kind == "dynamic":
            first, sign, rest = slot.name.partition("@")
            whole = f"{first.rpartition('_')[0]}{sign}{rest}"
        part_of[slot.name] = whole if whole in parents or slot.kind != "dynamic" else slot.name
        if slot.kind == "dynamic" and whole in parents:
            continue
        orphans += slot.kind == "dynamic"
        if slot.closed and not closed:
            account.leave_out("slot", f"{slot.part.place} ({slot.name})", f"{slot.closed}: offers nothing")
        else:
            servers.append(slot)
    if orphans:
        account.note(
            f"{plural(orphans, 'dynamic slot')} whose partitionable slot is not listed: each is a server of its own; export all slots"
        )
    return servers, part_of
