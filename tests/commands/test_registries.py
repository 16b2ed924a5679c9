"""``fairopt notions``, ``solvers`` and ``placements``: what there is to choose from."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.command_line import run

import fairopt as fo


@pytest.mark.parametrize(("command", "known"), [("notions", fo.NOTIONS), ("solvers", fo.SOLVERS)])
def test_lists(command: str, known: dict[str, Any]) -> None:
    """The registries, as a table that names each entry and as JSON."""
    text = run(command).stdout
    assert all(name in text for name in known)
    assert [entry["name"] for entry in json.loads(run(command, "--json").stdout)[command]] == list(known)


def test_list_of_notions_tells_what_is_promised_and_by_whom() -> None:
    """Property -> citation."""
    drf = json.loads(run("notions", "--json").stdout)["notions"][0]
    assert drf["satisfies"]["envy-freeness"] == "Ghodsi et al. (2011), section 4"


def test_placements_are_listed() -> None:
    """With the criteria that are no notions, and the baselines."""
    listed = {entry["name"] for entry in json.loads(run("placements", "--json").stdout)["placements"]}
    assert listed == {*fo.PLACEMENTS, *fo.CRITERIA, *fo.BASELINES}
    assert "best-fit" in run("placements").stdout
