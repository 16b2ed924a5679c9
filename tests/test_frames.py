"""Objects as tables: what an instance holds by label, one user or queue of an allocation, arrays with labels."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import fairopt as fo
from fairopt.holdings import UserHoldings


def lab() -> fo.Instance:
    """Two queues, three users, two rows of servers, a bit of everything."""
    return fo.Instance(
        [[8, 64], [0, 32]],
        [[1, 4], [0, 2], [2, 1]],
        weights=[1, 2, 1],
        counts=[2, 3],
        tasks=[np.inf, 5, np.inf],
        eligibility=[[True, False], [True, True], [True, False]],
        queues=[fo.Queue("research", weight=3, guarantee={"gpu": 4}), fo.Queue("teaching", limit={"cpu": 16}, tier=1)],
        queue_of=["research", "teaching", None],
        users=["vision", "course", "visitor"],
        servers=["dgx", "cpu"],
        resources=["gpu", "cpu"],
    )


def test_users() -> None:
    """The columns of users.csv, without those that are all defaults."""
    frame = lab().to_frame()
    assert list(frame) == ["queue", "gpu", "cpu", "weight", "tasks", "servers"]
    assert list(frame.loc["vision"]) == ["research", 1.0, 4.0, 1.0, np.inf, "dgx"]
    assert frame.loc["course", "servers"] == ""
    assert list(fo.Instance([[1]], [[1]], resources=["cpu"]).to_frame()) == ["cpu"]


def test_servers_and_queues() -> None:
    """Counts; amounts of guarantees and limits by resource."""
    servers, queues = lab().to_frame("servers"), lab().to_frame("queues")
    assert servers.loc["cpu"].to_dict() == {"gpu": 0, "cpu": 32, "count": 3}
    assert list(queues) == ["parent", "weight", "tier", "guarantee:gpu", "limit:cpu"]
    assert queues.loc["research", "guarantee:gpu"] == 4
    assert queues["limit:cpu"].isna().tolist() == [True, False]
    with pytest.raises(fo.Unsupported, match='there is no table of "jobs"; use "users", "servers" or "queues"'):
        lab().to_frame("jobs")  # type: ignore[arg-type]


def test_weights_per_resource_have_a_column_each() -> None:
    """As weights.csv would."""
    instance = fo.Instance([[4, 4]], [[1, 1], [1, 2]], weights=[[1, 2], [3, 1]], resources=["cpu", "memory"])
    assert instance.to_frame()["weight:memory"].tolist() == [2, 1]


def test_one_user_and_one_queue() -> None:
    """By name, with what they hold."""
    allocation = fo.solve(lab(), "drfh")
    held = allocation["course"]
    assert isinstance(held, UserHoldings)
    n = allocation.instance.index("course")
    assert held.tasks == allocation.tasks_per_user[n]
    assert held.used["cpu"] == pytest.approx(2 * held.tasks)
    assert held.servers == {name: x for name, x in zip(allocation.instance.servers, allocation.tasks[n], strict=True) if x}
    assert held.dominant_share == pytest.approx(held.used["cpu"] / 224)
    assert held.share == allocation.shares[n]
    assert allocation["research"].guarantees[0].amount == 4  # type: ignore[union-attr]
    with pytest.raises(KeyError, match=r'there is no user or queue "visoin" \(did you mean "vision"\?\)'):
        allocation["visoin"]


def test_limits_of_a_program() -> None:
    """A row each."""
    frame = fo.formulate(lab(), "drfh").to_frame()
    assert list(frame.loc["cpu @ dgx"]) == ["capacity", 128.0, 3]
    assert frame.loc["tasks of course", "bound"] == 5


def test_arrays_with_labels() -> None:
    """Dimensions, coordinates and values."""
    pytest.importorskip("xarray")
    allocation = fo.solve(lab(), "drfh")
    data = allocation.to_xarray()
    assert data["tasks"].dims == ("user", "server")
    assert float(data["tasks"].sel(user="vision", server="dgx")) == allocation.tasks[0, 0]
    assert float(data["utilization"].sel(server="dgx", resource="gpu")) == allocation.utilization[0, 0]
    assert data.attrs["notion"] == "drfh"
    assert fo.solve(fo.load("examples/psdsf-figure-1.yaml"), "psdsf").to_xarray()["shares"].dims == ("user", "server")
    assert float(lab().to_xarray()["demands"].sel(user="vision", resource="cpu")) == 4


def test_without_xarray(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence says what to install."""
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(fo.SolverUnavailable, match=r"need xarray; install with pip install 'fairopt\[xarray\]'"):
        lab().to_xarray()
