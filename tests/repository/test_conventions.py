"""The files by which other tools know the project: they say what pyproject.toml says, and name what is there."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="a copy of the tests alone")


def project() -> dict[str, Any]:
    """The table [project] of pyproject.toml."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        return dict(tomllib.load(file)["project"])


def read(name: str) -> Any:
    """A YAML file of the root."""
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_the_citation_is_of_this_version() -> None:
    """Whoever cites by it cites what is installed."""
    citation, of = read("CITATION.cff"), project()
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors", "abstract"} <= citation.keys()
    assert citation["version"] == of["version"]
    assert citation["license"] == of["license"]
    assert [author["name"] for author in citation["authors"]] == [author["name"] for author in of["authors"]]


def test_the_workflow_runs_what_everybody_can_run_at_home() -> None:
    """And nothing else, so that a change that passes at home passes there."""
    job = read(".github/workflows/ci.yml")["jobs"]["all"]
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    oldest = project()["requires-python"].removeprefix(">=")
    assert oldest in job["strategy"]["matrix"]["python"]


def test_the_tests_that_scripts_name_exist() -> None:
    """A file of tests that has moved would end a script in an error."""
    scripts = (ROOT / name for name in (".ci/run", "Makefile"))
    named = {each for script in scripts if script.exists() for each in re.findall(r"\btests/[\w/]+(?:\.py)?", script.read_text())}
    assert [each for each in sorted(named) if not (ROOT / each).exists()] == []


def test_hooks_use_what_the_project_installs() -> None:
    """No hook brings a version of its own."""
    for repository in read(".pre-commit-config.yaml")["repos"]:
        assert repository["repo"] == "local"
        for hook in repository["hooks"]:
            assert hook["entry"].startswith(".venv/bin/")


def test_pages_are_built_elsewhere_as_here() -> None:
    """From the same configuration, with the same extra."""
    pages = read(".readthedocs.yaml")
    assert (ROOT / pages["sphinx"]["configuration"]).exists()
    assert pages["sphinx"]["fail_on_warning"] is True
    assert set(pages["python"]["install"][0]["extra_requirements"]) <= project()["optional-dependencies"].keys()


def test_the_image_gets_the_packages() -> None:
    """All that the Dockerfile copies is there, and not hidden from it; all packages are copied."""
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    copied = [name for line in lines if line.startswith("COPY ") and "--from" not in line for name in line.split()[1:-1]]
    shown = [line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line.startswith("!")]
    assert sorted(copied) == sorted(shown)
    assert all((ROOT / name).exists() for name in copied)
    with (ROOT / "pyproject.toml").open("rb") as file:
        folders = tomllib.load(file)["tool"]["setuptools"]["package-dir"].values()
    assert set(folders) <= set(copied)
    used = re.findall(r"'\.\[([a-z,]+)\]'", "\n".join(lines))
    assert set(used[0].split(",")) <= project()["optional-dependencies"].keys()


def strangers(text: str) -> list[str]:
    """Return the instructions of a text that install fairopt from an index, and the addresses of pages that it does not have."""
    extras = "|".join(project()["optional-dependencies"])
    patterns = (
        r"(?:pip3? (?:install|download)|uv add|pipx (?:install|run)|uvx|conda install)(?: -\S+)* ['\"]?fairopt\b(?![/\\])[^\n]{,20}",
        rf"\bfairopt\\*\[(?:{extras})\b",  # an extra of that package
        r"\bfairopt\.(?:readthedocs|github)\b[^\n]{,20}",
        r"\b(?:github|gitlab)\.com/fairopt\b[^\n]{,20}",
        r"\bpypi\.org/\S*fairopt\b",
    )
    return [found for pattern in patterns for found in re.findall(pattern, text)]


@pytest.mark.parametrize(
    "text",
    [
        "pip install fairopt",
        "pip install --upgrade 'fairopt'",
        'python -m pip install "fairopt[dask]"',
        "needs `fairopt[report]`",
        r"match=r'fairopt\[report\]'",
        "https://fairopt.readthedocs.io/en/latest",
        "https://github.com/fairopt/fairopt/issues",
    ],
)
def test_a_stranger_is_seen(text: str) -> None:
    """In every form that has been used."""
    assert strangers(text)


def test_nothing_leads_to_a_stranger() -> None:
    """fairopt is in no package index and has no pages: whoever takes the name there would be installed, or read."""
    assert not strangers("pip install '.[report]' in the checkout of fairopt; pip install . --prefix /opt/fairopt; fairopt.solve(x)")
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    found = {}
    for name in names:
        path = ROOT / name
        if not name or path.is_symlink() or not path.is_file() or path == Path(__file__):
            continue
        data = path.read_bytes()
        if b"\0" not in data and (seen := strangers(data.decode(errors="replace"))):
            found[name] = seen
    assert found == {}
    assert "urls" not in project()
    assert not {"url", "repository", "repository-code"} & read("CITATION.cff").keys()
