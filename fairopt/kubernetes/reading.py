"""The objects of Kubernetes in a file, or in the standard input (``-``): JSON, or YAML of several documents; lists are taken apart.

One list may have objects of all kinds, as ``kubectl get nodes,pods,workloads -A -o yaml`` writes it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairopt.clusters.json_export import Part, parse_json
from fairopt.errors import InvalidInstance
from fairopt.files import read_stdin, read_text

__all__ = ["CONFIGURATION", "VOLCANO", "kind_of", "named_objects", "read_any", "read_objects"]

CONFIGURATION = ("Configuration", "yunikorn.apache.org")  # the kind that a file of queues of YuniKorn gets, which has none of its own
VOLCANO = ("Configuration", "volcano.sh")  # the kind that the configuration of Volcano's scheduler gets
_OF_VOLCANO = "volcano-scheduler.conf"  # a key of a ConfigMap
_OF_CONFIG = re.compile(r"^\s*(partitions|deviceClassMappings)\s*:", re.MULTILINE)  # queues of YuniKorn, resources of Kueue
_YAML = re.compile(r"""(---|%|["']?[A-Za-z][\w./-]*["']?\s*:(\s|$))""")  # how a document of YAML starts


def kind_of(part: Part) -> tuple[str, str]:
    """Return the kind of an object, and the group of its API."""
    return part.get("kind").text(""), part.get("apiVersion").text("").rpartition("/")[0]


def read_objects(path: str | os.PathLike[str], kind: str, command: str) -> list[Part]:
    """Return the objects of one kind of a file; an object without a kind is of this kind.

    Raises
    ------
    InvalidInstance
        There is no object of this kind, but of others; a list of nodes is empty; the file cannot be read.
    """
    found = read_any(path, kind, command)
    wanted = [part for part in found if kind_of(part)[0] == kind]
    if found and not wanted:
        found[0].refuse(f"expected a {kind}, found a {kind_of(found[0])[0]}; export it again: {command}")
    return wanted


def read_any(path: str | os.PathLike[str], kind: str, command: str) -> list[Part]:
    """Return all objects of a file; an object without a kind is of this one."""
    objects = []
    for whole in _documents(path, command):
        if not isinstance(whole.value, dict) or not whole.value.keys() & {"items", "metadata", "apiVersion"}:
            whole.refuse(f"this is not the output of kubectl: there are no items; export it again: {command}")
        items = whole.get("items").items() if "items" in whole.value else [whole]
        if "items" in whole.value and not items and kind == "Node":
            whole.refuse(f"the list is empty; export it again: {command}")
        for item in items:
            if isinstance(item.value, dict) and "kind" not in item.value:
                item.value["kind"] = kind
            item.get("kind").text()
        objects += items
    return [each for part in objects for each in _unpacked(part, command)]


def named_objects(path: str | os.PathLike[str], command: str) -> list[Part]:
    """Return the objects of a file, each with its kind and name as its place."""
    objects = []
    for whole in _documents(path, command):
        value, where = whole.value, whole.file
        if isinstance(value, dict) and "kind" not in value and "partitions" in value:
            objects.append(_with_kind(value, where, CONFIGURATION))
            continue
        if isinstance(value, dict) and "kind" not in value and "tiers" in value:
            objects.append(_with_kind(value, where, VOLCANO))
            continue
        items = whole.get("items").items() if "items" in whole else [whole]
        for item in items:
            if kind_of(item)[0] == "Configuration":  # of Kueue: a file, and no object with a name
                objects.append(Part(item.value, f"{where}, Configuration"))
                continue
            kind, name = item["kind"].text(), item["metadata"]["name"].text()
            namespace = item["metadata"].get("namespace").text("")
            objects.append(Part(item.value, f'{where}, {kind} "{namespace}/{name}"' if namespace else f'{where}, {kind} "{name}"'))
    return [each for part in objects for each in _unpacked(part, command)]


def _with_kind(value: dict[str, Any], where: str, kind_and_group: tuple[str, str]) -> Part:
    """Return the queues of YuniKorn, or the configuration of Volcano, as an object with a kind, which their file does not have."""
    kind, group = kind_and_group
    return Part({**value, "kind": kind, "apiVersion": f"{group}/v1"}, where)


def _unpacked(part: Part, command: str) -> list[Part]:
    """Return the queues of YuniKorn, or the configuration of Kueue or Volcano, that a ConfigMap holds; any other object as it is."""
    if kind_of(part) != ("ConfigMap", ""):
        return [part]
    found = []
    for key, text in part.get("data").entries().items():
        if key == _OF_VOLCANO and isinstance(text.value, str):
            found += [
                _with_kind(value, where, VOLCANO)
                for value, where in _of_yaml(Path(f"{part.place}, {key}"), text.value, command)
                if isinstance(value, dict)
            ]
        if key.endswith(".yaml") and isinstance(text.value, str) and _OF_CONFIG.search(text.value):
            for value, where in _of_yaml(Path(f"{part.place}, {key}"), text.value, command):
                if isinstance(value, dict) and "partitions" in value:
                    found.append(_with_kind(value, where, CONFIGURATION))
                elif isinstance(value, dict) and kind_of(inner := Part(value, where))[0] == "Configuration":
                    found.append(inner)
    return found or [part]


def _documents(path: str | os.PathLike[str], command: str) -> Sequence[Part]:
    """Return the documents of a file."""
    path = Path(path)
    if str(path) == "-":
        path, text = Path("standard input"), read_stdin()
    else:
        text = read_text(path)
    first = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    if not _YAML.match(first) and (text.lstrip()[:1] in ("{", "[", "<", "") or "." in first or not first.startswith(("-", " "))):
        return [parse_json(text, path, command)]
    return [Part(value, where) for value, where in _of_yaml(path, text, command)]


def _of_yaml(path: Path, text: str, command: str) -> list[tuple[Any, str]]:
    """Return the documents of YAML, and where each starts."""
    from fairopt.formats.syntax import Parsed  # which needs yaml: ``import fairopt`` stays light

    documents: list[tuple[Any, str]] = []
    lines = text.splitlines()
    starts = [0, *(number + 1 for number, line in enumerate(lines) if line.rstrip() == "---" or line.startswith("--- "))]
    for start, end in zip(starts, [*(start - 1 for start in starts[1:]), len(lines)], strict=True):
        body = lines[start:end]
        first = next((number for number, line in enumerate(body) if line.strip() and not line.lstrip().startswith(("#", "%"))), None)
        if first is None:
            continue
        place = f"{path}, line {start + first + 1}"
        if body[first].lstrip()[:1] in ("-", "[", "<", "|", ">"):
            raise InvalidInstance(f"{place}: expected an object of Kubernetes with a kind and metadata; export the queues again: {command}")
        parsed = Parsed(str(path), "\n".join(body), start)
        documents.append((parsed.data, place))
    return documents
