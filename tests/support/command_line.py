"""The command line in this process: run it, and read what it says."""

from __future__ import annotations

import sys
from pathlib import Path

from typer.testing import CliRunner, Result

from fairopt.cli import app

__all__ = ["EXAMPLES", "PAPER", "flat", "program", "run"]

EXAMPLES = Path(__file__).parents[2] / "examples"
PAPER = EXAMPLES / "psdsf-figure-1.yaml"  # DRFH gives 2.609, 3.130 and 6.261 tasks


def run(*arguments: object, status: int = 0) -> Result:
    """Run the command line in this process and check its exit status."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == status, result.output
    assert "Traceback" not in result.output
    return result


def flat(text: str) -> str:
    """Undo the wrapping (and frames) of messages."""
    return " ".join(text.replace("│", " ").split())


def program(*arguments: object) -> list[str]:
    """Return the command line of the console script, run by this Python."""
    return [sys.executable, "-c", "from fairopt.cli import main; main()", *map(str, arguments)]
