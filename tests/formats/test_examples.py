"""The files in ``examples/`` load, say where they come from, and are what they say."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairopt import formats
from fairopt.formats.entries import Document, Queue
from fairopt.formats.syntax import read
from fairopt.formats.units import with_plain_numbers
from fairopt.instance.remarks import remarks
from fairopt.papers import PAPERS
from fairopt.papers import read as read_paper

EXAMPLES = Path(__file__).parents[2] / "examples"
DOCUMENTS = sorted(EXAMPLES.glob("*.yaml"))
ALL = [*DOCUMENTS, EXAMPLES / "gpu-lab"]
OUR_OWN = {"research-queues"}


def test_there_are_examples() -> None:
    """The parametrised tests below would pass without any."""
    assert len(DOCUMENTS) >= 7


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
@pytest.mark.parametrize("suffix", [".yaml", ".json", ""])
def test_examples_survive_every_format(path: Path, suffix: str, tmp_path: Path) -> None:
    """Including those whose labels or features need matrices in CSV."""
    instance = formats.load(path)
    formats.save(instance, tmp_path / f"copy{suffix}")
    assert formats.load(tmp_path / f"copy{suffix}") == instance


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_examples_fit_the_schema_and_cite_their_source(path: Path) -> None:
    """An editor with the schema marks nothing in them."""
    jsonschema = pytest.importorskip("jsonschema")
    parsed = read(path)
    jsonschema.Draft202012Validator(formats.schema()).validate(parsed.data)
    document = Document.model_validate(with_plain_numbers(parsed))
    assert document.title
    if path.stem in OUR_OWN:
        assert document.description.startswith("Our own example: no real cluster is described.")
    else:
        assert " et al., " in document.description or "Wang, Li and Liang" in document.description


PRINTED = {name: instance for paper in PAPERS for name, instance in read_paper(paper).instances.items()}


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if path.stem in PRINTED], ids=lambda path: path.name)
def test_instances_of_the_papers(path: Path) -> None:
    """The numbers as the papers print them; the labels are ours."""
    example = formats.load(path)
    assert example == PRINTED[path.stem].replace(users=example.users, servers=example.servers, resources=example.resources)


def test_examples_of_papers_are_compared() -> None:
    """All but those of the Google cluster, whose users are ours, and of our own."""
    assert {path.stem for path in DOCUMENTS} - set(PRINTED) == {"google-cluster", *OUR_OWN}


def test_the_research_lab_shows_every_key_of_queues() -> None:
    """Three levels, and nothing in it that must be said."""
    data: Any = read(EXAMPLES / "research-queues.yaml").data
    assert {key for queue in data["queues"] for key in queue} == set(Queue.model_fields)
    assert {key for user in data["users"] for key in user} >= {"queue", "guarantee"}
    instance = formats.load(EXAMPLES / "research-queues.yaml")
    assert instance.tree.depth.max() == 3
    assert remarks(instance) == ()
    assert not instance.unservable


def test_the_google_cluster() -> None:
    """Table I of the DRFH paper: 12,583 servers; our 900 users are many, mixed and more than it can serve."""
    path = EXAMPLES / "google-cluster.yaml"
    assert path.stat().st_size < 250_000
    instance = formats.load(path)
    assert instance.counts.tolist() == [6732, 3863, 1001, 795, 126, 52, 5, 5, 3, 1]
    assert instance.counts.sum() == 12_583
    assert instance.n_users == 900
    assert 0.10 < (~instance.eligibility.all(axis=1)).mean() < 0.20
    assert 0.25 < np.isfinite(instance.tasks).mean() < 0.35
    assert set(instance.weights) == {1, 2, 4}
    assert not instance.unservable
    assert instance.demands.min() > 0
    assert 0.005 <= instance.demands.max(axis=1).min() <= instance.demands.max() <= 0.25


def test_the_google_users_are_made_as_stated() -> None:
    """The committed file is what the script writes."""
    spec = importlib.util.spec_from_file_location("make_google_users", EXAMPLES / "make_google_users.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (EXAMPLES / "google-cluster.yaml").read_text(encoding="utf-8") == module.document()
