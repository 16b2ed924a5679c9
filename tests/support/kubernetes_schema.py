"""The official schemas of Kubernetes objects, where they are, and the rules that they state in words or in CEL."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from support.real_data import DATA

__all__ = ["check_cluster_queues", "documents", "validate"]

CRDS = DATA / "queues"
_SYSTEMS = {"kueue.x-k8s.io": "kueue", "scheduling.volcano.sh": "volcano", "scheduling.run.ai": "kai"}
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)


def documents(text: str) -> list[dict[str, Any]]:
    """Return the objects of a file."""
    return [each for each in yaml.safe_load_all(text) if each]


def validate(objects: list[dict[str, Any]]) -> None:
    """Check every object against the schema of its kind: fields that are not in it are refused too."""
    import jsonschema  # type: ignore[import-untyped]

    for each in objects:
        group, _, version = each["apiVersion"].partition("/")
        assert _NAME.fullmatch(each["metadata"]["name"])
        assert len(each["metadata"]["name"]) <= 253
        schema = _schema(CRDS / _SYSTEMS[group] / f"crd_{each['kind'].lower()}s.yaml", version)
        jsonschema.Draft202012Validator(schema).validate(each)


@cache
def _schema(path: Path, version: str) -> dict[str, Any]:
    crd = yaml.load(path.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    (schema,) = [each["schema"]["openAPIV3Schema"] for each in crd["spec"]["versions"] if each["name"] == version]
    closed: dict[str, Any] = _closed(schema)
    closed["properties"]["metadata"] = {"type": "object"}
    return closed


def _closed(schema: Any) -> Any:
    """Return a schema in which objects have no other fields: the API server would drop them without a word."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: _closed(each) for key, each in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        result.setdefault("additionalProperties", False)
    return result


def check_cluster_queues(objects: list[dict[str, Any]]) -> None:
    """Check what Kueue's schema states in CEL and its webhooks in code.

    * flavors of a resource group list all covered resources, in their order; a resource and a flavor are in one group;
    * limits only in a cohort; quotas and limits >= 0; a lending limit is at most the nominal quota;
    * flavors, cohorts and queues that are named exist, and the parents of cohorts do not go round in a circle.
    """
    by_kind: dict[str, dict[str, Any]] = {}
    for each in objects:
        by_kind.setdefault(each["kind"], {})[each["metadata"].get("namespace", "") + "/" + each["metadata"]["name"]] = each["spec"]
    cohorts = by_kind.get("Cohort", {})
    for spec in [*by_kind["ClusterQueue"].values(), *cohorts.values()]:
        seen: list[str] = []
        for group in spec.get("resourceGroups", []):
            seen += group["coveredResources"]
            for flavor in group["flavors"]:
                seen.append(f"flavor {flavor['name']}")
                assert "/" + flavor["name"] in by_kind["ResourceFlavor"]
                assert [each["name"] for each in flavor["resources"]] == group["coveredResources"]
                for each in flavor["resources"]:
                    limited = {"borrowingLimit", "lendingLimit"} & set(each)
                    assert not limited or spec.get("cohortName") or spec.get("parentName")
                    assert not any(str(each[key]).startswith("-") for key in (*limited, "nominalQuota"))
        assert len(set(seen)) == len(seen)
        for parent in (spec.get("cohortName"), spec.get("parentName")):
            assert parent is None or "/" + parent in cohorts
    for name in cohorts:
        way = [name]
        while (parent := cohorts[way[-1]].get("parentName")) is not None:
            assert "/" + parent not in way
            way.append("/" + parent)
    for spec in by_kind.get("LocalQueue", {}).values():
        assert "/" + spec["clusterQueue"] in by_kind["ClusterQueue"]
