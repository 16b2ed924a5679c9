"""The files in ``examples/`` load, say where they come from, and are what they say."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from fairopt import formats
from fairopt.formats.document import Document
from fairopt.formats.syntax import read
from fairopt.instance import Instance

EXAMPLES = Path(__file__).parents[2] / "examples"
DOCUMENTS = sorted(EXAMPLES.glob("*.yaml"))
ALL = [*DOCUMENTS, EXAMPLES / "gpu-lab"]


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
    document = Document.model_validate(parsed.data)
    assert document.title
    assert " et al., " in document.description or "Wang, Li and Liang" in document.description


@pytest.mark.parametrize(
    ("name", "instance"),
    [
        ("drf", Instance([[9, 18]], [[1, 4], [3, 1]])),
        ("drfh-figure-1", Instance([[2, 12], [12, 2]], [[0.2, 1], [1, 0.2]])),
        ("psdsf-figure-1", Instance([[9, 12, 100], [12, 12, 0]], [[1, 2, 10], [1, 2, 1], [1, 2, 0]], weights=[1, 1, 2])),
        ("psdsf-figure-2", Instance([[9, 12, 100], [12, 12, 0]], [[1.5, 1, 10], [1.0, 2, 10], [0.5, 1, 0], [1, 0.5, 0]])),
        (
            "psdsf-figure-5",
            Instance(
                [[1.0, 1], [0.5, 0.5], [0.5, 0.25], [0.5, 0.75]],
                [[0.1, 0.1], [0.1, 0.2], [0.2, 0.1], [0.2, 0.3]],
                weights=[2, 2, 1, 1],
                counts=[8, 68, 33, 11],
                eligibility=[[1, 1, 1, 1], [1, 1, 1, 1], [0, 0, 1, 1], [0, 0, 1, 1]],
            ),
        ),
        ("kesidis", Instance([[100, 30], [30, 100]], [[5, 1], [1, 5]])),
    ],
)
def test_instances_of_the_papers(name: str, instance: Instance) -> None:
    """The numbers as the papers print them; the labels are ours."""
    example = formats.load(EXAMPLES / f"{name}.yaml")
    assert example == instance.replace(users=example.users, servers=example.servers, resources=example.resources)


def test_table_3_of_psdsf() -> None:
    """Tasks of each user alone on each class: the numbers from which demands and counts were inferred."""
    rates = formats.load(EXAMPLES / "psdsf-figure-5.yaml").rates
    np.testing.assert_allclose(rates, [[80, 340, 82.5, 55], [40, 170, 41.25, 41.25], [0, 0, 82.5, 27.5], [0, 0, 27.5, 27.5]])


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
