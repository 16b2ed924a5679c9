"""Packings of totals into identical servers, against trying everything."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fairopt as fo
from fairopt.solvers.backend import Deadline
from fairopt.solvers.via_highs.packing import Group, by_patterns, first_fit, pack
from fairopt.solvers.via_highs.settings import SETTINGS

NEVER = Deadline(None)
CLOSE = 1e-7  # relative: how clearly a limit is violated
# Two resources of three servers: patterns fit, in fractions, but no three of them have these totals.
SIZES = np.array([[9, 10, 3, 13], [13, 10, 14, 7]]) / 30
TOTALS = np.array([1.0, 2.0, 2.0, 3.0])


def group_of(sizes: np.ndarray, servers: int) -> Group:
    """Servers of room 1 in every resource."""
    return Group(np.arange(servers * sizes.shape[1]).reshape(servers, -1), sizes, np.floor((1 / sizes).min(axis=0) + 1e-9))


def patterns_of(group: Group, y: np.ndarray) -> np.ndarray:
    """Everything that one server may hold of these totals."""
    most = np.minimum(group.most, y).astype(int)
    points = np.array(list(itertools.product(*(range(q + 1) for q in most))), float)
    return np.asarray(points[(points @ group.sizes.T <= 1 + 1e-9).all(axis=1)])


def fits(group: Group, y: np.ndarray) -> bool:
    """Whether these totals fit: server after server, every pattern."""
    totals = {tuple(np.zeros(y.size))}
    for _ in range(len(group.columns)):
        totals = {tuple(np.minimum(total + pattern, y)) for total in map(np.array, totals) for pattern in patterns_of(group, y)}
    return tuple(y) in totals


def check_packing(group: Group, packed: np.ndarray, y: np.ndarray) -> None:
    """Whole tasks, as many as wanted, within every server."""
    assert (packed == np.round(packed)).all()
    assert (packed >= 0).all()
    assert packed.sum(axis=0).tolist() == y.tolist()
    assert (packed @ group.sizes.T <= 1 + 1e-9).all()


@st.composite
def groups(draw: st.DrawFn) -> tuple[Group, np.ndarray]:
    """Up to 3 servers, 3 users, 2 resources, and totals that fill most of them."""
    users, limits, room = draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.integers(3, 12))
    sizes = np.array(draw(st.lists(st.lists(st.integers(1, room), min_size=users, max_size=users), min_size=limits, max_size=limits)))
    y = np.array(draw(st.lists(st.integers(0, 4), min_size=users, max_size=users)), float)
    assume(y.any())
    return group_of(sizes / room, draw(st.integers(2, 3))), y


@given(case=groups())
@settings(max_examples=60)
def test_totals_fit_or_they_do_not(case: tuple[Group, np.ndarray]) -> None:
    """First fit packs only what fits; a limit by patterns is violated by nothing that fits; branch and cut settles the rest."""
    group, y = case
    found = first_fit(group, y)
    if found is not None:
        check_packing(group, found, y)
        return
    prices, patterns = by_patterns(group, y, np.diag(group.most), NEVER, {}, CLOSE)
    if prices is not None:
        assert not fits(group, y)
        assert prices @ y > len(group.columns)
        assert (patterns_of(group, group.most) @ prices <= 1).all()  # valid for all totals: no server holds more than 1 at these prices
        return
    packed = pack(group, y, patterns, NEVER, {})
    assert (packed is not None) == fits(group, y)
    if packed is not None:
        check_packing(group, packed, y)


def test_patterns_fit_in_fractions_only() -> None:
    """Then only branch and cut tells, over the patterns of full servers."""
    group = group_of(SIZES, 3)
    assert first_fit(group, TOTALS) is None
    prices, patterns = by_patterns(group, TOTALS, np.diag(group.most), NEVER, {}, CLOSE)
    assert prices is None
    assert not fits(group, TOTALS)
    assert pack(group, TOTALS, patterns, NEVER, {}) is None


@pytest.mark.parametrize("y", [TOTALS, TOTALS - [0, 0, 0, 1], [3, 0, 0, 3]])
def test_over_single_servers(monkeypatch: pytest.MonkeyPatch, y: np.ndarray) -> None:
    """What branch and cut over single servers says where there are too many patterns to list."""
    monkeypatch.setattr("fairopt.solvers.via_highs.packing.SETTINGS", SETTINGS._replace(most_patterns=1))
    group, y = group_of(SIZES, 3), np.array(y, float)
    packed = pack(group, y, np.diag(group.most), NEVER, {})
    assert (packed is not None) == fits(group, y)
    if packed is not None:
        check_packing(group, packed, y)


def test_time_is_up() -> None:
    """Between two programs."""
    group = group_of(SIZES, 3)
    with pytest.raises(fo.NoSolution):
        by_patterns(group, TOTALS, np.diag(group.most), Deadline(0.0), {}, CLOSE)
