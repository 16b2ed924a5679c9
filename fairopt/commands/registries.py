"""``fairopt notions | solvers | placements | schedulers | schema``: the choices that other commands offer."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

import typer

import fairopt as fo
from fairopt.commands.delivering import as_text, show
from fairopt.commands.options import Json
from fairopt.models.notion import Condition
from fairopt.papers.references import bibtex
from fairopt.registry import Registry
from fairopt.results import result
from fairopt.show.blocks import GAP, Block, Note
from fairopt.show.table import Column, Table, ids, words

__all__ = ["listed", "notions", "placements", "print_list", "schedulers", "schema", "solvers"]


def placements(as_json: Json = False) -> None:
    """List the placements of schedules, the criteria that are not notions, and the baselines."""
    entries = _of_schedules()
    if as_json:
        found = [
            _entry(name, entry, registry) | {"kind": kind, "source": getattr(entry, "source", "")}
            for kind, registry in entries.items()
            for name, entry in registry.items()
        ]
        print_list("placements", found)
    else:
        show(lambda width: _placements())


def schedulers(as_json: Json = False) -> None:
    """List the schedulers that fairopt simulate follows."""
    from fairopt.simulation.schedulers import schedulers as every

    if as_json:
        print_list(
            "schedulers",
            [{"name": each.id, "kind": each.kind, "title": each.title, "example": each.example} for each in every()],
        )
    else:
        show(lambda width: _schedulers())


def notions(
    as_json: Json = False, as_bibtex: Annotated[bool, typer.Option("--bibtex", help="Print the sources as BibTeX.")] = False
) -> None:
    """List the notions of fairness: what each is, what is proved of it, and its source."""
    if as_bibtex:
        typer.echo(bibtex(key for notion in (*fo.NOTIONS.values(), *fo.CRITERIA.values()) for key in notion.references), nl=False)
    elif as_json:
        found = [
            _entry(name, notion, fo.NOTIONS)
            | {
                "satisfies": {promise.value: source for promise, source in notion.satisfies.items()},
                "conditions": [condition.value for condition in Condition if condition in notion.conditions],
                "source": getattr(notion, "source", ""),
            }
            for name, notion in fo.NOTIONS.items()
        ]
        print_list("notions", found)
    else:
        show(lambda width: _notions())


def solvers(as_json: Json = False) -> None:
    """List the engines: what each solves, and how to install a missing one."""
    if as_json:
        found = [
            _entry(name, engine, fo.SOLVERS)
            | {
                "features": sorted(feature.value for feature in engine.features),
                "installed": engine.available(),
                "install": engine.requirement,
            }
            for name, engine in fo.SOLVERS.items()
        ]
        print_list("solvers", found)
    else:
        show(lambda width: _solvers())


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


def listed(title: str, names: Iterable[str]) -> Column:
    """Return the column of the names of a registry."""
    every = tuple(names)
    return ids(title, every, styles=("strong",) * len(every))


def _what(registry: Registry[Any]) -> Column:
    """Return the titles of entries, their sources in the literature, and where they come from if that is not fairopt."""
    cells = []
    for name, entry in registry.items():
        title = getattr(entry, "title", "") or (entry.__doc__ or "a function").strip().partition("\n")[0]
        source = registry.source(name)
        cells.append((title, *filter(None, [getattr(entry, "source", "")]), *([f"from {source}"] if source != "fairopt" else [])))
    return words("what it is, and its source", cells)


def _notions() -> Iterator[Block]:
    """Yield a table of `NOTIONS`."""
    promises = (", ".join(promise.value for promise in notion.satisfies) or "nothing proved" for notion in fo.NOTIONS.values())
    yield Table.of(listed("notion", fo.NOTIONS), _what(fo.NOTIONS), words("promises", promises), spaced=True)


def _placements() -> Iterator[Block]:
    """Yield a table of `PLACEMENTS`, of the criteria that are not notions, and of `BASELINES`."""
    for title, registry in _of_schedules().items():
        more = [words("what is proved", (each.guarantee for each in registry.values()))] if title == "baseline" else []
        yield Table.of(listed(title, registry), _what(registry), *more, spaced=True)
        yield GAP
    yield "Every notion that equalises a share is a criterion, too. List them with: fairopt notions"


def _of_schedules() -> dict[str, Registry[Any]]:
    """Return what a schedule is written with, by kind."""
    return {"placement": fo.PLACEMENTS, "criterion": fo.CRITERIA, "baseline": fo.BASELINES}


def _solvers() -> Iterator[Block]:
    """Yield a table of `SOLVERS`."""
    engines = list(fo.SOLVERS.values())
    yield Table.of(
        listed("solver", fo.SOLVERS),
        dataclasses.replace(_what(fo.SOLVERS), title="what it is"),
        words("solves programs with", (tuple(sorted(feature.value for feature in engine.features)) for engine in engines)),
        words("installed", ("yes" if engine.available() else engine.requirement for engine in engines)),
        spaced=True,
    )


def _schedulers() -> Iterator[Block]:
    """Yield a table for each kind of scheduler."""
    from fairopt.simulation.schedulers import KINDS
    from fairopt.simulation.schedulers import schedulers as every

    for kind, what in KINDS.items():
        own = [each for each in every() if each.kind == kind]
        titles = words("what it does", (each.title for each in own))
        yield Note(what, lead=f"{kind}: ")
        yield Table.of(listed("scheduler", (each.id for each in own)), titles, ids("example", tuple(each.example for each in own)))
        yield GAP
    yield "For example: fairopt simulate jobs.csv --cluster cluster.yaml --scheduler drfh:best-fit --scheduler backfill"
