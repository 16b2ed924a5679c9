"""What a study loses when programs of its cluster are killed: on Dask and on Ray, at any place, nothing but time.

The table is always the same, to the bit, as on one process.
"""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pandas as pd
import pytest
from support.dask_cluster import PATIENCE, cluster, until
from support.gated_study import ASK, SEEDS, SPEC, at_the_gate, cells_in, gated

import fairopt as fo

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}  # for programs that import support
needs_dask = pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="needs pip install '.[dask]'")
needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs pip install '.[ray]'")


def same(frame: pd.DataFrame) -> None:
    """Compare with the study of one process."""
    alone = fo.study({"x": SPEC}, **ASK, workers=1)
    pd.testing.assert_frame_equal(frame.drop(columns="seconds"), alone.drop(columns="seconds"), check_exact=True)


@needs_dask
def test_a_killed_nanny_takes_its_worker_with_it_and_the_other_goes_on(tmp_path: Path) -> None:
    """SIGKILL to the nanny while its worker computes."""
    with cluster(tmp_path, 2, "--nanny") as (address, programs):
        nannies = [number for number in programs if number]

        def kill() -> None:
            until(lambda: len(at_the_gate(tmp_path)) == 2, "both workers are at the gate")
            os.kill(nannies[0], signal.SIGKILL)
            programs[nannies[0]].wait(PATIENCE)
            (tmp_path / "open").touch()

        killer = threading.Thread(target=kill)
        killer.start()
        frame = fo.study({"x": gated(tmp_path)}, **ASK, backend="dask", address=address)
        killer.join(PATIENCE)
    same(frame)


@needs_dask
def test_a_lost_scheduler_leaves_what_is_done_and_another_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says how many cells there are, and what to do; the same study on another cluster computes the rest."""
    monkeypatch.setattr("fairopt.processes.on_dask._PATIENCE", 1)
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    file = tmp_path / "all.parquet"
    with cluster(first) as (address, programs):

        def kill() -> None:
            until(lambda: len(at_the_gate(tmp_path)) == 2 and cells_in(file) >= 1, "both workers are at the gate")
            programs[0].kill()

        killer = threading.Thread(target=kill)
        killer.start()
        with pytest.raises(
            fo.NoSolution, match=rf"the Dask scheduler at \S+ is lost; [1-6] of {SEEDS} cells are in .*; run the same study"
        ):
            fo.study({"x": gated(tmp_path)}, **ASK, backend="dask", address=address, resume=file)
        killer.join(PATIENCE)
    there = cells_in(file)
    assert there >= 1
    (tmp_path / "open").touch()
    told: list[int] = []
    with cluster(second) as (address, _):
        frame = fo.study(
            {"x": gated(tmp_path)}, **ASK, backend="dask", address=address, resume=file, done=lambda done, _: told.append(done)
        )
    assert told[0] == there
    same(frame)


DRIVER = """
import sys
from pathlib import Path
import fairopt as fo
from support.gated_study import ASK, gated
folder = Path(sys.argv[1])
fo.study({"x": gated(folder)}, **ASK, backend="dask", address=sys.argv[2], resume=folder / "all.parquet")
"""


@needs_dask
def test_a_killed_driver_leaves_what_is_done_and_another_goes_on(tmp_path: Path) -> None:
    """SIGKILL to the program that asks, as when its session ends; the workers serve the next one."""
    file = tmp_path / "all.parquet"
    with cluster(tmp_path) as (address, _):
        driver = subprocess.Popen([sys.executable, "-c", DRIVER, str(tmp_path), address], env=ENVIRONMENT, stderr=subprocess.PIPE)
        until(lambda: cells_in(file) >= 1 or driver.poll() is not None, "cells are in the file")
        driver.kill()
        _, messages = driver.communicate()
        assert driver.returncode == -signal.SIGKILL, messages.decode()
        there = cells_in(file)
        (tmp_path / "open").touch()
        told: list[int] = []
        frame = fo.study({"x": SPEC}, **ASK, backend="dask", address=address, workers=2)
        resumed = fo.study(
            {"x": gated(tmp_path)}, **ASK, backend="dask", address=address, resume=file, done=lambda done, _: told.append(done)
        )
    assert told[0] == there >= 1
    same(frame)
    same(resumed)


@needs_dask
def test_a_worker_without_fairopt_is_named_and_nothing_is_kept(tmp_path: Path) -> None:
    """It has Dask alone, as a worker of somebody else's."""
    (tmp_path / "without.py").write_text("import sys\nsys.modules['fairopt'] = None\n")
    with cluster(tmp_path, 1, "--no-nanny", "--preload", str(tmp_path / "without.py")) as (address, _):
        expected = rf"the worker tcp://127\.0\.0\.1:\d+ cannot load fairopt {fo.__version__}: .*; install the same version on all workers"
        with pytest.raises(fo.Unsupported, match=expected):
            fo.study({"x": SPEC}, **ASK, backend="dask", address=address, resume=tmp_path / "all.parquet")
    assert not (tmp_path / "all.parquet").exists()


