"""JSON of other programs, read part by part, with the place of each part for messages.

A `Part` is a value and its path: ``items[12].spec.containers[0].resources.requests.cpu``. A value that is missing or has the wrong type is
refused with the file and that path.

>>> pod = Part({"spec": {"containers": [{"resources": {"requests": {"nvidia.com/gpu": True}}}]}}, "pods.json")
>>> gpu = pod["spec"]["containers"].items()[0]["resources"]["requests"]["nvidia.com/gpu"]
>>> gpu.place
'pods.json: spec.containers[0].resources.requests["nvidia.com/gpu"]'
>>> gpu.number()
Traceback (most recent call last):
fairopt.errors.InvalidInstance: pods.json: spec.containers[0].resources.requests["nvidia.com/gpu"]: expected a number, found true
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from fairopt.errors import InvalidInstance
from fairopt.files import read_text
from fairopt.files.limits import check_json
from fairopt.formats.json_places import HALF_CHARACTER, half_character
from fairopt.wording import found

__all__ = ["Part", "parse_json", "read_json"]

_LARGEST = 1e60
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class Part:
    """A value of a JSON document, and its place.

    Parameters
    ----------
    value : object
    file : str
        Name of the document in messages.
    above : Part, optional
        The list or mapping that the value is in, under ``key``.
    """

    __slots__ = ("above", "file", "key", "value")

    def __init__(self, value: Any, file: str, above: Part | None = None, key: str | int = "") -> None:
        self.value, self.file, self.above, self.key = value, file, above, key

    @property
    def path(self) -> str:
        """The keys and positions that lead here."""
        if self.above is None:
            return ""
        before = self.above.path
        if isinstance(self.key, int):
            return f"{before}[{self.key}]"
        if _PLAIN_KEY.fullmatch(self.key):
            return f"{before}.{self.key}" if before else self.key
        return f'{before}["{self.key}"]'

    @property
    def place(self) -> str:
        """The file and the path."""
        path = self.path
        return f"{self.file}: {path}" if path else self.file

    def refuse(self, message: str) -> NoReturn:
        """Raise InvalidInstance for this place."""
        raise InvalidInstance(f"{self.place}: {message}")

    def get(self, key: str) -> Part:
        """Return the part under a key of this mapping; its value is None if the key is missing."""
        if self.value is None:
            return Part(None, self.file, self, key)
        if not isinstance(self.value, dict):
            self.refuse(f"expected a mapping, found {found(self.value)}")
        return Part(self.value.get(key), self.file, self, key)

    def __getitem__(self, key: str) -> Part:
        part = self.get(key)
        if part.value is None:
            part.refuse("this field is missing; export all fields, without a filter")
        return part

    def __contains__(self, key: str) -> bool:
        return isinstance(self.value, dict) and self.value.get(key) is not None

    def items(self) -> list[Part]:
        """Return the parts of this list; none if it is missing."""
        if self.value is None:
            return []
        if not isinstance(self.value, list):
            self.refuse(f"expected a list, found {found(self.value)}")
        return [Part(value, self.file, self, position) for position, value in enumerate(self.value)]

    def entries(self) -> dict[str, Part]:
        """Return the parts of this mapping by key; none if it is missing."""
        if self.value is None:
            return {}
        if not isinstance(self.value, dict):
            self.refuse(f"expected a mapping, found {found(self.value)}")
        for key in self.value:
            if not isinstance(key, str):  # in YAML
                self.refuse(f"the name {found(key)} is no text; write it in quotes")
        return {key: Part(value, self.file, self, key) for key, value in self.value.items()}

    def text(self, default: str | None = None) -> str:
        """Return this text; ``default`` if it is missing."""
        if self.value is None and default is not None:
            return default
        if not isinstance(self.value, str):
            self.refuse(f"expected text, found {found(self.value)}")
        return self.value

    def number(self, default: float | None = None) -> float:
        """Return this number, finite and >= 0; ``default`` if it is missing."""
        if self.value is None and default is not None:
            return default
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self.refuse(f"expected a number, found {found(self.value)}")
        if not 0 <= self.value < _LARGEST:
            self.refuse(f"expected a number >= 0 that is not huge, found {str(self.value)[:40]}")
        return float(self.value)


def read_json(path: str | os.PathLike[str], command: str) -> Part:
    """Read an export; ``command`` is the command that makes one, for messages.

    Raises
    ------
    InvalidInstance
        The file cannot be read, is empty, is not JSON (a web page, say), or ends too early.
    """
    path = Path(path)
    return parse_json(read_text(path), path, command)


def parse_json(text: str, path: Path, command: str, *, mapping: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Part:
    """Read the text of an export, as `read_json`; ``mapping`` makes a mapping of its entries, where a name may be there twice."""
    start = text.lstrip()[:200].lower()
    if not start:
        raise InvalidInstance(f"{path}: the file is empty; export it again: {command}")
    if start.startswith("<"):
        page = "an HTML page (a login page, perhaps)" if "html" in start else "XML"
        raise InvalidInstance(f"{path}: this is {page}, not JSON; log in and export it again: {command}")
    check_json(str(path), text)
    if (half := half_character(text)) is not None:
        line = text.count("\n", 0, half) + 1
        raise InvalidInstance(f"{path}, line {line}: {HALF_CHARACTER.format(text[half : half + 6])}, or export it again: {command}")
    try:
        return Part(json.loads(text, parse_constant=_no_number, object_pairs_hook=mapping), str(path))
    except json.JSONDecodeError as error:
        ended = not text[error.pos :].strip() or error.msg.startswith("Unterminated")
        what = "the JSON ends too early: the export was cut off" if ended else f"this is not JSON: {error.msg}"
        raise InvalidInstance(f"{path}, line {error.lineno}, column {error.colno}: {what}; export it again: {command}") from None
    except RecursionError:
        raise InvalidInstance(f"{path}: lists and mappings are nested too deeply for an export; export it again: {command}") from None
    except MemoryError:
        raise InvalidInstance(f"{path}: what this JSON holds does not fit into memory; export less: {command}") from None
    except ValueError as error:
        what = "a whole number has thousands of digits" if "digits" in str(error) else str(error)
        raise InvalidInstance(f"{path}: {what}; export it again: {command}") from None


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number of JSON")
