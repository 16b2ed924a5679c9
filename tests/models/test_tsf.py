"""Task share fairness: what is said of its measure."""

from __future__ import annotations

import pytest

import fairopt as fo


@pytest.mark.parametrize("notion", ["tsf", "cdrf"])
def test_one_task_is_one_task(notion: str) -> None:
    """A sentence counts as people do."""
    pool = fo.Instance([[1]], [[1.0], [0.5]], users=["a", "b"])
    said = [fo.NOTIONS[notion]().describe_measure(pool, user) for user in range(2)]
    assert said[0].startswith("the 1 task that it could run alone")
    assert said[1].startswith("the 2 tasks that it could run alone")
