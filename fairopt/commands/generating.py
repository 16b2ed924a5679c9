"""``fairopt generate``: write a random instance, or list the generators."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

import fairopt as fo
from fairopt.commands import completion
from fairopt.commands.console import check_instance, show, work
from fairopt.commands.outputs import Written
from fairopt.commands.registries import listed
from fairopt.generators.trees import OPTIONS
from fairopt.show.blocks import GAP, Block
from fairopt.show.table import Table, words

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
        show(lambda width: _list())
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


def _list() -> Iterator[Block]:
    """Yield a table of `GENERATORS`."""
    whats, parameters = [], []
    for draw in fo.GENERATORS.values():
        own = [each for each in inspect.signature(draw).parameters.values() if each.name != "seed"]
        named = [
            str(each.name) if each.default is None else f"{each.name}={each.default}" for each in own if each.kind is not each.VAR_KEYWORD
        ]
        more = ["those of that generator"] if any(each.kind is each.VAR_KEYWORD for each in own) else []
        whats.append((inspect.getdoc(draw) or "").partition("\n")[0].replace("`", ""))
        parameters.append(", ".join(named + more))
    yield Table.of(listed("generator", fo.GENERATORS), words("what it draws", whats), words("parameters", parameters), spaced=True)
    of_trees = ", ".join(f"{word}={value}" for word, value in OPTIONS.items() if word != "queues")
    yield GAP
    yield f"All of them also take queues=N, a random tree of N queues over the users, and then {of_trees}."
