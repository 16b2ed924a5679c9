"""Text that is written as YAML is read as text by every reader: the core schema of 1.2, PyYAML's 1.1, and those between them."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import fairopt as fo
from fairopt.formats.syntax import Parsed, to_yaml
from fairopt.formats.yaml_core import dump
from fairopt.kubernetes.objects import documents

# What unquoted text means to a reader, as their sources have it.
CORE_1_2 = re.compile(  # the table of section 10.3.2
    r"null|Null|NULL|~||true|True|TRUE|false|False|FALSE|[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"
    r"|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?(\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN"
)
TYPES_1_1 = re.compile(  # yaml.org/type: bool, int, float, merge, null, timestamp, value
    r"y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF"
    r"|[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(:[0-5]?[0-9])+"
    r"|[-+]?([0-9][0-9_]*)?\.[0-9.]*([eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)|<<|~|null|Null|NULL||="
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(\.[0-9]*)?(([ \t]*)Z|[-+][0-9]{1,2}(:[0-9]{2})?)?"
)
GO = re.compile(  # gopkg.in/yaml: strconv with any base and underscores, and floats without a point
    r"[-+]?(0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|[0-9][0-9_]*)|[-+]?(\._*[0-9][0-9_]*|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?"
)
PSYCH = re.compile(
    r"[-+]?(0|[1-9]([0-9]|,[0-9]|_[0-9])*)|[-+]?[0-9][0-9_,]*(:[0-5]?[0-9])+|[-+]?([0-9][0-9_,]*)?\.[0-9]*([eE][+-][0-9]+)?"
)  # of Ruby
READERS = (CORE_1_2, TYPES_1_1, GO, PSYCH)

NOT_TEXT = [
    *(
        "18371e12",
        "1e3",
        "1E3",
        "0o7",
        "0O7",
        "12:30",
        "190:20:30.15",
        "null",
        "Null",
        "~",
        "",
        "2026-01-01",
        "2001-12-14t21:59:43.10-05:00",
    ),
    *(
        "2001-12-14 21:59:43.10 -5",
        ".5",
        "5.",
        "0x1F",
        "0X1F",
        "1_000",
        "=",
        "<<",
        "y",
        "Y",
        "n",
        "N",
        "yes",
        "No",
        "on",
        "OFF",
        "true",
        "False",
    ),
    *(
        "010",
        "0b11",
        "-1",
        "+1",
        "1,000",
        ".inf",
        "-.INF",
        "+.Inf",
        ".nan",
        ".NaN",
        "1e-999999999",
        "685_230.15",
        "-",
        "+",
        ".",
        "..",
        "1.5e3",
    ),
]
TEXT = [
    "node-1",
    "gpu",
    "500m",
    "3Gi",
    "v1",
    "nvidia.com/gpu",
    "a: b",
    "- a",
    "# a",
    "'",
    '"',
    "a\nb",
    " a",
    "a ",
    "é",
    "{",
    "[a]",
    "*a",
    "&a",
    "!a",
    "%a",
    "@a",
]


def plain_scalars(text: str) -> set[str]:
    """The scalars that stand there without quotes."""
    return {event.value for event in yaml.parse(text) if isinstance(event, yaml.ScalarEvent) and event.style is None}


def check(data: Any, *, blocks: bool = False) -> str:
    """Both readers have the data again, and no other could take unquoted text for something else."""
    text = dump({"x": data}, blocks=blocks)
    assert yaml.safe_load(text) == Parsed("a.yaml", text).data == {"x": data}
    for scalar in plain_scalars(text):
        assert not any(reader.fullmatch(scalar) for reader in READERS), scalar
    return text


words = (
    st.sampled_from(NOT_TEXT + TEXT)
    | st.text(max_size=20)
    | st.from_regex(CORE_1_2, fullmatch=True)
    | st.from_regex(TYPES_1_1, fullmatch=True)
)
words = (words | st.from_regex(GO, fullmatch=True)).filter(lambda text: text.isascii() or text == text.encode(errors="replace").decode())


@given(
    st.dictionaries(words, words | st.lists(words, max_size=3) | st.dictionaries(words, words, max_size=3), max_size=4),
    st.booleans(),
)
def test_names_stay_names(data: dict[str, Any], blocks: bool) -> None:
    """As keys and as values, in one line and in several, whatever they look like."""
    check(data, blocks=blocks)


@pytest.mark.parametrize("name", NOT_TEXT)
def test_what_could_be_something_else_is_quoted(name: str) -> None:
    """In an instance, and in the objects of Kubernetes."""
    for text in (to_yaml({"users": [{"name": name}]}), documents([{"metadata": {"name": name}}], ["a comment"])):
        assert name not in plain_scalars(text)
        assert f"'{name}'" in text


def test_what_is_text_to_everybody_is_not_quoted() -> None:
    """People read these files."""
    assert to_yaml({"x": {"name": "node-1", "cpu": "500m", "memory": "3Gi", "model": "V100", "key": "nvidia.com/gpu"}}) == (
        "x: {name: node-1, cpu: 500m, memory: 3Gi, model: V100, key: nvidia.com/gpu}\n"
    )


def test_numbers_stay_numbers() -> None:
    """Also those with an exponent, for both readers; and so do nothing and the truth values."""
    data = {"a": [1, -2, 0.5, 1e300, 1e-6, float("inf"), None, True, False]}
    assert yaml.safe_load(dump(data)) == Parsed("a.yaml", dump(data)).data == data


def test_what_nobody_sees_is_escaped() -> None:
    """Characters that turn the direction of writing, that drive a terminal, or that end a line."""
    data = {"a\u202eb": ["\x1b]0;x\x07", "\x85", "\u2028", "\ufeff", "\u200f", "\U000e0001", "é\u0301"]}
    assert check(data).replace("\n", "").isprintable()


def test_every_export_keeps_names_that_look_like_numbers() -> None:
    """Names that kubectl would read as numbers, or refuse."""
    names = ["18371e12", "1e3", "0o7", "12", "on", "null"]
    queues = [fo.Queue(name) for name in names]
    instance = fo.Instance(
        [[96.0, 384.0]],
        [[1.0, 2.0]] * 6,
        queues=queues,
        queue_of=names,
        users=[f"u{n}" for n in range(6)],
        resources=["cpu", "memory"],
    )
    allocation = fo.solve(instance, "drf", integral=True)
    for export in (fo.export_kueue, fo.export_volcano, fo.export_kai, fo.export_resourcequota, fo.export_yunikorn):
        for text in export(allocation).files.values():
            plain = {
                word for each in yaml.parse(text) if isinstance(each, yaml.ScalarEvent) and each.style is None for word in [each.value]
            }
            assert not plain & set(names), export
            read = list(yaml.safe_load_all(text))
            assert {"18371e12", "1e3"} <= {str(each) for each in everything(read) if isinstance(each, str)}, export
            assert not {18371e12, 1e3} & {each for each in everything(read) if isinstance(each, float)}


def everything(value: Any) -> list[Any]:
    """All scalars of a document."""
    if isinstance(value, dict):
        return [each for pair in value.items() for part in pair for each in everything(part)]
    return [each for part in value for each in everything(part)] if isinstance(value, list) else [value]
