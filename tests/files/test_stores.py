"""What long runs keep: one writer, when to write, and files of arrays that are damaged or claim more than they hold."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

import fairopt as fo
from fairopt.files.stores import Pace, Store, read_arrays


def test_arrays_are_read_as_they_were_written(tmp_path: Path) -> None:
    """Of any shape, kind and order, compressed or not."""
    arrays = {"a": np.arange(6.0).reshape(2, 3).T, "b": np.array("text"), "c": np.zeros((0, 3), bool), "d": np.array(3)}
    for write in (np.savez, np.savez_compressed):
        write(tmp_path / "a.npz", **arrays)  # type: ignore[arg-type]
        read = read_arrays(tmp_path / "a.npz")
        assert read.keys() == arrays.keys()
        assert all(np.array_equal(read[name], arrays[name]) and read[name].dtype == arrays[name].dtype for name in arrays)


def test_what_is_no_array_is_refused(tmp_path: Path) -> None:
    """A terabyte that is not there is not allocated, a pickle is not read, and there is a limit on what is unpacked."""
    path = tmp_path / "a.npz"
    np.savez(path, a=np.zeros(10**6))
    good = path.read_bytes()
    large = io.BytesIO()
    np.lib.format.write_array_header_1_0(large, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    pickled = io.BytesIO()
    np.save(pickled, np.array([{"a": 1}], object), allow_pickle=True)
    for content in (large.getvalue(), pickled.getvalue(), b"", b"\x93NUMPY\x01\x00\xff\xff", b"\x93NUMPY\x09\x00", b"text"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a.npy", content)
        with pytest.raises(fo.InvalidInstance, match=r"a\.npz holds no arrays: ."):
            read_arrays(path)
    for content in (b"", good[:1000], good[: len(good) // 2], b"text"):
        path.write_bytes(content)
        with pytest.raises(fo.InvalidInstance, match=r"a\.npz holds no arrays: ."):
            read_arrays(path)
    path.write_bytes(good)
    with fo.reading_limit(max_bytes=10**6), pytest.raises(fo.InvalidInstance, match=r"a\.npz holds more than 1 MB"):
        read_arrays(path)


def test_one_process_writes_a_part(tmp_path: Path) -> None:
    """Another is refused until the first has ended; parts of other questions may be written meanwhile."""
    store, other = Store(tmp_path / "a" / "b"), Store(tmp_path / "a" / "b")
    (store.folder / ".x.npz.1234.tmp").write_bytes(b"half")
    with store.writing("x.npz"):
        assert not (store.folder / ".x.npz.1234.tmp").exists()
        refused = pytest.raises(fo.InvalidInstance, match=r"another run is writing .*x\.npz; wait for its end, or give another folder")
        with refused, other.writing("x.npz"):
            pass
        with other.writing("y.npz"):
            other.write("y.npz", {"a": 1})
    with other.writing("x.npz"):
        assert other.arrays("x.npz") is None
    assert store.arrays("y.npz") == {"a": np.array(1)}


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """It is a file."""
    (tmp_path / "a").write_text("")
    with pytest.raises(fo.InvalidInstance, match=r"the folder .*a cannot be made: .*; give another one"):
        Store(tmp_path / "a")


def test_when_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """At least so many seconds after the last write, and so many times as long as it took."""
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    pace = Pace(10.0, 20.0, 0.5)
    assert pace.due == 110
    now[0] = 150.0
    assert pace.due == 125
    with pace.write():
        now[0] += 2
    assert pace.due == 192
    assert Pace(1.0, 20.0, at_once=True).due < now[0]
    bounded = Pace(1.0, 20.0, 0.25, most=8.0)
    with bounded.write():
        now[0] += 2
    assert bounded.due == now[0] + 8  # not 40 s later
    now[0] += 98
    assert bounded.due == now[0] - 98 + 25  # a quarter of the time so far
