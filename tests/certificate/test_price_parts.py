"""The parts of prices: what is noise is left out, at each level by itself."""

from __future__ import annotations

import numpy as np
import pytest
from instances import instance_of_many_levels

import fairopt as fo
from fairopt.certificate.price_parts import PriceParts


def test_a_part_with_hardly_any_spending_is_left_out() -> None:
    """Two servers with a user each: the price of the second is noise beside that of the first, until the users share a server."""
    apart = fo.Instance([[1], [1]], [[1], [1]], eligibility=[[True, False], [False, True]])
    program = fo.formulate(apart, "drfh")
    prices = np.array([1.0, 1e-9])
    assert PriceParts(program.limits, program.pair_users, np.ones(2), 2).without_noise(prices).tolist() == [1.0, 0.0]
    joined = fo.formulate(fo.Instance([[1], [1]], [[1], [1]]), "drfh")
    assert PriceParts(joined.limits, joined.pair_users, np.ones(4), 2).without_noise(prices).tolist() == prices.tolist()


@pytest.mark.parametrize("seed", range(6))
def test_a_table_of_levels_is_cleaned_as_its_columns_are(seed: int) -> None:
    """With prices of very different sizes, and of 0."""
    rng = np.random.default_rng(seed)
    instance = instance_of_many_levels(12, 8, seed=seed)
    program = fo.formulate(instance, "drfh")
    x = rng.uniform(0, 1, program.n_pairs) * (rng.random(program.n_pairs) < 0.5)
    parts = PriceParts(program.limits, program.pair_users, x, instance.n_users)
    table = 10.0 ** rng.uniform(-12, 0, (len(program.limits), 9)) * (rng.random((len(program.limits), 9)) < 0.5)
    columns = [parts.without_noise(column) for column in table.T]
    assert np.array_equal(parts.without_noise(table), np.column_stack(columns))
    assert any((before != after).any() for before, after in zip(table.T, columns, strict=True))
