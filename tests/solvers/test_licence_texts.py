"""What commercial solvers say of their licences."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from fairopt.solvers import licence_texts
from fairopt.solvers.licence_texts import refusal, without_licence_text


def test_a_probe_of_a_licence_gives_the_words_of_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small program is refused by nobody."""

    def probe(columns: int, rows: int) -> None:
        if max(columns, rows) > 2000:
            raise RuntimeError("Model too large.")

    monkeypatch.setitem(licence_texts._PROBES, "GUROBI", probe)
    assert (refusal("GUROBI", 2001, 3), refusal("GUROBI", 3, 2000)) == ("Model too large", "")


@pytest.mark.parametrize(("solver", "package", "words"), [("GUROBI", "gurobipy", "size-limited"), ("CPLEX", "cplex", "size limits")])
def test_a_licence_that_comes_with_the_package_is_too_small(solver: str, package: str, words: str) -> None:
    """Where the package is installed, and has no other licence."""
    pytest.importorskip(package)
    said = refusal(solver, 2500, 2500)
    assert words in said or said == ""
    assert refusal(solver, 5, 5) == ""


def test_what_is_printed_on_stdout_is_not_heard(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """On the descriptor, and by Python's print."""

    def model() -> Any:
        os.write(1, b"No license found\n")
        print("Restricted license")
        return SimpleNamespace(dispose=lambda: None)

    monkeypatch.setitem(sys.modules, "gurobipy", SimpleNamespace(Model=model))
    without_licence_text.cache_clear()
    without_licence_text()
    without_licence_text.cache_clear()
    assert capfd.readouterr().out == ""
