"""YAML and JSON text to plain data and back, with the line of everything in it.

YAML is read by the core schema of YAML 1.2 (:mod:`fairopt.formats.yaml_core`). Only plain data is read: a tag such as ``!!python/object``
is refused, and so are a key that occurs twice and, in JSON, the literals NaN and Infinity, which are not part of JSON.

>>> parsed = Parsed("cluster.yaml", "users:\\n- name: alice\\n  weight: 1e-6\\n")
>>> parsed.data
{'users': [{'name': 'alice', 'weight': 1e-06}]}
>>> parsed.place(("users", 0, "weight"))
'cluster.yaml, line 3'
>>> print(to_yaml({"users": [{"name": "yes", "demand": {"cpu": 2.0, "memory": 1e-6}}]}))
users:
- name: 'yes'
  demand: {cpu: 2, memory: 1.0e-06}
<BLANKLINE>
"""

from __future__ import annotations

import contextlib
import gc
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import yaml

from fairopt.errors import InvalidInstance
from fairopt.files import read_text, write_files
from fairopt.files.limits import check_json, limits
from fairopt.formats.json_places import HALF_CHARACTER, half_character, steps
from fairopt.formats.yaml_core import SCALARS, compose, copies, dump, scalars
from fairopt.instance.fractions import plain_numbers, written

__all__ = ["Parsed", "read", "read_value", "to_json", "to_yaml", "without_collector", "write"]

