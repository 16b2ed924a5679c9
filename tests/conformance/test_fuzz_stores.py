"""What fairopt keeps to go on from (the rows of a study, the state of a simulation, the parts of a history), damaged or made to do harm.

The same question is asked again with a damaged store: it goes on, or the store is refused in a sentence.
"""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conformance.test_fuzz_files import EXAMPLES, damaged, survives
from hypothesis import given, settings
from hypothesis import strategies as st

import fairopt as fo

SMALL = fo.Instance([[4.0, 8.0]], [[1.0, 2.0], [2.0, 1.0]], users=["A", "B"], resources=["cpu", "memory"])
TRACE = fo.Trace(
    ["A", "B", "A", "B"],
    [0.0, 1.0, 2.0, 3.0],
    [4, 4, 4, 4],
    [[1.0, 2.0], [2.0, 1.0]] * 2,
    [5.0, 6.0, 7.0, 8.0],
    resources=["cpu", "memory"],
)
ONE = fo.Instance([[4.0]], [[1.0], [2.0]], users=["A", "B"], resources=["cpu"])
ONE_RESOURCE = fo.Trace(["A", "B"], [0.0, 1.0], [4, 4], [[1.0], [2.0]], [5.0, 6.0], resources=["cpu"])
SCHEDULERS = (
    "drfh:best-fit",
    "drfh",
    "drfh:half_life=1h",
    "karma",
    "backfill",
    "fairtree:half_life=7d",
    "psdsf:order=asynchronous",
    "drfh:random",
)
LOG = "job,user,submit,start,end,cpu,memory,tasks\n" + "".join(
    f"{j},{'AB'[j % 2]},{j},{j + 1},{j + 2},{1 + j % 2},{2 - j % 2},1\n" for j in range(12)
)


def study(folder: Path) -> None:
    """Two schedules with two seeds, of one small instance."""
    fo.study({"small": SMALL}, schedules=["drfh:random"], seeds=range(2), resume=folder / "study.parquet", workers=1)


def simulating(scheduler: str) -> Callable[[Path], None]:
    """The same simulation, which is stopped after the third of its moments, or goes on, if need be to where a damaged state has no end."""
    trace, cluster = (ONE_RESOURCE if scheduler.startswith("karma") else TRACE), (ONE if scheduler.startswith("karma") else SMALL)

    def run(folder: Path) -> None:
        asked = iter([False] * (500 if any(folder.glob("[!.]*")) else 3))
        fo.simulate(trace, cluster, scheduler, resume=folder, stopped=lambda: next(asked, True))

    return run


def history(folder: Path) -> None:
    """The same."""
    log = folder.with_name("log.csv")
    log.write_text(LOG)
    asked = iter([False] * 500)
    fo.history(log, SMALL, every=4.0, resume=folder, stopped=lambda: next(asked, True))


STORES: dict[str, Callable[[Path], None]] = {
    "study": study,
    **{f"simulation of {each}": simulating(each) for each in SCHEDULERS},
    "history": history,
}


@cache
def kept(name: str) -> dict[str, bytes]:
    """The files that a store of this kind has."""
    with tempfile.TemporaryDirectory() as above:
        folder = Path(above, "kept")
        folder.mkdir()
        with contextlib.suppress(fo.NoSolution):  # it was stopped
            STORES[name](folder)
        return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


VALUES: list[Any] = [None, 0, -1, 10**18, 1e308, float("inf"), float("nan"), "", "\x1b]0;x\x07", "\u202e", "other.py:X", True]
JSON: list[Any] = [None, [], {}, 5, -1, 1e308, "", "x" * 100_000, [[]], {"": {}}, "\ud83d\ude00", "other.py:X"]


