"""A package that imports a name when it is first used, without collecting garbage meanwhile."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pytest

from fairopt.doors import door


@pytest.mark.parametrize("collects", [True, False])
def test_a_name_is_imported_once_and_garbage_is_collected_again_as_before(
    tmp_path: Path, collects: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the module raises; what opens another door meanwhile does not collect, either."""
    name = f"opened_{collects}"
    package = tmp_path / name
    package.mkdir()
    (package / "__init__.py").write_text("from fairopt.doors import door\n__getattr__ = door(__name__, {'inner': ['number']})\n")
    (package / "inner.py").write_text("import gc\nnumber = int(gc.isenabled())\n")
    (package / "outer.py").write_text(f"import gc\nfrom {name} import number as first\nnumber = first + int(gc.isenabled())\n")
    (package / "broken.py").write_text("raise RuntimeError('broken')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    was = gc.isenabled()
    try:
        (gc.enable if collects else gc.disable)()
        module = __import__(name)
        find = door(name, {"outer": ["number"], "broken": ["nothing"]})
        assert find("number") == 0
        assert gc.isenabled() == collects
        assert vars(module)["number"] == 0
        with pytest.raises(RuntimeError, match="broken"):
            find("nothing")
        assert gc.isenabled() == collects
        with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'other'"):
            find("other")
    finally:
        (gc.enable if was else gc.disable)()
        for each in [each for each in sys.modules if each.split(".")[0] == name]:
            del sys.modules[each]
