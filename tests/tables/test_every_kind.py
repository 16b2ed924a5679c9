"""Whatever takes a table takes every kind of file that holds one, and understands the same."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.opendocument import write as write_ods

import fairopt as fo
from fairopt.formats.allocations import read as read_allocation
from fairopt.histories.reading import read_log_file
from fairopt.tables.workbooks import to_xlsx

KINDS = (".csv", ".csv.gz", ".parquet", ".xlsx", ".ods")
LABELS: dict[str, Any] = {"users": ["ada", "bob"], "servers": ["A", "B"], "resources": ["cpu", "memory"]}
CLUSTER = fo.Instance([[9, 12], [9, 64]], [[1, 2], [2, 1]], counts=[1, 2], **LABELS)
JOBS = "user,submit_s,run_s,tasks,cpu,memory,servers\nada,0,60,2,0.5,1,A\nbob,5,inf,1,1/3,1,\n"
EVENTS = "time_s,event,name,number\n1,remove,B,1\n"
LOG = "user,submit_s,start,end,cpu,memory,server\nada,0,5,10,1,2,A\nbob,7,,,2,1,\n"
DATES = LOG.replace(",0,5,10,", ",2026-11-22T15:02:00,2026-11-22T15:03:00,2026-11-22T16:00:00,").replace(",7,,,", ",2026-11-22T15:02:30,,,")
HELD = "user,server,tasks\nada,A,1.5\nbob,B,1/3\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,qos\np0,12000,16384,1,1000,LS\np1,6000,1638,0,0,BE\n"
NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,32000,262144,0,\nn1,96000,393216,2,V100\n"


def typed(text: str) -> Any:
    """A cell as a program with types holds it."""
    try:
        return None if text == "" else int(text) if text.isdigit() else text if text == "inf" else float(text)
    except ValueError:
        return text


def write(path: Path, text: str) -> Path:
    """Write a table as this kind of file."""
    header, *rows = list(csv.reader(io.StringIO(text)))
    cells = [[typed(cell) for cell in row] for row in rows]
    if path.suffix == ".parquet":
        pd.read_csv(io.StringIO(text)).to_parquet(path)
    elif path.suffix == ".xlsx":
        path.write_bytes(to_xlsx({"any": (header, cells)}, "test"))
    elif path.suffix == ".ods":
        write_ods(path, {"any": [header, *cells]})
    else:
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def of_trace(path: Path) -> Any:
    """A trace, with a table of events of the same kind."""
    ending = path.name.removeprefix("table")
    trace = fo.load_trace(path, cluster=CLUSTER, events=write(path.with_name(f"events{ending}"), EVENTS))
    return trace.users, trace.jobs, trace.submit, trace.tasks, trace.demands, trace.durations, trace.eligibility, trace.events


def of_log(path: Path) -> Any:
    """A log."""
    log = read_log_file(path, CLUSTER)
    return log.owners, log.jobs, log.submit, log.start, log.end, log.demands[log.shape], log.row, log.tasks, log.clock


def of_pods(path: Path) -> Any:
    """Nodes and pods of a research trace."""
    ending = path.name.removeprefix("table")
    return fo.import_openb(write(path.with_name(f"nodes{ending}"), NODES), path).instance.to_dict()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("text", "read"),
    [(JOBS, of_trace), (LOG, of_log), (DATES, of_log), (HELD, lambda path: read_allocation(path, CLUSTER)), (PODS, of_pods)],
    ids=["jobs", "log", "dates", "allocation", "pods"],
)
def test_every_kind_says_the_same(tmp_path: Path, kind: str, text: str, read: Callable[[Path], Any]) -> None:
    """As the CSV file."""
    for found, expected in zip(read(write(tmp_path / f"table{kind}", text)), read(write(tmp_path / "table.csv", text)), strict=True):
        np.testing.assert_equal(found, expected)


def test_an_index_of_pandas_is_a_column_where_it_is_one(tmp_path: Path) -> None:
    """A frame of which rows were taken has an index without a meaning; one by user has the column user there."""
    frame = pd.read_csv(io.StringIO(LOG))
    frame[frame["cpu"] > 1].to_parquet(tmp_path / "some.parquet")
    frame.set_index("user").to_parquet(tmp_path / "by-user.parquet")
    frame.rename_axis("anything").to_parquet(tmp_path / "named.parquet")
    assert read_log_file(tmp_path / "some.parquet", CLUSTER).owners == ("bob",)
    assert read_log_file(tmp_path / "by-user.parquet", CLUSTER).owners == ("ada", "bob")
    assert read_log_file(tmp_path / "named.parquet", CLUSTER).owners == ("ada", "bob")
