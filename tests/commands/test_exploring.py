"""``fairopt explore`` from outside: what is refused before a page is served."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command_line import EXAMPLES, PAPER, flat, run


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((EXAMPLES / "nothing.yaml",), "there is no file"),
        ((PAPER, "--notion", "drhf"), 'there is no notion "drhf"'),
        ((PAPER, "--set", "users.user-1.weight=-1"), "expected a number >= 0, found -1"),
        ((PAPER, "--sharing", "xdm"), "--sharing"),
        ((PAPER, "--time-limit", "-1"), "-1"),
        ((PAPER, "--port", "70000"), "--port"),
    ],
)
def test_bad_input_is_refused_before_a_page_is_served(arguments: tuple[object, ...], sentence: str) -> None:
    """With the words of the other commands."""
    assert sentence in flat(run("explore", *arguments, status=2).stderr)


def test_rules_that_cannot_be_read_are_refused_before_a_page_is_served(tmp_path: Path) -> None:
    """The text, a chain, and somebody who is not there; of the file and of the command line."""
    path = tmp_path / "lab.yaml"
    path.write_text("servers: [{name: s, capacity: {gpu: 8}}]\nusers: [{name: ann, demand: {gpu: 1}}]\n")
    for rule, said in {"x[ann] >": "x[ann] >", "2 <= x[ann] <= 3": "chain", "x[bob] >= 1": 'no user or queue "bob"'}.items():
        assert said in flat(run("explore", path, "--no-browser", "--rule", rule, status=2).stderr)
