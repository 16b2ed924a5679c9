"""What owners had used before: the options of commands that follow schedulers with a memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from fairopt.commands.retired import warn_retired

__all__ = ["PastUse"]


@dataclass(frozen=True)
class PastUse:
    """The use of owners before the jobs that are looked at, and the unit in which it is counted."""

    panel: ClassVar[str] = "What owners had used before"

    usage: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What owners had used before, for schedulers with a memory: sshare -a -l -P, condor_userprio -allusers (.txt), or a table "
            "with the columns name and usage (seconds of billing, faded), or usage_0, usage_1 ... by window.",
        ),
    ] = None
    billing: Annotated[
        str | None,
        typer.Option(
            metavar="WEIGHTS",
            help="What a task is billed a second, in which usage is counted: cpu=1,gres/gpu=8, or max:cpu=1,gpu=8 for the largest. Default "
            "with --usage: the cores.",
        ),
    ] = None
    partitions: Annotated[
        Path | None,
        typer.Option(
            "--partitions",
            metavar="FILE",
            help="What a task is billed, as scontrol show partitions (text) states it.",
        ),
    ] = None

    def given(self) -> list[str]:
        """Return which of these options were given."""
        return [f"--{word}" for word, value in vars(self).items() if value is not None]

    def billed(self) -> str | Path | None:
        """Return what a task is billed: weights, or a file of partitions."""
        if self.partitions is None:
            if self.billing is not None and ("=" not in self.billing or Path(self.billing).is_file()):
                warn_retired(f"--billing {self.billing}", new=f"--partitions {self.billing}")
            return self.billing
        if self.billing is not None:
            raise typer.BadParameter("--billing states it already; give one of them", param_hint="--partitions")
        return self.partitions
