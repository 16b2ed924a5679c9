"""``fairopt notions | solvers | placements | schedulers | schema``: the choices that other commands offer."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import typer

import fairopt as fo
from fairopt.commands.console import as_text, show
from fairopt.commands.options import Json
from fairopt.models.notion import Condition
from fairopt.papers.references import bibtex
from fairopt.registry import Registry
from fairopt.show.blocks import GAP, Block
from fairopt.show.table import Column, Table, ids, words

__all__ = ["listed", "notions", "placements", "schedulers", "schema", "solvers"]


def placements(as_json: Json = False) -> None:
    """List the placements of schedules, and the criteria that are not notions."""
    entries: dict[str, Registry[Any]] = {"placement": fo.PLACEMENTS, "criterion": fo.CRITERIA}
    if as_json:
        listed = [
            {
                "id": name,
                "kind": kind,
                "title": getattr(entry, "title", ""),
                "source": getattr(entry, "source", ""),
                "from": registry.source(name),
            }
            for kind, registry in entries.items()
            for name, entry in registry.items()
        ]
        typer.echo(as_text(listed), nl=False)
    else:
        show(lambda width: _placements())


def schedulers(as_json: Json = False) -> None:
    """List the schedulers that fairopt simulate follows."""
    from fairopt.simulation.schedulers import schedulers as every

    if as_json:
        typer.echo(as_text([dataclasses.asdict(each) for each in every()]), nl=False)
    else:
        show(lambda width: _schedulers())


def notions(
    as_json: Json = False, as_bibtex: Annotated[bool, typer.Option("--bibtex", help="Print the sources as BibTeX.")] = False
) -> None:
    """List the notions of fairness: what each is, what is proved of it, and its source."""
    if as_bibtex:
        typer.echo(bibtex(key for notion in (*fo.NOTIONS.values(), *fo.CRITERIA.values()) for key in notion.references), nl=False)
    elif as_json:
        typer.echo(
            as_text(
                [
                    {
                        "id": name,
                        "title": getattr(notion, "title", ""),
                        "satisfies": {promise.value: source for promise, source in notion.satisfies.items()},
                        "conditions": [condition.value for condition in Condition if condition in notion.conditions],
                        "source": getattr(notion, "source", ""),
                        "from": fo.NOTIONS.source(name),
                    }
                    for name, notion in fo.NOTIONS.items()
                ]
            ),
            nl=False,
        )
    else:
        show(lambda width: _notions())


def solvers(as_json: Json = False) -> None:
    """List the engines: what each solves, and how to install a missing one."""
    if as_json:
        typer.echo(
            as_text(
                [
                    {
                        "id": name,
                        "title": getattr(engine, "title", ""),
                        "features": sorted(feature.value for feature in engine.features),
                        "installed": engine.available(),
                        "install": engine.requirement,
                        "from": fo.SOLVERS.source(name),
                    }
                    for name, engine in fo.SOLVERS.items()
                ]
            ),
            nl=False,
        )
    else:
        show(lambda width: _solvers())


def schema() -> None:
    """Print the JSON Schema of instance files, for editors and validators."""
    from fairopt.formats import schema as describe

    typer.echo(as_text(describe()), nl=False)


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
    """Yield a table of `PLACEMENTS`, and of the criteria that are not notions."""
    registries: dict[str, Registry[Any]] = {"placement": fo.PLACEMENTS, "criterion": fo.CRITERIA}
    for title, registry in registries.items():
        yield Table.of(listed(title, registry), _what(registry), spaced=True)
        yield GAP
    yield "Every notion that equalises a share is a criterion, too. List them with: fairopt notions"


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
        titles = words(what, (each.title for each in own))
        yield Table.of(listed(kind, (each.id for each in own)), titles, words("example", (each.example for each in own)), spaced=True)
        yield GAP
    yield "For example: fairopt simulate jobs.csv --cluster cluster.yaml --scheduler drfh:best-fit --scheduler backfill"
