"""Pictures that a page draws itself: its blocks are run when the pages are built, and each picture is what they draw.

```{picture} lab.svg
What it shows, for who cannot see it.
```
    a picture that a block of this page writes, by a command with ``--plot lab.svg`` or by Python with ``save("lab.svg")``.

The blocks of a page are ``console`` (lines ``$ fairopt ...``) and ``python`` (with ``>>>``), one session from the first to the last, in a
folder of its own with the examples. With the setting ``draw_pictures`` off, nothing is run, and there are no pictures.
"""

from __future__ import annotations

import doctest
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from typer.testing import CliRunner

from fairopt.cli import app as program

log = logging.getLogger(__name__)
_BLOCK = re.compile(r"^```(console|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FOLDER = "_build/pictures"  # below the pages; nothing in it is a page


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive and its setting."""
    app.add_config_value("draw_pictures", True, "env", bool)
    app.add_directive("picture", Picture)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Picture(SphinxDirective):
    """One picture of the page."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Draw all pictures of the page, if this is the first, and show this one."""
        if not self.config.draw_pictures:
            return []
        page = self.env.current_document.docname
        folder = Path(self.env.srcdir, _FOLDER, page)
        if page not in self.env.temp_data.setdefault("pages with pictures", set()):
            self.env.temp_data["pages with pictures"].add(page)
            for problem in draw(Path(self.env.doc2path(page)).read_text(encoding="utf-8"), folder, Path(self.env.srcdir).parent):
                log.warning("%s", problem, location=self.get_location())
        name = self.arguments[0]
        if not (folder / name).exists():
            log.warning("no block of this page draws %s", name, location=self.get_location())
            return []
        return [nodes.image(uri=f"/{_FOLDER}/{page}/{name}", alt=" ".join(self.content), classes=["picture"])]


def draw(page: str, folder: Path, root: Path) -> Iterator[str]:
    """Run the blocks of a page in an empty folder with the examples; yield what fails."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "examples").symlink_to(root / "examples")
    names: dict[str, Any] = {}
    with chdir(folder):
        for language, text in _BLOCK.findall(page):
            yield from commands(text) if language == "console" else statements(text, names)
    (folder / "examples").unlink()


def commands(text: str) -> Iterator[str]:
    r"""Run the lines ``$ fairopt ...``; yield what fails.

    >>> list(commands("$ fairopt notions\n...\n"))
    []
    >>> [problem.splitlines()[0] for problem in commands("$ fairopt solve nothing.yaml\n")]
    ['fairopt solve nothing.yaml: exit status 2']
    """
    for line in re.findall(r"^\$ (.*)$", text.replace("\\\n", " "), re.MULTILINE):
        result = CliRunner().invoke(program, shlex.split(line)[1:])
        if result.exit_code:
            yield f"{line}: exit status {result.exit_code}\n{result.output}"


def statements(text: str, names: dict[str, Any]) -> Iterator[str]:
    r"""Run the lines ``>>> ...`` in these names; yield what fails.

    >>> names = {}
    >>> list(statements(">>> a = 2\n>>> a / 0\n", names)), names["a"]
    (['a / 0: division by zero'], 2)
    """
    for example in doctest.DocTestParser().get_examples(text):
        try:
            exec(compile(example.source, "page", "exec"), names)
        except Exception as error:
            yield f"{example.source.strip()}: {error}"
