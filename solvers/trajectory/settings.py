"""The settings of the trajectory: where the integration begins and ends, and how Newton's method goes on from there."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["SETTINGS", "Settings"]


class Settings(NamedTuple):
    """What the modules of this engine decide by numbers. c and mu = 1 / c are those of the path."""

    # The integration (engine).
    c_at_end: float = 1e8  # where Newton's method takes over
    c_at_start: float = 1e-2  # where users have several pairs
    longest: float = 1e5  # t cannot get there before c gets to its end
    rtol: float = 1e-8
    atol: float = 1e-10
    most_steps_of_path: int = 3000
    matrices: int = 5  # square ones at a time
    memory: int = 2**30  # bytes that a program may take unasked
    centrings: int = 200  # steps of Newton's method at the start
    full: float = 1e-6  # a limit with this part left is a bottleneck

    # Newton's method (central_path).
    mu_falls: float = 0.1  # factor on mu per step
    last_mu: float = 1e-16
    most_steps: int = 200
    part_of_the_way: float = 0.99  # to the boundary that a step may go
    least_c: float = 1e-2  # below, multipliers 1 / (c s) would be too large to start from
    stalled: int = 3  # steps that gain little at one mu
    rounding: float = 1e-12  # a smaller residual of the equations


SETTINGS = Settings()
