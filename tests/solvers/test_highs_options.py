"""Options of HiGHS that a user gives: where they hold, and which are refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import fairopt as fo
from fairopt.solvers.highs_model import HighsModel
from fairopt.solvers.highs_options import given_options


def test_options_of_the_user_replace_ours() -> None:
    """In the models that are made inside alone; what HiGHS refuses is refused by its name."""

    def model() -> HighsModel:
        one = np.ones(1)
        return HighsModel(one, 0 * one, one, sp.csr_array([[1.0]]), -one, one, tolerance=1e-9)

    with given_options({"primal_feasibility_tolerance": 1e-7, "simplex_strategy": 4}):
        inside = model()
        inside.set_options(simplex_strategy=1, mip_rel_gap=0.5)
    highs = inside._highs
    assert [highs.getOptionValue(name)[1] for name in ("primal_feasibility_tolerance", "simplex_strategy", "mip_rel_gap")] == [1e-7, 4, 0.5]
    assert model()._highs.getOptionValue("primal_feasibility_tolerance")[1] == 1e-9
    for options, words in (({"thread": 1}, 'did you mean "threads"'), ({"threads": "abc"}, 'does not take "abc" for its option "threads"')):
        with pytest.raises(fo.Unsupported, match=words), given_options(options):
            pass
