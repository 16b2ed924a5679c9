"""Settings of the whole suite, and the files that tests of several folders read.

Hypothesis draws the same examples on every run, so that a failure is a change in the code, whichever tests ran before in the same
process. ``HYPOTHESIS_PROFILE=wide`` draws ten times as many new ones, and ``fuzz``, for ``make fuzz``, a hundred times as many.
"""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

import fairopt as fo
from fairopt.solvers import compiled

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("same", deadline=None, derandomize=True, suppress_health_check=_SLOW)
settings.register_profile("wide", deadline=None, max_examples=1000, suppress_health_check=_SLOW)
settings.register_profile("fuzz", deadline=None, max_examples=10_000, suppress_health_check=_SLOW)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "same")
settings.load_profile(PROFILE)
if PROFILE == "same":  # otherwise Hypothesis mixes in constants from all modules that are loaded, and some tests write and load modules
    no_constants = Constants()
    providers._get_local_constants = lambda: no_constants

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # a shell may start a job in the background so, and its children would not hear Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)

gc.disable()  # until all tests are collected: what collecting makes stays, and going through it again and again takes seconds

THREE = """
resources: [cpu, memory]
servers:
- {name: "big[blue]", capacity: {cpu: 9, memory: 18}, count: 2}
- {name: small, capacity: {cpu: 2, memory: 1}}
users:
- {name: "[red]alice[/red]", demand: {cpu: 1, memory: 4}}
- {name: "[/]", demand: {cpu: 3, memory: 1}}
- {name: carol, demand: {cpu: 1, memory: 1}, tasks: 2}
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is compiled comes first, because later tests load it, and then what takes longest, so that no worker waits for it at the end."""
    first = ["test_compiled.py", "test_reproducing.py", "test_notebooks.py", "test_docs.py", "test_streams.py"]
    items.sort(key=lambda item: first.index(item.path.name) if item.path.name in first else len(first))


def pytest_collection_finish() -> None:
    """From here on garbage is collected, but not looked for among modules and tests."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)  # and more rarely: a search goes through what the session keeps, which is much
    gc.enable()


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of kernels are compiled where one test has much for them to do, and where a test asks for it (test_compiled.py)."""
    monkeypatch.setattr(compiled, "PATIENCE", 5.0)
    monkeypatch.setattr(compiled, "PATIENCE_IN_ALL", np.inf)


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """Three users with awkward names, one of whom has two tasks only."""
    path = tmp_path / "three.yaml"
    path.write_text(THREE)
    return path


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """500 users (every fifth with few tasks, one who cannot run) on 30 rows of servers."""
    rng = np.random.default_rng(7)
    eligibility = np.ones((500, 30), bool)
    eligibility[3] = False
    tasks = np.full(500, np.inf)
    tasks[::5] = 0.5
    demands = rng.choice([0.1, 0.2, 0.4], (500, 2))
    capacities = rng.choice([8.0, 16.0], (30, 2))
    fo.save(fo.Instance(capacities, demands, eligibility=eligibility, tasks=tasks, resources=["cpu", "memory"]), tmp_path / "many.json")
    return tmp_path / "many.json"
