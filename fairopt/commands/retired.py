"""Spellings of the command line that have changed. Until 1.0 they still work, with a warning on stderr; help and completion leave them out.

`RETIRED` is read by the commands, by the reference of the command line and by the tests. What is more than a new name, such as
``schedule --criterion drfh --placement best-fit``, is a hidden option of its command; `REWRITTEN` lists it for the reference.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fairopt.commands.console import say
from fairopt.wording import joined

__all__ = ["RETIRED", "REWRITTEN", "warn_retired", "with_todays_spellings"]

_IMPORTS = ("kubernetes", "slurm", "yarn", "ray", "openb", "swf")
_EXPORTS = ("slurm", "kueue", "resourcequota", "volcano", "kai", "yunikorn", "yarn")

RETIRED: dict[str, dict[str, str]] = {
    "audit": {"--jobs": "--workers"},
    **{command: {"--user": "--show"} for command in ("solve", "schedule", "compare", "what-if")},
    "history": {"--keep": "--resume", "--users": "--owners", "--user": "--show", "--owner": "--show"},
    "simulate": {"--keep": "--resume", "--store": "--resume", "--exact": "--reference"},
    "arrivals": {"--jobs": "--workers", "--until": "--load", "--step": "--load-step"},
    "study": {"--jobs": "--workers", "--digits": "--mean-digits", "--output": "--resume", "-o": "--resume"},
    "worst-case": {"--jobs": "--workers", "--keep": "--keep-regret", "--output": "--instance", "-o": "--instance"},
    "reproduce": {"--jobs": "--workers", "--plot": "--plots"},
    **{f"import {system}": {"--users": "--owners"} for system in _IMPORTS},
    **{f"export {system}": {"--resource": "--resource-name"} for system in _EXPORTS},
}
"""By command: the old option and the new one."""
for _system in ("kubernetes", "slurm", "yarn", "openb", "swf"):
    RETIRED[f"import {_system}"]["--tasks"] = "--demand"
RETIRED["import swf"]["--nodes"] = "--node-count"
RETIRED["export slurm"]["--user"] = "--user-of"
RETIRED["export yarn"]["--scheduler"] = "--yarn-scheduler"

REWRITTEN = {
    "schedule FILE --criterion drfh --placement best-fit": "schedule FILE --schedule drfh:best-fit",
    "solve FILE --notion bbf --prefer utilization": "solve FILE --notion bbf:prefer=utilization",
    "simulate ... --billing partitions.txt": "simulate ... --partitions partitions.txt",
    "explain ... --billing partitions.txt": "explain ... --partitions partitions.txt",
    "compare FILE --what-if PATH=VALUE": "what-if FILE --set PATH=VALUE",
    "compare FILE OTHER": "what-if FILE OTHER",
    "simulate ... -o samples.parquet": "simulate ... --by time -o samples.parquet",
    "import slurm --window START END": "import slurm --window START/END",
}
"""Command lines whose grammar has changed."""

_PERIODS = {"import slurm": "--window"}  # options that took two values, START END, and now take one, START/END


def warn_retired(*old: str, new: str) -> None:
    """Say what is written instead of one spelling, or of several together."""
    say("warning", f"{joined(old)} {'is' if len(old) == 1 else 'are'} now {new}; {'it goes' if len(old) == 1 else 'they go'} away in 1.0")


def with_todays_spellings(command: str, parts: Iterable[Any], arguments: Sequence[str], *, quiet: bool) -> list[str]:
    """Return the arguments of a command with today's options in the place of former ones; with ``quiet`` without warnings."""
    names, period = RETIRED.get(command, {}), _PERIODS.get(command)
    if not names and period is None:
        return [*arguments]
    values = {word: part.nargs for part in parts if part.param_type_name == "option" and not part.is_flag for word in part.opts}
    return list(_renewed(arguments, names, values, period, quiet))


def _renewed(
    arguments: Sequence[str], names: Mapping[str, str], values: Mapping[str, int], period: str | None, quiet: bool
) -> Iterator[str]:
    """Yield the arguments with today's options. What follows an option is its value, and stays.

    >>> names, values = {"--jobs": "--workers"}, {"--workers": 1, "--title": 1}
    >>> list(_renewed(["--jobs", "2", "--title", "--jobs", "--", "--jobs"], names, values, None, True))
    ['--workers', '2', '--title', '--jobs', '--', '--jobs']
    >>> list(_renewed(["--window", "0", "-ofile", "--window", "0", "9"], {"-o": "--resume"}, {}, "--window", True))
    ['--window=0', '--resume=file', '--window=0/9']
    """
    rest = deque(arguments)
    while rest:
        argument = rest.popleft()
        if argument == "--":
            yield argument
            yield from rest
            return
        word, equals, value = argument.partition("=")
        if argument[:2] in names and word != argument[:2] and not argument.startswith("--"):  # -oFILE
            word, equals, value = argument[:2], "=", argument[2:]
        if (new := names.get(word)) is not None:
            if not quiet:
                warn_retired(word, new=new)
            argument, word = f"{new}{equals}{value}", new
        if word == period:
            start = value if equals or not rest else rest.popleft()
            ends_there = "/" in start or not start or not rest or rest[0].startswith("-")  # no time begins with a dash
            end = "" if ends_there else rest.popleft()
            if end and not quiet:
                warn_retired(f"{word} START END", new=f"{word} START/END")
            yield f"{word}={start}/{end}" if end else f"{word}={start}"
            continue
        yield argument
        for _ in range(0 if equals else min(values.get(word, 0), len(rest))):
            yield rest.popleft()
