"""`Instance(shared=)`: where columns go, what is refused, and what is derived."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairopt as fo
from fairopt.errors import InvalidInstance

POOL = fo.Instance(
    [[20, 64], [10, 32]], [[1, 4, 1, 0], [1, 2, 0, 3]], counts=[2, 1], resources=["cpu", "memory"], shared={"ansys": 10, "uplink": 40}
)


def test_columns() -> None:
    """Demands have all columns, capacities those of servers."""
    assert POOL.resources == ("cpu", "memory", "ansys", "uplink")
    assert POOL.server_resources == ("cpu", "memory")
    assert POOL.shared == {"ansys": 10.0, "uplink": 40.0}
    assert POOL.capacities.shape == (2, 2)
    assert POOL.total_capacity.tolist() == [50, 160, 10, 40]
    assert POOL.shared_demands.tolist() == [[1, 0], [0, 3]]
    assert POOL.rates.tolist() == [[32, 8], [40, 10]]  # of servers alone
    assert "4 resources, of which 2 are shared: 50 cpu, 160 memory, 10 ansys, 40 uplink" in repr(POOL)


def test_without_shared_nothing_differs() -> None:
    """No shared resources are none."""
    plain = fo.Instance([[1]], [[1]])
    assert plain.shared == {}
    assert plain == fo.Instance([[1]], [[1]], shared={})
    assert plain.to_dict() == {key: value for key, value in plain.to_dict().items() if key != "shared"}


def test_without_servers() -> None:
    """One row, the cluster, on which everybody may run."""
    every: list[Any] = [None, np.zeros((1, 0)), [[]]]
    for capacities in every:
        none = fo.Instance(capacities, [[1, 0], [1, 1]], shared={"uplink": 4, "ansys": 1})
        assert none.servers == ("cluster",)
        assert np.isinf(none.rates).all()
        assert fo.solve(none).tasks_per_user == pytest.approx([3.2, 0.8])
    with pytest.raises(InvalidInstance, match="there are no capacities"):
        fo.Instance(None, [[1]])


def test_a_resource_of_which_there_is_nothing() -> None:
    """Who demands it cannot run."""
    assert POOL.replace(shared={"ansys": 0}).unservable == ("user-1",)
    assert fo.solve(POOL.replace(shared={"ansys": 0})).tasks_per_user[0] == 0


def test_frames_go_by_label() -> None:
    """Columns of demands that servers lack are shared; a column of servers may be there if nothing is in it."""
    servers = pd.DataFrame({"cpu": [20.0], "ansys": [np.nan], "memory": [64.0]}, index=["a"])
    users = pd.DataFrame({"ansys": [1, 0], "cpu": [1, 1], "memory": [4, 2]}, index=["L", "C"])
    pool = fo.Instance(servers, users, shared={"ansys": 10})
    assert pool.resources == ("cpu", "memory", "ansys")
    assert pool.demands.tolist() == [[1, 4, 1], [1, 2, 0]]
    assert pool.servers == ("a",)
    with pytest.raises(InvalidInstance, match='ansys is shared by the whole cluster, but server "a" has 3 of it'):
        fo.Instance(servers.assign(ansys=3), users, shared={"ansys": 10})
    with pytest.raises(InvalidInstance, match='"gpu" of demands is no resource of servers, and not in shared'):
        fo.Instance(servers, users.assign(gpu=1), shared={"ansys": 10})
    with pytest.raises(InvalidInstance, match='demands have no column "uplink"'):
        fo.Instance(servers, users, shared={"ansys": 10, "uplink": 1})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shared": {"ansys": -1}}, 'the shared amount of "ansys" is -1; it must be finite and >= 0'),
        ({"shared": {"ansys": np.nan}}, 'the shared amount of "ansys" is nan; it must be finite and >= 0'),
        ({"shared": {"ansys": np.inf}}, "it must be finite"),
        ({"shared": {"ansys": "ten"}}, "not a real number"),
        ({"shared": {"ansys": 1, "uplink": 1}}, "demands have 2 columns, expected 3"),
        ({"shared": [10]}, "expected a mapping"),
        ({"shared": {"": 1}}, "no name of a resource"),
        ({"shared": {"cpu": 10}, "resources": ["cpu"]}, 'cpu is shared by the whole cluster, but server "server-1" has 20 of it'),
        ({"shared": {"ansys": 1}, "resources": ["ansys", "cpu"]}, "name those of servers first"),
        ({"shared": {"ansys": 1}, "resources": ["cpu", "memory"]}, 'no amount of the resource "memory"'),
        (
            {
                "shared": {"ansys": 10},
                "queues": [fo.Queue("q", quotas=[fo.Quota(["server-1"], guarantee={"ansys": 1})])],
            },
            'queue "q", quota on .*: ansys is a resource of the whole cluster, so no group of servers has a guarantee of it',
        ),
    ],
)  # fmt: skip
def test_what_is_refused(arguments: dict[str, Any], message: str) -> None:
    """Each in a sentence with the name."""
    with pytest.raises(InvalidInstance, match=message):
        fo.Instance([[20]], [[1, 1], [1, 0]], **arguments)


def test_changes_by_label() -> None:
    """Another amount, one less, one more."""
    assert POOL.replace(shared={"ansys": 12}).shared == {"ansys": 12, "uplink": 40}
    fewer = POOL.replace(shared={"ansys": None})
    assert (fewer.resources, fewer.demands.tolist()) == (("cpu", "memory", "uplink"), [[1, 4, 0], [1, 2, 3]])
    more = POOL.replace(shared={"power": 5})
    assert (more.shared["power"], more.demands[:, -1].tolist()) == (5, [0, 0])
    assert POOL.replace(shared=None).resources == ("cpu", "memory")
    assert POOL.replace(demands={"user-1": {"ansys": 2}}).demands[0].tolist() == [1, 4, 2, 0]
    assert POOL.replace(weights=[2, 1]).shared == POOL.shared
    assert POOL.replace(resources=["c", "m", "a", "u"]).shared == {"a": 10, "u": 40}
    assert POOL.replace(units={"uplink": "Gbit/s"}).replace(shared={"uplink": None}).units == {}


def test_fractions_are_kept() -> None:
    """A third of a licence."""
    third = POOL.replace(shared={"ansys": Fraction(1, 3)})
    assert third.exact.shared["ansys"] == Fraction(1, 3)
    assert third.to_dict()["shared"] == {"ansys": "1/3", "uplink": 40.0}
    assert third != POOL.replace(shared={"ansys": 1 / 3})


def test_a_pool_has_all_resources() -> None:
    """Shared resources become columns of the pool."""
    pool = POOL.replace(queues=[fo.Queue("q", limit={"ansys": 3})], queue_of=["q", None]).pooled()
    assert pool.capacities.tolist() == [[50, 160, 10, 40]]
    assert pool.shared == {}
    assert pool.queues[0].limit == {"ansys": 3}
