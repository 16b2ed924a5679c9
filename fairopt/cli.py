"""The command line: ``fairopt solve cluster.yaml --notion drfh``.

Exit status: 0 for success; 1 if ``reproduce`` finds an unexpected difference, a check fails (``audit --fail-on``, ``compare --fail-if``),
or rows of a study have no allocation;
2 for bad input (a file, an option, an engine that is not installed) or output that cannot be written; 3 if there is no solution; 70 for an
error of fairopt itself; 130 after Ctrl-C; 141 if the reader of a pipe closed it. Messages and progress go to stderr, so that stdout can be
piped.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import traceback
import warnings
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.main import get_command

import fairopt as fo
from fairopt.commands.group import Group
from fairopt.commands.said import INTERRUPTED, SAID, WRITTEN
from fairopt.processes.deferred import defer_before_scipy
from fairopt.processes.streams import claim_stdout, quiet_libraries
from fairopt.registry import FILES, line_at_fault

__all__ = ["app", "main"]

_INTERNAL = 70  # EX_SOFTWARE of sysexits.h
_PIPE_CLOSED = 141  # as of a program that SIGPIPE ends
_COMPLETION = "_FAIROPT_COMPLETE"  # a shell sets it to ask what completes a line
_ONE_LINE = 10_000  # characters
_TRACEBACK = "FAIROPT_TRACEBACK"  # if this variable is set, an error of fairopt itself comes with its traceback


class _Commands(Group):
    """Commands whose modules are imported when they run, and that turn an error into one message on stderr and an exit status."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, listed, rest = super().resolve_command(ctx, args)
        return name, _load(name) if name and listed else listed, rest

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        try:
            return super().make_context(*arguments, **options)
        except (BrokenPipeError, SystemExit) as leaving:
            raise SystemExit(_left(leaving)) from None
        except Exception as error:
            _refuse_usage(error)
            raise

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except fo.FairoptError as error:
            _say(str(error))
            raise typer.Exit(3 if isinstance(error, fo.NoSolution | fo.CertificateError) else 2) from None
        except (BrokenPipeError, SystemExit) as leaving:
            raise typer.Exit(_left(leaving)) from None
        except OSError as error:
            where = error.filename or ("stdout" if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO) else "")
            _say(": ".join(str(part) for part in (where, error.strerror or error) if part))
            if where == "stdout" and sys.stdout is sys.__stdout__:  # not the stream of a caller
                _without_stdout()  # what is left of the output does not fit either
            raise typer.Exit(2) from None
        except MemoryError:
            _say("the memory of this machine ran out; give a smaller file, or fewer users, servers or resources")
            raise typer.Exit(2) from None
        except Exception as error:
            _refuse_usage(error)
            if isinstance(error, typer.Exit | typer.Abort) or hasattr(error, "format_message"):  # a group without a command: its help
                raise
            if line := line_at_fault(error):
                _say(f"{line}: {type(error).__name__}: {error}; what this file defines must run on this instance")
                raise typer.Exit(2) from None
            _report(error)
            raise typer.Exit(_INTERNAL) from None


def _refuse_usage(error: Exception) -> None:
    """Say what is wrong with the command line, if that is the error; another error stays as it is."""
    from fairopt.commands.usage import in_plain_words, is_usage_error

    if not is_usage_error(error):
        return
    context = error.ctx  # type: ignore[attr-defined]
    _say(in_plain_words(error) + (f"; see: {context.command_path} --help" if context is not None else ""))
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
    if sys.stderr is None:  # closed: files that are opened must not get its number
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  # until the end
    if sys.stdout is None:
        _say("stdout is closed; to have no output, redirect it to /dev/null")
        raise SystemExit(2)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # print labels that the terminal's encoding lacks as escapes
    claim_stdout()
    quiet_libraries(own=FILES)
    defer_before_scipy()
    if _COMPLETION in os.environ:
        os.environ["COLUMNS"] = str(_ONE_LINE)  # a shell reads an entry a line
    warnings.showwarning = _warn  # type: ignore[assignment]  # where the line stands is of no interest
    try:
        app()
        status: Any = 0
    except SystemExit as leaving:
        status = leaving.code
    except OSError as error:  # of --help and --version, which print before a command is invoked
        _without_stdout()
        _say(f"stdout: {error.strerror or error}")
        status = 2
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        status = _without_stdout() if status == 0 else status
    except OSError as error:
        _without_stdout()
        _say(f"stdout: {error.strerror or error}")
        status = 2 if status == 0 else status
    if status == INTERRUPTED:
        os._exit(INTERRUPTED)  # an engine may still be computing in its thread, which cannot be stopped
    sys.exit(status)


