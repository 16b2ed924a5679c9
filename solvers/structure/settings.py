"""The settings of programs as arrays: which layout is faster, and how a Newton system becomes regular.

Why a size has its value is in benchmarks/results/choices.md.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["SETTINGS", "Settings"]


class Settings(NamedTuple):
    """What the layouts and the Newton system decide by numbers."""

    # Layouts (layouts).
    table: float = 0.8  # part of all pairs from which on a table is faster than lists
    least_table: float = 0.05  # part of all pairs from which on a table on a device is not too empty
    sparse: float = 0.02  # part of all pairs below which products of sparse matrices are faster than dense ones

    # Limits across servers (scaling).
    most_across: int = 300  # or as many as limits of servers: more of them are not few
    dense_across: float = 0.2  # part of all entries of such rows from which on their products are faster in a table

    # Blocks of users (user_blocks).
    wide: float = 0.5  # part of the servers from which on a kind keeps all columns
    worth: float = 0.7  # part of the products of one table, at most, with which blocks are faster
    run: float = 20.0  # columns next to each other, in the mean, from which on adding run by run is faster than column by column
    products_of_a_sum: int = 200  # that take as long as adding one product of columns to those of the others
    products_of_a_block: float = 2e6  # that take as long as the calls for one block

    # The Newton system (newton).
    regular: float = 1e-15  # of the unit diagonal; refinement takes it out again
    least_pivot: float = 1e-15  # of the diagonal of a server: two full limits may take the same of all that run there
    tight: float = 1e-13  # of the diagonal, for limits that are equations: some may follow from others
    tiny: float = 1e-200  # in place of 0 on the diagonal: its square root is a divisor
    raised_by: float = 100.0  # by which it grows until the factorisation succeeds
    most_raises: int = 6

    # Sparse factorisations (factors).
    dense_row: float = 10.0  # times the root of the unknowns: entries of a row from which on it comes last in a sparse factorisation


SETTINGS = Settings()
