"""Which arrays the large tables of a path live in: NumPy's, or PyTorch's or CuPy's on a device.

The tables are written against the Python array API standard (https://data-apis.org/array-api), which NumPy follows by itself and the others
by way of array-api-compat. Everything is float64. What the standard lacks, or NumPy has a faster way for, is here.

>>> arrays = array_namespace(None)
>>> arrays.numpy(arrays.xp.exp(arrays.floats([0.0, 1.0]))).round(3)
array([1.   , 2.718])
>>> array_namespace("fortran")
Traceback (most recent call last):
    ...
fairopt.errors.Unsupported: "interior-point" has no arrays "fortran"; use "interior-point:numpy", ":torch", ":torch:cuda" or ":cupy"
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dpotrf, dpotrs

from fairopt.errors import SolverUnavailable, Unsupported

__all__ = ["NUMPY", "Arrays", "array_namespace", "first_line", "is_out_of_memory"]

_PACKAGES = ("torch", "cupy")


@dataclass(frozen=True, slots=True)
class Arrays:
    """A namespace of the array API standard and the device on which its arrays live (None: the namespace's default)."""

    xp: Any
    device: Any = None

    def floats(self, values: npt.ArrayLike) -> Any:
        """Bring numbers to the device, in float64."""
        return self.xp.asarray(_writable(values, np.float64), dtype=self.xp.float64, device=self.device)

    def booleans(self, values: npt.ArrayLike) -> Any:
        """Bring truth values to the device."""
        return self.xp.asarray(_writable(values, bool), dtype=self.xp.bool, device=self.device)

    def integers(self, values: npt.ArrayLike) -> Any:
        """Bring positions to the device."""
        return self.xp.asarray(_writable(values, np.int64), dtype=self.xp.int64, device=self.device)

    def numpy(self, array: Any) -> Any:
        """Bring an array back."""
        if isinstance(array, np.ndarray):
            return array
        for away in ("get", "cpu"):  # CuPy's way, PyTorch's way
            if hasattr(array, away):
                array = getattr(array, away)()
        return np.asarray(array) if isinstance(array, np.ndarray) or hasattr(array, "__array__") else np.from_dlpack(array)

    @property
    def are_numpy(self) -> bool:
        """Are these NumPy's own arrays?"""
        return self.xp is np

    def sum_rows(self, tables: Any, values: Any) -> Any:
        """Sum ``tables`` (r, n, k) times ``values`` (n, k) over the rows n, (r, k)."""
        if self.are_numpy:  # without products in between
            return np.einsum("rnk,nk->rk", tables, values)
        return self.xp.stack([self.xp.sum(tables[r, :, :] * values, axis=0) for r in range(tables.shape[0])])

    def sum_tables(self, tables: Any, values: Any) -> Any:
        """Sum ``tables`` (r, n, k) times ``values`` (r, k) over the tables r, (n, k)."""
        if self.are_numpy:
            return np.einsum("rnk,rk->nk", tables, values)
        total = tables[0, :, :] * values[0, :]
        for r in range(1, tables.shape[0]):
            total += tables[r, :, :] * values[r, :]
        return total

    def add_to_diagonal(self, matrix: Any, values: Any, row: int = 0, column: int = 0) -> None:
        """Add a number to the diagonal of a contiguous square matrix, or values from an entry on downwards to the right, in place."""
        n = matrix.shape[1]
        start, length = row * n + column, n if isinstance(values, float) else values.shape[0]
        self.xp.reshape(matrix, (-1,))[start : start + length * (n + 1) - n : n + 1] += values

    def factorised(self, matrix: Any) -> Callable[[Any], Any]:
        """Return what solves a system with a positive definite matrix, by its Cholesky factor.

        The standard has the factor but no triangular solves. PyTorch has its own, on the device; other matrices go to SciPy and back.

        Raises
        ------
        numpy.linalg.LinAlgError
            The matrix is not positive definite.
        """
        if hasattr(self.xp, "cholesky_solve"):
            factor, failed = self.xp.linalg.cholesky_ex(matrix)
            if int(failed):
                raise np.linalg.LinAlgError("the matrix is not positive definite")
            return lambda right: self.xp.cholesky_solve(right[:, None], factor)[:, 0]
        if not matrix.shape[0]:
            return lambda right: right
        # LAPACK itself, in its order: a step solves several small systems, and what SciPy checks before each takes longer than solving it.
        lower, failed = dpotrf(self.numpy(matrix).T, lower=1, clean=0)
        if failed:
            raise np.linalg.LinAlgError("the matrix is not positive definite")
        if self.are_numpy:
            return lambda right: dpotrs(lower, right, lower=1)[0]
        return lambda right: self.floats(dpotrs(lower, self.numpy(right), lower=1)[0])


NUMPY = Arrays(np)


def array_namespace(name: str | None) -> Arrays:
    """Return the arrays of this name: "numpy" (also None), "torch", "cupy", or one of the last two with a device, as in "torch:cuda:1".

    Raises
    ------
    Unsupported
        There are no such arrays, or no such device on this machine.
    SolverUnavailable
        A package is not installed; the message says what to install.
    """
    package, _, device = (name or "numpy").partition(":")
    if package == "numpy" and device in ("", "cpu"):
        return NUMPY
    if package not in _PACKAGES:
        raise Unsupported(f'"interior-point" has no arrays "{name}"; use "interior-point:numpy", ":torch", ":torch:cuda" or ":cupy"')
    for needed, install in ((package, package), ("array_api_compat", "array-api-compat")):
        if find_spec(needed) is None:
            raise SolverUnavailable(f'arrays of "{package}" need a package that is not installed; install it with: pip install {install}')
    xp = importlib.import_module(f"array_api_compat.{package}")
    try:
        there = _torch_device(device) if package == "torch" else _cupy_device(device)
        xp.asarray([1.0], dtype=xp.float64, device=there)
    except Exception as error:  # each package has errors of its own for devices that are not there
        raise Unsupported(
            f'"{package}" has no device "{device or "cuda"}" here ({first_line(error)}); use "interior-point:numpy"'
        ) from None
    return Arrays(xp, there)


def _torch_device(name: str) -> Any:
    import torch

    return torch.device(name or "cpu")


def _cupy_device(name: str) -> Any:
    import cupy

    return cupy.cuda.Device(int(name.removeprefix("cuda").lstrip(":") or 0))


def _writable(values: npt.ArrayLike, dtype: npt.DTypeLike) -> np.ndarray:
    """Return an array in the order of C. One that must not be written to is copied: PyTorch would share its memory, and warn of it."""
    array = np.ascontiguousarray(values, dtype=dtype)
    return array if array.flags.writeable else array.copy()


def is_out_of_memory(error: Exception) -> bool:
    """Does an error say that memory has run out? NumPy's and CuPy's are MemoryErrors, those of PyTorch and of CUDA's libraries are not."""
    named = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    return named or any(words in str(error) for words in ("DefaultCPUAllocator", "_ALLOC_FAILED"))


def first_line(error: Exception) -> str:
    """Return the first line of an error's message; without one, its name."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
