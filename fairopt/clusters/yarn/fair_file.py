"""The allocation file of the Fair Scheduler: what the ResourceManager would answer about the queues of this file.

Amounts are written in five ways: ``vcores=4, memory-mb=8192``, ``vcores=25%, memory-mb=50%``, ``8192 mb, 4 vcores``,
``25% cpu, 50% memory`` and ``50%``, of the cluster. In the first two ways, a resource that is not named has no minimum and no maximum.
In the next two, all resources other than memory and cores have a maximum of 0, as the documentation of Hadoop says.

Source: Apache Hadoop, YARN: Fair Scheduler, "Allocation file format".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fairopt.clusters.account import Account
from fairopt.clusters.fields import Seen
from fairopt.clusters.yarn.queue_fields import ALLOCATION, FAIR_QUEUE
from fairopt.clusters.yarn.resources import Offer, as_answer, known_amount, total_of
from fairopt.formats.xml_elements import Element
from fairopt.instance.tree import MOST_LEVELS, too_deep
from fairopt.wording import brief

__all__ = ["fair_info"]

_ROOT = "root"
_QUEUES = ("queue", "pool")
_POLICIES = ("schedulingPolicy", "schedulingMode")
_DEFAULT_POLICIES = ("defaultQueueSchedulingPolicy", "defaultQueueSchedulingMode")
_NUMBER = r"(\d{1,20}(?:\.\d{0,20})?)"
_WEIGHT = re.compile(_NUMBER, re.ASCII)
_EXAMPLES = '"memory-mb=8192, vcores=4", "8192 mb, 4 vcores" or "50%"'


def fair_info(root: Element, offers: Sequence[Offer], account: Account) -> dict[str, Any]:
    """Return ``schedulerInfo`` of the Fair Scheduler.

    Raises
    ------
    InvalidInstance
        With the file and the line.
    """
    return _File(root, total_of(offers), account).info()


class _File:
    def __init__(self, root: Element, total: Mapping[str, float], account: Account) -> None:
        self.root, self.total, self.account = root, total, account
        self.defaults = {child.name: child for child in root.children if child.name not in _QUEUES}
        policies = [self.defaults[name].text.strip() for name in _DEFAULT_POLICIES if name in self.defaults]
        self.policy = policies[0] if policies else "fair"
        self.seen = Seen()
        self.by_memory = False  # whether the queues in some queue are compared by memory alone

    def info(self) -> dict[str, Any]:
        """Return the answer about all queues, and add notes on what an instance does not have."""
        listed = [child for child in self.root.children if child.name in _QUEUES]
        policy = self.policy
        roots = [child for child in listed if _name(child).lower() == _ROOT]
        if roots and len(listed) == 1:
            self._see(listed[0], "root queue")
            policy = self._policy(listed[0])
            listed = _queues_in(listed[0])
        elif roots:
            roots[0].refuse('beside the queue "root" there are other queues; put them into it')
        if not listed:
            self.root.refuse('there is no queue in this file; list queues as <queue name="..."> elements')
        queues = [self._queue(child, _ROOT, 1) for child in listed]
        self._compared(policy, len(listed))
        self.seen.see(ALLOCATION, {name: child.text.strip() or "set" for name, child in self.defaults.items()})
        for child in self.root.children:
            if child.name == "user":
                self.seen.see(ALLOCATION, {"user.maxRunningApps": "set"})
        for note in self.seen.notes():
            self.account.note(note)
        info: dict[str, Any] = {"type": "fairScheduler", "rootQueue": {"queueName": _ROOT, "childQueues": {"queue": queues}}}
        if self.by_memory:
            info["comparesMemoryAlone"] = "the policy fair compares queues by memory alone, and drf by their dominant shares"
        return info

    def _queue(self, element: Element, parent: str, level: int) -> dict[str, Any]:
        """Return the answer about a queue and those in it."""
        name = _name(element)
        path = f"{parent}.{name}"
        if level > MOST_LEVELS:
            element.refuse(too_deep(path, level))
        fields = {child.name: child for child in element.children}
        below = _queues_in(element)
        self._see(element, "queue")
        policy = self._policy(element)
        self._compared(policy, len(below))
        answer: dict[str, Any] = {"queueName": path, "weight": self._weight(fields.get("weight")), "schedulingPolicy": policy}
        if "minResources" in fields:
            answer["minResources"] = as_answer(self._amounts(fields["minResources"]))
        most = fields.get("maxResources", None if below else self.defaults.get("queueMaxResourcesDefault"))
        if most is not None:
            answer["maxResources"] = as_answer(self._amounts(most))
        if "maxContainerAllocation" in fields:
            answer["maxContainerAllocation"] = as_answer(self._amounts(fields["maxContainerAllocation"]))
        if below:
            answer["childQueues"] = {"queue": [self._queue(child, path, level + 1) for child in below]}
        return answer

    def _policy(self, element: Element) -> str:
        return next((child.text.strip() for child in element.children if child.name in _POLICIES and child.text.strip()), self.policy)

    def _compared(self, policy: str, queues: int) -> None:
        kind = policy.rpartition(".")[2].casefold()
        self.by_memory |= queues > 1 and kind in ("fair", "fairsharepolicy") and len([r for r in self.total if self.total[r]]) > 1

    def _see(self, element: Element, what: str) -> None:
        record = {child.name: child.text.strip() or "set" for child in element.children if child.name not in _QUEUES}
        if what == "root queue":
            limits = {f"root.{name}": text for name, text in record.items() if name in ("minResources", "maxResources")}
            record = {name: text for name, text in record.items() if f"root.{name}" not in limits} | limits
        self.seen.see(FAIR_QUEUE, record)

    def _weight(self, element: Element | None) -> float:
        if element is None:
            return 1.0
        text = element.text.strip()
        if not _WEIGHT.fullmatch(text):
            element.refuse(f'the weight is "{brief(text)}"; give a number >= 0')
        return float(text)

    def _amounts(self, element: Element) -> dict[str, float]:
        """Return the amounts that an element states, in the units of an instance."""
        text = element.text.strip()
        if "=" in text:
            found = {}
            for entry in text.split(","):
                name, _, number = (part.strip() for part in entry.partition("="))
                known = known_amount(name, number.removesuffix("%"))
                if known is None or ("%" in text and not number.endswith("%")):
                    element.refuse(f'"{brief(entry.strip())}" is no amount; write {_EXAMPLES}, either all in percent or none')
                resource, amount = known
                found[resource] = self.total.get(resource, 0.0) * float(number[:-1]) / 100 if number.endswith("%") else amount
            return found
        if "%" in text:
            if "," not in text:
                part = self._number(element, r"\s*%")
                return {resource: amount * part / 100 for resource, amount in self.total.items()}
            parts = {"cpu": self._number(element, r"\s*%\s*cpu"), "memory": self._number(element, r"\s*%\s*memory")}
            return {resource: amount * parts.get(resource, 0.0) / 100 for resource, amount in self.total.items()}
        amounts = {"memory": self._number(element, r"\s*mb") // 1 / 1024, "cpu": self._number(element, r"\s*vcores") // 1}
        return dict.fromkeys(self.total, 0.0) | amounts

    def _number(self, element: Element, unit: str) -> float:
        match = re.search(rf"(?<![\d.-]){_NUMBER}{unit}", element.text, re.ASCII | re.IGNORECASE)
        if match is None:
            element.refuse(f'"{brief(element.text.strip())}" is no amount of resources; write {_EXAMPLES}')
        return float(match[1])


def _queues_in(element: Element) -> list[Element]:
    return [child for child in element.children if child.name in _QUEUES]


def _name(element: Element) -> str:
    name = element.attributes.get("name", "").strip()
    if not name or "." in name:
        element.refuse(f'the name of this queue is "{brief(name)}"; give it a name without "."')
    return name
