"""Objects as tables: what an instance holds by label, one user or queue of an allocation, arrays with labels."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

import fairopt as fo
from fairopt.allocation.holdings import UserHoldings


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


def frames(instance: fo.Instance, *more: str) -> dict[str, pd.DataFrame]:
    """The tables of an instance, as `from_frame` takes them."""
    return {of: instance.to_frame(of) for of in ("users", "servers", *more)}  # type: ignore[arg-type]


def test_users() -> None:
    """The columns of users.csv, without those that are all defaults; a default is missing."""
    frame = lab().to_frame()
    assert list(frame) == ["gpu", "cpu", "weight", "queue", "tasks", "servers"]
    assert frame.index.name == "name"
    assert list(frame.loc["vision", ["gpu", "cpu", "queue", "servers"]]) == [1.0, 4.0, "research", "dgx"]
    assert frame["weight"].fillna(1).tolist() == [1, 2, 1]
    assert frame["tasks"].fillna(np.inf).tolist() == [np.inf, 5, np.inf]
    assert frame["servers"].isna().tolist() == [False, True, False]
    assert list(fo.Instance([[1]], [[1]], resources=["cpu"]).to_frame()) == ["cpu"]


def test_servers_and_queues() -> None:
    """Counts; amounts of guarantees and limits by resource."""
    servers, queues = lab().to_frame("servers"), lab().to_frame("queues")
    assert servers.loc["cpu"].to_dict() == {"gpu": 0, "cpu": 32, "count": 3}
    assert list(queues) == ["weight", "tier", "guarantee:gpu", "limit:cpu"]
    assert queues.loc["research", "guarantee:gpu"] == 4
    assert queues["limit:cpu"].isna().tolist() == [True, False]
    with pytest.raises(fo.Unsupported, match='this instance has no table of "rates"; it has servers, users and queues'):
        lab().to_frame("rates")


def test_frames_are_read_back() -> None:
    """With queues, quotas on groups, rates, weights per resource, and constraints."""
    assert fo.Instance.from_frame(**frames(lab(), "queues")) == lab()
    groups = lab().replace(queues=[fo.Queue("research", quotas=[fo.Quota(["dgx"], {"gpu": 2})]), fo.Queue("teaching")])
    assert fo.Instance.from_frame(**frames(groups, "queues")) == groups
    timed = fo.Instance([[4, 4]], [[1, 1], [1, 2]], weights=[[1, 2], [3, 1]], rates=[[1.5], [2.0]], resources=["cpu", "memory"])
    assert timed.to_frame("weights")["memory"].tolist() == [2, 1]
    assert fo.Instance.from_frame(**frames(timed, "weights", "rates")) == timed


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
    with pytest.raises(fo.SolverUnavailable, match=r"need xarray; install it with: pip install '\.\[xarray\]' in the checkout of fairopt"):
        lab().to_xarray()
