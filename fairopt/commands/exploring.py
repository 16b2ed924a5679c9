"""``fairopt explore``: a page on this machine to drag weights, counts, capacities, demands, speeds, guarantees and limits."""

from __future__ import annotations

import logging
import os
import sys
import webbrowser
from typing import Annotated

import typer

from fairopt.commands import completion
from fairopt.commands.options import Changes, File, Rules, Sharing
from fairopt.commands.working import work
from fairopt.specs import read_notion

__all__ = ["explore"]


def explore(
    file: File,
    notion: Annotated[
        str,
        typer.Option(metavar="ID", help="Notion of fairness to start with. See: fairopt notions.", autocompletion=completion.notions),
    ] = "drfh",
    changes: Changes = None,
    rules: Rules = None,
    sharing: Sharing = None,
    time_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="Time limit of each allocation.")] = 60.0,
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="Port of the page; 0 chooses a free one.")] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address only.")] = False,
) -> None:
    """Open a page in the browser with sliders for FILE: see how allocations, an explanation and the frontier change.

    Weights, numbers of servers, capacities, demands, speeds, guarantees and limits can be changed; rules of FILE and of --rule hold for
    every answer. Two or three notions stand side by side.

    The page is for this machine only: it is served on 127.0.0.1, its address has a secret token, and it loads nothing from the network.
    FILE is read once and never written. The page saves to another file, and shows the command line that gives the same instance.
    Press Ctrl-C to end it.
    """
    read_notion(notion)  # an unknown one is refused before anything is served
    from fairopt.reporting.exploring.exploration import Exploration

    explored = work(
        f"reading {file}",
        lambda: Exploration(file, changes or (), rules or (), sharing=sharing, time_limit=time_limit),
    )
    from fairopt.reporting.exploring.page import Page
    from fairopt.reporting.exploring.serving import serve

    logging.getLogger("fairopt").setLevel(logging.ERROR)  # the page shows what engines warn of
    page = Page(explored, notion)

    def started(address: str) -> None:
        typer.echo(f"{address}\nCtrl-C ends it.")
        sys.stdout.flush()
        if not no_browser:
            webbrowser.open(address)

    try:
        serve(page.site(), port=port, started=started)
    except OSError as error:
        raise typer.BadParameter(
            f"port {port} cannot be used: {error.strerror}; leave --port out, or give another", param_hint="--port"
        ) from None
    typer.echo("ended")
    if page.turn.locked():  # an engine is computing in its thread, which cannot be stopped
        sys.stdout.flush()
        os._exit(0)