_STRUCTURE = "{[!&*"  # what begins so is more than text: it must be YAML
_UNFINISHED = object()  # stands for a node whose data is being made
_TOO_LONG = "a whole number has thousands of digits; give a smaller one"
_LONG = 1_000  # characters of a number
_MOST_YAML = 50_000_000  # characters
_MOST_NODES = 5_000_000  # characters of JSON that are read as YAML to find a line


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Turn the garbage collector off: a large file makes many nodes that all stay, and the collector would scan them again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Parsed:
    """The data of a YAML or JSON text, and the line of each part.

    Parameters
    ----------
    file : str
        The name of the text in messages; if it ends in ``.json``, the text is read as JSON.
    text : str
    above : int
        How many lines of the file are above the text.
    """

    def __init__(self, file: str, text: str, above: int = 0) -> None:
        self.file = file
        self._above = above
        self._text = text
        self._json = file.lower().endswith(".json")
        self._root: yaml.Node | None = None
        if not text.strip():
            self._refuse("the file is empty; describe the servers and the users in it", None)
        self.data: object = self._from_json() if self._json else self._from_yaml()
        if self._json and (half := half_character(text)) is not None:
            self._refuse(HALF_CHARACTER.format(text[half : half + 6]), text.count("\n", 0, half) + 1)
        if self.data is None:
            self._refuse('the file holds no data; describe the servers and the users under the keys "servers" and "users"', None)
        if not isinstance(self.data, dict):
            found = f"a list of {len(self.data)}" if isinstance(self.data, list) else f"only {str(self.data)[:40]!r}"
            self._refuse(f'the file holds {found}, not a mapping; its outermost keys must be "servers" and "users"', None)

    def place(self, path: tuple[object, ...]) -> str:
        """Return the file and, if it is known, the line of the entry at this path of keys and positions."""
        line = None
        if path and self._json:
            for of_key, start, _ in steps(self._text, path):
                line = self._text.count("\n", 0, start if of_key is None else of_key) + 1
        for key, node in self._walk(path) if path and not self._json else ():
            line = (node if key is None else key).start_mark.line + 1
        return self.file if line is None else f"{self.file}, line {line + self._above}"

    def literal(self, path: tuple[object, ...]) -> str | None:
        """Return a scalar (or, for a path that ends in "[key]", a key) as it is written: 001 rather than 1."""
        way = path[:-1] if path and path[-1] == "[key]" else path
        if self._json:
            places = list(steps(self._text, way))
            if len(places) < len(way) + 1:
                return None
            of_key, start, end = places[-1]
            if way is not path:
                return str(way[-1]) if of_key is not None else None
            written = self._text[start:end]
            return None if written[:1] in ("{", "[") else str(json.loads(written)) if written[:1] == '"' else written
        key, node = None, None
        found = list(self._walk(way))
        if len(found) == len(way) + 1:
            key, node = found[-1]
        node = node if way is path else key
        return str(node.value) if isinstance(node, yaml.ScalarNode) else None

    def _walk(self, path: tuple[object, ...]) -> Iterator[tuple[yaml.Node | None, yaml.Node]]:
        """Yield (key, node) for the root and for every step of the path that exists."""
        node = self._tree()
        if node is None:
            return
        yield None, node
        for step in path:
            key = None
            if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                node = node.value[step]
            elif isinstance(node, yaml.MappingNode):
                entries = [(k, v) for k, v in node.value if isinstance(k, yaml.ScalarNode) and k.value == str(step)]
                if not entries:
                    return
                key, node = entries[0]
            else:
                return
            yield key, node

    def _tree(self) -> yaml.Node | None:
        """Return the nodes. Those of JSON are made only for a message, and not of a large text; YAML can read nearly all JSON."""
        if self._root is None and self._json and len(self._text) <= _MOST_NODES:
            try:
                self._root = compose(self._text)
            except yaml.YAMLError:
                return None
        return self._root

    def _from_yaml(self) -> object:
        if len(self._text) > _MOST_YAML:
            self._refuse(
                f"YAML of {len(self._text) / 1e6:,.0f} million characters would take minutes and a hundred times its size in memory; "
                "write the instance as JSON, which is read at once",
                None,
            )
        try:
            self._root = compose(self._text)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            what = ", ".join(part for part in (error.context, error.problem) if part)
            self._refuse(f"not valid YAML: {what}; correct it there or just before", mark.line + 1 if mark else None)
        except yaml.reader.ReaderError as error:
            line = self._text.count("\n", 0, self._text.find(chr(error.character))) + 1 if isinstance(error.character, int) else None
            self._refuse(f"there is a control character, {error.character!r}, which YAML does not allow; remove it", line)
        if self._root is None:
            return None
        if "*" in self._text and copies(self._root) > limits().copies:
            self._refuse(
                f"the aliases stand for more than {limits().copies:,} values, the limit of what is read; raise it with "
                "--max-bytes or fairopt.reading_limit(...)",
                None,
            )
        return self._plain(self._root, {})

    def _from_json(self) -> object:
        def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
            result = dict(pairs)
            if len(result) < len(pairs):
                number = Counter(key for key, _ in pairs)
                twice = next(key for key, _ in pairs if number[key] > 1)
                root = self._tree()
                if root is not None:
                    self._plain(root, {})  # raises, with the line
                self._refuse(f'the key "{twice}" occurs twice in one mapping; remove one', None)
            return result

        def constant(name: str) -> NoReturn:
            root = self._tree()
            lines = [] if root is None else [n.start_mark.line + 1 for n in scalars(root, set()) if n.value == name and not n.style]
            line = lines[0] if lines else None
            self._refuse(f'{name} is not JSON; for no limit leave "tasks" or "parallelism" out, elsewhere give a finite number', line)

        check_json(self.file, self._text)
        try:
            return json.loads(self._text, object_pairs_hook=unique, parse_constant=constant, parse_float=written)
        except json.JSONDecodeError as error:
            what = f"{error.msg[:1].lower()}{error.msg[1:]}"
            self._refuse(f"not valid JSON: {what} (column {error.colno}); correct it there or just before", error.lineno)
        except InvalidInstance:
            raise
        except RecursionError:
            self._refuse("lists or mappings are nested too deeply; an instance has 6 levels", None)
        except ValueError:  # the limit of Python's int()
            self._refuse(_TOO_LONG, None)

    def _plain(self, node: yaml.Node, done: dict[int, object]) -> object:
        """Return the data of a node. If several aliases refer to it, it is made once."""
        if id(node) in done:
            if done[id(node)] is _UNFINISHED:
                self._refuse("this alias refers to something that contains it; write the value out instead", node.start_mark.line + 1)
            return done[id(node)]
        done[id(node)] = _UNFINISHED
        result: object
        if isinstance(node, yaml.ScalarNode) and node.tag in SCALARS:
            try:
                result = SCALARS[node.tag](node.value)
            except ValueError:
                wrong = f'"{node.value[:40]}" cannot be read as a number; give digits only'
                self._refuse(_TOO_LONG if len(node.value) > _LONG else wrong, node.start_mark.line + 1)
        elif isinstance(node, yaml.SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
            result = [self._plain(item, done) for item in node.value]
        elif isinstance(node, yaml.MappingNode) and node.tag == "tag:yaml.org,2002:map":
            result = self._mapping(node, done)
        else:
            tag = node.tag.replace("tag:yaml.org,2002:", "!!")
            self._refuse(f'the tag "{tag}" stands for more than plain data, which is not read; remove it', node.start_mark.line + 1)
        done[id(node)] = result
        return result

    def _mapping(self, node: yaml.MappingNode, done: dict[int, object]) -> dict[object, object]:
        result: dict[object, object] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._refuse("a key is a list or a mapping; keys are text", key_node.start_mark.line + 1)
            key = self._plain(key_node, done)
            if key in result:
                self._refuse(f'the key "{key_node.value}" occurs twice in one mapping; remove one', key_node.start_mark.line + 1)
            result[key] = self._plain(value_node, done)
        return result

    def _refuse(self, message: str, line: int | None) -> NoReturn:
        raise InvalidInstance(f"{self.file}{'' if line is None else f', line {line + self._above}'}: {message}") from None


def read(path: Path) -> Parsed:
    """Read a YAML or JSON file."""
    return Parsed(str(path), read_text(path))


def read_value(text: str) -> object:
    """Return what a single value means that stands outside of a file, as it would behind its key in a YAML file.

    Text that is no YAML is itself, unless it begins as a list, a mapping, a tag or an alias does.

    Raises
    ------
    InvalidInstance
        A file with this value would be refused: a tag, a key that occurs twice, a control character.

    >>> read_value("{gpu: 1e1}"), read_value('"gpu model" = A100'), read_value("a: b")
    ({'gpu': 10.0}, '"gpu model" = A100', 'a: b')
    >>> read_value("!!binary aGk=")
    Traceback (most recent call last):
    fairopt.errors.InvalidInstance: the tag "!!binary" stands for more than plain data, which is not read; remove it
    """
    document = f"value: {text}\n"
    try:
        compose(document)
    except yaml.MarkedYAMLError:
        if text.lstrip()[:1] not in _STRUCTURE:
            return text
    except yaml.reader.ReaderError:
        pass  # reading says what is wrong
    try:
        data: Any = Parsed("", document).data
    except InvalidInstance as error:
        raise InvalidInstance(str(error).partition(": ")[2]) from None
    return data["value"] if len(data) == 1 else text


def write(document: dict[str, Any], path: Path) -> None:
    """Write a document as YAML or JSON, by the suffix of the path."""
    write_files({path: to_json(document) if path.suffix.lower() == ".json" else to_yaml(document)})


def to_yaml(document: dict[str, Any]) -> str:
    """Return a document as YAML: the innermost mappings on one line, the others one entry a line."""
    plain = plain_numbers(document)
    with without_collector():
        return dump(plain)


def to_json(document: dict[str, Any]) -> str:
    """Return a document as JSON, one line for each server, queue and user.

    >>> print(to_json({"resources": ["cpu"], "servers": [{"name": "A", "capacity": {"cpu": 2.0}}], "users": []}))
    {
      "resources": ["cpu"],
      "servers": [
        {"name": "A", "capacity": {"cpu": 2}}
      ],
      "users": []
    }
    <BLANKLINE>
    """
    parts = []
    for key, value in plain_numbers(document).items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            rows = ",\n".join("    " + json.dumps(row, ensure_ascii=False, allow_nan=False) for row in value)
            parts.append(f"  {json.dumps(key)}: [\n{rows}\n  ]")
        else:
            parts.append(f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False, allow_nan=False)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"
