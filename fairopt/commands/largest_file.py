"""``--max-bytes``, of every command that reads files: how much one may hold after it is unpacked."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any

import typer
from typer.main import get_command

from fairopt.files.limits import reading_limit

__all__ = ["max_bytes"]


def max_bytes() -> Any:
    """Return the option. It is no parameter of a command's function: the limit holds from the option to the end of the command."""
    app = typer.Typer(add_completion=False)
    app.command()(_command)
    option: Any = get_command(app).params[0]
    option.expose_value = False
    return option


def _limit(context: typer.Context, value: str | None) -> None:
    if value is not None and not context.resilient_parsing:
        context.with_resource(reading_limit(max_bytes=_bytes(value)))


def _command(
    _: Annotated[
        str | None,
        typer.Option(
            "--max-bytes",
            metavar="BYTES",
            help="Refuse a file that holds more than this after it is unpacked, such as 500MB or 10GB. Default: 2GB.",
            callback=_limit,
        ),
    ] = None,
) -> None:
    """A command with this option alone, of which typer makes the option."""


def _bytes(text: str) -> int:
    """Return a number of bytes, with or without a unit.

    >>> _bytes("2GB"), _bytes("1GiB"), _bytes("1000")
    (2000000000, 1073741824, 1000)
    """
    from fairopt.instance.quantities import read as quantity

    try:
        value = Fraction(int(text)) if text.strip().isdecimal() else quantity(text).value
    except ValueError:
        value = Fraction(0)
    if value < 1:
        raise typer.BadParameter(f"{text[:40]!r} is no number of bytes; give one such as 500MB or 10GB", param_hint="--max-bytes")
    return int(value)
