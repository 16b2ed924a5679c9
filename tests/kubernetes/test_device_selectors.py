"""Selectors of devices: what CEL says of each, one expression after the other; what is not read is named."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairopt.kubernetes.device_selectors import Device, Selector

DRIVER = "gpu.example.com"
A100 = Device(
    "gpu-0",
    DRIVER,
    "n",
    {(DRIVER, "model"): "NVIDIA-A100", (DRIVER, "index"): 3, (DRIVER, "mig"): False, ("other.io", "rack"): "r1"},
    {(DRIVER, "memory"): Fraction(80 << 30)},
)
A = f'device.attributes["{DRIVER}"]'
C = f"device.capacity['{DRIVER}']"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"device.driver == '{DRIVER}'", True),
        (f'device.driver == "{DRIVER}"', True),
        (f'"{DRIVER}" == device.driver', True),
        ("device.driver == 'x'", False),
        ("device.driver != 'x'", True),
        (f'{A}.model == "NVIDIA-A100"', True),
        (f'{A}["model"] == "NVIDIA-A100"', True),
        (f"{A}.index == 3 && {A}.index >= 3 && !({A}.index < 3)", True),
        (f"{A}.mig == false", True),
        (f"!{A}.mig", True),
        (f"{A}.mig", False),
        (f"{A}.index in [1, 2, 3]", True),
        (f'{A}.model in ["H100", "H200"]', False),
        ('device.attributes["other.io"].rack == "r1"', True),
        (f"{C}.memory.compareTo(quantity('40Gi')) >= 0", True),
        (f"{C}.memory.compareTo(quantity('80Gi')) == 0", True),
        (f"{C}.memory.isGreaterThan(quantity('80Gi'))", False),
        (f"{C}.memory == quantity('80Gi')", True),
        (f'{A}.model.lowerAscii().contains("a100")', True),
        (f'{A}.model.startsWith("AMD") || {A}.model.endsWith("A100")', True),
        (f"({A}.index == 1 || {A}.index == 3) && device.driver == '{DRIVER}'", True),
        # What a device lacks, or has of another type, is no match, whichever way it is compared.
        (f"{A}.color == 'red'", False),
        (f"{A}.color != 'red'", False),
        (f"{A}.index == '3'", False),
        (f"{A}.color == 'red' || {A}.index == 3", True),
        # Where one side of && is false, what the other lacks is no matter, in either order.
        (f"!({A}.index == 1 && {A}.color == 'red')", True),
        (f"!({A}.color == 'red' && {A}.index == 1)", True),
        (f"!({A}.color == 'red' && {A}.index == 3)", False),
        (f"has({A}.color)", False),
        (f"has({A}.model)", True),
        ("device.driver", False),
        ("true", True),
    ],
)
def test_expressions(text: str, expected: bool) -> None:
    """As CEL evaluates them for the A100 above."""
    selector = Selector.of(text)
    assert selector.unknown == ()
    assert selector.matches(A100) is expected


def test_what_is_not_read_is_named_and_the_rest_holds() -> None:
    """Of terms between &&; of alternatives the whole; && and || in quotes and parentheses separate nothing."""
    mixed = Selector.of(f"device.driver == '{DRIVER}' && {A}.model.matches('^.*(A|B)$') && {A}.index == 3")
    assert mixed.unknown == (f"{A}.model.matches('^.*(A|B)$')",)
    assert mixed.matches(A100)
    assert not Selector.of(f"device.driver == 'x' && {A}.version.isLessThan(semver('1.0.0'))").matches(A100)
    either = f"{A}.model.matches('x') || {A}.index == 1"
    assert Selector.of(either).unknown == (either,)
    assert Selector.of(f"{A}.model == 'a && b || c'").unknown == ()
    assert Selector.of("").unknown == ("",)


@given(
    st.one_of(
        st.text(max_size=40),
        st.lists(st.sampled_from([A, C, ".", "==", "&&", "||", "(", ")", "!", "1", '"a"', "in", "[", "]", "has", "."])).map(" ".join),
    )
)
def test_any_text_is_read_or_named(text: str) -> None:
    """Nothing is raised, and what is not read is there."""
    selector = Selector.of(text)
    assert selector.matches(A100) in (True, False)
    assert selector.terms or selector.unknown


def test_deep_parentheses_are_named() -> None:
    """They are no reason to stop."""
    assert len(Selector.of("(" * 5000 + "true" + ")" * 5000).unknown) == 1
    assert len(Selector.of("!" * 5000 + "true").unknown) == 1
