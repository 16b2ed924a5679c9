"""What messages share: hints that cost little, and words that a shell takes as they are."""

from __future__ import annotations

import difflib
import shlex
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairopt.wording import did_you_mean, figure, found, fractions, in_shell


def test_a_hint_compares_a_limited_number_of_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes up to the cube of their length: of 2,000 names of 191 characters a dozen are compared; of short ones, all."""
    compared: list[str] = []

    def matches(word: str, words: list[str], **options: Any) -> list[str]:
        compared.extend(words)
        return []

    monkeypatch.setattr(difflib, "get_close_matches", matches)
    did_you_mean("s" * 191, ("s" * 190 + str(j) for j in range(2000)))
    assert 0 < len(compared) < 20
    compared.clear()
    did_you_mean("node-x", [f"node-{j}" for j in range(20_000)])
    assert len(compared) == 20_000
    compared.clear()
    did_you_mean("node-x", ["x" * 10**9, "node-1"])
    assert not compared


def test_a_hint_of_a_long_name_is_still_given() -> None:
    """Of the first that are compared."""
    name = "department-of-natural-language-processing-and-its-applications-" * 3
    assert did_you_mean(f"{name}1", [f"{name}2", "x"]) == f' (did you mean "{name}2"?)'


def test_a_number_of_any_length_is_described() -> None:
    """Python itself refuses to write whole numbers of more than 4,300 digits."""
    assert found(10**5000) == found(16**4000) == "a number beyond 1e308"
    assert found(-(10**20)) == "-100000000000000000000"


@given(st.text() | st.text(alphabet="'\"$`\\;|&() \x1b\na", max_size=300))
def test_a_shell_reads_one_word_that_runs_nothing(text: str) -> None:
    """However long it is: it is cut before it is quoted."""
    assert len(shlex.split(f"x {in_shell(text)} y")) == 3


def test_a_fraction_of_any_length_is_written() -> None:
    """As a decimal in sentences, and with all of its digits as an answer."""
    long = Fraction(10**5000 + 1, 3 * 10**5000)
    assert figure(long, 6) == "~0.333333"
    assert fractions([long, Fraction(1, 3)]) == ["~0.333333", "1/3"]
