"""The small languages in PBS's answers: sizes, chunks of ``select``, ``exec_vnode``, indices of arrays, limits.

>>> chunks("2:ncpus=8:mem=16gb:ngpus=1+bigmem=True")
[Chunk(number=2, amounts={'cpu': 8.0, 'memory': 16.0, 'gpu': 1.0}, words={}), Chunk(number=1, amounts={}, words={'bigmem': 'true'})]
>>> vnodes_of("(n1:ncpus=2:mem=1048576kb)+(n2[0]:ncpus=1+n2[1]:ncpus=1)")
[[('n1', {'cpu': 2.0, 'memory': 1.0})], [('n2[0]', {'cpu': 1.0}), ('n2[1]', {'cpu': 1.0})]]
>>> indices("0-9:3,20"), state_counts("Queued:3 Running:2 Exiting:0 Expired:1 ")
(5, {'queued': 3, 'running': 2, 'exiting': 0, 'expired': 1})
>>> run_limits("[u:PBS_GENERIC=8],[u:ann=16], [o:PBS_ALL=64]")
[('u', 'PBS_GENERIC', '8'), ('u', 'ann', '16'), ('o', 'PBS_ALL', '64')]
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

__all__ = [
    "Chunk",
    "amount",
    "chunks",
    "cpus_of_hosts",
    "indices",
    "is_amount",
    "is_size",
    "renamed",
    "run_limits",
    "select_of_nodes",
    "state_counts",
    "vnodes_of",
]

_NAMES = {"ncpus": "cpu", "mem": "memory", "ngpus": "gpu"}
_SIZE = re.compile(r"(\d{1,18})([kmgtp]?)([bw])", re.ASCII | re.IGNORECASE)
_BARE = re.compile(r"\d{1,18}", re.ASCII)
_NUMBER = re.compile(r"\d{1,18}(\.\d{1,18})?", re.ASCII)
_IN_BYTES = ("mem", "vmem", "pmem", "pvmem")  # of type size, whose numbers without a suffix are bytes
_OF_WORD = {"b": 1, "w": 8}
_LIMIT = re.compile(r"\[\s*([ugpo])\s*:\s*([^=\]]+?)\s*=\s*([^\]]+?)\s*\]")
_INDICES = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", re.ASCII)
_HOST = re.compile(r"(?P<host>[^/]+)/(?P<cpus>\d{1,9}(?:[-,]\d{1,9})*)(?:\*(?P<number>\d{1,9}))?", re.ASCII)
_CPUS = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)
_LONGEST = 10_000_000
SAYS_NOTHING = ("mpiprocs", "ompthreads")  # of a chunk: processes and threads, which hold no more than its CPUs


@dataclass(frozen=True, slots=True)
class Chunk:
    """Chunks of a job that are alike.

    Attributes
    ----------
    number : int
    amounts : dict
        What each holds, memory in GiB, under the names of the instance.
    words : dict
        What its host must have, in small letters: ``arch=linux``, ``bigmem=true``.
    """

    number: int
    amounts: dict[str, float] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)


def renamed(resource: str) -> str:
    """Return the name of a resource in an instance."""
    return _NAMES.get(resource, resource)


def is_amount(resource: str) -> bool:
    """Return whether a resource of PBS is never a word."""
    return resource in _NAMES or resource in _IN_BYTES


def is_size(text: object) -> bool:
    """Return whether a value is a size in bytes or words, such as 16gb."""
    return isinstance(text, str) and _SIZE.fullmatch(text.strip()) is not None


def amount(text: str, resource: str = "") -> float | None:
    """Return an amount, a size in GiB; None if it is another text.

    >>> amount("16777216kb"), amount("2"), amount("1073741824", "mem"), amount("linux")
    (16.0, 2.0, 1.0, None)
    """
    text = text.strip()
    if match := _SIZE.fullmatch(text):
        return int(match[1]) * _OF_WORD[match[3].lower()] * 1024.0 ** (" kmgtp".index(match[2].lower() or " ") - 3)
    if resource in _IN_BYTES and _BARE.fullmatch(text):
        return int(text) / 2**30
    return float(text) if _NUMBER.fullmatch(text) else None


@lru_cache(maxsize=4096)
def chunks(text: str) -> list[Chunk]:
    """Return the chunks of a ``select``; many jobs have the same, so nobody changes them.

    Raises
    ------
    ValueError
        It is none.
    """
    return [_chunk(each) for each in _split(text, "+")]


def select_of_nodes(text: str) -> str:
    """Return the ``select`` of a job that asks for nodes in the older way: how many, or a host, each with ``ppn`` CPUs and ``gpus`` GPUs.

    >>> select_of_nodes("2:ppn=4+gpu07:ppn=8:gpus=2")
    '2:ncpus=4+1:host=gpu07:ncpus=8:ngpus=2'

    Raises
    ------
    ValueError
        It asks for something else, such as a property of nodes.
    """
    found = []
    for each in _split(text, "+"):
        first, *rest = _split(each, ":")
        asked = [first] if _BARE.fullmatch(first) else ["1", f"host={first}"]
        given = dict(word.partition("=")[::2] for word in rest)
        if strange := [word for word in given if word not in ("ppn", "gpus")]:
            raise ValueError(f'"{strange[0][:40]}" of nodes is not known here; ask for chunks instead (select)')
        asked += [f"ncpus={given.get('ppn', '1')}", *([f"ngpus={given['gpus']}"] if "gpus" in given else [])]
        found.append(":".join(asked))
    chunks("+".join(found))
    return "+".join(found)


def _chunk(text: str) -> Chunk:
    first, *rest = _split(text, ":")
    number = 1
    if _BARE.fullmatch(first):
        number = int(first)
    else:
        rest = [first, *rest]
    if not 0 < number <= _LONGEST:
        raise ValueError(f"{number} chunks")
    amounts: dict[str, float] = {}
    words: dict[str, str] = {}
    for each in rest:
        name, value = _pair(each)
        found = amount(value, name)
        if name in SAYS_NOTHING:
            continue
        if found is None:
            if is_amount(name):
                raise ValueError(f'"{each[:40]}" is no amount, such as 8 or 16gb')
            words[name] = value.lower()
        else:
            amounts[renamed(name)] = found
    return Chunk(number, amounts, words)


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.strip().partition("=")
    value = value.strip("\"' ")
    if not (sign and name.strip() and value):
        raise ValueError(f'"{text[:40]}" is not RESOURCE=VALUE')
    return name.strip(), value


def _split(text: str, mark: str) -> list[str]:
    """Divide a text at a mark that is not between quotes."""
    parts, quote = [""], ""
    for character in text:
        if not quote and character == mark:
            parts.append("")
            continue
        if character in "\"'" and quote in ("", character):
            quote = "" if quote else character
        parts[-1] += character
    if quote or not all(map(str.strip, parts)):
        raise ValueError("it is cut off")
    return [part.strip() for part in parts]


def vnodes_of(text: str) -> list[list[tuple[str, dict[str, float]]]]:
    """Return what each chunk of an ``exec_vnode`` holds, by vnode.

    Raises
    ------
    ValueError
        It is none.
    """
    text = text.strip()
    groups = text[1:-1].split(")+(") if text.startswith("(") and text.endswith(")") else text.split("+")
    return [[_vnode(each) for each in group.split("+")] for group in groups]


def _vnode(text: str) -> tuple[str, dict[str, float]]:
    name, *rest = text.split(":")
    if not name.strip() or set(text) & set("()"):
        raise ValueError(f'"{text[:40]}" is not VNODE:RESOURCE=AMOUNT')
    amounts = {}
    for each in rest:
        resource, value = _pair(each)
        found = amount(value, resource)
        if found is not None and resource not in SAYS_NOTHING:
            amounts[renamed(resource)] = found
    return name.strip(), amounts


def indices(text: str) -> int:
    """Return how many indices of an array a text lists.

    Raises
    ------
    ValueError
        It lists none.
    """
    total = 0
    for each in filter(None, text.replace(" ", "").split(",")):
        match = _INDICES.fullmatch(each)
        if match is None:
            raise ValueError(f'"{each[:40]}" is not a range of indices')
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if last < first or not step:
            raise ValueError(f'"{each[:40]}" is not a range of indices')
        total += (last - first) // step + 1
    return total


def state_counts(text: str) -> dict[str, int]:
    """Return the number of subjobs by state.

    Raises
    ------
    ValueError
        It has no such numbers.
    """
    found = {}
    for each in text.split():
        state, _, number = each.partition(":")
        if not (number.isascii() and number.isdigit() and len(number) < 10):
            raise ValueError(f'"{each[:40]}" is not STATE:NUMBER')
        found[state.lower()] = int(number)
    return found


def run_limits(text: str) -> list[tuple[str, str, str]]:
    """Return whose limits an attribute such as ``max_run_res`` has: u, g, p or o, the name, the bound.

    Raises
    ------
    ValueError
        It has none.
    """
    found = [(match[1], match[2].strip("\"'"), match[3].strip("\"'")) for match in _LIMIT.finditer(text)]
    if not found or re.sub(r"[,\s]", "", _LIMIT.sub("", text)):
        raise ValueError("it is no list of limits such as [u:PBS_GENERIC=8]")
    return found


def cpus_of_hosts(text: str, memory: str = "") -> list[list[tuple[str, dict[str, float]]]]:
    """Return what a job holds by host where only ``exec_host`` says it: its CPUs, and an even part of the memory.

    >>> cpus_of_hosts("n1/0*2+n2/0*2", "8gb"), cpus_of_hosts("n1/3+n1/2")
    ([[('n1', {'cpu': 2.0, 'memory': 4.0})], [('n2', {'cpu': 2.0, 'memory': 4.0})]], [[('n1', {'cpu': 2.0})]])

    Raises
    ------
    ValueError
        It is no such list.
    """
    cpus: dict[str, float] = {}
    for each in text.split("+"):
        match = _HOST.fullmatch(each)
        if match is None:
            raise ValueError(f'"{each[:40]}" is not HOST/CPU or HOST/CPU*NUMBER')
        ranges = [(int(first), int(last or first)) for first, last in _CPUS.findall(match["cpus"])]
        if any(last < first for first, last in ranges):
            raise ValueError(f'"{each[:40]}" has a range of CPUs that ends before it begins')
        number = int(match["number"]) if match["number"] else sum(last - first + 1 for first, last in ranges)
        cpus[match["host"]] = cpus.get(match["host"], 0.0) + number
    total, whole = sum(cpus.values()), amount(memory, "mem")
    part = {"memory": (whole or 0.0) / total} if whole and total else {}
    return [[(host, {"cpu": number} | {name: each * number for name, each in part.items()})] for host, number in cpus.items()]