RAY = """
import os, sys, threading
from pathlib import Path
import ray
from ray.cluster_utils import Cluster
import fairopt as fo
from fairopt.processes import on_ray
from support.dask_cluster import until
from support.gated_study import ASK, at_the_gate, cells_in, gated

folder, file = Path(sys.argv[1]), Path(sys.argv[1], "all.parquet")
on_ray._HEAD = 3.0
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
cluster.wait_for_nodes()

def not_of_this_program():  # which is connected to one of the raylets of its host, and would end with it
    sockets = {node["NodeID"]: node["RayletSocketName"] for node in ray.nodes()}
    own = sockets[ray.get_runtime_context().get_node_id()]
    return next(node for node in nodes if node.raylet_socket_name != own)

def lose_a_node():
    until(lambda: len(at_the_gate(folder)) == 2, "both are at the gate")
    cluster.remove_node(not_of_this_program(), allow_graceful=False)  # SIGKILL to its raylet
    (folder / "open").touch()

threading.Thread(target=lose_a_node, daemon=True).start()
fo.study({"x": gated(folder)}, **ASK, backend="ray", address=cluster.address).to_parquet(folder / "lost-node.parquet")
(folder / "open").unlink()
for path in folder.glob("seed-*"):
    path.unlink()

def lose_the_head():
    until(lambda: at_the_gate(folder) and cells_in(file) >= 1, "one is at the gate")
    cluster.head_node.kill_gcs_server()

threading.Thread(target=lose_the_head, daemon=True).start()
try:
    fo.study({"x": gated(folder)}, **ASK, backend="ray", address=cluster.address, resume=file)
except fo.NoSolution as error:
    (folder / "message").write_text(str(error))
end = threading.Thread(target=cluster.shutdown, daemon=True)
end.start()
end.join(30)
os._exit(0)  # Ray's own end would wait for the head
"""


@needs_ray
def test_ray_loses_a_node_and_then_its_head(tmp_path: Path) -> None:
    """A lost raylet leaves its cells to the others; a lost head is an error that says what is done. The study goes on without Ray."""
    environment = ENVIRONMENT | {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
    with (tmp_path / "log").open("wb") as log:
        program = subprocess.Popen([sys.executable, "-c", RAY, str(tmp_path)], env=environment, stdout=log, stderr=log)
        try:
            program.wait(PATIENCE)
        finally:
            program.kill()
            program.wait(PATIENCE)
    assert (tmp_path / "lost-node.parquet").exists(), (tmp_path / "log").read_text()
    same(pd.read_parquet(tmp_path / "lost-node.parquet"))
    message = (tmp_path / "message").read_text()
    assert "the Ray head at " in message
    assert f" of {SEEDS} cells are in {tmp_path / 'all.parquet'}; run the same study again to compute the rest" in message
    there = cells_in(tmp_path / "all.parquet")
    assert there >= 1
    (tmp_path / "open").touch()
    told: list[int] = []
    same(fo.study({"x": gated(tmp_path)}, **ASK, workers=2, resume=tmp_path / "all.parquet", done=lambda done, _: told.append(done)))
    assert told[0] == there


WITHOUT = """
import sys
import ray
import fairopt as fo
from support.gated_study import ASK, SPEC
ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": {"PYTHONPATH": sys.argv[1]}})
try:
    fo.study({"x": SPEC}, **ASK, backend="ray")
except fo.Unsupported as error:
    print(error)
"""


@needs_ray
def test_a_worker_of_ray_without_fairopt_is_named(tmp_path: Path) -> None:
    """It finds another package of this name first, which has nothing."""
    here, other = tmp_path / "here", tmp_path / "other"
    here.mkdir()
    (other / "fairopt").mkdir(parents=True)
    (other / "fairopt" / "__init__.py").write_text("raise ImportError('nothing here')")
    environment = ENVIRONMENT | {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
    program = [sys.executable, "-c", WITHOUT, str(other)]
    told = subprocess.run(program, cwd=here, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    expected = (
        rf"the worker \S+, process \d+, cannot load fairopt {fo.__version__}: ImportError: nothing here; install the same version on all"
    )
    assert re.search(expected, told.stdout), told.stderr
