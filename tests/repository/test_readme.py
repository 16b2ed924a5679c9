"""What the README shows is what happens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.pages import blocks, run_command, run_python
from typer.main import get_command

import fairopt as fo
from fairopt.cli import app

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def texts(language: str) -> list[str]:
    """Return the code blocks of one language, "" for those of the shell."""
    return [block.text for block in blocks(README) if block.language == language]


COMMANDS = [line.partition("#")[0].strip() for block in texts("") for line in block.splitlines()]


def test_python_blocks_are_true() -> None:
    """One session from the first block to the last."""
    assert len(texts("python")) >= 2
    assert run_python("\n".join(texts("python")), {}) == []


@pytest.mark.parametrize("command", [command for command in COMMANDS if command.startswith("fairopt")])
def test_commands_run(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every line that begins with fairopt."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    status, output = run_command(command)
    assert status == 0, output


def test_yaml_can_be_solved(tmp_path: Path) -> None:
    """As it stands."""
    (text,) = texts("yaml")
    (tmp_path / "cluster.yaml").write_text(text)
    assert fo.solve(fo.load(tmp_path / "cluster.yaml")).tasks_per_user.min() > 0


@pytest.mark.skipif(not (ROOT / "docs").exists(), reason="about the repository, and this is a copy of the tests")
def test_every_command_is_on_the_page_of_questions() -> None:
    """And the page names no command that there is not."""
    page = (ROOT / "docs" / "how-to" / "which-command.md").read_text()
    assert set(re.findall(r"`fairopt ([a-z-]+)", page)) == set(get_command(app).commands)  # type: ignore[attr-defined]


@pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="about the repository, and this is a copy of the tests")
@pytest.mark.parametrize(("name", "most"), [("README.md", 10_240), ("CHANGELOG.md", 6_144)])
def test_what_a_newcomer_reads_is_short(name: str, most: int) -> None:
    """In bytes."""
    assert (ROOT / name).stat().st_size <= most


@pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="about the repository, and this is a copy of the tests")
def test_links_and_targets_of_make_exist() -> None:
    """Files that the text points to, and what it says make can do."""
    targets = re.findall(r"\]\(([^)#]+)\)", README)
    assert [target for target in targets if not target.startswith("http") and not (ROOT / target).exists()] == []
    makefile = (ROOT / "Makefile").read_text()
    assert all(f"\n{name}:" in makefile for name in re.findall(r"make ([\w-]+)", README))


@pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="about the repository, and this is a copy of the tests")
def test_every_benchmark_is_in_the_table_and_run_by_make() -> None:
    """Each script that writes results is a row of benchmarks/README.md, beside its results, and a line of the Makefile."""
    folder = ROOT / "benchmarks"
    scripts = {path.name for path in folder.glob("*.py") if "RESULTS" in path.read_text()}
    rows = re.findall(r"^\| `(\w+\.py)` \|.*\]\((results/\w+\.md)\)", (folder / "README.md").read_text(), re.MULTILINE)
    assert {name for name, _ in rows} == scripts
    assert [result for _, result in rows if not (folder / result).exists()] == []
    assert set(re.findall(r"python benchmarks/(\w+\.py)", (ROOT / "Makefile").read_text())) == scripts


@pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="about the repository, and this is a copy of the tests")
def test_every_notebook_is_counted() -> None:
    """In words."""
    (number,) = re.findall(r"`notebooks/` \| (\w+) studies", README)
    words = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen"]
    assert words.index(number) == len(list((ROOT / "notebooks").glob("*.ipynb")))
