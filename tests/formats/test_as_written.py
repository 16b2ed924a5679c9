"""Numbers of files are kept as they are written, and written as they are kept."""

# mypy: disable-error-code="arg-type"
# (fractions where the types say floats, and answers that are known to be in fractions)

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import fairopt as fo
from fairopt.errors import InvalidInstance

LONG = "0.12345678901234567890123456789"
YAML = f"""
resources: [cpu, gpu]
servers:
- {{name: A, capacity: {{cpu: 1/3, gpu: 0.1}}}}
- {{name: B, capacity: {{cpu: 100000000000000001, gpu: {LONG}}}}}
queues:
- name: lab
  weight: 2/7
  guarantee: {{cpu: 1/9}}
  quotas:
  - {{servers: [B], limit: {{gpu: 1/9}}}}
users:
- {{name: a, demand: {{cpu: 0.3}}, weight: 1/3, tasks: 7/3, queue: lab, guarantee: 1/7}}
- {{name: b, demand: {{cpu: 1, gpu: 500m}}, parallelism: 4/3}}
"""


@pytest.fixture
def instance(tmp_path: Path) -> fo.Instance:
    """The cluster above."""
    path = tmp_path / "cluster.yaml"
    path.write_text(YAML)
    return fo.load(path)


def test_yaml_means_what_it_says(instance: fo.Instance) -> None:
    """Fractions, long decimals and large whole numbers, everywhere."""
    exact = instance.exact
    assert exact.capacities.tolist() == [[Fraction(1, 3), Fraction(1, 10)], [10**17 + 1, Fraction(LONG)]]
    assert exact.demands.tolist() == [[Fraction(3, 10), 0], [1, Fraction(1, 2)]]
    assert exact.weights.tolist() == [Fraction(1, 3), 1]
    assert exact.tasks.tolist() == [Fraction(7, 3), float("inf")]
    assert exact.guarantees.tolist() == [Fraction(1, 7), 0]
    assert exact.parallelism.tolist() == [float("inf"), Fraction(4, 3)]
    assert exact.queues[0].weight == Fraction(2, 7)
    assert exact.queues[0].guarantee["cpu"] == Fraction(1, 9)
    assert exact.queues[0].quotas[0].limit["gpu"] == Fraction(1, 9)


@pytest.mark.parametrize("name", ["c.yaml", "c.json", "folder", "c.parquet", "c.xlsx"])
def test_no_digit_is_lost(instance: fo.Instance, tmp_path: Path, name: str) -> None:
    """Saved in every format, loaded again: equal to the last digit."""
    if name.endswith(".xlsx"):
        pytest.importorskip("openpyxl")
    for each in (instance, instance.replace(weights=[[Fraction(1, 3), 1], [2, Fraction(1, 9)]], queues=[], queue_of=None, guarantees=None)):
        fo.save(each, tmp_path / name)
        again = fo.load(tmp_path / name)
        assert again == each
        assert again.exact.capacities.tolist() == each.exact.capacities.tolist()


def test_rates_keep_fractions(tmp_path: Path) -> None:
    """Under time division."""
    instance = fo.Instance([[1], [1]], [[1], [1]], rates=[[Fraction(1, 3), 2], [1, Fraction(5, 7)]])
    for name in ("c.yaml", "folder"):
        fo.save(instance, tmp_path / name)
        assert fo.load(tmp_path / name) == instance


@pytest.mark.parametrize(
    ("cell", "message"),
    [("1/0", 'line 4: server "A", capacity, cpu.*1/0'), ("1/x", 'line 4: server "A", capacity, cpu.*1/x'), ("-1/3", "line 4.*>= 0")],
)
def test_what_is_no_fraction_is_refused_with_its_place(tmp_path: Path, cell: str, message: str) -> None:
    """The file, the line, the entry, and what is there."""
    path = tmp_path / "cluster.yaml"
    path.write_text(YAML.replace("cpu: 1/3", f"cpu: {cell}"))
    with pytest.raises(InvalidInstance, match=message):
        fo.load(path)


def test_cells_that_are_no_fraction_are_refused_with_their_place(tmp_path: Path) -> None:
    """The file, the line and the column."""
    (tmp_path / "servers.csv").write_text("name,cpu\nA,1/0\n")
    (tmp_path / "users.csv").write_text("name,cpu\na,1/3\n")
    with pytest.raises(InvalidInstance, match=r'servers.csv, line 2, column "cpu".*1/0'):
        fo.load(tmp_path)
    (tmp_path / "servers.csv").write_text(f"name,cpu\nA,{LONG}\n")
    assert fo.load(tmp_path).exact.capacities.tolist() == [[Fraction(LONG)]]
    assert fo.load(tmp_path).exact.demands.tolist() == [[Fraction(1, 3)]]


def test_changes_calculate_in_fractions(tmp_path: Path, instance: fo.Instance) -> None:
    """A third more, twice as much; 0.1 and 0.2 are 0.3."""
    path = tmp_path / "c.yaml"
    fo.save(instance, path)
    changed = fo.load(path, changes=["users.a.weight+=1/3", "users.b.demand.gpu*=1/3", "servers.A.capacity.gpu+=0.2"])
    assert changed.exact.weights[0] == Fraction(2, 3)
    assert changed.exact.demands[1, 1] == Fraction(1, 6)
    assert changed.capacities[0, 1] == 0.3
