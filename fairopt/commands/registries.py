"""``fairopt notions | solvers | placements | schema``: what there is to choose from."""

from __future__ import annotations

import typer
from rich.console import Console

import fairopt as fo
from fairopt.commands import tables
from fairopt.commands.console import as_text
from fairopt.commands.options import Json
from fairopt.models.notion import Condition

__all__ = ["notions", "placements", "schema", "solvers"]


def placements(as_json: Json = False) -> None:
    """List the placements of schedules, and the criteria that are no notions."""
    entries = {"placement": fo.PLACEMENTS, "criterion": fo.CRITERIA}
    if as_json:
        listed = [
            {"id": name, "kind": kind, "title": getattr(entry, "title", ""), "source": getattr(entry, "source", "")}
            for kind, registry in entries.items()
            for name, entry in registry.items()  # type: ignore[attr-defined]
        ]
        typer.echo(as_text(listed), nl=False)
    else:
        tables.print_placements(Console(highlight=False))


def notions(as_json: Json = False) -> None:
    """List the notions of fairness: what each is, what theory promises of it, where it comes from."""
    if as_json:
        typer.echo(
            as_text(
                [
                    {
                        "id": name,
                        "title": notion.title,
                        "satisfies": {promise.value: source for promise, source in notion.satisfies.items()},
                        "conditions": [condition.value for condition in Condition if condition in notion.conditions],
                        "source": notion.source,
                    }
                    for name, notion in fo.NOTIONS.items()
                ]
            ),
            nl=False,
        )
    else:
        tables.print_notions(Console(highlight=False))


def solvers(as_json: Json = False) -> None:
    """List the engines: what each can solve, and how to install it if it is not there."""
    if as_json:
        typer.echo(
            as_text(
                [
                    {
                        "id": name,
                        "title": engine.title,
                        "features": sorted(feature.value for feature in engine.features),
                        "installed": engine.available(),
                        "install": engine.requirement,
                    }
                    for name, engine in fo.SOLVERS.items()
                ]
            ),
            nl=False,
        )
    else:
        tables.print_solvers(Console(highlight=False))


def schema() -> None:
    """Print the JSON Schema of instance files, for editors and validators."""
    from fairopt.formats import schema as describe

    typer.echo(as_text(describe()), nl=False)
