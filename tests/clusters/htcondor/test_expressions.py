"""Expressions of ClassAds: values known from the manual of the language."""

from __future__ import annotations

from typing import Any

import pytest

from fairopt.clusters.htcondor.expressions import UNDEFINED, Unreadable, evaluated

MY = {"a": 7, "b": 2.5, "name": "Ann", "inner": "/Expr(a + 1)/", "none": None}
TARGET = {"a": 9, "memory": 100, "list": "x86, ppc"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3 - -1", 10),
        ("7 / 2", 3),
        ("-7 / 2", -3),
        ("7.0 / 2", 3.5),
        ("7 % 4", 3),
        ("a", 7),
        ("MY.a + TARGET.a", 16),
        ("inner", 8),
        ("memory", 100),
        ('name == "ANN"', True),
        ('name =?= "ANN"', False),
        ('name =!= "Ann"', False),
        ("missing", UNDEFINED),
        ("missing == 1", UNDEFINED),
        ("missing =?= undefined", True),
        ("missing || true", True),
        ("missing && false", False),
        ("missing && true", UNDEFINED),
        ("!missing", UNDEFINED),
        ("!(a < 3) && a >= 7", True),
        ("a > 3 ? 1 : missing", 1),
        ("ifThenElse(missing, 1, 2)", UNDEFINED),
        ("isUndefined(missing)", True),
        ("max(1, 2.5, a)", 7),
        ("floor(b) + ceiling(b)", 5),
        ("quantize(130, 128)", 256),
        ('stringListMember("ppc", list)', True),
        ('stringListIMember("PPC", list)', True),
        ("1 / 0", UNDEFINED),
        ('"a \\"quoted\\" word"', 'a "quoted" word'),
    ],
)
def test_values(text: str, value: Any) -> None:
    """Whole numbers are divided towards zero; what is undefined stays so unless the other side decides."""
    found = evaluated(f"/Expr({text})/", MY, TARGET)
    assert found is value if value is UNDEFINED else found == value and type(found) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1 +",
        "(1",
        "1)",
        "f(1)",
        '"open',
        "a ~ b",
        '1 + "x"',
        'a == "x"',
        "(" * 500,
        "x.y.z",
        "name && true",
        "1e308 * 10 % 3",
        "9" * 5000,
        "int(1, 2)",
    ],
)
def test_what_is_not_understood(text: str) -> None:
    """It is refused, whatever it is."""
    with pytest.raises(Unreadable):
        evaluated(f"/Expr({text})/", MY, TARGET)


def test_attributes_in_a_circle() -> None:
    """They end."""
    with pytest.raises(Unreadable, match="circle"):
        evaluated("/Expr(p)/", {"p": "/Expr(q)/", "q": "/Expr(p)/"}, {})
