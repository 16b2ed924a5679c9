"""Records of Ray's state API: nodes, tasks, actors and placement groups, from ``ray list`` or from ``/api/v0/*``.

``ray list KIND --format json --detail`` writes a list, with the memory of nodes as text ("4.000 GiB"); ``/api/v0/KIND?detail=true`` answers
with the same list inside ``data.result.result``, with bytes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from fairopt.clusters.account import Account
from fairopt.clusters.json_export import Part, read_json

__all__ = ["Node", "Selector", "Work", "meets", "read_actor", "read_bundles", "read_listing", "read_node", "read_task"]

_MOST = 10_000  # the largest limit of the state API
_FEWEST = 100  # and its default
_UNITS = {"": 1.0, "B": 1.0, "KIB": 2.0**10, "MIB": 2.0**20, "GIB": 2.0**30, "TIB": 2.0**40}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT]iB|B|)", re.ASCII | re.IGNORECASE)
_NAMES = {"CPU": "cpu", "GPU": "gpu"}
_MARKS = ("node:", "accelerator_type:")  # resources that stand for where a task may run
_OF_GROUP = re.compile(r"(?P<name>.+)_group_(?:(?P<index>\d+)_)?(?P<group>[0-9a-f]{20,})", re.ASCII)

_TASK_HOLDS = ("SUBMITTED_TO_WORKER", "RUNNING", "RUNNING_IN_RAY_GET", "RUNNING_IN_RAY_WAIT")
_TASK_WAITS = ("PENDING_NODE_ASSIGNMENT", "PENDING_OBJ_STORE_MEM_AVAIL", "PENDING_ARGS_FETCH", "GETTING_AND_PINNING_ARGS")
_TASK_NOT_READY = ("NIL", "PENDING_ARGS_AVAIL", "PENDING_ACTOR_TASK_ARGS_FETCH", "PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY")
_ACTOR_HOLDS, _ACTOR_WAITS, _ACTOR_NOT_READY = ("ALIVE",), ("PENDING_CREATION", "RESTARTING"), ("DEPENDENCIES_UNREADY",)
_GROUP_HOLDS, _GROUP_WAITS = ("CREATED",), ("PENDING", "PREPARED", "RESCHEDULING")
_ENDED = ("FINISHED", "FAILED", "DEAD", "REMOVED")

Condition = tuple[str, bool, tuple[str, ...]]  # key of a label; must its value be one of these, or none of them; values
Selector = tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A node: what it offers, the marks and labels that tasks ask for, and why it offers nothing."""

    part: Part
    name: str
    shown: str
    offers: dict[str, float]
    marks: set[str]
    labels: dict[str, str]
    closed: str


@dataclass(frozen=True, slots=True)
class Work:
    """A task, an actor, or a bundle of a placement group.

    Attributes
    ----------
    kind : str
        "task", "actor" or "bundle".
    job, namespace : str
        The job of Ray that it belongs to, and its namespace, if the record has one.
    state : str
    holds : bool
        Whether it holds its resources now.
    why : str
        Why it is not demand; else empty.
    request : dict
        Resources: CPUs, GPUs, memory in GiB, others.
    marks : tuple
        Resources that stand for a node or for a type of accelerator.
    selectors : tuple
        It may run where one of these is met; empty: anywhere.
    group : str
        The placement group in which it runs.
    node : str
        Where it runs; else empty.
    """

    part: Part
    name: str
    kind: str
    job: str
    namespace: str
    state: str
    holds: bool
    why: str
    request: dict[str, float]
    marks: tuple[str, ...]
    selectors: tuple[Selector, ...]
    group: str
    node: str

    @property
    def where(self) -> str:
        """Its place in the file, for messages."""
        return f"{self.part.place} ({self.kind} {self.name})"


def _command(kind: str) -> str:
    return f"ray list {kind} --format json --detail --limit {_MOST} > {kind}.json"


