"""The pages in ``docs/`` are true, and they can be built."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
import typer
from support.pages import blocks, run_block
from support.registries import registries_restored
from typer.testing import CliRunner

import fairopt as fo
from fairopt.analysis.properties import CHECKS
from fairopt.cli import app

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.glob("**/*.md") if "_build" not in path.parts)
EXTENSIONS = DOCS / "_ext"
GALLERY = DOCS / "gallery.md"  # run by make docs, which draws its pictures
NOTION_PAGES = DOCS / "explanation" / "notions"
WIDTH = "88"  # columns of the terminal that the pages show

if not (ROOT / "pyproject.toml").exists():
    pytest.skip("about the repository, and this is a copy of the tests", allow_module_level=True)


@pytest.mark.parametrize("page", [page for page in PAGES if page != GALLERY], ids=lambda path: str(path.relative_to(DOCS)))
def test_page_is_true(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One session from the first block to the last, in a folder that holds the examples."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", WIDTH)
    names: dict[str, Any] = {}
    with registries_restored():  # a page that registers something leaves nothing behind
        assert [failure for block in blocks(page.read_text()) for failure in run_block(block, names)] == []


def test_every_notion_has_a_page_and_every_page_a_notion() -> None:
    """Facts come from the registry at build time; the rest of the page somebody has to write."""
    names = set(fo.NOTIONS) | set(fo.CRITERIA)
    assert {path.stem for path in NOTION_PAGES.glob("*.md")} - {"index"} == names
    for name in names:
        text = (NOTION_PAGES / f"{name}.md").read_text()
        assert f"```{{notion}} {name}\n```" in text
        assert any(block.language == "python" and ">>>" in block.text for block in blocks(text)), name
        for section in ("## Definition", "## Example", "## Properties", "## When to choose it", "## How it is computed"):
            assert section in text, f"{name}: {section}"


def test_every_public_name_is_in_the_reference() -> None:
    """Nothing that a user may rely on is left out."""
    text = "\n".join(path.read_text() for path in (DOCS / "reference").rglob("*.md"))
    documented = set(re.findall(r"^\.\. (?:auto\w+|py:data):: fairopt\.(\w+)$", text, re.MULTILINE))
    assert documented >= set(fo.__all__)


def test_every_class_has_a_page() -> None:
    """Of its own, which the page of the interface lists, with a line about it; errors are one page, and so is what one can extend."""
    classes = {name for name in fo.__all__ if isinstance(getattr(fo, name), type) and not issubclass(getattr(fo, name), Exception)}
    extended = set(re.findall(r"^\.\. autoclass:: fairopt\.(\w+)$", (DOCS / "reference" / "extending.md").read_text(), re.MULTILINE))
    pages = {path.stem: path.read_text() for path in (DOCS / "reference" / "python").glob("*.md")}
    assert pages.keys() == classes - extended
    assert all(f".. autoclass:: fairopt.{name}\n" in page for name, page in pages.items())
    listed = re.findall(r"^   (\w+)$", (DOCS / "reference" / "python.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(pages)


def test_every_property_is_in_the_reference() -> None:
    """Each check says in its docstring what it measures, and one module what it measures among queues."""
    documented = re.findall(
        r"^.. automodule:: (fairopt\.analysis\.properties\.\w+)$", (DOCS / "reference" / "properties.md").read_text(), re.MULTILINE
    )
    assert documented == [check.__module__ for check in CHECKS.values()] + ["fairopt.analysis.properties.siblings"]


def test_the_house_is_drawn_as_it_stands() -> None:
    """Its page lists the rooms from the top floor to the ground, then the parts of ``solvers``, as the test of the architecture does."""
    plan = run_path(str(Path(__file__).with_name("test_architecture.py")))
    page = (DOCS / "reference" / "house.md").read_text()
    rooms, solvers = (re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE) for part in page.split("\n## Rooms")[1].split("\n## Inside"))
    assert rooms == [*reversed(plan["ROOMS"])]
    assert solvers == [*reversed(plan["SHARED"]), *plan["ENGINES"]]


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/reference/house.md"])
def test_paths_that_a_page_names_exist(page: str) -> None:
    """Files and folders, from the root of the repository."""
    named = re.findall(r"`((?:[a-z_]+/)+[\w./]*)`", (ROOT / page).read_text())
    assert len(named) >= 10
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_notebook_is_on_the_page_of_notebooks() -> None:
    """With a line about it."""
    listed = re.findall(r"^\* \{doc\}`[^<`]+ <notebooks/(\w+)>`: \w.*\.$", (DOCS / "notebooks.md").read_text(), re.MULTILINE)
    assert listed == sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))


def test_commands_of_the_gallery_are_commands() -> None:
    """Their options exist, and so do the examples; what they draw is what is shown. The pages are built only if all of them run."""
    group: Any = typer.main.get_command(app)
    text = GALLERY.read_text()
    written: set[str] = set()
    for block in blocks(text):
        if block.language == "console":
            for line in re.findall(r"^\$ (.*)$", block.text.replace("\\\n", " "), re.MULTILINE):
                name, command, words = group.resolve_command(typer.Context(group), shlex.split(line)[1:])
                given = command.make_context(name, words).params
                written |= {str(value) for key, value in given.items() if key.startswith("plot") and value}
                assert not [word for word in words if word.startswith("examples/") and not (ROOT / word).exists()], line
        else:
            compile("".join(example.source for example in doctest.DocTestParser().get_examples(block.text)), "page", "exec")
            written |= set(re.findall(r'save_figure\(.*, "([^"]+)"\)', block.text))
    shown = re.findall(r"^```\{picture\} (\S+)\n(.+)\n```$", text, re.MULTILINE)
    assert {name for name, _ in shown} == written
    assert len(shown) == len(written) > 10


@pytest.mark.skipif(find_spec("sphinx") is None, reason="Sphinx is not installed: pip install '.[docs]'")
def test_a_page_draws_its_pictures(tmp_path: Path) -> None:
    """By commands and by Python, in one session; what fails is said, and the rest goes on."""
    page = (
        "```console\n$ fairopt solve examples/drf.yaml --plot a.svg\n$ fairopt solve nothing.yaml\n```\n```text\n$ fairopt nothing\n```\n"
        '```python\n>>> from pathlib import Path\n>>> there = Path("a.svg").exists()\n```\n```python\n>>> assert not there, "drawn"\n```\n'
    )
    problems = list(run_path(str(EXTENSIONS / "pictures.py"))["draw"](page, tmp_path / "page", ROOT))
    assert [problem.splitlines()[0] for problem in problems] == [
        "fairopt solve nothing.yaml: exit status 2",
        'assert not there, "drawn": drawn',
    ]
    assert [path.name for path in (tmp_path / "page").iterdir()] == ["a.svg"]


@pytest.mark.skipif(find_spec("sphinx") is None, reason="Sphinx is not installed: pip install '.[docs]'")
@pytest.mark.parametrize("name", ["solve", "history", "notions"])
def test_the_reference_has_the_panels_of_help(name: str) -> None:
    """In their order, each with its options; where there is one panel, its title says nothing."""
    group: Any = typer.main.get_command(app)
    command = group.resolve_command(typer.Context(group), [name])[1]
    helped = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "200"}).stdout
    panels = {
        title.strip(): set(re.findall(r"^│ (?:\*\s+)?(--[\w-]+)", inside, re.MULTILINE)) - {"--help"}
        for title, inside in re.findall(r"^╭─([^─]+)─+╮\n(.*?)^╰", helped, re.MULTILINE | re.DOTALL)
    }
    panels.pop("Arguments", None)
    written = run_path(str(EXTENSIONS / "commands.py"))["section"](name, command)
    parts = re.split(r"^\*\*(.*)\*\*$", written, flags=re.MULTILINE)
    if len(panels) == 1:
        assert len(parts) == 1
        assert set(re.findall(r"^`(--[\w-]+)", written, re.MULTILINE)) == panels["Options"]
    else:
        listed = {
            title: set(re.findall(r"^`(--[\w-]+)", inside, re.MULTILINE)) for title, inside in zip(parts[1::2], parts[2::2], strict=True)
        }
        assert list(listed) == list(panels)
        assert listed == panels


@pytest.mark.skipif(find_spec("sphinx") is None, reason="Sphinx is not installed: pip install '.[docs]'")
@pytest.mark.parametrize("path", sorted(EXTENSIONS.glob("*.py")), ids=lambda path: path.stem)
def test_examples_of_extensions(path: Path) -> None:
    """What generates pages has examples too."""
    spec = spec_from_file_location(f"docs_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    assert doctest.testmod(module).failed == 0


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the pages, warnings being errors; notebooks and pictures without what takes a run, which tests of their own do."""
    for package in ("sphinx", "myst_nb", "furo", "sphinx_copybutton"):
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install '.[docs]'")
    folder = tmp_path_factory.mktemp("docs")
    command = [
        sys.executable,
        "-c",  # the parsed pages stay in memory anyway, and looking for garbage among them takes a quarter of the time
        "import gc, sys; gc.disable(); from sphinx.cmd.build import main; sys.exit(main())",
        "-W",
        "-n",
        "--keep-going",
        "-q",
        *("-D", "nb_execution_mode=off", "-D", "draw_pictures=0"),
        "-d",
        str(folder / "doctrees"),
        str(DOCS),
        str(folder / "html"),
    ]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return folder / "html"


