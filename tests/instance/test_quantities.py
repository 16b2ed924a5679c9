"""Numbers with a unit against exact arithmetic, and what they mean in documents, tables and changes."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairopt import formats
from fairopt.errors import InvalidInstance
from fairopt.formats.document import instance_from
from fairopt.formats.syntax import Parsed
from fairopt.formats.units import calculated
from fairopt.instance import Instance
from fairopt.instance.quantities import BYTES_PATTERN, NANO, PATTERN, nano, read

# Kubernetes ---------------------------------------------------------------------------------------------------------------------

SUFFIXES = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9}
BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4}
EXACT = Context(prec=100)


@given(st.decimals(0, 10**6, places=5), st.sampled_from([*SUFFIXES, *BINARY, "e3", "E2", "e-4"]))
def test_quantities_are_decimal_arithmetic_rounded_up(value: Decimal, suffix: str) -> None:
    """Value times a power of ten or of 1024, to nine decimals, up."""
    if suffix in BINARY:
        scale = Decimal(1024) ** BINARY[suffix]
    else:
        scale = Decimal(10) ** (int(suffix[1:]) if suffix[:1] in ("e", "E") else SUFFIXES[suffix])
    expected = EXACT.multiply(EXACT.multiply(value, scale), Decimal(NANO)).to_integral_value(ROUND_CEILING)
    assert nano(f"{value:f}{suffix}") == int(expected)


@given(st.integers(0, 2**62))
def test_numbers_need_no_quotes(value: int) -> None:
    """Some exporters write whole numbers without them."""
    assert nano(value) == nano(str(value)) == value * NANO


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-1", "negative"),
        ("1Gb", "unknown unit"),
        ("2 cores", "not a quantity"),
        ("", "not a quantity"),
        ("1_000", "not a quantity"),
        ("1e999", "more than Kubernetes can hold"),
        ("1e400", "more than Kubernetes can hold"),
        ("1" * 5000, "5,000 characters"),
        ("0." + "1" * 5000, "5,002 characters"),
        ("9" * 500, "more than Kubernetes can hold"),
    ],
)
def test_what_is_no_quantity(text: str, message: str) -> None:
    """Each says why."""
    with pytest.raises(ValueError, match=message):
        nano(text)


def test_an_infinite_number_is_no_quantity() -> None:
    """JSON may say 1e400, which Python reads as inf."""
    with pytest.raises(ValueError, match="not a quantity"):
        nano(float("1e400"))


# Files --------------------------------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**9), st.integers(1, 10**6), st.sampled_from([*SUFFIXES, *BINARY]), st.booleans())
def test_fractions_are_exact(over: int, under: int, suffix: str, of_bytes: bool) -> None:
    """And a float is the nearest there is."""
    of_bytes = of_bytes and suffix not in ("n", "u", "m")
    scale = Fraction(1024) ** BINARY[suffix] if suffix in BINARY else Fraction(10) ** SUFFIXES[suffix]
    quantity = read(f"{over}/{under}{suffix}{'B' * of_bytes}")
    assert quantity.value == Fraction(over, under) * scale
    assert quantity.in_bytes == (of_bytes or suffix in (*BINARY, "M", "G"))


@given(st.text("0123456789./eE+-nukmMGTPiB ", max_size=8))
def test_the_patterns_of_the_schema_are_what_is_read(text: str) -> None:
    """Bytes for amounts of resources alone."""
    try:
        quantity = read(text)
    except ValueError:
        assert not re.search(BYTES_PATTERN, text)
        return
    if text == text.strip():
        assert re.search(BYTES_PATTERN, text)
        assert bool(re.search(PATTERN, text)) == (not quantity.in_bytes)


@pytest.mark.parametrize("text", ["2", "1e3", "", "1gb", "1KB", "1mB", "1/0", "-1k", "1e3k", "1_0k", "inf", "1e400B", "9" * 400 + "k"])
def test_what_is_no_number_with_a_unit(text: str) -> None:
    """A number without a unit is none either: it needs no quotes."""
    with pytest.raises(ValueError, match=r"quantity|unit|negative|divides|beyond"):
        read(text)


LAB = """
servers:
- {name: A, capacity: {cpu: 64, memory: 256GiB}, count: 2}
- {name: B, capacity: {cpu: 32, memory: "128Gi"}}
queues:
- {name: q, weight: 1/2, guarantee: {memory: 64GiB, cpu: 0}, limit: {memory: .inf}, quotas: [{servers: [A], limit: {memory: 1e11B}}]}
users:
- {name: alice, demand: {cpu: 500m, memory: 4G}, weight: 1/3, queue: q}
- {name: bob, demand: {cpu: 1, memory: 0}, tasks: 2k}
"""


def test_units_in_yaml() -> None:
    """Quoted or plain; 0 needs none."""
    instance = instance_from(Parsed("lab.yaml", LAB))
    assert instance.capacities.tolist() == [[64, 256 * 2**30], [32, 128 * 2**30]]
    assert instance.demands.tolist() == [[0.5, 4e9], [1, 0]]
    assert instance.weights.tolist() == [1 / 3, 1]
    assert instance.tasks[1] == 2000
    (queue,) = instance.queues
    assert (queue.weight, queue.guarantee, queue.quotas[0].limit) == (0.5, {"memory": 64 * 2**30, "cpu": 0}, {"memory": 1e11})


def test_units_in_json_and_what_is_saved(tmp_path: Path) -> None:
    """Plain numbers are written."""
    text = '{"servers": [{"name": "A", "capacity": {"memory": "1.5Ki"}}], "users": [{"name": "a", "demand": {"memory": "1/2Ki"}}]}'
    (tmp_path / "lab.json").write_text(text)
    instance = formats.load(tmp_path / "lab.json")
    formats.save(instance, tmp_path / "copy.json")
    assert '"memory": 1536' in (tmp_path / "copy.json").read_text()
    assert (
        formats.load(tmp_path / "copy.json")
        == instance
        == Instance([[1536]], [[512]], units={"memory": "B"}, users=["a"], servers=["A"], resources=["memory"])
    )


def test_units_in_tables(tmp_path: Path) -> None:
    """Cells of amounts have bytes, the others parts and fractions."""
    (tmp_path / "servers.csv").write_text("name,cpu,memory\nA,64,256GiB\n")
    (tmp_path / "users.csv").write_text("name,cpu,memory,weight,queue\na,500m,1GiB,1/3,\nb,1,0,,q\n")
    (tmp_path / "queues.csv").write_text("name,guarantee:memory\nq,2GiB\n")
    instance = formats.load(tmp_path)
    assert instance.capacities.tolist() == [[64, 2**38]]
    assert instance.demands.tolist() == [[0.5, 2**30], [1, 0]]
    assert instance.weights.tolist() == [1 / 3, 1]
    assert instance.queues[0].guarantee == {"memory": 2**31}
    (tmp_path / "queues.csv").write_text("name,guarantee:memory\nq,2\n")
    with pytest.raises(
        InvalidInstance, match=r'queues.csv, line 2, column "guarantee:memory": queue "q", guarantee, memory: 2 has no byte'
    ):
        formats.load(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "memory: 4G}",
            "memory: 4}",
            'line 8: user "alice", demand, memory: 4 has no byte unit, but server "A", capacity, memory has: 256GiB; '
            "write 4GiB, or 4B if it is bytes",
        ),
        ('"128Gi"', "1.5", 'line 4: server "B", capacity, memory: 1.5 has no byte unit, but server "A", capacity, memory has: 256GiB'),
        (
            "256GiB",
            "256",
            'line 3: server "A", capacity, memory: 256 has no byte unit, but server "B", capacity, memory has: 128Gi; write 256Gi,',
        ),
        ("memory: 64GiB", "memory: 64k", 'line 6: queue "q", guarantee, memory: 64k has no byte unit, but server'),
        ("1e11B", "100", 'line 6: queue "q", quotas, item 1, limit, memory: 100 has no byte unit'),
        (
            "4G}",
            "4gb}",
            'line 8: user "alice", demand, memory: expected a number, found the text "4gb"; gb is no unit; write 4GB',
        ),
        ("1/3", "1GiB", 'line 8: user "alice", weight: expected a number, found the text "1GiB"; bytes are for amounts of resources'),
        ("1/3", "1/0", 'line 8: user "alice", weight: expected a number, found the text "1/0"; nothing can be divided by 0'),
        ("500m", "-500m", 'line 8: user "alice", demand, cpu: expected a number, found the text "-500m"; it must be >= 0'),
    ],
)
def test_what_is_refused(old: str, new: str, message: str) -> None:
    """Nothing is multiplied by 2^30 in silence."""
    assert old in LAB
    with pytest.raises(InvalidInstance) as caught:
        instance_from(Parsed("lab.yaml", LAB.replace(old, new, 1)))
    assert str(caught.value).startswith(f"lab.yaml, {message}")


@pytest.mark.parametrize(("old", "new", "what"), [("1/3", "1e-400", "weight of"), ("500m", "0.3e-400", "demand of")])
def test_a_decimal_below_every_float_is_not_taken_for_0(old: str, new: str, what: str) -> None:
    """Of 1e-400 nothing is left in floats; the instance says so instead of solving another one."""
    with pytest.raises(InvalidInstance, match=f'the {what} "alice".* is 4.94066e-324; it must be 0 or between 1e-60 and 1e\\+60'):
        instance_from(Parsed("lab.yaml", LAB.replace(old, new, 1)))


def test_units_in_changes(tmp_path: Path) -> None:
    """A value with a unit, and calculations with one."""
    path = tmp_path / "lab.yaml"
    path.write_text(LAB)
    changes = ["servers.A.capacity.memory+=64GiB", "servers.B.capacity.memory*=2", "users.alice.weight=2/3", "users.alice.demand.cpu+=250m"]
    instance = formats.load(path, changes=changes)
    assert instance.capacities[:, 1].tolist() == [320 * 2**30, 256 * 2**30]
    assert (instance.weights[0], instance.demands[0, 0]) == (2 / 3, 0.75)
    with pytest.raises(InvalidInstance, match=r"256GiB has a byte unit, and 64 has none; give both one"):
        formats.load(path, changes=["servers.A.capacity.memory+=64"])
    with pytest.raises(InvalidInstance, match=r'with servers.A.capacity.memory=64: server "A", capacity, memory: 64 has no byte unit'):
        formats.load(path, changes=["servers.A.capacity.memory=64"])


def test_calculations_stay_whole() -> None:
    """2 + 1 is 3, not 3.0, in messages too."""
    assert isinstance(calculated("+", 2, 1), int)
    with pytest.raises(ValueError, match="plain number"):
        calculated("*", 2, "1GiB")


def test_units_in_traces(tmp_path: Path) -> None:
    """All cells of a resource, or none; with --lenient the others are left out."""
    (tmp_path / "jobs.csv").write_text("user,submit_s,run_s,cpu,memory\na,0,60,500m,1GiB\nb,1,60,1,2\na,2,60,1,\n")
    with pytest.raises(
        InvalidInstance, match=r'line 3, column "memory": 2 has no byte unit, but 1GiB in another row has; give all of them'
    ):
        formats.load_trace(tmp_path / "jobs.csv")
    trace = formats.load_trace(tmp_path / "jobs.csv", lenient=True)
    assert trace.demands.tolist() == [[0.5, 2**30], [1, 0]]


ZERO = """\
servers:
- {name: A, capacity: {cpu: 8, memory: 4GiB}}
- {name: B, capacity: {cpu: 8, memory: ZERO}}
queues:
- {name: q, guarantee: {memory: ZERO}, lending_limit: {memory: ZERO}, quotas: [{servers: [A], guarantee: {memory: ZERO}}]}
users:
- {name: a, queue: q, demand: {cpu: 1, memory: 1GiB}}
- {name: b, demand: {cpu: 1, memory: ZERO}}
"""


@pytest.mark.parametrize("zero", ["0", "0.0", '"0m"', '" 0m "', "0GiB"])
def test_nothing_has_no_unit(zero: str) -> None:
    """0 is 0 in every unit, wherever an amount of a resource stands that has bytes elsewhere; any other number needs one."""
    instance = instance_from(Parsed("lab.yaml", ZERO.replace("ZERO", zero)))
    assert instance.capacities[:, 1].tolist() == [4 * 2**30, 0]
    assert instance.demands[:, 1].tolist() == [2**30, 0]
    assert (instance.queues[0].guarantee, instance.queues[0].lending_limit) == ({"memory": 0}, {"memory": 0})
    assert instance.queues[0].quotas[0].guarantee == {"memory": 0}
    for place in range(ZERO.count("ZERO")):
        parts = ZERO.split("ZERO")
        wrong = zero.join(parts[: place + 1]) + "1" + zero.join(parts[place + 1 :])
        with pytest.raises(InvalidInstance, match="memory: 1 has no byte unit"):
            instance_from(Parsed("lab.yaml", wrong))


def test_calculations_with_nothing() -> None:
    """0 may be added to bytes, and bytes to 0; another number without a unit may not."""
    assert calculated("+", "1GiB", 0) == calculated("+", 0, "1GiB") == calculated("-", "1GiB", "0m") == "1073741824B"
    for present, value in (("1GiB", 1), (1, "1GiB"), ("1GiB", "1m")):
        with pytest.raises(ValueError, match=r"has a byte unit, and .* has none; give both one"):
            calculated("-", present, value)
    assert calculated("*", "1GiB", 0) == "0B"


def test_what_calculations_give_and_say() -> None:
    """A result below 0 is no number of bytes, and is told as a number; a third of a GiB keeps its digits; who has the unit is said."""
    assert calculated("-", "1GiB", "2GiB") == -(2**30)
    assert calculated("*", "1GiB", "1/3") == "1073741824/3B"
    for present, value in (("1GiB", 2), (2, "1GiB")):
        with pytest.raises(ValueError, match=r"^1GiB has a byte unit, and 2 has none; give both one$"):
            calculated("+", present, value)


def test_a_small_unit_is_no_byte_unit() -> None:
    """64k is not 64,000 bytes by guess, and cannot take another unit behind its own."""
    with pytest.raises(InvalidInstance, match=r"memory: 64k has no byte unit, but .*; give it one, such as GiB$"):
        instance_from(Parsed("lab.yaml", LAB.replace("memory: 64GiB", "memory: 64k", 1)))


def test_fractions_in_mappings_of_numbers() -> None:
    """Rates by server, and weights by resource."""
    text = (
        "servers: [{name: A, capacity: {cpu: 8}}]\n"
        "users:\n- {name: a, demand: {cpu: 1}, rates: {A: 1/2}, weight: {cpu: 1/4}}\n"
        "- {name: b, demand: {cpu: 1}, rates: {A: 500m}, weight: {cpu: 1}}\n"
    )
    instance = instance_from(Parsed("lab.yaml", text))
    assert instance.rates.tolist() == [[0.5], [0.5]]
    assert instance.weights.tolist() == [[0.25], [1]]
