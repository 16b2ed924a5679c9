"""Parts of NumPy that no command uses are not loaded by it, and are there for whoever uses them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import fairopt as fo

_DEFERS = "from fairopt.processes.deferred import defer_before_scipy; defer_before_scipy()"
_SOLVES = "import fairopt as fo; fo.solve(fo.Instance([[1]], [[1]]), 'drfh')"
_IMPORTS = "import fairopt, scipy.sparse"
_WAITS = "print([each for each in sys.meta_path if type(each).__module__.startswith('fairopt')])"
_LOADED = "print(sorted(name for name in sys.modules if name.startswith(('numpy.f2py.', 'numpy.testing.'))))"


def printed(*lines: str) -> str:
    """Return what a fresh process prints."""
    return subprocess.run([sys.executable, "-c", "\n".join(["import sys", *lines])], capture_output=True, text=True, check=True).stdout


def test_a_solve_does_not_load_them() -> None:
    """None of their modules is there, and nobody waits for SciPy any more."""
    assert printed(_DEFERS, _SOLVES, _LOADED, _WAITS) == "[]\n[]\n"


def test_the_command_line_defers_them(tmp_path: Path) -> None:
    """A process of its own is the command's, and has no use for them."""
    fo.save(fo.Instance([[1]], [[1]]), tmp_path / "one.yaml")
    main = f"sys.argv = ['fairopt', 'solve', {str(tmp_path / 'one.yaml')!r}, '--json']; from fairopt.cli import main"
    run = f"try: main()\nexcept SystemExit as left: assert not left.code\n{_LOADED.replace('print(', 'print(end=str(', 1)})"
    assert printed(main, run).endswith("[]")


def test_the_library_leaves_other_packages_alone() -> None:
    """``import fairopt`` and a solve put nothing in the way of imports."""
    assert printed("import fairopt", _WAITS, _SOLVES, _WAITS) == "[]\n[]\n"


@pytest.mark.parametrize(
    "use",
    [
        "from numpy.testing import assert_equal; assert_equal(1, 1)",
        "from numpy.testing._private.utils import assert_equal; assert_equal(1, 1)",
        "import numpy.f2py.crackfortran, numpy.testing; assert numpy.f2py.get_include()",
    ],
)
def test_whoever_uses_them_has_them(use: str) -> None:
    """In each way to import them; they are the modules that NumPy has without fairopt."""
    same = "import numpy as np; assert np.testing is sys.modules['numpy.testing'] and np.f2py is sys.modules['numpy.f2py']"
    assert printed(_DEFERS, _IMPORTS, _LOADED, use, same, _LOADED) != "[]\n[]\n"


def test_what_is_loaded_already_stays() -> None:
    """Where somebody has imported a part, or SciPy, before fairopt."""
    printed(
        "import numpy.testing as before", _DEFERS, _IMPORTS, "import numpy; assert before is numpy.testing and type(before) is type(sys)"
    )
    assert printed("import scipy.sparse", _DEFERS, _IMPORTS, _WAITS) == "[]\n"