def read_listing(path: str | os.PathLike[str], kind: str, account: Account) -> list[Part]:
    """Return the records of a kind ("nodes", "tasks", "actors", "placement-groups", "jobs").

    Raises
    ------
    InvalidInstance
        The file is no such listing, Ray answered with an error, or the listing is cut off.
    """
    export = read_json(path, _command(kind))
    if not isinstance(export.value, dict):
        if len(export.items()) == _FEWEST:
            account.note(f"{path} lists {_FEWEST} {kind}, the limit of ray list: if there are more, export them with --limit {_MOST}")
        return export.items()
    if export.get("result").value is False:
        export.refuse(f"Ray answered with an error, {export.get('msg').value}; export it again: {_command(kind)}")
    answer = export.get("data").get("result") if "data" in export else export
    if not isinstance(answer.value, dict) or "result" not in answer.value:
        has = ", ".join(list(export.value)[:6]) or "nothing"
        export.refuse(f"this is no list of {kind} (it has {has}); export it again: {_command(kind)}")
    total, shown = answer.get("total").number(0.0), len(answer["result"].items())
    if total > shown:
        export.refuse(f"this lists {shown:,} of {total:,.0f} {kind}; export them with limit={_MOST}: {_command(kind)}")
    if answer.get("partial_failure_warning").value:
        account.note(f"{path} may lack {kind}: {answer.get('partial_failure_warning').text()[:200]}")
    return answer["result"].items()


def _amounts(part: Part, detail: str) -> tuple[dict[str, float], dict[str, float], set[str]]:
    """Return resources, those inside placement groups without their index, and marks."""
    if part.value is None:
        part.refuse(f"this field is missing; export it again: {_command(detail)}")
    free: dict[str, float] = {}
    inside: dict[str, float] = {}
    marks = set()
    for name, each in part.entries().items():
        amount = _amount(each)
        of_group = _OF_GROUP.fullmatch(name)
        if of_group is not None:
            if of_group["index"] is None and of_group["name"] != "bundle":
                key, amount = _named(of_group["name"], amount)
                inside[key] = amount
        elif name.startswith(_MARKS):
            marks |= {name} if amount else set()
        elif name != "object_store_memory":
            key, amount = _named(name, amount)
            free[key] = free.get(key, 0.0) + amount
    return free, inside, marks


def _named(name: str, amount: float) -> tuple[str, float]:
    return ("memory", amount / 2**30) if name == "memory" else (_NAMES.get(name, name), amount)


def _amount(part: Part) -> float:
    """Return an amount, which may be text with a unit of memory."""
    if not isinstance(part.value, str):
        return part.number()
    match = _AMOUNT.fullmatch(part.value.strip())
    if match is None or len(match[1]) > 20:
        part.refuse(f'"{part.value[:40]}" is not an amount such as 4, 512.000 MiB or 1.500 GiB')
    return float(match[1]) * _UNITS[match[2].upper()]


def read_node(part: Part) -> Node:
    """Read a node."""
    offers, _, marks = _amounts(part.get("resources_total"), "nodes")
    state = part["state"].text()
    if state not in ("ALIVE", "DEAD"):
        part["state"].refuse(f'there is no state "{state}" of a node; the version of this export may be newer')
    labels = {key: each.text() for key, each in part.get("labels").entries().items()}
    name = part["node_id"].text()
    return Node(part, name, part.get("node_name").text("") or name, offers, marks, labels, "" if state == "ALIVE" else "dead")


def read_task(part: Part, has_actors: bool) -> Work:
    """Read a task; what creates an actor counts as the actor, if these are listed."""
    kind, state = part["type"].text(), part["state"].text()
    why = _why(part, state, _TASK_HOLDS, _TASK_WAITS, _TASK_NOT_READY)
    if kind not in ("NORMAL_TASK", "ACTOR_CREATION_TASK", "ACTOR_TASK", "DRIVER_TASK"):
        part["type"].refuse(f'there is no type "{kind}" of a task; the version of this export may be newer')
    if kind == "ACTOR_TASK":
        why = "runs in its actor, which holds the resources"
    elif kind == "ACTOR_CREATION_TASK" and has_actors:
        why = "creates an actor, which counts itself"
    elif kind == "DRIVER_TASK":
        why = "a driver, which holds no resources"
    name = f"{part['task_id'].text()}{f' attempt {attempt:.0f}' if (attempt := part.get('attempt_number').number(0.0)) else ''}"
    return _work(part, name, "task", part.get("job_id").text(""), "", state, why, state in _TASK_HOLDS, "tasks")


