"""Parts of NumPy that fairopt never uses are not loaded, and are there for whoever uses them."""

from __future__ import annotations

import subprocess
import sys

import pytest

_SOLVES = "import fairopt as fo; fo.solve(fo.Instance([[1]], [[1]]), 'drfh')"
_IMPORTS = "import fairopt, scipy.sparse"
_WAITS = "print([each for each in sys.meta_path if type(each).__module__.startswith('fairopt')])"
_LOADED = "print(sorted(name for name in sys.modules if name.startswith(('numpy.f2py.', 'numpy.testing.'))))"


def printed(*lines: str) -> str:
    """Return what a fresh process prints."""
    return subprocess.run([sys.executable, "-c", "\n".join(["import sys", *lines])], capture_output=True, text=True, check=True).stdout


def test_a_solve_does_not_load_them() -> None:
    """None of their modules is there, and nobody waits for SciPy any more."""
    assert printed(_SOLVES, _LOADED, _WAITS) == "[]\n[]\n"


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
    assert printed(_IMPORTS, _LOADED, use, same, _LOADED) != "[]\n[]\n"


def test_what_is_loaded_already_stays() -> None:
    """Where somebody has imported a part, or SciPy, before fairopt."""
    printed("import numpy.testing as before", _IMPORTS, "import numpy; assert before is numpy.testing and type(before) is type(sys)")
    assert printed("import scipy.sparse", _IMPORTS, _WAITS) == "[]\n"
