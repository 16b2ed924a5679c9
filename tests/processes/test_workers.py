"""Workers hear Ctrl-C during a task alone: one that hears it while it starts, or between tasks, breaks all of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from fairopt.processes.crew import Crew
from fairopt.processes.workers import no_interrupt

pytestmark = pytest.mark.skipif(os.name != "posix", reason="about signals as POSIX has them")


def state() -> tuple[bool, bool]:
    """Whether this thread ignores Ctrl-C, and whether it keeps it for later."""
    return signal.getsignal(signal.SIGINT) is signal.SIG_IGN, signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


class Between:
    """Once it was sent to a worker, what `state` said when it was unpickled there."""

    def __reduce__(self) -> tuple[Callable[[], tuple[bool, bool]], tuple[()]]:
        return state, ()


def both(between: Any) -> tuple[Any, tuple[bool, bool]]:
    """Before the task, and during the task."""
    return between, state()


def test_a_worker_hears_ctrl_c_during_a_task_alone() -> None:
    """Many tasks on two workers: the second and later ones of a worker follow a task."""
    with Crew(2) as crew:
        for between, during in crew.map(both, [Between() for _ in range(8)]):
            assert between == (True, False)
            assert during == (False, False)
    assert state() == (False, False)  # here nothing has changed


def test_a_worker_that_starts_does_not_hear_ctrl_c() -> None:
    """Until it ignores Ctrl-C, one that comes is kept for later."""
    asks = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))"
    with no_interrupt():
        started = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, check=True)
    assert started.stdout == "True\n"
    assert state() == (False, False)
