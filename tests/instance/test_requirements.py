"""``requires``: which servers it leaves, and what is said about one that cannot be read."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairopt.errors import InvalidInstance
from fairopt.instance.attributes import Value
from fairopt.instance.requirements import Attributes, Clause, parse

SERVERS: list[dict[str, Value]] = [
    {"gpu": "V100", "cores": 4, "ssd": True, "zone": "a", "version": "1.10"},
    {"gpu": "T4", "cores": 8.5, "ssd": False, "zone": "no", "version": "1.9"},
    {"gpu": "v100", "cores": "16", "ssd": "TRUE", "zone": "001", "version": "beta"},
    {"zone": 1, "two words": "x"},
]


@pytest.mark.parametrize(
    ("requires", "expected"),
    [
        ("", [1, 1, 1, 1]),
        (" ; ;", [1, 1, 1, 1]),
        # Text, in which case matters; a server without the attribute has no value that could be equal.
        ("gpu = V100", [1, 0, 0, 0]),
        ("gpu == V100", [1, 0, 0, 0]),
        ("gpu=V100", [1, 0, 0, 0]),
        ("gpu != V100", [0, 1, 1, 1]),
        ("gpu in V100|T4", [1, 1, 0, 0]),
        ("gpu in V100 | T4 ", [1, 1, 0, 0]),
        ("gpu not in V100|T4", [0, 0, 1, 1]),
        ("gpu  not  in T4", [1, 0, 1, 1]),
        ("gpu = A100", [0, 0, 0, 0]),
        ("zone = no", [0, 1, 0, 0]),
        ("two words = x", [0, 0, 0, 1]),
        # Numbers, when both sides are: 1 and "001" are the same, 1.10 and 1.9 too far apart.
        ("zone = 1", [0, 0, 1, 1]),
        ("zone in 1.0|a", [1, 0, 1, 1]),
        ("zone != 1", [1, 1, 0, 0]),
        ("version = 1.1", [1, 0, 0, 0]),
        ("version < 1.5", [1, 0, 0, 0]),
        ("cores >= 8.5", [0, 1, 1, 0]),
        ("cores > 8.5", [0, 0, 1, 0]),
        ("cores <= 8.5", [1, 1, 0, 0]),
        ("cores < 4.1", [1, 0, 0, 0]),
        ("cores = 16", [0, 0, 1, 0]),
        ("cores >= -1e3", [1, 1, 1, 0]),
        # True and false in any case.
        ("ssd = true", [1, 0, 1, 0]),
        ("ssd = True", [1, 0, 1, 0]),
        ("ssd != FALSE", [1, 0, 1, 1]),
        ("ssd = 1", [0, 0, 0, 0]),
        # All clauses must hold.
        ("gpu in V100|T4; cores >= 8", [0, 1, 0, 0]),
        ("gpu = V100; gpu = T4", [0, 0, 0, 0]),
    ],
)
def test_which_servers_meet_it(requires: str, expected: list[int]) -> None:
    """Every operator, on text, numbers and what is missing."""
    assert Attributes(SERVERS).where(requires).tolist() == [bool(x) for x in expected]


@pytest.mark.parametrize(
    ("requires", "message"),
    [
        ("gpu = V100; cores", '"cores" has no operator; write attribute = value, or one of != in, not in, < <= > >='),
        ("gpu within V100", '"gpu within V100" has no operator; write attribute = value, or one of != in, not in, < <= > >='),
        ("= V100", '"= V100" has no attribute before =; write, for instance, zone = V100'),
        ("in V100", '"in V100" has no attribute before in; write, for instance, zone in V100'),
        ("gpu =", '"gpu =" has no value after =; write, for instance, gpu = 4'),
        ("cores => 4", '"cores => 4" has no value after =; write, for instance, cores = 4'),
        ("cores === 4", '"cores === 4" has no value after ==; write, for instance, cores == 4'),
        ("gpu = V100|T4", '"gpu = V100|T4" has several values; write gpu in V100|T4'),
        ("gpu in V100||T4", '"gpu in V100||T4" has an empty value; write one | between two values'),
        ("gpu in V100, T4", '"gpu in V100, T4" has a comma; separate values with |'),
        ("cores >= four", '"cores >= four" compares with "four", which is not a number; give a number, or use = or in'),
        ("cores >= 1_0", '"cores >= 1_0" compares with "1_0", which is not a number; give a number, or use = or in'),
        ("gpu >= 4", '"gpu >= 4" compares numbers, but that attribute is text ("V100") on every server; use = or in'),
        ("core >= 4", 'no server has the attribute "core" (did you mean "cores"?)'),
        ("os = linux", 'no server has the attribute "os"; the attributes are cores, gpu, ssd, two words, version and zone'),
    ],
)
def test_what_cannot_be_read(requires: str, message: str) -> None:
    """The clause is quoted and a right one shown."""
    with pytest.raises(InvalidInstance) as caught:
        Attributes(SERVERS).where(requires)
    assert str(caught.value) == message


def test_servers_without_attributes() -> None:
    """There is nothing to suggest then."""
    with pytest.raises(InvalidInstance, match=re.escape('no server has the attribute "zone"; give the servers attributes')):
        Attributes([{}, {}]).where("zone = a")


def test_a_word_operator_stands_alone() -> None:
    """Attributes whose names hold "in" are not cut in two."""
    assert parse("min-in = 3; inside in in|out") == (Clause("min-in", "=", ("3",)), Clause("inside", "in", ("in", "out")))


def test_the_answer_is_the_callers_own() -> None:
    """Answers are kept for the next user, so a caller may not change them."""
    cluster = Attributes(SERVERS)
    cluster.where("gpu = V100")[:] = False
    assert cluster.where("gpu = V100").tolist() == [True, False, False, False]


@given(
    values=st.lists(st.none() | st.integers(-3, 3) | st.sampled_from(["a", "b", "2", "2.0", "true", ""]) | st.booleans(), min_size=1),
    value=st.sampled_from(["a", "b", "2", "-1.0", "true"]),
)
def test_every_operator_has_its_opposite(values: list[Value | None], value: str) -> None:
    """A server passes exactly one of = and !=, of in and not in, and (with a number there) of < and >=, and of > and <=."""
    cluster = Attributes([{"x": 0}, *({} if v is None else {"x": v} for v in values)])
    assert (cluster.where(f"x = {value}") ^ cluster.where(f"x != {value}")).all()
    assert (cluster.where(f"x in {value}|a") ^ cluster.where(f"x not in {value}|a")).all()
    number = cluster.where("x >= -1e300")
    assert (cluster.where("x < 1.5") ^ cluster.where("x >= 1.5") == number).all()
    assert (cluster.where("x > 2") ^ cluster.where("x <= 2") == number).all()


def test_large_clusters_are_answered_by_column() -> None:
    """900 requirements of 12,583 servers: 11 million answers in less than the second that a loop over them would take many of."""
    cluster = Attributes([{"zone": f"z{i % 300}", "cores": i} for i in range(12_583)])
    start = time.process_time()
    answers = np.array([cluster.where(f"zone != z{n % 300}; cores >= {n % 100}") for n in range(900)])
    assert answers.shape == (900, 12_583)
    assert time.process_time() - start < 5  # 0.1 s; the margin is for a slow machine
