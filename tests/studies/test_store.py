"""The file of a study that somebody else made, or damaged: refused in a sentence, with nothing of it believed, printed or run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

import fairopt as fo

INSTANCE = fo.Instance([[4, 8]], [[1, 2], [2, 1]])
OTHER = fo.Instance([[4, 8]], [[1, 2], [2, 2]])
Change = Callable[[pyarrow.Table, dict[str, Any]], pyarrow.Table]


def study(path: Path) -> Any:
    """Run, or go on with, a study of four rows."""
    return fo.study({"lab": INSTANCE}, notions=["drfh"], schedules=["drfh:random"], seeds=range(2), workers=1, resume=path)


def with_request(request: Any) -> Change:
    """Return a change that puts another request into the file: a text, or what becomes a text."""
    text = request if isinstance(request, bytes) else json.dumps(request).encode()
    return lambda table, _: table.replace_schema_metadata({**table.schema.metadata, b"fairopt.study": text})


def with_part(name: str, value: Any) -> Change:
    """Return a change of one part of the request."""
    return lambda table, request: with_request({**request, name: value})(table, request)


def with_value(column: str, value: Any) -> Change:
    """Return a change of one cell of the table."""

    def change(table: pyarrow.Table, _: dict[str, Any]) -> pyarrow.Table:
        rows = table.to_pylist()
        rows[0][column] = value
        return pyarrow.Table.from_pylist(rows, schema=table.schema)

    return change


def with_column(name: str, values: Any) -> Change:
    """Return a change of a whole column, or of its name."""
    return lambda table, _: table.set_column(table.column_names.index(name), name, pyarrow.array(values))


DAMAGED: dict[str, tuple[Change, str]] = {
    "no JSON": (with_request(b"not json"), "its question is no JSON"),
    "no UTF-8": (with_request(b'"\xff"'), "its question is no JSON"),
    "deep": (with_request(b"[" * 100_000), "its question is no JSON"),
    "a list": (with_request([1, 2]), "its question is of another form"),
    "numbers": (with_request({"instances": 5, "order": 5, "entries": 5}), "its question is of another form"),
    "nothing": (with_request({}), "its question is of another form"),
    "instances": (with_part("instances", {"lab": 3}), "its question is of another form"),
    "a seed": (with_part("instances", {"lab": {"drawn": -1, "fingerprint": "a"}}), "its question is of another form"),
    "order": (with_part("order", [["lab"]]), "its question is of another form"),
    "entries": (with_part("entries", ["drfh"]), "its question is of another form"),
    "no instance": (with_part("instances", {}), "its rows of other"),
    "another entry": (with_value("entry", "other.py:X"), "its rows of lab, seed 0"),
    "another kind": (with_value("kind", "\x1b]0;x\x07exact"), r"'\\x1b\]0;x\\x07exact' is no kind of drfh"),
    "another instance": (with_value("instance", "else"), "its rows of"),
    "no text": (with_value("entry", None), "a row has no entry"),
    "no seed": (with_value("seed", None), "a row has no seed"),
    "infinite": (with_value("tasks", float("inf")), "a row has the number inf in the column tasks"),
    "large": (with_value("jain", -1e308), r"a row has the number -1e\+308 in the column jain"),
    "no column": (lambda table, _: table.drop_columns(["tasks"]), "it has no column tasks"),
    "no message": (lambda table, _: table.drop_columns(["message"]), "it has no column message"),
    "a column too many": (lambda table, _: table.append_column("more", table["tasks"]), "its column more holds double"),
    "texts for numbers": (with_column("tasks", ["a"] * 6), "its column tasks holds string"),
    "numbers for texts": (with_column("kind", [1] * 6), "its column kind holds int64"),
    "lists": (with_column("seed", [[1]] * 6), "its column seed holds list"),
    "a row twice": (lambda table, _: pyarrow.concat_tables([table, table.slice(0, 1)]), "its rows of lab, seed 0"),
    "a row less": (lambda table, _: table.slice(1), "its rows of lab, seed 0"),
}


@pytest.mark.parametrize("what", DAMAGED)
def test_a_damaged_file_is_refused(tmp_path: Path, what: str) -> None:
    """And left as it is; the same study without the damage goes on from its file, which has another instance, too."""
    path = tmp_path / "s.parquet"
    study(path)
    kept = fo.study({"other": OTHER}, notions=["drfh"], schedules=["drfh:random"], seeds=range(1), workers=1, resume=path)
    assert len(kept) == 2
    whole = path.read_bytes()
    table = parquet.read_table(path)
    assert len(table) == 6
    change, message = DAMAGED[what]
    parquet.write_table(change(table, json.loads(table.schema.metadata[b"fairopt.study"])), path)
    before = path.read_bytes()
    with pytest.raises(fo.InvalidInstance, match=f"is a Parquet file, but not of a study: .*{message}"):
        study(path)
    assert path.read_bytes() == before
    path.write_bytes(whole)
    assert len(study(path)) == 4