def read_actor(part: Part) -> Work:
    """Read an actor."""
    state = part["state"].text()
    why = _why(part, state, _ACTOR_HOLDS, _ACTOR_WAITS, _ACTOR_NOT_READY)
    namespace = part.get("ray_namespace").text("")
    holds = state in _ACTOR_HOLDS
    return _work(part, part["actor_id"].text(), "actor", part.get("job_id").text(""), namespace, state, why, holds, "actors")


def read_bundles(part: Part) -> list[Work]:
    """Read the bundles of a placement group."""
    state, name, job = part["state"].text(), part["placement_group_id"].text(), part.get("creator_job_id").text("")
    why = _why(part, state, _GROUP_HOLDS, _GROUP_WAITS, ())
    bundles = []
    for position, bundle in enumerate(part["bundles"].items()):
        request, _, marks = _amounts(bundle.get("unit_resources"), "placement-groups")
        node = bundle.get("node_id").text("") if state in _GROUP_HOLDS else ""
        selectors = _selectors(bundle)
        holds, wanted = state in _GROUP_HOLDS, tuple(sorted(marks))
        bundles.append(Work(bundle, f"{name}/{position}", "bundle", job, "", state, holds, why, request, wanted, selectors, "", node))
    return bundles


def _why(part: Part, state: str, holds: tuple[str, ...], waits: tuple[str, ...], not_ready: tuple[str, ...]) -> str:
    if state in _ENDED:
        return f"ended ({state.lower()}): holds nothing and asks for nothing"
    if state in not_ready:
        return f"not ready ({state}): requests no resources yet"
    if state not in (*holds, *waits):
        part["state"].refuse(f'the state "{state}" is not known; the version of this export may be newer')
    return ""


def _work(part: Part, name: str, kind: str, job: str, namespace: str, state: str, why: str, holds: bool, listing: str) -> Work:
    if why:
        return Work(part, name, kind, job, namespace, state, False, why, {}, (), (), "", "")
    free, inside, marks = _amounts(part.get("required_resources"), listing)
    node = part.get("node_id").text("") if holds else ""
    group = part.get("placement_group_id").text("")
    selectors = _selectors(part)
    return Work(part, name, kind, job, namespace, state, holds, "", free | inside, tuple(sorted(marks)), selectors, group, node)


# Labels --------------------------------------------------------------------------------------------------------------------------


def _selectors(part: Part) -> tuple[Selector, ...]:
    """Return the label selector and those to fall back to; none if every node meets one of them."""
    selectors = [tuple(_condition(key, each) for key, each in part.get("label_selector").entries().items())]
    fallback = part.get("fallback_strategy")
    for option in fallback.get("options").items() if isinstance(fallback.value, dict) else fallback.items():
        listed = option.get("label_selector").get("label_constraints").items()
        selectors.append(tuple(_constraint(each) for each in listed))
    return tuple(selectors) if all(selectors) else ()


def _condition(key: str, part: Part) -> Condition:
    """Return what a label must be: ``eu``, ``!eu``, ``in(eu,us)``, ``!in(eu,us)``."""
    text = part.text().strip()
    wanted, text = not text.startswith("!"), text.removeprefix("!").strip()
    if text.startswith("in(") and text.endswith(")"):
        return key, wanted, tuple(value.strip() for value in text[3:-1].split(","))
    if not text or "(" in text:
        part.refuse(f'"{part.text()[:60]}" is not a label selector such as eu, !eu or in(eu,us)')
    return key, wanted, (text,)


def _constraint(part: Part) -> Condition:
    operator = part["operator"].text()
    if operator not in ("LABEL_OPERATOR_IN", "LABEL_OPERATOR_NOT_IN"):
        part["operator"].refuse(f'there is no operator "{operator}"; the version of this export may be newer')
    return part["label_key"].text(), operator == "LABEL_OPERATOR_IN", tuple(each.text() for each in part["label_values"].items())


def meets(labels: Mapping[str, str], selector: Selector) -> bool:
    """Return whether a node with these labels meets a selector; a label that it lacks is none of the values.

    >>> meets({"region": "eu"}, (("region", True, ("eu", "us")), ("spot", False, ("yes",))))
    True
    """
    return all((labels.get(key) in values) is wanted for key, wanted, values in selector)
