"""The means of a study as plain data for JSON.

>>> import pandas as pd
>>> frame = pd.DataFrame({
...     "instance": "pool", "entry": "drfh", "kind": "exact", "seed": [0, 1], "tasks": [2.0, 4.0], "use of cpu": [0.5, 1.0],
...     "efficiency": 1.0, "price of fairness": 0.0, "smallest_share": 1.0, "jain": 1.0, "envy": 0.0, "regret level": None,
...     "regret worst": None, "seconds": [1.0, 1.0], "message": ""})
>>> found = study_data(frame, {"seeds": [0, 1]})
>>> found["rows"][0]["tasks"], found["rows"][0]["tasks_error"], found["rows"][0]["use"], found["failed"]
(3.0, 1.0, {'cpu': 0.75}, [])
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fairopt.results import finite, result
from fairopt.studies.rows import MEASURES
from fairopt.studies.sweep import summary

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["study_data"]

_USE = "use of "
_ERROR = " error"


def study_data(frame: pd.DataFrame, question: Mapping[str, Any]) -> dict[str, Any]:
    """Return means and standard errors over the seeds, for each instance and entry, and the rows without an allocation.

    Parameters
    ----------
    frame : DataFrame
        The rows of `fairopt.study`.
    question : mapping
        The arguments of `fairopt.study`.
    """
    rows = [_row(each) for each in summary(frame).reset_index().to_dict("records")]
    failed = [
        {"name": each["entry"], "instance": each["instance"], "seed": int(each["seed"]), "message": each["message"]}
        for each in frame[frame["tasks"].isna()].to_dict("records")
    ]
    return result("study", question, {}, {"rows": rows, "failed": failed})


def _row(means: dict[Any, Any]) -> dict[str, Any]:
    """Return the means of one entry, under keys without spaces."""
    row = {"name": means["entry"], **{key: means[key] for key in ("instance", "entry", "kind", "seeds", "failed")}}  # entry: until 1.0
    used = [key.removeprefix(_USE) for key in map(str, means) if key.startswith(_USE) and not key.endswith(_ERROR)]
    for error, suffix in (("", ""), (_ERROR, "_error")):
        for name in MEASURES:
            row[("time_s" if name == "seconds" else name.replace(" ", "_")) + suffix] = finite(means[name + error])
        row[f"use{suffix}"] = {name: finite(means[f"{_USE}{name}{error}"]) for name in used}
    return row