def _without_stdout() -> int:
    """Print nothing more, also at the exit of Python; return the exit status of a closed pipe."""
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # until the end
    return _PIPE_CLOSED


def _left(leaving: BrokenPipeError | SystemExit) -> int:
    """Return the exit status where the reader of a pipe has closed it, or a user's file has called ``sys.exit``."""
    if isinstance(leaving, BrokenPipeError) or isinstance(leaving.__context__, BrokenPipeError):  # rich makes the one the other
        return _without_stdout()
    if not (line := line_at_fault(leaving)):
        raise leaving
    _say(f"{line}: sys.exit({'' if leaving.code is None else repr(leaving.code)}); what this file defines must return or raise an error")
    return 2


def _report(error: Exception) -> None:
    """Say that fairopt has failed, where, and what to report."""
    if os.environ.get(_TRACEBACK):
        traceback.print_exception(error)
    frames = traceback.extract_tb(error.__traceback__)
    here = os.path.dirname(os.path.abspath(__file__))
    frame = next((each for each in reversed(frames) if each.filename.startswith(here)), frames[-1])
    what = f"{type(error).__name__}: {str(error).partition(chr(10))[0][:200]}".removesuffix(": ")
    place = f"{os.path.basename(frame.filename)}, line {frame.lineno}"
    _say(
        f"fairopt {fo.__version__} failed: {what} ({place}); this is not the fault of your input. Please report this line, the command and "
        f"the smallest file that shows it; {_TRACEBACK}=1 also prints the traceback"
    )


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fairopt {fo.__version__}")
        raise typer.Exit


