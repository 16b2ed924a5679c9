"""The command line: ``fairopt solve cluster.yaml --notion drfh``.

Exit status: 0 for success; 1 if ``reproduce`` finds an unexpected difference or a check fails (``audit --fail-on``, ``compare --fail-if``);
2 for bad input (a file, an option, an engine that is not installed); 3 if there is no solution; 130 after Ctrl-C. Messages and progress go
to stderr, so that stdout can be piped.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import fairopt as fo
from fairopt.commands.arrival_curves import arrivals
from fairopt.commands.auditing import audit
from fairopt.commands.comparing import compare
from fairopt.commands.console import say
from fairopt.commands.explaining import explain
from fairopt.commands.exporting import app as exports
from fairopt.commands.frontiers import frontier
from fairopt.commands.generating import generate
from fairopt.commands.importing import app as imports
from fairopt.commands.registries import notions, placements, schema, solvers
from fairopt.commands.reporting import report
from fairopt.commands.reproducing import reproduce
from fairopt.commands.scheduling import schedule
from fairopt.commands.simulating import simulate
from fairopt.commands.solving import solve
from fairopt.commands.studies import study
from fairopt.commands.worst_cases import worst_case

__all__ = ["app", "main"]

_INTERRUPTED = 130


class _Commands(TyperGroup):
    """Commands that turn an error into one message on stderr and an exit status."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except fo.FairoptError as error:
            say("error", str(error))
            raise typer.Exit(3 if isinstance(error, fo.NoSolution | fo.CertificateError) else 2) from None
        except BrokenPipeError:  # the reader of a pipe has closed it
            raise
        except OSError as error:
            say("error", ": ".join(str(part) for part in (error.filename, error.strerror or error) if part))
            raise typer.Exit(2) from None


app = typer.Typer(
    cls=_Commands,
    name="fairopt",
    help="Exact fair allocations of several resources among the users of a cluster.",
    epilog="Example: fairopt solve examples/google-cluster.yaml --notion drfh",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line; the console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # print labels that the terminal's encoding lacks as escapes
    try:
        app()
    except SystemExit as leaving:
        if leaving.code == _INTERRUPTED:
            sys.stdout.flush()
            os._exit(_INTERRUPTED)  # an engine may still be computing in its thread, which cannot be stopped
        raise


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fairopt {fo.__version__}")
        raise typer.Exit


@app.callback()
def _start(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    pass


_PANELS = {  # sections of the help; every command is in one
    "Allocate": (
        (solve, "solve examples/psdsf-figure-1.yaml --notion tsf --plot tsf.svg"),
        (schedule, "schedule examples/kesidis.yaml --criterion psdsf --placement joint"),
        (compare, "compare examples/kesidis.yaml --notions drfh,psdsf --schedules drfh:best-fit,psdsf:joint --integral"),
    ),
    "Understand": (
        (audit, "audit examples/psdsf-figure-1.yaml --notion tsf"),
        (explain, "explain examples/gpu-lab --user vision --notion psdsf --against language"),
        (frontier, "frontier examples/kesidis.yaml --fds 2:-1,2:-4 --schedules drfh:best-fit --plot frontier.svg"),
        (report, "report examples/gpu-lab --schedules drfh:best-fit --explain vision -o report.html"),
    ),
    "Over time": (
        (simulate, "simulate examples/gpu-lab/jobs.csv --cluster examples/gpu-lab --scheduler drfh:best-fit --plot day.png"),
        (arrivals, "arrivals gpus.yaml --resource gpu --cards gpu --plot ratio.svg"),
    ),
    "Research": (
        (study, "study --generate google:users=20:servers=50 --notions drfh,tsf --schedules drfh:best-fit,drfh:first-fit --seeds 5"),
        (worst_case, "worst-case drfh:first-fit --servers 2 --users 2 --tries 200 -o worst.yaml"),
        (reproduce, "reproduce bbf pdrf-tables --quick"),
    ),
    "Data": (
        (generate, "generate constrained:of=google:users=50:rate=0.2 --seed 1 -o cluster.yaml"),
        (schema, "schema > cluster.schema.json"),
    ),
    "Choices": (
        (notions, "notions --json"),
        (solvers, "solvers"),
        (placements, "placements"),
    ),
}
for _panel, _commands in _PANELS.items():
    for _command, _example in _commands:
        app.command(epilog=f"Example: fairopt {_example}", rich_help_panel=_panel)(_command)
app.add_typer(imports, name="import", rich_help_panel="Data")
app.add_typer(exports, name="export", rich_help_panel="Data")
