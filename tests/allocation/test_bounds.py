"""What is used of shared resources and limits, and both sides of rules: by hand, and prices as differences of two answers."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import jsonschema  # type: ignore[import-untyped]
import numpy as np
import pytest

import fairopt as fo
from fairopt.allocation.bounds import bounds_of
from fairopt.formats import schema as instance_schema
from fairopt.results.schema import schema

POOL = fo.Instance(
    [[20, 4], [20, 0]],
    [[1, 0, 1], [1, 0, 0], [2, 1, 0]],
    users=["L", "C", "G"],
    resources=["cpu", "gpu"],
    shared={"ansys": 10},
    limits=[fo.Limit("few", 2, resource="gpu"), fo.Limit("each", 18, resource="cpu", each="user"), fo.Limit("all", 90)],
    rules=["x[L] <= 2 * x[C]", "x[C] >= 4", "x[G] == 1"],
)


def test_every_row_by_hand() -> None:
    """G has 1 task by its rule, C stops at 18 cpu of its limit, L at the licences: 10, 18, 1."""
    allocation = fo.solve(POOL, "drfh", exact=True)
    assert [(each.kind, each.name, each.used, each.sense, each.bound, each.reached) for each in bounds_of(allocation)] == [
        ("shared", "ansys", 10, "<=", 10, True),
        ("limit", "few", 1, "<=", 2, False),
        ("limit", "each of L", 10, "<=", 18, False),
        ("limit", "each of C", 18, "<=", 18, True),
        ("limit", "each of G", 2, "<=", 18, False),
        ("limit", "all", 29, "<=", 90, False),
        ("rule", "x[L] <= 2 * x[C]", 10, "<=", 36, False),
        ("rule", "x[C] >= 4", 18, ">=", 4, False),
        ("rule", "x[G] == 1", 1, "==", 1, True),
    ]
    in_floats = [(each.name, each.reached) for each in bounds_of(fo.solve(POOL, "drfh"))]
    assert in_floats == [(each.name, each.reached) for each in bounds_of(allocation)]


def test_plain_data_has_numbers_and_fractions() -> None:
    """As the schema declares it."""
    found = json.loads(json.dumps(fo.solve(POOL, "drfh", exact=True).to_dict()))
    jsonschema.Draft202012Validator(schema(instance_schema())).validate(found)
    ansys, cpu, gpu = found["shared"][0], found["limits"][2], found["rules"][2]
    assert (ansys["usage"], ansys["reached"], ansys["exact"]["price"]) == (10, True, "1/10")
    assert (cpu["name"], cpu["resource"], cpu["used"], cpu["exact"]["price"]) == ("each of C", "cpu", 18, "1/40")
    assert (gpu["name"], gpu["sense"], gpu["used"], gpu["bound"], gpu["price"]) == ("x[G] == 1", "==", 1, 1, 0.25)
    assert "limits" not in fo.solve(fo.Instance([[1]], [[1]])).to_dict()


@pytest.mark.parametrize("queues", [False, True])
def test_prices_are_what_one_more_unit_brings(queues: bool) -> None:
    """Each price is the rise of the level of who is stopped, by a second answer; in a tree under rules prices were in other units."""
    pool = POOL.replace(queues=[fo.Queue("lab")], queue_of=[None, None, "lab"]) if queues else POOL
    prices = {each.name: each.price for each in bounds_of(fo.solve(pool, "drfh", exact=False))}
    step = Fraction(1, 8)
    more = {
        "ansys": ("L", pool.replace(shared={"ansys": 10 + step})),
        "each of C": ("C", pool.replace(limits=[fo.Limit("each", 18 + step, resource="cpu", each="user")])),
        "x[G] == 1": ("G", pool.replace(rules=["x[G] == 9/8"])),
    }
    was = fo.solve(pool, "drfh", exact=True).in_fractions
    for name, (user, other) in more.items():
        n = pool.index(user)
        per_task = was.shares[n] / was.tasks_per_user[n]  # a share counts the capacity that there was
        rise = (fo.solve(other, "drfh", exact=True).in_fractions.tasks_per_user[n] - was.tasks_per_user[n]) * per_task / step
        assert prices[name] == pytest.approx(float(rise), rel=1e-9), name


def test_what_is_exceeded_is_said() -> None:
    """Tasks from elsewhere may exceed a limit and break a rule."""
    given = replace(fo.solve(POOL, "drfh"), tasks=np.array([[11.0, 0], [0, 3], [1, 0]]))
    assert {each.name for each in bounds_of(given) if each.broken} == {"ansys", "x[L] <= 2 * x[C]", "x[C] >= 4"}


def test_amounts_of_many_rows_are_those_of_each_row() -> None:
    """Amounts by pair, groups and copies of servers, against a sum over the cells."""
    rng = np.random.default_rng(3)
    amounts = rng.integers(0, 4, (6, 5)).astype(float)
    pool = fo.Instance(rng.integers(4, 9, (5, 2)), rng.integers(1, 3, (6, 2)), counts=[1, 2, 1, 3, 1], users=list("abcdef"))
    pool = pool.replace(limits=[fo.Limit("path", 7, amounts=amounts), fo.Limit("there", 3, each="server", users=["a", "c"])])
    allocation = fo.solve(pool, "drfh")
    used = {each.name: each for each in bounds_of(allocation)}
    assert used["path"].used == pytest.approx(float((amounts * allocation.tasks).sum()))
    for i, server in enumerate(pool.servers):
        each = used[f"there on {server}"]
        assert (each.used, each.bound) == (pytest.approx(float(allocation.tasks[[0, 2], i].sum())), 3 * pool.counts[i])
