"""What the README shows is what happens."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import fairopt as fo
from fairopt.cli import app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    """Return the code blocks of one language, "" for those of the shell."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    return [text for name, text in found if name == language]


COMMANDS = [line.partition("#")[0].strip() for block in blocks("") for line in block.splitlines()]


def test_python_blocks_are_true() -> None:
    """One session from the first block to the last."""
    source = "\n".join(blocks("python"))
    test = doctest.DocTestParser().get_doctest(source, {}, "README.md", "README.md", 0)
    report: list[str] = []
    result = doctest.DocTestRunner().run(test, out=report.append)
    assert result.attempted >= 5
    assert result.failed == 0, "".join(report)


@pytest.mark.parametrize("command", [command for command in COMMANDS if command.startswith("fairopt")])
def test_commands_run(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every line that begins with fairopt."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, shlex.split(command)[1:])
    assert result.exit_code == 0, result.output


def test_yaml_can_be_solved(tmp_path: Path) -> None:
    """As it stands."""
    (text,) = blocks("yaml")
    (tmp_path / "cluster.yaml").write_text(text)
    assert fo.solve(fo.load(tmp_path / "cluster.yaml")).tasks_per_user.min() > 0


@pytest.mark.parametrize(("title", "registry"), [("Notions", fo.NOTIONS), ("Schedules", fo.PLACEMENTS), ("Engines", fo.SOLVERS)])
def test_tables_are_complete(title: str, registry: dict[str, object]) -> None:
    """In the order of the registry."""
    section = README.split(f"## {title}\n")[1].split("\n## ")[0]
    assert re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE) == list(registry)


@pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="about the repository, and this is a copy of the tests")
def test_links_and_targets_of_make_exist() -> None:
    """Files that the text points to, and what it says make can do."""
    targets = re.findall(r"\]\(([^)#]+)\)", README)
    assert [target for target in targets if not target.startswith("http") and not (ROOT / target).exists()] == []
    makefile = (ROOT / "Makefile").read_text()
    assert all(f"\n{name}:" in makefile for name in re.findall(r"make (\w+)", README))
