"""The sources as BibTeX: every notion has its own, each entry is complete, and none is there for nothing."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

import fairopt as fo
from fairopt.cli import app
from fairopt.papers.references import bibtex, entries

KINDS = [*fo.NOTIONS.values(), *fo.CRITERIA.values()]
NEEDED = {"inproceedings": {"author", "title", "booktitle", "year"}, "article": {"author", "title", "journal", "volume", "pages", "year"}}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_notion_names_its_sources(kind: type[fo.Notion]) -> None:
    """The first author and the year of each stand in its citation."""
    assert kind.references
    for key in kind.references:
        author, year = (re.findall(rf"^  {word} *= \{{([\w-]+)", entries()[key], re.MULTILINE)[0] for word in ("author", "year"))
        assert author in kind.source
        assert year in kind.source


def test_entries_are_complete() -> None:
    """With the fields that BibTeX asks for, balanced braces, and a DOI that looks like one."""
    for key, entry in entries().items():
        kind = re.match(r"@(\w+)", entry)
        assert kind is not None
        assert NEEDED[kind[1]] <= set(re.findall(r"^  (\w+) *=", entry, re.MULTILINE)), key
        assert entry.count("{") == entry.count("}")
        assert all(re.fullmatch(r"10\.\d{4,}/\S+", doi) for doi in re.findall(r"doi *= \{(.*)\}", entry))


def test_no_entry_is_there_for_nothing() -> None:
    """Each is the source of a notion; an entry that two notions name is printed once."""
    assert set(entries()) == {key for kind in KINDS for key in kind.references}
    assert bibtex(["Ghodsi2011", "Ghodsi2011"]).count("@") == 1


def test_the_command_prints_them() -> None:
    """All of them, and nothing else."""
    printed = CliRunner().invoke(app, ["notions", "--bibtex"])
    assert printed.exit_code == 0
    assert printed.stdout == bibtex(entries())
