"""Every docstring of a public name, read as the pages of the reference read it: parameters and attributes are those that there are.

In a section of parameters, numpydoc takes every line that is not indented for the name of one. A paragraph there would be parameters.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import fairopt

ROOMS_WITH_TABLES = [
    "allocation",
    "certificate",
    "clusters",
    "files",
    "formats",
    "instance",
    "kubernetes",
    "processes",
    "program",
    "scheduling",
    "scheduling.baselines",
    "simulation",
    "simulation.baselines",
    "slurm",
    "solvers.filling.kernel",
    "solvers.leximin",
    "solvers.rational",
    "solving",
]
"""The rooms whose docstring has a row for each module."""

EXTENSION = Path(__file__).parents[2] / "docs" / "_ext" / "docstrings.py"
_SECTION = re.compile(r"^(?P<title>Parameters|Attributes)\n-+\n(?P<body>.*?)(?=^\S[^\n]*\n-{3,}\n|\Z)", re.DOTALL | re.MULTILINE)

if not EXTENSION.exists():
    pytest.skip("about the repository, and this is a copy of the tests", allow_module_level=True)
pytest.importorskip("sphinx", reason="the extension reads docstrings before Sphinx does")
with_heading_of_examples: Callable[[list[str]], list[str]] = runpy.run_path(str(EXTENSION))["with_heading_of_examples"]


def public() -> Iterator[tuple[str, object]]:
    """Yield all functions, classes and methods of one's own that a module of fairopt declares to be public."""
    for found in pkgutil.walk_packages(fairopt.__path__, "fairopt."):
        if found.name.endswith("__main__"):
            continue
        try:
            module = importlib.import_module(found.name)
        except ModuleNotFoundError as error:
            if str(error.name).partition(".")[0] == "fairopt":
                raise
            continue  # it is of an extra that is not installed
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if (inspect.isclass(value) or inspect.isfunction(value)) and value.__module__ == module.__name__:
                yield f"{found.name}.{name}", value
                if inspect.isclass(value):
                    own = ((key, part) for key, part in vars(value).items() if not key.startswith("_"))
                    yield from ((f"{found.name}.{name}.{key}", part) for key, part in own if inspect.isfunction(part))


def invented(subject: object) -> list[str]:
    """Return what the sections of a docstring would take for names, and what has no such parameter or attribute."""
    text = "\n".join(with_heading_of_examples(inspect.cleandoc(getattr(subject, "__doc__", None) or "").splitlines()))
    wrong = []
    for section in _SECTION.finditer(text):
        heads = [line for line in section["body"].splitlines() if line and not line.startswith(" ")]
        named = [name.strip().lstrip("*") for head in heads for name in head.partition(" :")[0].split(",")]
        known = names_of(subject, of_class=section["title"] == "Attributes")
        wrong += [name for name in named if name not in known]
    return wrong


def names_of(subject: object, *, of_class: bool) -> set[str]:
    """Return the parameters of a function or class; of a class also what its instances have."""
    try:
        known = set(inspect.signature(subject).parameters)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        known = set()
    if of_class and inspect.isclass(subject):
        known |= {name for base in subject.__mro__ for name in (*vars(base), *getattr(base, "__annotations__", {}))}
        source = inspect.getsource(subject)
        known |= set(re.findall(r"self\.(\w+)", source))
    return known


def test_no_paragraph_is_read_as_parameters() -> None:
    """Nor any name that is gone."""
    found = {name: wrong for name, subject in public() if (wrong := invented(subject))}
    assert found == {}


def test_a_paragraph_among_the_parameters_is_found() -> None:
    """And a parameter that is not there; what is indented, an example or another section is none."""

    def good(a: int, *b: int) -> None:
        """Do it.

        Parameters
        ----------
        a : int
            One, or more.
        *b : int

        Returns
        -------
        Numbers, and more
        """

    def bad(a: int) -> None:
        """Do it.

        Parameters
        ----------
        a, c : int

        Numbers may be ints, or floats.
        """

    assert invented(good) == []
    assert invented(bad) == ["c", "Numbers may be ints", "or floats."]


def test_there_are_docstrings() -> None:
    """The walk finds the classes and functions that everybody uses."""
    names = {name for name, _ in public()}
    assert {
        "fairopt.instance.instance.Instance",
        "fairopt.studies.paper_tables.study_table",
        "fairopt.studies.sweep.study",
        "fairopt.plots.queues.plot_queues",
    } <= names


@pytest.mark.parametrize("name", ROOMS_WITH_TABLES)
def test_the_table_of_a_room_names_its_modules(name: str) -> None:
    """Whoever looks for a piece reads the table first: it names every module, and none that has moved."""
    room = importlib.import_module(f"fairopt.{name}")
    named = re.findall(r"^``(\w+)``  ", room.__doc__ or "", re.MULTILINE)
    assert sorted(named) == sorted(found.name for found in pkgutil.iter_modules(room.__path__))
