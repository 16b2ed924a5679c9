"""What owners of tasks hold."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import fairopt as fo
from fairopt.analysis.owners import owner_holdings, owners_of
from fairopt.analysis.rerun import given

TREE = [fo.Queue("chem"), fo.Queue("chem/ann", "chem"), fo.Queue("bio"), fo.Queue("wet", "bio"), fo.Queue("x/y")]


def lab() -> fo.Instance:
    """Accounts with users, queues in a queue, and users in the root."""
    return fo.Instance(
        [[10, 20]],
        [[1, 0], [2, 1], [1, 4], [0, 1], [1, 1], [1, 1]],
        users=["a", "b", "c", "d", "guest/1 cpu", "guest/1 gpu"],
        resources=["cpu", "memory"],
        queues=TREE,
        queue_of=["chem/ann", "chem", "wet", "x/y", None, None],
        owners=["chem", None, None, None, "guest", "guest"],
    )


def test_the_owner_is_the_one_that_is_named_or_the_queue_or_the_user() -> None:
    """A slash means nothing, neither in the name of a queue nor in the label of a user."""
    assert owners_of(lab()) == ("chem", "chem", "wet", "x/y", "guest", "guest")
    assert owners_of(lab().replace(owners=None)) == ("chem/ann", "chem", "wet", "x/y", "guest/1 cpu", "guest/1 gpu")
    flat = fo.Instance([[1]], [[1], [1], [1]], users=["lab/vision", "lab/speech", "c/1 cpu"], owners=[None, None, "c"])
    assert owners_of(flat) == ("lab/vision", "lab/speech", "c")


def test_holdings_are_sums_over_shapes() -> None:
    """1 + 2 x 2 = 5 of 10 cores, 2 of 20 GiB; one task of (1, 4): 10 % and 20 %."""
    allocation = given(lab(), np.array([[1.0], [2.0], [1.0], [0.0], [1.0], [1.0]]), "rdm")
    chem, wet, other, guest = owner_holdings(allocation)
    assert (chem.name, chem.users, chem.tasks, chem.dominant_resource, chem.dominant_share) == ("chem", 2, 3, "cpu", 0.5)
    assert (wet.dominant_resource, wet.dominant_share) == ("memory", 0.2)
    assert (other.tasks, other.dominant_resource, other.dominant_share) == (0, "", 0)
    assert (guest.users, guest.dominant_share) == (2, 0.2)


def test_a_comparison_by_owner_has_before_and_after() -> None:
    """One row for each allocation and owner."""
    pool = fo.Instance([[12]], [[1], [1], [1]], users=["a/1", "a/2", "b"], owners=["a", "a", None], resources=["cpu"], servers=["s"])
    compared = fo.compare(pool, notions=["drfh"], allocations={"before": [[1], [1], [9]], "after": [[3], [3], [6]]})
    frame = compared.to_frame(by="owner")
    assert frame["tasks"].to_dict() == {
        ("drfh", "a"): 8,
        ("drfh", "b"): 4,
        ("before", "a"): 2,
        ("before", "b"): 9,
        ("after", "a"): 6,
        ("after", "b"): 6,
    }
    assert frame["dominant_share"].tolist()[-2:] == [0.5, 0.5]
    assert isinstance(frame, pd.DataFrame)
    with pytest.raises(fo.Unsupported, match='by="owner"'):
        compared.to_frame(by="server")  # type: ignore[arg-type]
