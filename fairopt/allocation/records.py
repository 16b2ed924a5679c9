"""An allocation as plain data for JSON, as a table of its users, and as arrays with labels."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.allocation.bounds import bounds_of
from fairopt.allocation.exact_answer import as_text
from fairopt.allocation.holdings import with_exact
from fairopt.allocation.question import Greedy, Optimum
from fairopt.instance.tolerances import CERTIFIED
from fairopt.results import options_of, plain, result

if TYPE_CHECKING:
    import pandas as pd

    from fairopt.allocation.allocation import Allocation

__all__ = ["labelled_arrays", "plain_data", "question_of", "user_frame"]


def plain_data(allocation: Allocation) -> dict[str, Any]:
    """Return an allocation as plain data, ready for JSON."""
    instance = allocation.instance
    found = {
        "notion": allocation.notion,
        "solver": allocation.solver,
        "sharing": allocation.sharing,
        "users": _users(allocation),
        **({"queues": [queue.to_dict() for queue in allocation.as_known.queue_holdings()[1:]]} if instance.queues else {}),
        "servers": _servers(allocation),
        **_bounds(allocation),
        "levels": _levels(allocation),
        "certificate": _certificate(allocation),
        "unservable": list(instance.unservable),
        "time_s": float(sum(allocation.seconds.values())),
        "phases_s": dict(allocation.seconds),
        "seconds": dict(allocation.seconds),  # until 1.0
        "details": dict(allocation.details),
    }
    return result(_command(allocation), question_of(allocation), instance.units, found)


def _command(allocation: Allocation) -> str:
    """Return the command that makes such an allocation; "given": none does."""
    if isinstance(allocation.question, Optimum) or allocation.certificate.best_found:
        return "solve"
    return "given" if allocation.solver == "given" else "schedule"


def question_of(allocation: Allocation) -> dict[str, Any]:
    """Return what was asked, as plain data: the notion with its options, or the criterion and placement, and every other option."""
    question = allocation.question
    if question is None:
        options = {} if allocation.measured_by is None else options_of(allocation.measured_by)
        return {"notion": allocation.notion, "options": options, "sharing": allocation.sharing}
    more = {each.name: plain(getattr(question, each.name)) for each in dataclasses.fields(question) if each.name != "notion"}
    if "time_limit" in more:
        more["time_limit_s"] = more.pop("time_limit")
    name = {"criterion" if isinstance(question, Greedy) else "notion": question.notion.name}
    return {**name, "options": options_of(question.notion), "sharing": allocation.sharing, **more}


def _users(allocation: Allocation) -> list[dict[str, Any]]:
    instance, exact, tasks, shares = allocation.instance, allocation.exact, allocation.tasks_per_user, allocation.shares
    work = allocation.work
    users = []
    for n, (name, dominant, level) in enumerate(
        zip(instance.users, allocation.dominant_resources, allocation.level_of_user, strict=True),
    ):
        held = np.flatnonzero(allocation.tasks[n])
        users.append(
            {
                "name": name,
                **({"queue": instance.queue_of[n]} if instance.queues else {}),
                "tasks": float(tasks[n]),
                **({} if instance.speeds_given is None else {"work": float(work[n])}),
                "share": shares[n].tolist(),
                "level": level,
                "dominant_resource": dominant,
                "servers": {instance.servers[i]: float(allocation.tasks[n, i]) for i in held},
                **({} if exact is None else {"exact": exact.of_user(n, instance.servers)}),
            }
        )
    return users


def _servers(allocation: Allocation) -> list[dict[str, Any]]:
    instance, usage, utilization = allocation.instance, allocation.usage, allocation.utilization
    return [
        {
            "name": name,
            "count": int(instance.counts[i]),
            "usage": dict(zip(instance.server_resources, usage[i].tolist(), strict=True)),
            "utilization": dict(zip(instance.server_resources, utilization[i].tolist(), strict=True)),
        }
        for i, name in enumerate(instance.servers)
    ]


def _bounds(allocation: Allocation) -> dict[str, list[dict[str, Any]]]:
    """Return what is used of shared resources and named limits, and both sides of rules; what the instance has none of is left out."""
    found: dict[str, list[dict[str, Any]]] = {}
    parts = dict(zip(allocation.instance.shared, allocation.shared_utilization.tolist(), strict=True))
    for each in bounds_of(allocation):
        plain = each.to_dict()
        if each.kind == "shared":
            used, capacity = plain.pop("used"), plain.pop("bound")
            plain = {"capacity": capacity, "usage": used, "utilization": parts[each.name]} | plain
        found.setdefault({"shared": "shared", "limit": "limits", "rule": "rules"}[each.kind], []).append(
            with_exact({"name": each.name} | plain)
        )
    return found


def _levels(allocation: Allocation) -> list[dict[str, Any]]:
    exact = allocation.exact
    return [
        {
            "value": level.value,
            "users": list(level.users),
            **({} if exact is None else {"exact": as_text(exact.levels[k])}),
            **({"part": level.part} if level.part else {}),
            **({"queue_prices": dict(level.queue_prices)} if level.queue_prices else {}),
            **({"floors": dict(level.floors)} if level.floors else {}),
        }
        for k, level in enumerate(allocation.levels)
    ]


def _certificate(allocation: Allocation) -> dict[str, Any]:
    certificate, exact = allocation.certificate, allocation.exact
    claims = {"feasibility": certificate.feasibility, "optimality": None, "fairness": None, "worst": None}
    if not certificate.qualifier:
        claims |= {"optimality": certificate.optimality, "fairness": certificate.fairness, "worst": certificate.worst}
    return {
        **claims,
        "whole_tasks": certificate.whole_tasks,
        "greedy": certificate.greedy,
        "approximate": certificate.approximate,
        "best_found": certificate.best_found,
        **({"reported_gap": True} if certificate.reported_gap else {}),
        **({"exact": True} if certificate.exact else {}),
        **({"radius": certificate.fairness} if exact is not None and exact.radius else {}),
        **({"distance": certificate.distance if math.isfinite(certificate.distance) else None} if certificate.distance is not None else {}),
        **({"doubt": certificate.doubt} if certificate.doubt > CERTIFIED else {}),
    }


def user_frame(allocation: Allocation) -> pd.DataFrame:
    """Return a row per user: its queue where there are queues, tasks, share, level, dominant resource, weight, tasks on each server."""
    import pandas as pd

    instance = allocation.instance
    columns: dict[str, Any] = {"queue": list(instance.queue_of)} if instance.queues else {}
    columns["tasks"] = allocation.tasks_per_user
    if instance.speeds_given is not None:
        columns["work"] = allocation.work
    if allocation.shares.ndim == 1:
        columns["share"] = allocation.shares
    columns["level"] = pd.array(allocation.level_of_user, dtype="Int64")
    columns["dominant_resource"] = list(allocation.dominant_resources)
    if instance.weights.ndim == 1:
        columns["weight"] = instance.weights
    if instance.guarantees.any():
        columns["guarantee"] = instance.guarantees
    frame = pd.DataFrame(columns, index=pd.Index(instance.users, name="user"))
    placed = pd.DataFrame(allocation.tasks, index=frame.index, columns=[f"tasks @ {server}" for server in instance.servers])
    return pd.concat([frame, placed], axis=1)


def labelled_arrays(allocation: Allocation) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """Return the arrays of an allocation by name, each with the names of its dimensions."""
    of_servers = ("server", "server_resource" if allocation.instance.shared else "resource")
    arrays: dict[str, tuple[tuple[str, ...], np.ndarray]] = {
        "tasks": (("user", "server"), allocation.tasks),
        "shares": (("user", "server")[: allocation.shares.ndim], allocation.shares),
        "usage": (of_servers, allocation.usage),
        "utilization": (of_servers, allocation.utilization),
        **({"shared_usage": (("shared",), allocation.shared_usage)} if allocation.instance.shared else {}),
    }
    if allocation.prices is not None and allocation.prices.shape == allocation.usage.shape:
        arrays["prices"] = (of_servers, allocation.prices)
    return arrays
