"""The accounting of a real, saturated Slurm: limits were set to an exact allocation, so that little was lacking."""

from __future__ import annotations

import pytest
from support.real_data import DATA, needs

import fairopt as fo

LAB = DATA / "slurm-lab"


@needs("slurm-lab")
def test_the_saturated_slurm() -> None:
    """Its own commands counted 260 running jobs; chem, whose limit bound it late, lacked most, and nobody had more than its due."""
    limits, window = LAB / "limits", ("2026-11-22T15:02:00", "2026-11-22T15:03:40")
    sacct = limits / "sacct.txt.gz"
    imported = fo.import_slurm(
        LAB / "edge-cases" / "nodes.json", limits / "jobs.json.gz", limits / "associations.json", sacct=sacct, window=window
    )
    found = fo.history(sacct, imported.instance)
    table = found.to_frame()
    assert found.is_exact
    assert found.judges_envy
    assert found.held.certificate.feasibility < 1e-9
    assert 250 < found.held.tasks_per_user.sum() < 267
    assert table["shortfall"].idxmax() == "chem/user3"
    assert table["shortfall"].sum() / table["entitled"].sum() == pytest.approx(0.0344, abs=1e-4)
    assert table["surplus"].max() < 1e-12
    assert imported.current is not None
    held = dict(zip(found.instance.users, found.held.tasks_per_user, strict=True))
    average = dict(zip(imported.instance.users, imported.current.tasks_per_user, strict=True))
    assert held == pytest.approx(average, rel=1e-9)
