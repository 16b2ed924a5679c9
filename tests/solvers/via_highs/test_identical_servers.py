"""Totals on identical servers."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.program import Program
from fairopt.solvers.backend import Deadline
from fairopt.solvers.via_highs.identical_servers import Fewer, Linear, Totals
from fairopt.solvers.via_highs.rows import Rows

NEVER = Deadline(None)
# Two resources of three servers: patterns fit, in fractions, but no three of them have these totals.
SIZES = np.array([[9, 10, 3, 13], [13, 10, 14, 7]]) / 30
TOTALS = np.array([1.0, 2.0, 2.0, 3.0])


def program_of(instance: fo.Instance) -> Program:
    """The program over single servers."""
    return fo.formulate(instance.replace(counts=None), "drfh", integral=True)


def totals_of(program: Program) -> Totals:
    """Totals of a program whose bounds are above 0."""
    matrix = program.limits.matrix / program.limits.bounds[:, None]
    return Totals.of(program.pair_users, program.pair_servers, program.utilities, matrix.tocsr(), np.floor(program.largest()))


def test_groups() -> None:
    """Servers are identical if the same users may run there and no limit tells them apart; finite tasks bound all servers together."""
    capacities = [[4, 4], [4, 4], [8, 4], [4, 4]]
    eligibility = [[True, True, True, True], [True, True, True, False]]
    instance = fo.Instance(capacities, [[1, 1], [1, 2]], eligibility=eligibility, tasks=[5, np.inf])
    totals = totals_of(program_of(instance))
    assert [group.columns.tolist() for group in totals.groups] == [[[0, 4], [1, 5]]]
    assert totals.first.tolist() == [0, 2, 3, 4, 6]  # the second server's totals are those of the first
    assert totals.upper.tolist() == [8, 4, 4, 4, 2]
    assert sorted(totals.bounds.tolist()) == [1, 1, 1, 1, 1, 2, 2]  # two resources of three groups, and the tasks
    program = program_of(instance.replace(capacities=[[4, 4], [5, 4], [8, 4], [9, 4]]))
    alone = totals_of(program)
    assert alone.groups == []
    assert alone.upper.tolist() == np.floor(program.largest()).tolist()
    assert not alone.load.any()


def test_cuts_are_limits_of_the_next_model() -> None:
    """Totals that did not fit do not come again, by prices and by fewer tasks; smaller totals are cut from a packing that is known."""
    instance = fo.Instance([[30, 30]] * 3, (SIZES * 30).T, tasks=[9, 9, 9, 9])
    totals = totals_of(program_of(instance))
    assert totals.spread(TOTALS, NEVER, {}) is None
    assert isinstance(totals.cuts[-1][1], Fewer)
    assert totals.spread(np.array([3.0, 3.0, 0.0, 3.0]), NEVER, {}) is None
    assert isinstance(totals.cuts[-1][1], Linear)
    for refused in (TOTALS, np.array([3.0, 3.0, 0.0, 3.0])):
        rows = Rows()
        y = rows.columns(totals.upper)
        totals.limit(rows, y, np.arange(4))
        rows.put(rows.rows(4, refused), y, np.ones(4))
        assert rows.model({}).run(60.0).x.size == 0
    assert totals.spread(np.array([1.0, 2.0, 2.0, 2.0]), NEVER, {}) is not None
    assert len(totals.packings) == 1
    smaller = totals.spread(np.array([1.0, 1.0, 1.0, 2.0]), NEVER, {})
    assert smaller is not None
    assert smaller.reshape(4, 3).sum(axis=1).tolist() == [1, 1, 1, 2]
    assert len(totals.packings) == 1


def test_divisible_totals_are_cut_too() -> None:
    """A task that takes two thirds of a server: one on each, though two servers have room for three thirds of three."""
    totals = totals_of(program_of(fo.Instance([[3], [3]], [[2]])))
    assert totals.upper.tolist() == [2]
    assert not totals.tighten(np.array([2.0]), NEVER, {})
    assert totals.tighten(np.array([2.9]), NEVER, {})
    (number, cut) = totals.cuts[0]
    assert number == 0
    assert isinstance(cut, Linear)
    assert cut.prices == pytest.approx([1.0])
