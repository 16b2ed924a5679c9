"""``fairopt generate``: write a random instance, or list the generators."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

import fairopt as fo
from fairopt.commands import completion
from fairopt.commands.delivering import as_text, show
from fairopt.commands.forms import check_instance
from fairopt.commands.options import Json
from fairopt.commands.outputs import Written
from fairopt.commands.registries import listed, print_list
from fairopt.commands.working import work
from fairopt.generators.trees import OPTIONS
from fairopt.results import plain, result
from fairopt.show.blocks import GAP, Block
from fairopt.show.table import Table, words

__all__ = ["generate"]


def generate(
    spec: Annotated[
        str | None,
        typer.Argument(
            metavar="SPEC",
            autocompletion=completion.generators,
            help="What to draw, such as google:users=50:servers=100. Without it, the generators are listed.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed draws the same instance.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write the instance: .yaml, .json, .xlsx or a folder of CSV tables; needed with SPEC."
        ),
        Written(tables=True),
    ] = None,
    as_json: Json = False,
) -> None:
    """Draw a random instance and write it; without SPEC, list the generators."""
    if spec is None:
        if as_json:
            print_list("generators", [_entry(name, draw) for name, draw in fo.GENERATORS.items()])
        else:
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
    if not as_json:
        typer.echo(f"{output}: {instance!r}")
        return
    found = {
        "file": str(output),
        "users": instance.n_users,
        "servers": int(instance.counts.sum()),
        "server_rows": instance.n_servers,
        "resources": list(instance.resources),
        "queues": len(instance.queues),
    }
    typer.echo(as_text(result("generate", {"spec": spec, "seed": seed}, instance.units, found)), nl=False)


def _parameters(draw: Callable[..., Any]) -> tuple[dict[str, Any], bool]:
    """Return the parameters of a generator with their defaults, and whether it also takes those of another one."""
    parameters = [each for each in inspect.signature(draw).parameters.values() if each.name != "seed"]
    named = {each.name: None if each.default is each.empty else each.default for each in parameters if each.kind is not each.VAR_KEYWORD}
    return named, any(each.kind is each.VAR_KEYWORD for each in parameters)


def _what(draw: Callable[..., Any]) -> str:
    return (inspect.getdoc(draw) or "").partition("\n")[0].replace("`", "")


def _entry(name: str, draw: Callable[..., Any]) -> dict[str, Any]:
    """Return what JSON says of a generator."""
    named, more = _parameters(draw)
    return {"name": name, "title": _what(draw), "parameters": plain(named), "passes_on": more}


def _list() -> Iterator[Block]:
    """Yield a table of `GENERATORS`."""
    whats, parameters = [], []
    for draw in fo.GENERATORS.values():
        defaults, passes_on = _parameters(draw)
        named = [word if default is None else f"{word}={default}" for word, default in defaults.items()]
        whats.append(_what(draw))
        parameters.append(", ".join([*named, *(["those of that generator"] if passes_on else [])]))
    yield Table.of(listed("generator", fo.GENERATORS), words("what it draws", whats), words("parameters", parameters), spaced=True)
    of_trees = ", ".join(f"{word}={value}" for word, value in OPTIONS.items() if word != "queues")
    yield GAP
    yield (
        "All of them also take shared=N, N resources of the whole cluster, such as licences, "
        f"and queues=N, a random tree of N queues over the users, and then {of_trees}."
    )
