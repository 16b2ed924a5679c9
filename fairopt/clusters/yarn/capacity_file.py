"""``capacity-scheduler.xml``: what the ResourceManager would answer about the queues of this file and the nodes that are there.

On the nodes of each label, a queue v whose parent has the amounts P (the root: what the nodes offer) has at least

    capacity of 40           0.4 of P; beside queues with amounts, of what these leave of it
    capacity of 4w           4 / (sum of the weights beside it) of what the other queues leave of P
    [memory=10240,vcores=12] these amounts; where all such amounts together are more than P, that part of them

and at most a part of its parent's maximum, or the amounts of ``maximum-capacity``. A maximum of -1, of 100, or of no amount at all is none.
A label that the queue may use and that has no capacity of its own has 0. Without a policy, a leaf queue is FIFO; without a
``user-limit-factor``, one user has at most the capacity of the queue.

Source: Apache Hadoop, YARN: Capacity Scheduler (queue properties, absolute resources), Node Labels.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairopt.clusters.account import Account
from fairopt.clusters.fields import Seen
from fairopt.clusters.yarn.queue_fields import SETTING, SETTING_OF_ALL
from fairopt.clusters.yarn.resources import Offer, as_answer, known_amount, total_of
from fairopt.formats.xml_elements import Element
from fairopt.instance.tolerances import WRITTEN
from fairopt.instance.tree import MOST_LEVELS, too_deep
from fairopt.wording import brief, did_you_mean, figure, joined, named, plural

__all__ = ["capacity_info"]

_PREFIX = "yarn.scheduler.capacity."
_ROOT = "root"
_LABELS = "accessible-node-labels"
_AMOUNTS = re.compile(r"\[(.*)\]", re.DOTALL)
_VARIABLE = re.compile(r"\$\{([^{}$]*)\}")
_NUMBER = re.compile(r"\d{1,20}(\.\d{0,20})?", re.ASCII)
_DOMINANT = "DominantResourceCalculator"
_OFF = 0.01  # percent: sums of capacities that differ by more are named
_MOST_VARIABLES = 20  # in a value, as in Hadoop
_Kinds = dict[str, tuple[str, float]]  # by resource: "" for an amount, "%" or "w", and the number


@dataclass(frozen=True, slots=True)
class _Setting:
    value: str
    element: Element


@dataclass(frozen=True, slots=True)
class _Part:
    """What a queue has at least and at most on the nodes of a label, and the resources of which the file states the most."""

    least: dict[str, float]
    most: dict[str, float]
    limited: tuple[str, ...] = ()


def capacity_info(root: Element, offers: Sequence[Offer], account: Account) -> dict[str, Any]:
    """Return ``schedulerInfo`` of the Capacity Scheduler.

    Raises
    ------
    InvalidInstance
        With the file and the line.
    """
    return _File(_settings(root), root, offers, account).info()


def _settings(root: Element) -> dict[str, _Setting]:
    """Return the settings of the scheduler without their prefix; the last one of a name counts, as in Hadoop."""
    values: dict[str, _Setting] = {}
    for element in root.children:
        if element.name != "property":
            element.refuse(f"expected <property>, found <{brief(element.name)}>; put all settings into one file")
        parts = {child.name: child.text.strip() for child in element.children}
        name = parts.get("name", element.attributes.get("name", ""))
        if not name:
            element.refuse("this property has no <name>; add one")
        values[name] = _Setting(parts.get("value", element.attributes.get("value", "")), element)
    return {
        name.removeprefix(_PREFIX): _Setting(_replaced(setting, values), setting.element)
        for name, setting in values.items()
        if name.startswith(_PREFIX)
    }


def _replaced(setting: _Setting, values: Mapping[str, _Setting]) -> str:
    """Return a value in which ``${NAME}`` is the value of the property NAME."""
    value = setting.value
    for _ in range(_MOST_VARIABLES):
        found = _VARIABLE.search(value)
        if found is None:
            return value
        if found[1] not in values:
            setting.element.refuse(
                f'no property of this file is "{brief(found[1])}", which the value "{brief(value)}" names; write its value'
            )
        value = value.replace(found[0], values[found[1]].value)[:10_000]
    setting.element.refuse(f'the value "{brief(setting.value)}" names properties without end; write what it means')


class _File:
    def __init__(self, settings: Mapping[str, _Setting], root: Element, offers: Sequence[Offer], account: Account) -> None:
        self.settings, self.root, self.account = settings, root, account
        labels = sorted({label for offer in offers for label in offer.labels})
        self.totals = {label: total_of([offer for offer in offers if offer.has(label)]) for label in ("", *labels)}
        self.paths: list[str] = [_ROOT]

    def info(self) -> dict[str, Any]:
        """Return the answer about all queues, and add notes on settings that an instance does not have."""
        if f"{_ROOT}.queues" not in self.settings:
            self.root.refuse(f"no queue is listed; the property {_PREFIX}{_ROOT}.queues must name the queues below the root")
        whole = {label: _Part(total, total) for label, total in self.totals.items()}
        info = self._queue(_ROOT, whole, {}, set(self.totals), 0)
        self._note_settings()
        calculator = self.settings.get("resource-calculator")
        if calculator is None or not calculator.value.endswith(_DOMINANT):
            info["comparesMemoryAlone"] = f"the resource-calculator is not the {_DOMINANT}, which compares other resources, too"
        return info | {"type": "capacityScheduler"}

    # Queues

    def _queue(self, path: str, parts: Mapping[str, _Part], weights: Mapping[str, float], labels: set[str], level: int) -> dict[str, Any]:
        """Return the answer about a queue and those in it."""
        listed = self.settings.get(f"{path}.queues")
        children = [f"{path}.{name}" for name in map(str.strip, listed.value.split(",")) if name] if listed else []
        if listed and len(set(children)) < len(children):
            listed.element.refuse(f'a queue is listed twice in "{brief(listed.value)}"; list each queue once')
        if listed and children and level >= MOST_LEVELS:
            listed.element.refuse(too_deep(children[0], level + 1))
        self.paths += children
        below = self._parts(children, path, parts) if children else {}
        shares = self._weights(children)
        answer: dict[str, Any] = {
            "queueName": path.rpartition(".")[2],
            "queuePath": path,
            "capacities": {"queueCapacitiesByPartition": [self._partition(label, parts[label]) for label in sorted(labels)]},
            "state": self._inherited(path, "state", "RUNNING"),
            "queuePriority": self._number(path, "priority", 0.0, least=None),
            "orderingPolicyInfo": self._text(f"{path}.ordering-policy", "utilization" if children else "fifo"),
            "userLimitFactor": self._number(path, "user-limit-factor", 1.0, least=-1.0),
            "userLimit": self._number(path, "minimum-user-limit-percent", 100.0),
        }
        if largest := self._largest(path):
            answer["maximumAllocation"] = as_answer(largest)
        if path in weights:
            answer["weight"] = weights[path]
        if children:
            own = {child: self._accessible(child, labels) for child in children}
            answer["queues"] = {"queue": [self._queue(child, below[child], shares, own[child], level + 1) for child in children]}
        return answer

    def _partition(self, label: str, part: _Part) -> dict[str, Any]:
        least = as_answer(part.least)
        answer = {"partitionName": label, "absoluteCapacity": 0.0, "configuredMinResource": least, "effectiveMinResource": least}
        if part.limited:
            most = as_answer({resource: part.most[resource] for resource in part.limited})
            answer |= {"configuredMaxResource": most, "effectiveMaxResource": most}
        return answer

    def _accessible(self, path: str, above: set[str]) -> set[str]:
        """Return the labels that a queue may use; those of its parent if it does not say; "*" stands for all."""
        setting = self.settings.get(f"{path}.{_LABELS}")
        if setting is None:
            return above
        names = {name.strip() for name in setting.value.split(",")}
        return set(self.totals) if "*" in names else {"", *names} & set(self.totals)

    def _parts(self, children: Sequence[str], parent: str, parts: Mapping[str, _Part]) -> dict[str, dict[str, _Part]]:
        """Return what the children of a queue have on the nodes of each label."""
        found: dict[str, dict[str, _Part]] = {child: {} for child in children}
        for label, above in parts.items():
            kinds = {child: self._capacity(child, label, list(above.least)) for child in children}
            self._check_sum(parent, label, kinds)
            self._check_amounts(parent, label, kinds, above.least)
            least: dict[str, dict[str, float]] = {child: {} for child in children}
            for resource, amount in above.least.items():
                for child, own in _divided({child: kind.get(resource, ("", 0.0)) for child, kind in kinds.items()}, amount).items():
                    least[child][resource] = own
            for child in children:
                most = self._most(child, label, above.most)
                found[child][label] = _Part(least[child], above.most | most, tuple(most))
        return found

    def _key(self, path: str, label: str) -> str:
        return f"{path}.{_LABELS}.{label}" if label else path

    def _weights(self, children: Sequence[str]) -> dict[str, float]:
        """Return the weights of queues that have one on the nodes without label."""
        texts = {child: self._text(f"{child}.capacity", "") for child in children}
        return {child: float(text[:-1]) for child, text in texts.items() if text.endswith("w") and _NUMBER.fullmatch(text[:-1].strip())}

    def _capacity(self, path: str, label: str, resources: Sequence[str]) -> _Kinds:
        """Return the capacity of a queue for each resource."""
        setting = self.settings.get(f"{self._key(path, label)}.capacity")
        if setting is None:
            if not label:
                listed = self.settings[f"{path.rpartition('.')[0]}.queues"]
                listed.element.refuse(f'the queue "{path}" has no capacity; add the property {_PREFIX}{path}.capacity')
            return {}
        amounts = _AMOUNTS.fullmatch(setting.value)
        if amounts is not None:
            return _listed(amounts[1], setting)
        kind = "w" if setting.value.endswith("w") else "%"
        text = setting.value.removesuffix("w").removesuffix("%").strip()
        if not _NUMBER.fullmatch(text) or (kind == "%" and float(text) > 100):
            setting.element.refuse(
                f'the capacity of "{path}" is "{brief(setting.value)}"; give a percentage from 0 to 100, a weight such as 4w, or amounts '
                "such as [memory=10240,vcores=12]"
            )
        return dict.fromkeys(resources, (kind, float(text)))

    def _check_sum(self, parent: str, label: str, kinds: Mapping[str, _Kinds]) -> None:
        """Name percentages that do not add up to 100, which YARN refuses."""
        sums = {
            sum(number for kind, number in (each.get(r, ("", 0.0)) for each in kinds.values()) if kind == "%") for r in ("cpu", "memory")
        }
        wholly = all(kind == "%" for each in kinds.values() for kind, _ in each.values())
        if wholly and any(total and abs(total - 100) > _OFF for total in sums):
            where = f" on the nodes of {named(label)}" if label else ""
            self.account.note(
                f'the capacities of the queues in "{parent}"{where} add up to {max(sums):g} %, not to 100 %, which YARN refuses'
            )

    def _check_amounts(self, parent: str, label: str, kinds: Mapping[str, _Kinds], least: Mapping[str, float]) -> None:
        """Name amounts that add up to more than the queue above has: YARN refuses them in its legacy mode, and else scales them down."""
        for resource, there in least.items():
            together = sum(number for kind, number in (each.get(resource, ("", 0.0)) for each in kinds.values()) if not kind)
            if together > there * (1 + WRITTEN):
                where = f" on the nodes of {named(label)}" if label else ""
                self.account.note(
                    f'the queues in "{parent}"{where} state {figure(together)} {resource} together, and it has {figure(there)}: YARN '
                    "refuses that, or scales them down (legacy-queue-mode false), as here"
                )

    def _most(self, path: str, label: str, above: Mapping[str, float]) -> dict[str, float]:
        """Return the most that a queue may hold of each resource for which the file says it."""
        setting = self.settings.get(f"{self._key(path, label)}.maximum-capacity")
        if setting is None:
            return {}
        amounts = _AMOUNTS.fullmatch(setting.value)
        if amounts is not None:
            kinds = _listed(amounts[1], setting)
            if not any(number for _, number in kinds.values()):
                return {}  # YARN takes no amount at all for no maximum
            if any(kind == "w" for kind, _ in kinds.values()):
                setting.element.refuse(f'the maximum-capacity of "{path}" has a weight; give percentages or amounts')
            return {
                r: min(number if not kind else above.get(r, 0.0) * number / 100, above.get(r, number))
                for r, (kind, number) in kinds.items()
            }
        text = setting.value.removesuffix("%").strip()
        if text in ("-1", "-1.0"):
            return {}
        if not _NUMBER.fullmatch(text) or float(text) > 100:
            setting.element.refuse(
                f'the maximum-capacity of "{path}" is "{brief(setting.value)}"; give a percentage from 0 to 100, -1 for none, or amounts '
                "such as [memory=10240,vcores=12]"
            )
        return {} if float(text) == 100 else {resource: amount * float(text) / 100 for resource, amount in above.items()}

    def _largest(self, path: str) -> dict[str, float]:
        """Return the largest container of a queue, of the amounts that the file states."""
        found: dict[str, float] = {}
        for name, resource in (("maximum-allocation-mb", "memory"), ("maximum-allocation-vcores", "vcores")):
            if f"{path}.{name}" in self.settings and (number := self._number(path, name, 0.0)):
                found |= dict([known_amount(resource, f"{number:.0f}") or (resource, number)])
        setting = self.settings.get(f"{path}.maximum-allocation")
        amounts = _AMOUNTS.fullmatch(setting.value) if setting else None
        if setting and setting.value:
            listed = _listed(amounts[1] if amounts else setting.value, setting)
            found |= {resource: number for resource, (kind, number) in listed.items() if not kind}
        return found

    # Settings

    def _text(self, name: str, default: str) -> str:
        setting = self.settings.get(name)
        return setting.value.strip() if setting and setting.value.strip() else default

    def _inherited(self, path: str, name: str, default: str) -> str:
        """Return a setting of a queue, or of the nearest queue above that has it."""
        while path:
            if f"{path}.{name}" in self.settings:
                return self._text(f"{path}.{name}", default)
            path = path.rpartition(".")[0]
        return default

    def _number(self, path: str, name: str, default: float, least: float | None = 0.0) -> float:
        """Return a number of a queue, or of all queues."""
        setting = self.settings.get(f"{path}.{name}") or self.settings.get(name)
        if setting is None or not setting.value:
            return default
        sign, text = ("-", setting.value[1:]) if setting.value.startswith("-") else ("", setting.value)
        number = float(sign + text) if _NUMBER.fullmatch(text) else None
        if number is None or (least is not None and number < least):
            setting.element.refuse(
                f'the {name} of "{path}" is "{brief(setting.value)}"; give a number{"" if least is None else f" >= {least:g}"}'
            )
        return number

    def _note_settings(self) -> None:
        """Name the settings that an instance does not have, and those of queues that nobody lists."""
        seen = Seen()
        of_all: dict[str, str] = {}
        of_queue: dict[str, dict[str, str]] = {}
        nowhere: set[str] = set()
        known = set(self.paths)
        for name, setting in self.settings.items():
            if not name.startswith(f"{_ROOT}."):
                of_all[_plain(name)] = setting.value
                continue
            path = name.rpartition(".")[0]
            while path not in known:
                path = path.rpartition(".")[0]
            rest = _plain(name.removeprefix(f"{path}."))
            if "." in rest and rest.partition(".")[0] not in _FAMILIES:
                nowhere.add(name.rpartition(".")[0])
            else:
                of_queue.setdefault(path, {})[rest] = setting.value
        seen.see(SETTING_OF_ALL, of_all)
        for record in of_queue.values():
            seen.see(SETTING, record)
        for note in seen.notes():
            self.account.note(note)
        if nowhere:
            first = min(nowhere)
            hint = did_you_mean(first, self.paths)
            self.account.note(
                f"{plural(len(nowhere), 'queue')} with settings in no list of queues: {joined(sorted(map(named, nowhere)), 3)}{hint}; "
                "the property queues of the queue above must name it"
            )


_FAMILIES = (_LABELS, "user-settings", "leaf-queue-template", "auto-queue-creation-v2", "auto-create-child-queue", "multi-node-sorting",
             "ordering-policy", "intra-queue-preemption")  # fmt: skip


def _plain(name: str) -> str:
    """Return the name of a setting without what it is about.

    >>> _plain("accessible-node-labels.gpu.capacity"), _plain("user-settings.ada.weight"), _plain("user.ada.max-parallel-apps")
    ('accessible-node-labels.LABEL.capacity', 'user-settings.NAME.weight', 'user.NAME.max-parallel-apps')
    """
    first, *rest = name.split(".")
    if first in ("leaf-queue-template", "auto-queue-creation-v2", "auto-create-child-queue", "multi-node-sorting"):
        return first
    if first == _LABELS and len(rest) > 1:
        return f"{first}.LABEL.{rest[-1]}"
    if first in ("user-settings", "user") and len(rest) > 1:
        return f"{first}.NAME.{rest[-1]}"
    return name


def _listed(text: str, setting: _Setting) -> _Kinds:
    """Return the amounts of ``memory=10240,vcores=12``, percentages and weights too."""
    found: _Kinds = {}
    for entry in filter(str.strip, text.split(",")):
        name, _, number = (part.strip() for part in entry.partition("="))
        kind = number[-1:] if number[-1:] in ("%", "w") else ""
        known = known_amount(name, number.removesuffix(kind))
        if known is None:
            setting.element.refuse(f'"{brief(entry.strip())}" is no amount of a resource; give amounts such as [memory=10240,vcores=12]')
        resource, amount = known
        found[resource] = kind, float(number[:-1]) if kind and _NUMBER.fullmatch(number[:-1].strip()) else amount
    return found


def _divided(kinds: Mapping[str, tuple[str, float]], whole: float) -> dict[str, float]:
    """Return what each queue has of one resource of which their parent has ``whole``.

    Amounts come first; percentages are of what they leave, and weights divide what both leave.

    >>> _divided({"a": ("", 4), "b": ("%", 25), "c": ("w", 1), "d": ("w", 3)}, 16)
    {'a': 4.0, 'b': 3.0, 'c': 2.25, 'd': 6.75}
    >>> _divided({"a": ("", 6), "b": ("", 2)}, 4)
    {'a': 3.0, 'b': 1.0}
    """
    stated = sum(number for kind, number in kinds.values() if not kind)
    scale = min(1.0, whole / stated) if stated else 1.0
    left = max(whole - stated, 0.0)
    found = {name: number * scale if not kind else left * number / 100 for name, (kind, number) in kinds.items() if kind != "w"}
    rest, weights = max(whole - sum(found.values()), 0.0), sum(number for kind, number in kinds.values() if kind == "w")
    return {name: found[name] if name in found else rest * number / weights if weights else 0.0 for name, (_, number) in kinds.items()}