@st.composite
def changed_table(draw: st.DrawFn, data: bytes) -> bytes:
    """A Parquet file with another value, without a column, with other columns or other facts about it."""
    table = pq.read_table(io.BytesIO(data))
    kind = draw(st.integers(0, 3))
    if kind == 0:
        table = table.drop_columns([draw(st.sampled_from(table.column_names))])
    elif kind == 1:
        name, value = draw(st.sampled_from(table.column_names)), draw(st.sampled_from(VALUES))
        j = table.column_names.index(name)
        cells = table.column(name).to_pylist()
        cells[draw(st.integers(0, len(cells) - 1))] = value
        try:
            column = pa.array(cells, table.schema.field(name).type)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            column = pa.array([None if each is None else str(each) for each in cells], pa.string())
        table = table.set_column(j, name, column)
    elif kind == 2:
        table = table.slice(draw(st.integers(0, 1)), draw(st.integers(0, 2)))
    else:
        facts = dict(table.schema.metadata or {})
        key = draw(st.sampled_from(sorted(facts)))
        table = table.replace_schema_metadata(facts | {key: draw(changed_json(facts[key]) | damaged(facts[key]))})
    page = io.BytesIO()
    pq.write_table(table, page)
    return page.getvalue()


@st.composite
def changed_json(draw: st.DrawFn, data: bytes) -> bytes:
    """JSON with something else somewhere."""
    document = json.loads(data)
    inner, above = document, None
    while isinstance(inner, dict | list) and inner and draw(st.booleans()):
        key = draw(st.sampled_from(sorted(inner) if isinstance(inner, dict) else range(len(inner))))
        above, inner = (inner, key), inner[key]
    value = draw(st.sampled_from(JSON))
    if above is None:
        document = value
    else:
        above[0][above[1]] = value
    return json.dumps(document).encode()


@st.composite
def changed_arrays(draw: st.DrawFn, data: bytes) -> bytes:
    """A file of arrays in which one is another, is damaged, or is gone."""
    with np.load(io.BytesIO(data), allow_pickle=False) as held:
        arrays = {name: held[name] for name in held.files}
    name = draw(st.sampled_from(sorted(arrays)))
    array = arrays[name]
    kind = draw(st.integers(0, 4))
    if kind == 0:
        del arrays[name]
    elif kind == 1 and array.dtype.kind in "US":
        text = str(array)
        arrays[name] = np.asarray(draw(st.sampled_from(["", "[]", "{}", "5", text * 2, text[:-1], "[" * 5000, "x"])))
    elif kind == 1 and array.size and array.dtype.kind in "iuf":
        changed = array.copy().reshape(-1)
        value = draw(st.sampled_from([0, -1, 7, 2**31, 2**62, *([np.inf, np.nan, 1e308] if array.dtype.kind == "f" else [])]))
        changed[draw(st.integers(0, changed.size - 1))] = np.array(value).astype(array.dtype)
        arrays[name] = changed.reshape(array.shape)
    elif kind == 2:
        arrays[name] = np.asarray(draw(st.sampled_from([0.0, -1, np.zeros(0), np.zeros((2, 2)), np.full(3, np.nan), "x", True])))
    elif kind == 3:
        arrays[name] = array.reshape(-1)[: array.size // 2]
    else:
        other = draw(st.sampled_from(sorted(arrays)))
        arrays[name] = arrays[other]
    page = io.BytesIO()
    np.savez(page, **arrays)
    return page.getvalue()


@pytest.mark.parametrize("name", STORES)
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_a_damaged_store_is_used_or_refused(name: str, data: st.DataObject) -> None:
    """Bytes that are changed, and valid files that say something else."""
    files = kept(name)
    chosen = data.draw(st.sampled_from(sorted(files)))
    before = files[chosen]
    changed = damaged(before)
    if before[:4] == b"PAR1":
        changed = changed_table(before) | changed
    elif zipfile.is_zipfile(io.BytesIO(before)):
        changed = changed_arrays(before) | changed
    else:
        changed = changed_json(before) | changed if before[:1] in b"{[" else changed
    with tempfile.TemporaryDirectory() as above:
        folder = Path(above, "kept")
        folder.mkdir()
        for file, content in (files | {chosen: data.draw(changed)}).items():
            (folder / file).write_bytes(content)
        survives(STORES[name], folder)


@pytest.mark.parametrize("name", STORES)
def test_there_is_something_to_damage(name: str) -> None:
    """Else nothing above is tried."""
    assert kept(name)
