"""``fairopt generate``: write a random instance, or list the generators."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated

import typer
from rich.padding import Padding
from rich.text import Text

import fairopt as fo
from fairopt.commands import completion
from fairopt.commands.console import Console, check_instance, work
from fairopt.commands.outputs import Written
from fairopt.commands.tables import simple_table
from fairopt.generators.trees import OPTIONS

__all__ = ["generate"]


def generate(
    spec: Annotated[
        str | None,
        typer.Argument(
            metavar="SPEC",
            autocompletion=completion.generators,
            help="Such as google:users=50:servers=100; without it, list the generators.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed draws the same instance.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The .yaml or .json file, or the folder of CSV tables, to write; needed with SPEC."
        ),
        Written(tables=True),
    ] = None,
) -> None:
    """Draw a random instance and write it; without SPEC, list the generators."""
    if spec is None:
        _list(Console(highlight=False))
        return
    if output is None:
        raise typer.BadParameter("say where to write it, such as -o cluster.yaml", param_hint="--output")
    if seed < 0:
        raise typer.BadParameter("give a whole number >= 0", param_hint="--seed")
    check_instance(output, "--output")
    from fairopt.specs import read_generator

    draw = read_generator(spec)
    instance = work(f"drawing {spec}", lambda: draw(seed))
    work(f"writing {output}", lambda: fo.save(instance, output))
    typer.echo(f"{output}: {instance!r}")


def _list(console: Console) -> None:
    """Print a table of `GENERATORS`."""
    table = simple_table("generator", "what it draws", "parameters", leading=1, first="ids")
    for name, draw in fo.GENERATORS.items():
        parameters = [each for each in inspect.signature(draw).parameters.values() if each.name != "seed"]
        named = [
            str(each.name) if each.default is None else f"{each.name}={each.default}"
            for each in parameters
            if each.kind is not each.VAR_KEYWORD
        ]
        more = ["those of that generator"] if any(each.kind is each.VAR_KEYWORD for each in parameters) else []
        what = (inspect.getdoc(draw) or "").partition("\n")[0].replace("`", "")
        table.add_row(Text(name, "bold"), Text(what), Text(", ".join(named + more)))
    console.print(table)
    of_trees = ", ".join(f"{word}={value}" for word, value in OPTIONS.items() if word != "queues")
    text = f"All of them also take queues=N, a random tree of N queues over the users, and then {of_trees}."
    console.print(Padding(Text(text), (1, 0, 0, 2)))
