"""The small languages inside Slurm's JSON: numbers, TRES strings, generic resources, features. Lists of hosts: `fairopt.instance.hosts`.

>>> tres("cpu=4,mem=62.50G,node=1,gres/gpu:a100=2")
{'cpu': 4.0, 'mem': 64000.0, 'node': 1.0, 'gres/gpu:a100': 2.0}
>>> gres("gpu:a100:4(S:0-3),shard:16")
[('gpu', 'a100', 4.0), ('shard', '', 16.0)]
>>> features("ib&(a100|h100)")({"ib", "h100"})
True

Source: the manual pages of sbatch (--constraint, --gres), scontrol and gres.conf, and slurmrestd's OpenAPI.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from fairopt.clusters.json_export import Part

__all__ = ["array_size", "features", "finite", "gres", "licenses", "mebibytes", "number", "seconds", "tres", "words"]

_SCALE = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)(?:i?B)?", re.ASCII | re.IGNORECASE)
_DEEPEST = 100  # parentheses inside parentheses
_LARGEST = 1e60
_LENGTH = re.compile(r"(?:(?:(\d{1,6})-)?(\d{1,9}):)?(\d{1,9}):(\d{1,2}(?:\.\d+)?)", re.ASCII)  # days-hours:minutes:seconds
_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18})(?::(\d{1,18}))?)?", re.ASCII)  # first, last, step

Features = Callable[[set[str]], bool]


def number(part: Part) -> float | None:
    """Return a number, plain (21.08) or ``{set, infinite, number}``; None where it is not set, inf where it is infinite."""
    if isinstance(part.value, dict):
        if part.get("infinite").value:
            return float("inf")
        if part.get("set").value is False:
            return None
        return part["number"].number()
    return None if part.value is None else part.number()


def finite(part: Part) -> float:
    """Return a finite number, 0 where it is not set."""
    value = number(part)
    if value == float("inf"):
        part.refuse("the number is infinite; expected a finite one")
    return value or 0.0


def words(part: Part) -> list[str]:
    """Return a list of words, given as a list or separated by commas."""
    if isinstance(part.value, list):
        return [each.text() for each in part.items()]
    return [word.strip() for word in part.text("").split(",") if word.strip()]


def mebibytes(text: str) -> float:
    """Return an amount of memory in MiB, which is its unit where none is given.

    >>> mebibytes("500000M"), mebibytes("112G"), mebibytes("512")
    (500000.0, 114688.0, 512.0)
    """
    value, suffix = _amount(text)
    return value * 1024.0 ** (_SCALE[suffix or "M"] - 2)


def tres(text: str) -> dict[str, float]:
    """Return the amounts of a TRES string; memory in MiB.

    Raises
    ------
    ValueError
    """
    amounts = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = entry.partition("=")
        if not equals:
            raise ValueError(f'"{entry}" is not an amount such as cpu=4 or mem=2G')
        if name in ("mem", "vmem"):
            amounts[name] = mebibytes(value)
        else:
            count, suffix = _amount(value)
            amounts[name] = count * 1024.0 ** _SCALE[suffix]
    return amounts


def gres(text: str) -> list[tuple[str, str, float]]:
    """Return (name, type or "", number) of generic resources, of nodes or of requests (``gres:gpu:2``, ``gres/gpu:a100:2``).

    Raises
    ------
    ValueError
    """
    found = []
    for entry in filter(None, (part.strip() for part in re.sub(r"\([^()]*\)", "", text).split(","))):
        words = [word for word in re.split(r"[:=]", re.sub(r"^gres[:/]", "", entry)) if word not in ("", "no_consume")]
        if not words:
            raise ValueError(f'"{entry}" is not a generic resource such as gpu:a100:4')
        value = 1.0
        if len(words) > 1 and _AMOUNT.fullmatch(words[-1]):
            count, suffix = _amount(words.pop())
            value = count * 1024.0 ** _SCALE[suffix]
        if len(words) > 2:
            raise ValueError(f'"{entry}" is not a generic resource such as gpu:a100:4')
        found.append((words[0], words[1] if len(words) > 1 else "", value))
    return found


def licenses(text: str) -> list[dict[str, float]]:
    """Return the licences of a job: one set of them, or several of which any will do.

    >>> licenses("ansys:4,matlab@flex"), licenses("ansys|abaqus:2")
    ([{'ansys': 4.0, 'matlab@flex': 1.0}], [{'ansys': 1.0}, {'abaqus': 2.0}])

    Raises
    ------
    ValueError
    """
    found = []
    for choice in text.split("|"):
        amounts: dict[str, float] = {}
        for entry in filter(None, (part.strip() for part in re.split(r"[,;]", choice))):
            name, _, number = entry.partition(":" if ":" in entry else "=")
            if not name or (number and not number.isdigit()):
                raise ValueError(f'"{entry[:60]}" is not a licence such as ansys:4')
            amounts[name] = amounts.get(name, 0.0) + float(number or 1)
        found.append(amounts)
    return found


def seconds(text: str) -> float | None:
    """Return a length of time as Slurm writes it; None for one without an end, or if it is none.

    >>> seconds("1-12:00:00"), seconds("02:30:00"), seconds("00:45"), seconds("01:02.5"), seconds("UNLIMITED")
    (129600.0, 9000.0, 45.0, 62.5, None)
    """
    match = _LENGTH.fullmatch(text.strip())
    if match is None:
        return None
    days, hours, minutes, rest = (float(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + rest


def array_size(text: str) -> int:
    """Return how many tasks an array has: ``1-10``, ``0-15:5``, ``1,3,5-7%2``.

    >>> array_size("1-10"), array_size("0-15:5"), array_size("1,3,5-7%2")
    (10, 4, 5)
    """
    size = 0
    for entry in text.partition("%")[0].strip("[]").split(","):
        bounds = _RANGE.fullmatch(entry.strip())
        if bounds is None or (bounds[3] and int(bounds[3]) == 0) or int(bounds[2] or bounds[1]) < int(bounds[1]):
            raise ValueError(f'"{text[:60]}" is not a list of array tasks such as 1-10 or 1,3,5-7%2')
        size += len(range(int(bounds[1]), int(bounds[2] or bounds[1]) + 1, int(bounds[3] or 1)))
    return size


def features(text: str) -> Features:
    """Return whether a set of features meets a constraint: names, ``&``, ``|`` and parentheses.

    ``[a|b]``, all nodes of a job of one kind, is read as ``a|b``, which it is for what runs on one node.

    Raises
    ------
    ValueError
        The constraint has counts, or ``&`` beside ``|`` without parentheses: what that means has changed between versions.
    """
    tokens = re.findall(r"[&,|()\[\]]|[^&,|()\[\]\s]+", text)[::-1]  # the next token is the last of the list
    answer = _either(tokens, text, 0)
    if tokens:
        raise ValueError(f'"{text[:60]}" cannot be read from "{tokens[-1][:60]}" on')
    return answer


def _either(tokens: list[str], text: str, depth: int) -> Features:
    parts, operators = [_one(tokens, text, depth)], set()
    while tokens and tokens[-1] in "&,|":
        operator = tokens.pop()
        operators.add("&" if operator == "," else operator)
        parts.append(_one(tokens, text, depth))
    if len(operators) > 1:
        raise ValueError(f'"{text[:60]}" mixes & and | without parentheses, which is ambiguous')
    return (lambda has: any(part(has) for part in parts)) if operators == {"|"} else (lambda has: all(part(has) for part in parts))


def _one(tokens: list[str], text: str, depth: int) -> Features:
    if not tokens or tokens[-1] in "&,|)]":
        raise ValueError(f'"{text[:60]}" lacks a feature{f" before {tokens[-1]}" if tokens else " at its end"}')
    name = tokens.pop()
    if name in "([":
        if depth >= _DEEPEST:
            raise ValueError(f'"{text[:60]}" has more than {_DEEPEST} parentheses inside each other')
        inner = _either(tokens, text, depth + 1)
        if not tokens or tokens.pop() != (")" if name == "(" else "]"):
            raise ValueError(f'"{text[:60]}" has a {name} that does not close')
        return inner
    if "*" in name or name.startswith("!"):
        raise ValueError(f'"{text[:60]}" asks for numbers of nodes or for the absence of a feature, which fairopt cannot represent')
    return lambda has: name in has


def _amount(text: str) -> tuple[float, str]:
    match = _AMOUNT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f'"{text[:60]}" is not an amount such as 4, 500M or 1.5G')
    amount = float(match[1])
    if amount >= _LARGEST:
        raise ValueError(f'"{text[:60]}" is more than any node has')
    return amount, match[2].upper()
