"""Files are written whole, flushed before they have their name, and no more open to others than what they replace."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

import fairopt as fo
from fairopt.files import refuse_existing, refuse_read, write_files

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")


def test_a_file_is_flushed_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are complete and on the disk while the old ones are still there; then the folder is flushed, once."""
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    first.write_text("old")
    seen: list[tuple[str, list[str]]] = []

    def flush(number: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{number}")) if Path("/proc/self/fd").exists() else tmp_path
        content = "" if stat.S_ISDIR(os.fstat(number).st_mode) else path.read_text()
        seen.append((content, [each.read_text() for each in (first, second) if each.exists()]))

    monkeypatch.setattr(os, "fsync", flush)
    write_files({first: "one", second: "two"})
    if Path("/proc/self/fd").exists():
        assert seen == [("one", ["old"]), ("two", ["old"]), ("", ["one", "two"])]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.txt"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o604])
def test_a_file_keeps_the_mode_of_what_it_replaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int) -> None:
    """At no moment may anybody read it who might not read what was there, whatever the umask."""
    path = tmp_path / "a.txt"
    path.write_text("old")
    path.chmod(mode)
    opened: list[int] = []
    create, change = os.open, Path.chmod

    def record() -> None:
        opened.extend(stat.S_IMODE(each.stat().st_mode) for each in tmp_path.glob(".*.tmp"))

    def watched(name: str, flags: int, *rest: int) -> int:
        number = create(name, flags, *rest)
        record()
        return number

    def changed(self: Path, bits: int) -> None:
        assert self.stat().st_size == 0
        change(self, bits)
        record()

    monkeypatch.setattr(os, "open", watched)
    monkeypatch.setattr(Path, "chmod", changed)
    before = os.umask(0)
    try:
        write_files({path: "new"})
    finally:
        os.umask(before)
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert opened
    assert all(each & ~mode == 0 for each in opened)


def test_a_new_file_has_the_mode_of_new_files(tmp_path: Path) -> None:
    """As the umask says."""
    before = os.umask(0o027)
    try:
        write_files({tmp_path / "a.txt": "new"})
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o640


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    """They are not replaced, and there is no traceback."""
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    with pytest.raises(fo.InvalidInstance, match="cannot be written"):
        write_files({loop: "x"})
    with pytest.raises(fo.InvalidInstance, match="a link that leads in a circle"):
        refuse_read(loop, [])
    assert loop.is_symlink()


def test_the_same_file_by_another_name(tmp_path: Path) -> None:
    """By a link of either kind; what is not there, and a device, is no file that would be replaced."""
    path, link, hard = tmp_path / "a", tmp_path / "link", tmp_path / "hard"
    path.write_text("x")
    link.symlink_to(path)
    os.link(path, hard)
    for name in (path, link, hard, tmp_path / "nowhere" / ".." / "a", tmp_path / "." / "a"):
        if name.exists():
            with pytest.raises(fo.InvalidInstance, match="is read here"):
                refuse_read(name, [tmp_path / "none", path])
    refuse_read(tmp_path / "none", [tmp_path / "none"])
    refuse_read(Path("/dev/null"), [Path("/dev/null")])
    refuse_existing(Path("/dev/null"), force=False)
    refuse_existing(Path("/dev/stdout"), force=False)


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no files under /dev here")
def test_a_file_under_dev_is_a_file() -> None:
    """In /dev/shm it is kept, as elsewhere."""
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        path = Path(file.name)
        with pytest.raises(fo.InvalidInstance, match="exists; give another name"):
            refuse_existing(path, force=False)
        with pytest.raises(fo.InvalidInstance, match="is read here"):
            refuse_read(path, [path])
        refuse_existing(Path(f"/dev/fd/{file.fileno()}"), force=False)