class _Loads(HTMLParser):
    """Collects what a browser loads with a page: not links, which a reader follows or not."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        for name in ("src", "srcset", "data"):
            self.found += [values[name] or ""] if name in values else []
        if tag == "link" and values.get("rel") not in ("canonical", "next", "prev", "search", "index"):
            self.found.append(values.get("href") or "")


def test_pages_load_nothing_from_the_network(built: Path) -> None:
    """They can be read in an aeroplane."""
    for page in built.glob("**/*.html"):
        parser = _Loads()
        parser.feed(page.read_text())
        assert [address for address in parser.found if re.match(r"(https?:)?//", address)] == [], page
    for sheet in built.glob("**/*.css"):
        assert re.findall(r"(?:url\(|@import )[\"']?(?:https?:)?//", sheet.read_text()) == [], sheet


def test_every_notebook_has_a_page(built: Path) -> None:
    """With its words and its code, and a link from the page of notebooks."""
    links = (built / "notebooks.html").read_text()
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        assert f'href="notebooks/{path.stem}.html"' in links
        assert 'class="cell docutils container"' in (built / "notebooks" / f"{path.stem}.html").read_text()


def test_operators_are_words(built: Path) -> None:
    """The converter of mathematics takes the star of ``\\operatorname*`` for the name, and its letters for variables."""
    pages = [page.read_text() for page in built.glob("**/*.html")]
    assert any("<math" in page for page in pages)
    assert not [page for page in pages if re.search(r"<mi[^>]*>\*</mi>", page)]


def test_pages_hold_no_name_of_this_machine(built: Path) -> None:
    """Such as the folder that they were built from."""
    for page in built.glob("**/*.html"):
        assert str(ROOT) not in page.read_text(), page
