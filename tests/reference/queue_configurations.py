"""How YARN and YuniKorn read a configuration of queues."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

from fairopt.instance.quantities import nano


def check_yunikorn(queue: dict[str, Any], above: dict[str, int]) -> dict[str, int]:
    """Check a queue as YuniKorn does, and return what it guarantees.

    Its maximum fits that of the queues above, its guarantee fits its maximum, and what is guaranteed below fits both.
    """
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", queue["name"])
    amounts = {
        kind: {key: nano(value) for key, value in queue.get("resources", {}).get(kind, {}).items()} for kind in ("guaranteed", "max")
    }
    children = queue.get("queues", [])
    names = [child["name"].lower() for child in children]
    assert len(set(names)) == len(names)
    assert all(value <= above.get(key, value) for key, value in amounts["max"].items())
    most = {key: min(amounts["max"].get(key, 1 << 200), above.get(key, 1 << 200)) for key in {*amounts["max"], *above}}
    assert all(value <= most.get(key, value) for key, value in amounts["guaranteed"].items())
    below: dict[str, int] = {}
    for child in children:
        for key, value in check_yunikorn(child, most).items():
            below[key] = below.get(key, 0) + value
    assert not children or queue.get("parent", True)
    for bound in (amounts["guaranteed"], most):
        assert all(value <= bound.get(key, value) for key, value in below.items())
    return amounts["guaranteed"] or below


def absolute(text: str | None) -> dict[str, float]:
    """Read ``[memory=10240,vcores=12]`` as the ResourceManager shows it."""
    amounts = dict(pair.split("=") for pair in text.strip("[]").split(",")) if text else {}
    return {"memory": float(amounts.get("memory", 0)), "vCores": float(amounts.get("vcores", 0))}


def as_capacity_scheduler(text: str) -> dict[str, Any]:
    """Return what the ResourceManager answers about queues of this configuration."""
    settings = {p.findtext("name", "").removeprefix("yarn.scheduler.capacity."): p.findtext("value", "") for p in ET.fromstring(text)}

    def queue(path: str) -> dict[str, Any]:
        children = [queue(f"{path}.{name}") for name in settings.get(f"{path}.queues", "").split(",") if name]
        partitions = []
        for label in ("", *filter(None, settings.get(f"{path}.accessible-node-labels", "").replace("*", "").split(","))):
            key = f"{path}.accessible-node-labels.{label}" if label else path
            least, most = absolute(settings.get(f"{key}.capacity")), absolute(settings.get(f"{key}.maximum-capacity"))
            partitions.append(
                {
                    "partitionName": label,
                    "absoluteCapacity": 0.0,
                    "absoluteMaxCapacity": 100.0,
                    "maxCapacity": 100.0,
                    "configuredMinResource": least,
                    "effectiveMinResource": least,
                    "configuredMaxResource": most,
                    "effectiveMaxResource": most,
                }
            )
            if path != "root":
                below = [absolute(settings.get(f"{key[: len(path)]}.{c['queueName']}{key[len(path) :]}.capacity")) for c in children]
                assert all(sum(each[r] for each in below) <= least[r] for r in least)  # the scheduler refuses a parent with less
        result = {"queueName": path.rpartition(".")[2], "queuePath": path, "capacities": {"queueCapacitiesByPartition": partitions}}
        return {**result, "absoluteCapacity": 0.0, **({"queues": {"queue": children}} if children else {})}

    return {"scheduler": {"schedulerInfo": {**queue("root"), "type": "capacityScheduler"}}}


def as_fair_scheduler(text: str) -> dict[str, Any]:
    """Return what the ResourceManager answers about an allocation file."""

    def amounts(text: str | None) -> dict[str, float]:
        pairs = dict(pair.split("=") for pair in text.split(", ")) if text else {}
        return {"memory": float(pairs.get("memory-mb", 0)), "vCores": float(pairs.get("vcores", 0))}

    def queue(element: ET.Element, path: str) -> dict[str, Any]:
        name = f"{path}.{element.get('name')}"
        result: dict[str, Any] = {"queueName": name, "weight": float(element.findtext("weight", "1"))}
        result |= {"minResources": amounts(element.findtext("minResources")), "clusterResources": {"memory": 0, "vCores": 0}}
        if element.find("maxResources") is not None:
            result["maxResources"] = amounts(element.findtext("maxResources"))
        else:
            result["maxResources"] = {"memory": 1e12, "vCores": 1e12}
        return {**result, "childQueues": {"queue": [queue(each, name) for each in element.findall("queue")]}}

    children = [queue(each, "root") for each in ET.fromstring(text).findall("queue")]
    info = {"type": "fairScheduler", "rootQueue": {"queueName": "root", "childQueues": {"queue": children}}}
    return {"scheduler": {"schedulerInfo": info}}


def capacities(text: str, key: str) -> dict[str, float]:
    """Return a setting of the Capacity Scheduler as amounts."""
    settings = {p.findtext("name", ""): p.findtext("value", "") for p in ET.fromstring(text)}
    return absolute(settings.get(f"yarn.scheduler.capacity.root.{key}"))
