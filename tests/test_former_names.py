"""Keyword arguments that had another name work under both."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import fairopt as fo

POOL = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"], tasks=[4, 4], resources=["cpu", "memory"])
CLUSTER = fo.Instance([[4]], [[1]], users=["nobody"], resources=["cpu"])
TRACE = fo.Trace(["A", "A", "B"], [0, 0, 0], [3, 2, 4], [[1]] * 3, [100, 50, 60], resources=["cpu"])


def test_workers_was_jobs() -> None:
    """Of audit, arrivals, study and worst_case."""
    for words in ({"workers": 0}, {"jobs": 0}):
        with pytest.raises(fo.Unsupported, match="workers is 0"):
            fo.audit(fo.solve(POOL), **words)  # type: ignore[arg-type]
        with pytest.raises(fo.Unsupported, match="workers is 0"):
            fo.arrivals(POOL, "cpu", **words)  # type: ignore[arg-type]
        with pytest.raises(fo.Unsupported, match="workers is 0"):
            fo.study({"pool": POOL}, **words)  # type: ignore[arg-type]
        with pytest.raises(fo.Unsupported, match="workers is 0"):
            fo.worst_case("drfh:first-fit", **words)  # type: ignore[call-overload]


def test_keep_regret_was_keep() -> None:
    """Of worst_case."""
    for words in ({"keep_regret": 2.0}, {"keep": 2.0}):
        with pytest.raises(fo.Unsupported, match=r"keep_regret is 2\.0"):
            fo.worst_case("drfh:first-fit", **words)  # type: ignore[call-overload]


def test_resume_was_keep_store_and_output(tmp_path: Path) -> None:
    """Of simulate, compare_over_time, history and study: the folder is written under both names."""
    for name in ("resume", "keep"):
        fo.simulate(TRACE, CLUSTER, "fifo", **{name: tmp_path / f"simulate-{name}"})  # type: ignore[arg-type]
        log = pd.DataFrame({"user": ["A", "B"], "submit": [0, 0], "start": [0, 50], "end": [50, 90], "cpu": [4, 4]})
        fo.history(log, CLUSTER, **{name: tmp_path / f"history-{name}"})  # type: ignore[arg-type]
    for name in ("resume", "store"):
        fo.compare_over_time(TRACE, CLUSTER, ["fifo"], **{name: tmp_path / f"compare-{name}"})  # type: ignore[arg-type]
    for name in ("resume", "output"):
        fo.study({"pool": POOL}, notions=["drf"], workers=1, **{name: tmp_path / f"study-{name}"})  # type: ignore[arg-type]
    for kind, former in (("simulate", "keep"), ("history", "keep"), ("compare", "store"), ("study", "output")):
        written = [sorted(path.name for path in (tmp_path / f"{kind}-{name}").iterdir()) for name in ("resume", former)]
        assert written[0] == written[1] != []


def test_reference_was_exact() -> None:
    """Of compare_over_time: the simulation that shortfalls are measured against."""
    now, before = (fo.compare_over_time(TRACE, CLUSTER, ["fifo"], **{name: "tsf"}) for name in ("reference", "exact"))  # type: ignore[arg-type]
    pd.testing.assert_frame_equal(now.to_frame(), before.to_frame())
    assert now.exact.name == before.exact.name == "tsf"
