"""``fairopt notions | solvers | placements | schedulers | schema``: the choices that other commands offer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer
from rich.text import Text

import fairopt as fo
from fairopt.commands.console import Console, as_text
from fairopt.commands.options import Json
from fairopt.commands.tables import simple_table
from fairopt.models.notion import Condition
from fairopt.papers.references import bibtex
from fairopt.registry import Registry
from fairopt.results import result

__all__ = ["notions", "placements", "print_list", "schedulers", "schema", "solvers"]


def placements(as_json: Json = False) -> None:
    """List the placements of schedules, and the criteria that are not notions."""
    entries: dict[str, Registry[Any]] = {"placement": fo.PLACEMENTS, "criterion": fo.CRITERIA}
    if as_json:
        listed = [
            _entry(name, entry, registry) | {"kind": kind, "source": getattr(entry, "source", "")}
            for kind, registry in entries.items()
            for name, entry in registry.items()
        ]
        print_list("placements", listed)
    else:
        _print_placements(Console(highlight=False))


def schedulers(as_json: Json = False) -> None:
    """List the schedulers that fairopt simulate follows."""
    from fairopt.simulation.schedulers import KINDS
    from fairopt.simulation.schedulers import schedulers as listed

    if as_json:
        print_list(
            "schedulers",
            [{"name": each.id, "kind": each.kind, "title": each.title, "example": each.example} for each in listed()],
        )
        return
    console = Console(highlight=False)
    for kind, what in KINDS.items():
        table = simple_table(kind, what, "example", leading=1, first="ids")
        for each in listed():
            if each.kind == kind:
                table.add_row(Text(each.id, "bold"), Text(each.title), Text(each.example))
        console.print(table)
        console.print()
    console.print(Text("For example: fairopt simulate jobs.csv --cluster cluster.yaml --scheduler drfh:best-fit --scheduler backfill"))


def notions(
    as_json: Json = False, as_bibtex: Annotated[bool, typer.Option("--bibtex", help="Print the sources as BibTeX.")] = False
) -> None:
    """List the notions of fairness: what each is, what is proved of it, and its source."""
    if as_bibtex:
        typer.echo(bibtex(key for notion in (*fo.NOTIONS.values(), *fo.CRITERIA.values()) for key in notion.references), nl=False)
    elif as_json:
        listed = [
            _entry(name, notion, fo.NOTIONS)
            | {
                "satisfies": {promise.value: source for promise, source in notion.satisfies.items()},
                "conditions": [condition.value for condition in Condition if condition in notion.conditions],
                "source": getattr(notion, "source", ""),
            }
            for name, notion in fo.NOTIONS.items()
        ]
        print_list("notions", listed)
    else:
        _print_notions(Console(highlight=False))


def solvers(as_json: Json = False) -> None:
    """List the engines: what each solves, and how to install a missing one."""
    if as_json:
        listed = [
            _entry(name, engine, fo.SOLVERS)
            | {
                "features": sorted(feature.value for feature in engine.features),
                "installed": engine.available(),
                "install": engine.requirement,
            }
            for name, engine in fo.SOLVERS.items()
        ]
        print_list("solvers", listed)
    else:
        _print_solvers(Console(highlight=False))


def schema(
    of: Annotated[
        Literal["instance", "result"], typer.Argument(metavar="[result]", help="result: of what commands print with --json.")
    ] = "instance",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, as it always does.")] = False,
) -> None:
    """Print the JSON Schema of instance files, or of results, for editors and validators."""
    from fairopt.formats import schema as of_instances
    from fairopt.results.schema import schema as of_results

    typer.echo(as_text(of_results(of_instances()) if of == "result" else of_instances()), nl=False)


def print_list(command: str, entries: list[dict[str, Any]]) -> None:
    """Print a list of choices as JSON."""
    typer.echo(as_text(result(command, {}, {}, {command: entries})), nl=False)


def _entry(name: str, entry: Any, registry: Registry[Any]) -> dict[str, Any]:
    """Return what every list says of an entry."""
    return {"name": name, "id": name, "title": getattr(entry, "title", ""), "from": registry.source(name)}  # id: until 1.0


def _what(entry: Any, source: str) -> Text:
    """Return the title of an entry, its source in the literature, and where it comes from if that is not fairopt."""
    title = getattr(entry, "title", "") or (entry.__doc__ or "a function").strip().partition("\n")[0]
    parts = [title, *filter(None, [getattr(entry, "source", "")]), *([f"from {source}"] if source != "fairopt" else [])]
    text = Text(parts[0])
    for part in parts[1:]:
        text.append(f"\n{part}", "dim")
    return text


def _print_notions(console: Console) -> None:
    """Print a table of `NOTIONS`."""
    table = simple_table("notion", "what it is, and its source", "promises", leading=1, first="ids")
    for name, notion in fo.NOTIONS.items():
        what = _what(notion, fo.NOTIONS.source(name))
        table.add_row(Text(name, "bold"), what, Text(", ".join(promise.value for promise in notion.satisfies) or "nothing proved"))
    console.print(table)


def _print_placements(console: Console) -> None:
    """Print a table of `PLACEMENTS`, and of the criteria that are not notions."""
    registries: dict[str, Registry[Any]] = {"placement": fo.PLACEMENTS, "criterion": fo.CRITERIA}
    for title, registry in registries.items():
        table = simple_table(title, "what it is, and its source", leading=1, first="ids")
        for name, entry in registry.items():
            what = _what(entry, registry.source(name))
            table.add_row(Text(name, "bold"), what)
        console.print(table)
        console.print()
    console.print(Text("Every notion that equalises a share is a criterion, too. List them with: fairopt notions"))


def _print_solvers(console: Console) -> None:
    """Print a table of `SOLVERS`."""
    table = simple_table("solver", "what it is", "solves programs with", "installed", leading=1, first="ids")
    for name, engine in fo.SOLVERS.items():
        abilities = "\n".join(sorted(feature.value for feature in engine.features))
        table.add_row(
            Text(name, "bold"),
            _what(engine, fo.SOLVERS.source(name)),
            Text(abilities),
            Text("yes" if engine.available() else engine.requirement),
        )
    console.print(table)