@app.callback()
def _start(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    SAID.clear()
    WRITTEN.clear()


_PANELS = {  # sections of the help, and their commands: module, help in one line, example; a module is imported when its command runs
    "Allocate": {
        "solve": (
            "solving",
            "Solve for the exact fair allocation of FILE and prove it.",
            "examples/psdsf-figure-1.yaml --notion tsf --plot tsf.svg",
        ),
        "schedule": (
            "scheduling",
            "Fill the servers of FILE with whole tasks, one at a time, as a scheduler does.",
            "examples/kesidis.yaml --schedule psdsf:joint",
        ),
        "compare": (
            "comparing",
            "Compare exact allocations of FILE, schedules and your own allocations in one table.",
            "examples/kesidis.yaml --notions drfh,psdsf --schedules drfh:best-fit,psdsf:joint --integral",
        ),
    },
    "Understand": {
        "audit": (
            "auditing",
            "Audit an allocation of FILE: which properties hold; if one fails, by how many tasks, with an example.",
            "examples/psdsf-figure-1.yaml --notion tsf",
        ),
        "what-if": (
            "what_ifs",
            "Compare FILE with a changed copy: what each user gains or loses, and through which change.",
            "examples/gpu-lab --set users.vision.weight=3 --set servers.dgx.count+=2",
        ),
        "explain": (
            "explaining",
            "Explain what a user or a queue of FILE gets, what limits it, and what would give it more.",
            "examples/gpu-lab --user vision --notion psdsf --against language",
        ),
        "frontier": (
            "frontiers",
            "Compute the exact trade-off of FILE between the total of tasks and the smallest share, and where each notion lies.",
            "examples/kesidis.yaml --fds 2:-1,2:-4 --schedules drfh:best-fit --plot frontier.svg",
        ),
        "explore": (
            "exploring",
            "Open a page in the browser with sliders for FILE: see how allocations, an explanation and the frontier change.",
            "examples/gpu-lab --notion drfh",
        ),
        "report": (
            "reporting",
            "Write a report on FILE: one HTML page with interactive charts, their tables, certificates, and the commands to reproduce it.",
            "examples/gpu-lab --schedules drfh:best-fit --explain vision -o report.html",
        ),
    },
    "Over time": {
        "history": (
            "histories",
            "Judge the log of a cluster: what owners received, and what the exact allocation would have given them.",
            "examples/gpu-lab/log.csv --cluster examples/gpu-lab --plot day.svg",
        ),
        "simulate": (
            "simulating",
            "Follow the jobs of a trace on a cluster over time, under a scheduler.",
            "examples/gpu-lab/jobs.csv --cluster examples/gpu-lab --scheduler drfh:best-fit --plot day.png",
        ),
        "arrivals": (
            "arrival_curves",
            "Let the tasks of FILE arrive in random order, and measure how much of a resource each placement allocates.",
            "gpus.yaml --resource gpu --cards gpu --plot ratio.svg",
        ),
    },
    "Research": {
        "study": (
            "studies",
            "Run notions and schedules on all instances with all seeds, and print means and standard errors.",
            "--generate google:users=20:servers=50 --notions drfh,tsf --schedules drfh:best-fit,drfh:first-fit --seeds 5",
        ),
        "study-merge": (
            "merging",
            "Join the parts of a study, which fairopt study --part has computed, and print means and standard errors.",
            "part-1 part-2 -o all",
        ),
        "worst-case": (
            "worst_cases",
            "Search small instances for the one on which a schedule is worst, then shrink it.",
            "drfh:first-fit --servers 2 --users 2 --tries 200 --instance worst.yaml",
        ),
        "reproduce": ("reproducing", "Print published results beside our own.", "bbf pdrf-tables --quick"),
    },
    "Data": {
        "generate": (
            "generating",
            "Draw a random instance and write it; without SPEC, list the generators.",
            "constrained:of=google:users=50:rate=0.2 --seed 1 -o cluster.yaml",
        ),
        "formulate": (
            "formulating",
            "Write the program of a notion on FILE, for other solvers or to read.",
            "examples/drfh-figure-1.yaml --notion efficiency -o model.mps",
        ),
        "schema": (
            "registries",
            "Print the JSON Schema of instance files, or of results, for editors and validators.",
            "result > result.schema.json",
        ),
        "import": ("importing", "Make an instance from the exports of a real cluster.", ""),
        "export": ("exporting", "Write an allocation as limits or quotas of a real scheduler. Nothing is run.", ""),
        "plan": (
            "planning",
            "Plan the way from what runs to the fair allocation of FILE: what stops, what starts, with the fewest stops.",
            "cluster.yaml --allocation held.csv --notion drfh",
        ),
    },
    "Choices": {
        "notions": ("registries", "List the notions of fairness: what each is, what is proved of it, and its source.", "--json"),
        "solvers": ("registries", "List the engines: what each solves, and how to install a missing one.", ""),
        "placements": (
            "registries",
            "List the placements of schedules, the criteria that are not notions, and the baselines.",
            "",
        ),
        "schedulers": ("registries", "List the schedulers that fairopt simulate follows.", ""),
    },
}


_WITHOUT_FILES = ("schema", "notions", "solvers", "placements", "schedulers", "generate", "reproduce")  # commands that read none


def _listed() -> None:
    """A placeholder in the list of commands, which shows only the line of help."""


for _panel, _commands in _PANELS.items():
    for _name, (_module, _help, _example) in _commands.items():
        app.command(_name, help=_help, rich_help_panel=_panel)(_listed)


@cache
def _load(name: str) -> Any:
    """Return a command: the group of commands of its module, or else the function with its name."""
    module, _, example = next(commands[name] for commands in _PANELS.values() if name in commands)
    from fairopt.commands.command import Command
    from fairopt.commands.grouped import spread
    from fairopt.commands.outputs import guarded

    there = import_module(f"fairopt.commands.{module}")
    if hasattr(there, "app"):
        command: Any = get_command(there.app)
    else:
        alone = typer.Typer(add_completion=False)
        example = f"Example: fairopt {name} {example}".rstrip()
        alone.command(name, cls=Command, epilog=example)(guarded(spread(getattr(there, name.replace("-", "_")))))
        command = get_command(alone)
    if name not in _WITHOUT_FILES:
        from fairopt.commands.largest_file import max_bytes

        for each in getattr(command, "commands", {name: command}).values():
            each.params.append(max_bytes())
    return command


def _say(message: str, kind: str = "error") -> None:
    from fairopt.commands.console import say  # needs rich

    try:
        say(kind, message)
    except OSError:  # stderr is full: the exit status still says what it was
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  # until the end


def _warn(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: object) -> None:
    _say(f"{message} ({category.__name__}, {os.path.basename(filename)}, line {lineno})", "warning")
