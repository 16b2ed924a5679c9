"""``fairopt formulate``: the program of a notion on FILE, as mathematics to read or as a file that other solvers read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import fairopt as fo
from fairopt.commands import completion
from fairopt.commands.console import say
from fairopt.commands.delivering import as_text, deliver
from fairopt.commands.forms import check_file
from fairopt.commands.options import (
    Changes,
    File,
    Json,
    Rules,
    Sharing,
    read_instance,
)
from fairopt.commands.outputs import Written, forced
from fairopt.commands.shares import Shares
from fairopt.commands.working import work
from fairopt.files import refuse_existing, write_files
from fairopt.instance.aggregation import single_servers
from fairopt.program import Feature
from fairopt.solvers import model_files
from fairopt.specs import read_notion
from fairopt.tables.csv_files import to_csv
from fairopt.wording import plural

__all__ = ["formulate"]

_MODELS = (".mps", ".lp", ".nl")
_SUFFIXES = (*_MODELS, ".tex", ".txt")


def formulate(
    file: File,
    notion: Annotated[
        str,
        typer.Option(
            metavar="ID",
            help="Notion of fairness, with options as in proportional:alpha=2. See: fairopt notions.",
            autocompletion=completion.notions,
        ),
    ] = "drfh",
    sharing: Sharing = None,
    integral: Annotated[bool, typer.Option("--integral", help="The program of whole tasks.")] = False,
    shares: Shares = Shares(),
    changes: Changes = None,
    rules: Rules = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write a file: .mps and .lp hold linear goals; .nl holds others, too; .tex and .txt hold the mathematics. Default: print "
            "the mathematics.",
        ),
        Written(),
    ] = None,
    names: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a table, too: which column of the model is which pair (name, user, server)."),
        Written(),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the program of a notion on FILE, for other solvers or to read.

    A leximin takes several linear programs, and a model holds the first of them: it finds the smallest share. An answer of another solver
    is checked by fairopt audit --allocation.
    """
    suffix = _suffix(output, names)
    check_file(output, "--output")
    check_file(names, "--names")
    instance = read_instance(file, changes, rules)
    asked = read_notion(shares.of(notion))[1]
    program = work(f"formulating {notion}", lambda: fo.formulate(instance, asked, sharing=sharing, integral=integral))
    if output is None:
        deliver(as_text(program.to_dict()) if as_json else program.to_text(), None)
        return
    if suffix in _MODELS:
        found = work(f"writing {output}", lambda: model_files(program, suffix))
        contents: dict[Path, str | bytes] = {output.with_suffix(each): text for each, text in found.contents.items() if each != suffix}
        for path in contents:
            refuse_existing(path, force=forced())
        contents[output] = found.contents[suffix]
        if names is not None:
            numbers, labels = single_servers(instance)  # of which a program of whole tasks has one row each
            row_of = {label: instance.servers[i] for label, i in zip(labels, numbers, strict=True)} if integral else {}
            columns = [(name, user, row_of.get(server, server)) for name, user, server in found.columns]
            contents[names] = to_csv(["name", "user", "server"], columns)
        write_files(contents)
        written = [output, *(path for path in contents if path != output)]
        if program.goal.feature is Feature.LEXIMIN:
            say("note", f'"{program.name}" takes several linear programs; {output} is the first: it maximises the smallest share')
    else:
        write_files({output: f"\\[\n{program.to_latex()}\n\\]\n" if suffix == ".tex" else program.to_text()})
        written = [output]
    if as_json:
        deliver(as_text(program.to_dict() | {"files": [str(path) for path in written]}), None)
        return
    typer.echo(f"{', '.join(map(str, written))}: {plural(program.n_pairs, 'column')} of tasks, {plural(len(program.limits), 'limit')}")


def _suffix(output: Path | None, names: Path | None) -> str:
    """Return what the file is, after what is wrong with its name."""
    suffix = "" if output is None else output.suffix.lower()
    if output is not None and suffix not in _SUFFIXES:
        raise typer.BadParameter(f"{output} is no file of a model; end it with {', '.join(_SUFFIXES)}", param_hint="--output")
    if names is not None and suffix not in _MODELS:
        raise typer.BadParameter(f"names are those of a model; give -o a file that ends with {', '.join(_MODELS)}", param_hint="--names")
    return suffix
