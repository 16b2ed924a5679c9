"""Studies on a real cluster, one of whose workers is killed; skipped where the packages are not installed."""

from __future__ import annotations

import importlib.util
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.dask_cluster import PATIENCE, cluster, until

import fairopt as fo
from fairopt.processes.crew import run

SPEC = "uniform:users=3:servers=2:size=10"


def test_a_killed_worker_leaves_its_cells_to_the_other(tmp_path: Path) -> None:
    """SIGKILL while it computes a cell: the study ends with all rows, none twice, the same as without a cluster."""
    pytest.importorskip("distributed", reason="needs pip install '.[dask]'")
    folder, spec = str(tmp_path), SPEC

    def gated(seed: int) -> fo.Instance:  # a closure: it travels by value
        import os
        import time
        from pathlib import Path

        from fairopt.specs import read_generator

        if seed >= 2:
            Path(folder, f"seed-{seed}-{os.getpid()}").touch()
            while not Path(folder, "open").exists():
                time.sleep(0.01)
        return read_generator(spec)(seed)

    with cluster(tmp_path) as (address, workers):
        killed: list[int] = []

        def kill() -> None:
            until(
                lambda: len({path.name.split("-")[2] for path in tmp_path.glob("seed-*")} & {str(pid) for pid in workers}) == 2,
                "both workers are at the gate",
            )
            killed.append(max(workers))
            os.kill(killed[0], signal.SIGKILL)
            workers[killed[0]].wait(PATIENCE)
            (tmp_path / "open").touch()

        options: dict[str, Any] = {"notions": ["drfh", "tsf"], "seeds": range(8)}
        killer = threading.Thread(target=kill)
        killer.start()
        frame = fo.study({"x": gated}, **options, backend="dask", address=address, resume=tmp_path / "x.parquet")
        killer.join(PATIENCE)
        assert workers[killed[0]].returncode == -signal.SIGKILL
    again = [path.name.split("-")[1] for path in tmp_path.glob("seed-*")]
    assert len(again) > len(set(again))  # the cell of the killed worker was begun twice
    assert not frame.duplicated(["instance", "seed", "entry"]).any()
    alone = fo.study({"x": SPEC}, **options, workers=1)
    pd.testing.assert_frame_equal(frame.drop(columns="seconds"), alone.drop(columns="seconds"), check_exact=True)
    assert pd.read_parquet(tmp_path / "x.parquet").equals(frame)


def deadly() -> Callable[[int], fo.Instance]:
    """Return a generator one of whose instances ends its worker, as the system does when memory is short."""
    spec = SPEC

    def drawn(seed: int) -> fo.Instance:  # a closure: it travels by value
        import os
        import signal

        from fairopt.specs import read_generator

        if seed == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return read_generator(spec)(seed)

    return drawn


def check_deadly(frame: pd.DataFrame, seeds: int) -> None:
    """One row with a message; the others are those of a study without a cluster."""
    failed = frame["seed"] == 3
    assert "ended its worker twice, the second time alone" in frame[failed]["message"].item()
    assert np.isnan(frame[failed]["tasks"].item())
    alone = fo.study({"x": SPEC}, notions=["drfh"], seeds=range(seeds), workers=1)
    one, two = (each[each["seed"] != 3].drop(columns="seconds").reset_index(drop=True) for each in (frame, alone))
    pd.testing.assert_frame_equal(one, two, check_exact=True)


def test_on_dask_a_cell_that_ends_its_worker_is_a_row_and_other_versions_are_refused(tmp_path: Path) -> None:
    """Nannies start the worker again; a worker that pretends to be another version is named."""
    pytest.importorskip("distributed", reason="needs pip install '.[dask]'")

    def pretend() -> None:  # a closure: it travels by value
        import fairopt

        fairopt.__version__ = "0.0.9"

    with cluster(tmp_path, 1, "--nanny") as (address, _):
        check_deadly(fo.study({"x": deadly()}, notions=["drfh"], seeds=range(6), backend="dask", address=address), 6)
        from distributed import Client

        with Client(address, timeout=PATIENCE) as client:  # type: ignore[no-untyped-call]
            client.wait_for_workers(1, timeout=PATIENCE)
            client.run(pretend)
            with pytest.raises(fo.Unsupported, match=r"the worker tcp://127.0.0.1:\d+ has fairopt 0\.0\.9, and the process that asks has"):
                fo.study({"x": SPEC}, notions=["drfh"], seeds=range(3), backend="dask", address=address, resume=tmp_path / "x.parquet")
    assert not (tmp_path / "x.parquet").exists()


def test_dask_without_workers_waits_and_then_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Batch systems start workers later; after a time it is an error that says how to go on. So is a scheduler that is gone."""
    pytest.importorskip("distributed", reason="needs pip install '.[dask]'")
    monkeypatch.setattr("fairopt.processes.crew._WITHOUT_WORKERS", 0.5)
    ask: dict[str, Any] = {"instances": {"x": SPEC}, "backend": "dask", "resume": tmp_path / "x.parquet"}
    with cluster(tmp_path, 0) as (address, programs):
        with pytest.raises(fo.NoSolution, match=r"the Dask scheduler at \S+ has 0 workers.*; 0 of 1 cell are in .*; run the same study"):
            fo.study(**ask, address=address)
        assert "has 0 workers; waiting for workers" in caplog.text
        monkeypatch.setattr("fairopt.processes.crew._WITHOUT_WORKERS", 300.0)
        monkeypatch.setattr("fairopt.processes.on_dask._PATIENCE", 1)
        threading.Timer(1.0, programs[0].kill).start()
        with pytest.raises(fo.NoSolution, match=r"the Dask scheduler at \S+ is lost; 0 of 1 cell are in"):
            fo.study(**ask, address=address)


def test_no_cluster_at_the_address_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """With how to start one; the message of Dask is in it."""
    pytest.importorskip("distributed", reason="needs pip install '.[dask]'")
    monkeypatch.setattr("fairopt.processes.on_dask._PATIENCE", 0.2)
    for address in ("nonsense", "127.0.0.1", "foo://127.0.0.1:1"):
        with pytest.raises(fo.Unsupported, match=r"is not the address of a Dask scheduler: .*; give one as tcp://10.0.0.1:8786"):
            fo.study({"x": SPEC}, workers=1, backend="dask", address=address)
    with pytest.raises(fo.Unsupported, match=r"no Dask scheduler answers at tcp://127.0.0.1:1: .*; start one with: dask scheduler"):
        fo.study({"x": SPEC}, workers=1, backend="dask", address="tcp://127.0.0.1:1")


@pytest.mark.skipif(os.name != "posix", reason="about signals as POSIX has them")
def test_workers_of_a_local_cluster_do_not_hear_ctrl_c() -> None:
    """One that hears it ends, is not replaced, and the study would wait for its results for ever."""
    pytest.importorskip("distributed", reason="needs pip install '.[dask]'")

    def is_kept_away(_: int) -> bool:  # a closure: it travels by value
        import signal

        return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())

    assert list(run(is_kept_away, [0, 1], workers=2, backend="dask")) == [True, True]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs pip install '.[ray]'")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")  # files that Ray 2.49 leaves open
def test_on_ray_a_cell_that_ends_its_worker_is_a_row() -> None:
    """A cluster of this machine; the other rows are those of a study without it."""

    check_deadly(fo.study({"x": deadly()}, notions=["drfh"], seeds=range(6), workers=2, backend="ray"), 6)
