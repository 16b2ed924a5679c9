"""Rules that are limits, as limits: the same rows, whatever the rule counts; all other rules are refused with the reason."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.instance.packing_rules import as_limits
from fairopt.instance.rule_rows import rule_rows
from fairopt.program.queue_limits import limit_rows


def drawn(seed: int) -> fo.Instance:
    """Whole numbers, queues, speeds, and rules of up to three terms with factors of one sign."""
    rng = np.random.default_rng(seed)
    users, servers = ["a", "b.c", "d"], ["s", "t"]
    terms = []
    for _ in range(int(rng.integers(1, 4))):
        name = rng.choice(["'a'", "'b.c'", "'d'", "'q'"])
        where = rng.choice(["", ", 's'", ", 't'"])
        terms.append(
            rng.choice([f"x[{name}{where}]", f"work[{name}{where}]", f"amount['cpu', {name}{where}]", f"amount['mem', {name}{where}]"])
        )
    factors = [str(rng.choice(["1", "2", "1/3", "0.5"])) for _ in terms]
    left = " + ".join(f"{factor} * {term}" for factor, term in zip(factors, terms, strict=True))
    bound = int(rng.integers(0, 20))
    rule = f"{left} <= {bound}" if rng.random() < 0.5 else f"{bound} >= {left}"
    return fo.Instance(
        rng.integers(5, 15, (2, 2)),
        rng.integers(1, 4, (3, 2)),
        users=users,
        servers=servers,
        resources=["cpu", "mem"],
        queues=[fo.Queue("q")],
        queue_of=[None, "q", "q"],
        speeds=None if rng.random() < 0.7 else rng.integers(1, 3, (3, 2)),
        rules=[rule],
    )


@pytest.mark.parametrize("seed", range(60))
def test_the_limit_is_the_row_of_the_rule(seed: int) -> None:
    """sum of a x at random tasks, over the bound: the same of rule and limit, in fractions."""
    instance = drawn(seed)
    (row,) = rule_rows(instance)
    limited = as_limits(instance, "a schedule")
    assert not limited.rules
    assert "." not in limited.limits[0].name
    (limit,) = limit_rows(limited.exact)
    pairs = np.indices((3, 2)).reshape(2, -1)
    coefficients = row.coefficients(instance.exact, *pairs) * row.sign
    bound = row.rule.bound * row.sign
    for n, i in pairs.T:
        tasks = np.full((3, 2), Fraction(0), dtype=object)
        tasks[n, i] = Fraction(1)
        assert limit.used(limited.exact.kinds, tasks) * bound == coefficients[2 * n + i] * limit.bound
        assert (limit.used(limited.exact.kinds, tasks) > 0) == (coefficients[2 * n + i] > 0)


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("x[a] >= 2", "asks for at least something"),
        ("x[a] <= x[b]", "lets more tasks of one allow more of another"),
        ("x[a] == 2", "is an equation"),
        ("x[a] + x[b] <= -1", "allows less than nothing"),
    ],
)
def test_other_rules_are_refused_with_the_reason(rule: str, why: str) -> None:
    """The message names the rule."""
    pool = fo.Instance([[9]], [[1], [1]], users=["a", "b"], resources=["gpu"], rules=[rule])
    with pytest.raises(fo.Unsupported) as refused:
        as_limits(pool, "a greedy schedule")
    assert f'the rule "{rule}" {why}' in str(refused.value)


def test_two_rules_of_the_same_text_are_two_limits() -> None:
    """Names of limits are unique."""
    pool = fo.Instance([[9]], [[1]], users=["a"], resources=["gpu"], rules=["x[a] <= 2", "2 >= x[a]"], limits=[fo.Limit("x['a'] <= 2", 4)])
    assert len({limit.name for limit in as_limits(pool, "a schedule").limits}) == 3


def test_amounts_of_the_instance_are_no_amounts_of_other_tasks() -> None:
    """Of tasks from a log only one resource can be counted; two factors of amounts are of this instance alone."""
    names: dict[str, Any] = {"users": ["a", "b"], "resources": ["gpu"]}
    one = fo.Instance([[9]], [[1], [2]], rules=["2 * amount[gpu, a] + 2 * amount[gpu, b] <= 6"], **names)
    (limit,) = as_limits(one, "a simulation", tasks_of_others=True).limits
    assert (limit.resource, limit.bound) == ("gpu", 3)
    two = one.replace(rules=["amount[gpu, a] + 2 * amount[gpu, b] <= 6"])
    with pytest.raises(fo.Unsupported, match="adds amounts of several resources, or with several factors; tasks in a simulation have"):
        as_limits(two, "a simulation", tasks_of_others=True)
