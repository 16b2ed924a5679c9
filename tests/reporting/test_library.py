"""The script that draws a page's charts is kept on disk, and only a file that holds what was written is used."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
import vl_convert

from fairopt.reporting.library import cache_folder, library


@pytest.fixture(autouse=True)
def _no_memory() -> Iterator[None]:
    """Every call reads the disk."""
    library.cache_clear()
    yield
    library.cache_clear()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A bundle that takes no time; one entry each time it is put together."""
    times: list[str] = []

    def bundle() -> str:
        times.append("made")
        return "draw('</script><!-- \N{GREEK SMALL LETTER ALPHA}')"

    monkeypatch.setattr(vl_convert, "javascript_bundle", bundle)
    return times


def test_the_second_process_reads_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, made: list[str]) -> None:
    """It is the same script, which cannot end its element."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = library()
    assert first == "draw('<\\/script><\\!-- \N{GREEK SMALL LETTER ALPHA}')"
    library.cache_clear()
    assert library() == first
    assert made == ["made"]
    assert [file.name for file in (tmp_path / "fairopt").iterdir()] == [f"vega-{version('vl-convert-python')}.js"]


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: data.replace(b"draw", b"evil"), lambda _: b"\xff\n", lambda _: b""]
)
def test_a_damaged_file_is_replaced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, made: list[str], damage: object) -> None:
    """Cut short, changed, not text, empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = library()
    (file,) = (tmp_path / "fairopt").iterdir()
    good = file.read_bytes()
    file.write_bytes(damage(good))  # type: ignore[operator]
    library.cache_clear()
    assert library() == first
    assert len(made) == 2
    assert file.read_bytes() == good


def test_without_a_folder_it_is_made_each_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, made: list[str]) -> None:
    """A file stands where the folder would."""
    (tmp_path / "fairopt").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = library()
    library.cache_clear()
    assert library() == first
    assert len(made) == 2


def test_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A relative path names no folder of caches; without a home there is none."""
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = cache_folder()
    assert folder is not None
    assert tmp_path in folder.parents
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    assert cache_folder() is None
