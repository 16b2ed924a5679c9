"""Pages that run: what a Markdown page shows is what happens.

A page is one session in a folder of its own, from its first block to its last:

* ``python`` with ``>>>``: run by doctest, in one namespace for the page; ``...`` stands for anything, and a space for any number of them.
* ``console``: each line ``$ fairopt ...`` is run, and what follows it, up to the next, compared with what is printed, ``...`` again for
  anything; nothing there is compared with nothing. What begins with "error:" is an error, with an exit status of its own.
* a block with a ``:caption:`` is a file of that name, which later blocks read.
* other languages in `SHOWN` are only shown.
"""

from __future__ import annotations

import doctest
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from fairopt.cli import app

__all__ = ["SHOWN", "Block", "blocks", "run_block", "run_command", "run_python"]

SHOWN = {"", "sh", "text", "yaml", "json"}
_FENCE = re.compile(r"^(?P<fence>`{3,})(?P<head>[^\n`]*)\n(?P<body>.*?)^(?P=fence)$", re.DOTALL | re.MULTILINE)
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE  # tables are padded to the width of their columns
_DIRECTIVE = re.compile(r"\{code-block\}\s*(\w+)")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, the file that it is (if it is one), its text, and its line in the page."""

    language: str
    caption: str
    text: str
    line: int


def blocks(page: str) -> Iterator[Block]:
    """Yield the blocks of code of a page; directives other than ``code-block`` are none."""
    for found in _FENCE.finditer(page):
        head, body = found["head"].strip(), found["body"]
        line, caption = page[: found.start()].count("\n") + 2, ""
        if head.startswith("{"):
            named = _DIRECTIVE.fullmatch(head)
            if named is None:
                continue
            head = named[1]
            options = re.match(r"(?:^:[^\n]*\n)*\n?", body, re.MULTILINE)
            assert options is not None
            caption = next(iter(re.findall(r"^:caption: (.+)$", options[0], re.MULTILINE)), "")
            body, line = body[options.end() :], line + options[0].count("\n")
        yield Block(head, caption, body, line)


def run_block(block: Block, names: dict[str, Any]) -> list[str]:
    """Run a block in the current folder; return what is not as the page says."""
    if block.caption:
        Path(block.caption).parent.mkdir(parents=True, exist_ok=True)
        Path(block.caption).write_text(block.text)
        return []
    if block.language == "python":
        return run_python(block.text, names, block.line)
    if block.language == "console":
        return list(_differences(block))
    return [] if block.language in SHOWN else [f"line {block.line}: nothing runs or shows {block.language}"]


def run_python(source: str, names: dict[str, Any], line: int = 0) -> list[str]:
    """Run examples by doctest, in these names; return the failures."""
    test = doctest.DocTestParser().get_doctest(source, {}, "page", None, line)
    test.globs = names
    if not test.examples:
        return [f"line {line}: Python that does not run: write it as >>> examples"]
    report: list[str] = []
    doctest.DocTestRunner(optionflags=_FLAGS).run(test, out=report.append, clear_globs=False)
    return report


def run_command(command: str) -> tuple[int, str]:
    """Run one line of the command line; return its exit status and what it prints."""
    program, *arguments = shlex.split(command)
    assert program == "fairopt", f"this is not ours to run: {command}"
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.output


def _differences(block: Block) -> Iterator[str]:
    for text in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, expected = re.sub(r"\\\n\s*", " ", text).partition("\n")
        status, output = run_command(command)
        if (status != 0) != expected.startswith("error:"):
            yield f"line {block.line}: {command}: exit status {status}\n{output}"
        printed = _trimmed(output)
        if expected.strip() and not doctest.OutputChecker().check_output(_trimmed(expected), printed, _FLAGS):
            yield f"line {block.line}: {command} prints\n{printed}and not\n{_trimmed(expected)}"


def _trimmed(text: str) -> str:
    """Without spaces at the ends of lines and empty lines at both ends; the length of a rule follows from the widths of columns."""
    return re.sub("─+", "─", "\n".join(line.rstrip() for line in text.strip("\n").splitlines())) + "\n"
