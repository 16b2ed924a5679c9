"""The settings of progressive filling: the sizes of batches and blocks, and about how long plain Python takes for a step.

The steps of ``kernel`` have numbers of their own, which are compiled with them (`fairopt.solvers.compiled`).
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["SETTINGS", "Settings"]


class Settings(NamedTuple):
    """What the modules of this engine decide by numbers. Seconds are of plain Python, roughly."""

    # Of one instance (progressive_filling, state, precomputed).
    tasks_at_once: int = 10_000
    seconds_of_choice: float = 1e-6  # for one user on one row, or for one server
    block: int = 1024  # servers that are scored together
    small_row: int = 64  # rows with fewer servers are scored together
    endless: int = 2**62  # tasks of a user without a limit

    # Over time (event_loop, arrival_order).
    moments_at_once: int = 2_000  # between two calls of ``done`` and ``stopped``
    moments_of_functions: int = 100  # the same, where a function chooses servers
    seconds_of_moment: float = 1e-6  # for one task and one server or stream
    most_cards: int = 1_024  # on one server
    seconds_of_arrival: float = 2e-6  # for one task and one server

    # In fractions (in_fractions).
    seconds_to_look: float = 5e-6  # at one user, or at one server that is only compared
    seconds_to_score: float = 2e-5  # a server


SETTINGS = Settings()
