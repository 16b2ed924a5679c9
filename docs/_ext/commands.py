"""The reference of the command line, written from the commands.

```{commands}
```
    a section for each command: what it does, its usage, arguments and options, and its example.
```{retired}
```
    a table of the spellings that have changed.
"""

from __future__ import annotations

import re
from typing import Any

import typer
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from fairopt.cli import app as program
from fairopt.commands.retired import RETIRED, REWRITTEN


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("commands", Commands)
    app.add_directive("retired", Retired)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Commands(SphinxDirective):
    """Every command."""

    def run(self) -> list[nodes.Node]:
        """Write them as Markdown."""
        group: Any = typer.main.get_command(program)
        return self.parse_text_to_nodes(
            "\n\n".join(section(name, command) for name, command in _leaves("", group)), allow_section_headings=True
        )


class Retired(SphinxDirective):
    """Every spelling that has changed."""

    def run(self) -> list[nodes.Node]:
        """Write them as a table in Markdown."""
        return self.parse_text_to_nodes(retired())


def retired() -> str:
    """Return the table: old, new, and the commands; those that changed in the same way are one row."""
    rows: dict[tuple[str, str], list[str]] = {}
    for command, names in RETIRED.items():
        for old, new in names.items():
            rows.setdefault((old, new), []).append(command)
    lines = ["| until 1.0 also | now | in |", "|---|---|---|"]
    lines += [f"| `{old}` | `{new}` | {_joined(commands)} |" for (old, new), commands in sorted(rows.items())]
    lines += [f"| `fairopt {old}` | `fairopt {new}` | |" for old, new in REWRITTEN.items()]
    return "\n".join(lines)


def _joined(commands: list[str]) -> str:
    """Return the names of commands; of groups, the group once."""
    shown, groups = [], {name.split()[0] for name in commands if " " in name}
    for group in sorted(groups):
        leaves = [name.split()[1] for name in commands if name.startswith(f"{group} ")]
        shown.append(f"`{group}` ({', '.join(leaves)})")
    return ", ".join([*(f"`{name}`" for name in commands if " " not in name), *shown])


def _leaves(prefix: str, group: Any) -> list[tuple[str, Any]]:
    """Return commands by their full name; a command may have commands of its own."""
    found: list[tuple[str, Any]] = []
    for name in group.commands:
        command = group.resolve_command(typer.Context(group), [name])[1]
        full = f"{prefix} {name}".strip()
        found += _leaves(full, command) if hasattr(command, "commands") else [(full, command)]
    return found


def section(name: str, command: Any) -> str:
    """Return the section of one command, with its options in the panels of its ``--help``."""
    parts = [part for part in command.get_params(typer.Context(command)) if not part.hidden and "--help" not in part.opts]
    arguments = [part for part in parts if part.param_type_name == "argument"]
    panels: dict[str, list[Any]] = {"Options": []}  # those without a panel come first
    for part in parts:
        if part.param_type_name == "option":
            panels.setdefault(part.rich_help_panel or "Options", []).append(part)
    words = " ".join(_words(argument) for argument in arguments)
    lines = [f"### fairopt {name}", "", _plain(command.help), "", "```text", f"fairopt {name} [OPTIONS] {words}".rstrip(), "```", ""]
    for panel, inside in {"": arguments, **panels}.items():
        if panel and len(panels) > 1 and inside:
            lines += [f"**{panel}**", ""]
        for part in inside:
            lines += [f"`{_term(part)}`", f": {_plain(getattr(part, 'help', None)) or 'See above.'}{_default(part)}", ""]
    if command.epilog:
        lines += [f"Example: `{command.epilog.removeprefix('Example: ')}`", ""]
    return "\n".join(lines)


def _words(argument: Any) -> str:
    word = _metavar(argument)
    return f"{word}{'...' if argument.nargs == -1 else ''}" if argument.required else f"[{word}{'...' if argument.nargs == -1 else ''}]"


def _metavar(part: Any) -> str:
    return str(part.metavar or part.name.upper()).strip("{}[]")


def _term(part: Any) -> str:
    if part.param_type_name == "argument":
        return _metavar(part)
    names = ", ".join((*part.opts, *part.secondary_opts))
    return names if part.is_flag else f"{names} {_metavar(part)}"


def _default(part: Any) -> str:
    value = part.default
    if part.required or value is None or callable(value) or value in (False, True, "", (), []):
        return ""
    return f" Default: `{' '.join(map(str, value)) if isinstance(value, list | tuple) else value}`."


def _plain(text: str | None) -> str:
    """Return help as Markdown: signs that would be markup are kept as signs, and options are code."""
    kept = "".join("\\" + sign if sign in r"*_<>[]|" else sign for sign in (text or "").replace("\b", "").strip())
    return re.sub(r"--[\w-]+", r"`\g<0>`", kept)
