"""A Ray cluster whose head does not answer, played by a stand-in for the package: a real one dies at moments of its own."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import fairopt as fo
from fairopt.processes import on_ray as module


class RayError(Exception):
    """The base of all errors of Ray."""


class Played:
    """What `on_ray` asks of the package ray. ``lost``: the head accepts a connection, and answers no question."""

    exceptions = SimpleNamespace(RayError=RayError)
    util = SimpleNamespace(client=SimpleNamespace(ray=SimpleNamespace(is_connected=lambda: False)))

    def __init__(self, address: str) -> None:
        self.lost, self.address = False, address

    def remote(self, **_: Any) -> Any:
        """A decorator that changes nothing."""
        return lambda function: function

    def get_runtime_context(self) -> Any:
        """Where the head is."""
        return SimpleNamespace(gcs_address=self.address)

    def cluster_resources(self) -> dict[str, float]:
        """Three cores."""
        if self.lost:
            raise RayError("Failed to connect to GCS")
        return {"CPU": 3.0}


@pytest.fixture
def head() -> Iterator[str]:
    """An address of loopback at which something listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield "{}:{}".format(*server.getsockname())


def test_a_head_lost_between_two_questions_is_waited_for_and_then_named(head: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray raises an error of its own then, and not the one of a connection that is refused."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    played = Played(head)
    pool = module._Ray(played, None)
    assert pool.slots() == 6
    assert not pool.missing()
    played.lost = True
    now[0] += 10.0
    assert pool.slots() == 6, "for a while the cores are taken to be there: a head may start again"
    now[0] += 25.0
    with pytest.raises(fo.NoSolution, match=f"the Ray head at {head} is lost"):
        pool.slots()


def test_a_head_that_comes_back_counts_from_then(head: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two silences of less than half a minute each are not one."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    played = Played(head)
    pool = module._Ray(played, 2)
    assert pool.slots() == 4, "no more than the workers asked for"
    for lost in (True, False, True):
        played.lost, now[0] = lost, now[0] + 20.0
        assert pool.slots() == 4


@pytest.mark.parametrize("given", ["", "the argument", "RAY_ADDRESS"])
def test_no_cluster_is_looked_for(given: str, head: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an address, a cluster is started, though there may be another on this machine, which Ray would take by itself."""
    asked: list[dict[str, Any]] = []
    played: Any = Played(head)
    played.is_initialized, played.shutdown = lambda: False, lambda: None
    played.init = lambda **options: asked.append(options)
    played.job_config = SimpleNamespace(JobConfig=object)
    monkeypatch.setitem(sys.modules, "ray", played)
    monkeypatch.setenv("RAY_ADDRESS", head if given == "RAY_ADDRESS" else "")
    with module.cluster_of_ray(2, head if given == "the argument" else None):
        pass
    (options,) = asked
    assert (options["address"], options["num_cpus"]) == ((head, None) if given else ("local", 2))
