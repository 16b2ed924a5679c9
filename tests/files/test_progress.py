"""The state of one search in a file: of this question only, and nothing that is damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fairopt as fo
from fairopt.files.progress import Progress, of_text, text_of
from fairopt.files.stores import Store


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    """The first offer is written at once, the next one only after a while."""
    progress = Progress(tmp_path / "a", "x.npz", "search", {"pair": (1, 2)})
    assert progress.read() is None
    with progress.writing():
        progress.offer(lambda: {"tried": 1})
        progress.offer(lambda: {"tried": 2})
    again = Progress(tmp_path / "a", "x.npz", "search", {"pair": [1, 2]}).read()
    assert again is not None
    assert {name: int(value) for name, value in again.items()} == {"tried": 1}
    assert text_of(of_text("Grüße")) == "Grüße"


def test_another_question_is_refused_by_what_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers are named, what is long is not shown; a word that only one question has; another version."""
    asked = {"seed": 1, "cluster": {"users": list(range(99))}}
    Progress(tmp_path, "x.npz", "search", asked).write({})
    for changes, message in (
        ({"seed": 2}, r"^\S+x\.npz keeps another search: seed was 1 and is 2; give another folder, or ask the same$"),
        ({"cluster": {}}, "search: cluster is another; give"),
        ({"seed": 3, "cluster": {}}, "seed was 1 and is 3; cluster is another"),
        ({"local": True}, "local was None and is True"),
    ):
        with pytest.raises(fo.InvalidInstance, match=message):
            Progress(tmp_path, "x.npz", "search", asked | changes).read()
    monkeypatch.setattr(fo, "__version__", "9.9")
    with pytest.raises(fo.InvalidInstance, match=r"version of fairopt was '\S+' and is '9\.9'"):
        Progress(tmp_path, "x.npz", "search", asked).read()


@pytest.mark.parametrize("request_", [None, of_text("no JSON"), of_text("[" * 100_000), np.array([255, 254], np.uint8), np.array("text")])
def test_a_damaged_file_is_refused(request_: object, tmp_path: Path) -> None:
    """Of another form, or with a question that is none."""
    Store(tmp_path).write("x.npz", {"a": 1} if request_ is None else {"request": request_})
    with pytest.raises(fo.InvalidInstance, match=r"x\.npz (is damaged \(.+\); give another folder|keeps another search)"):
        Progress(tmp_path, "x.npz", "search", {}).read()
    (tmp_path / "x.npz").write_bytes(b"nothing")
    with pytest.raises(fo.InvalidInstance, match=r"x\.npz holds no arrays"):
        Progress(tmp_path, "x.npz", "search", {}).read()
