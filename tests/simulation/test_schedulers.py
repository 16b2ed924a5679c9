"""The list of schedulers is what a simulation takes, and what a misspelt one is answered from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.command_line import EXAMPLES, flat, run

import fairopt as fo
from fairopt.simulation.plans import scheduler_of
from fairopt.simulation.schedulers import KINDS, no_scheduler, schedulers

LAB = EXAMPLES / "gpu-lab"


def test_every_example_is_a_scheduler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one of one's own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("def in_turn(instance):\n    return instance.rates * 0\n")
    for each in schedulers():
        assert each.kind in KINDS
        assert each.title
        assert scheduler_of(each.example)[0] == each.example


def test_every_notion_and_kind_is_listed() -> None:
    """Notions from the registry; each kind has a scheduler."""
    assert set(fo.NOTIONS) <= {each.id for each in schedulers()}
    assert {each.kind for each in schedulers()} == set(KINDS)


def test_the_command_lists_them() -> None:
    """As tables and as JSON."""
    text = run("schedulers").stdout
    assert all(word in text for each in schedulers() for word in (each.id, each.example))
    data = json.loads(run("schedulers", "--json").stdout)
    entries = data if isinstance(data, list) else data["schedulers"]
    assert [entry["example"] for entry in entries] == [each.example for each in schedulers()]


@pytest.mark.parametrize(
    ("word", "meant"), [("fiffo", "fifo"), ("backfil", "backfill"), ("fairtre", "fairtree"), ("karmaa", "karma"), ("psdfs", "psdsf")]
)
def test_a_misspelt_scheduler_is_answered_from_the_list(word: str, meant: str) -> None:
    """On the command line, too: what there is, and what may have been meant."""
    assert (
        f'there is no scheduler "{word}" (did you mean "{meant}"?); there are fifo, backfill, fairtree, priority, maui, drf'
        in no_scheduler(word)
    )
    message = flat(run("simulate", LAB / "jobs.csv", "--cluster", LAB, "--scheduler", word, status=2).stderr)
    assert message == f"error: {no_scheduler(word)}"


def test_an_unknown_word_has_no_hint() -> None:
    """Nothing is near to it."""
    assert no_scheduler("zzz").startswith('there is no scheduler "zzz"; there are fifo')
