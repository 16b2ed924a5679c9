"""The program of a sample, worked out by hand."""

from __future__ import annotations

import numpy as np

import fairopt as fo
from fairopt.program import AlphaFair
from fairopt.solvers.interior_point.sample_columns import sampled
from fairopt.solvers.interior_point.sample_users import Users


def test_a_user_of_a_sample_stands_for_others() -> None:
    """Six users with rates 1 and 4 on 3 and 2 servers, three of whom are on half a server at most; every second one is in the sample.

    All servers run 3 or 8 tasks of a user. The first user of the sample has no limit of its own. Each of the two others may be on one
    server, as it stands for two users. At alpha = 2 their weights are 2^2 times as large.
    """
    weights = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    parallelism = [np.inf, np.inf, np.inf, 0.5, 0.5, 0.5]
    instance = fo.Instance(
        np.ones((2, 1)), np.ones((6, 1)), weights, counts=[3, 2], rates=np.tile([1.0, 4.0], (6, 1)), parallelism=parallelism
    )
    program = fo.formulate(instance, "proportional")
    users = Users.of(program, AlphaFair(2.0, weights))
    part, goal = (columns := sampled(users, 2)).program(users)
    np.testing.assert_array_equal(part.pair_users, [0, 0, 1, 1, 2, 2])
    np.testing.assert_array_equal(part.pair_servers, [0, 1, 0, 1, 0, 1])
    np.testing.assert_allclose(part.utilities, [3, 8, 3, 8, 3, 8])
    np.testing.assert_allclose(
        part.limits.matrix.toarray(),
        [[1, 0, 1, 0, 1, 0], [0, 1, 0, 1, 0, 1], [0, 0, 3, 2, 0, 0], [0, 0, 0, 0, 3, 2]],
    )
    np.testing.assert_allclose(part.limits.bounds, 1)
    np.testing.assert_allclose(goal.weights * np.exp(columns.log_unit), 4 * weights[1::2])
