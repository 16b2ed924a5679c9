"""How near two floats are to count as equal: the tolerances that several rooms share, from the smallest to the largest.

Every one of them is relative: it says to what in its comment. Fractions have no rounding: `fairopt.instance.fractions.rounding` turns any
of these into 0 for them. What only one engine needs stands in the settings of that engine, ``fairopt.solvers.<engine>.settings``.

A float has a relative error of 1.1e-16. A sum of a few terms is exact to about ``ROUNDING``, an answer at its best to ``EXACT``, and a
long sum to ``SAME``. Data are sums of rounded numbers: ``FITS`` and ``NOTHING`` lie three digits above the error of such a sum, and three
below the last digit that a file states. An answer is checked to ``CERTIFIED``; what is read off it is known to ``REACHED``.

>>> TINY < ROUNDING < DIGITS < NOISE == EXACT < SAME < NOTHING == FITS < CERTIFIED < REACHED < WRITTEN
True
"""

from __future__ import annotations

__all__ = ["CERTIFIED", "DIGITS", "EXACT", "FITS", "NOISE", "NOTHING", "REACHED", "ROUNDING", "SAME", "TINY", "WRITTEN"]

TINY = 1e-300
"""In place of 0 where something is divided by it; not relative."""

ROUNDING = 1e-15
"""Of a number: numbers that differ by less are the same number, computed in a few operations."""

DIGITS = 1e-14
"""Of a limit: capacities are taken to be known to 14 digits, and this part of what is paid for them proves nothing."""

NOISE = 1e-13
"""Of all spending p.b at dual prices p: the prices of whoever spends less may be a solver's noise, and prove nothing of it."""

EXACT = 1e-13
"""A residual of a certificate: an answer with no more is exact to rounding, and needs no polish."""

SAME = 1e-12
"""Of the larger one: two shares, or two sums of demands, that differ by less are equal. Long sums in another order differ by less."""

NOTHING = 1e-9
"""Of what could be had instead: an amount, a gain or a difference that is smaller is 0."""

FITS = 1e-9
"""Of a limit: what exceeds it by less fits, and what leaves less of it free fills it."""

CERTIFIED = 1e-8
"""The largest relative residual of a certificate unless another is asked for; so, of the larger one: two levels that differ by less."""

REACHED = 1e-7
"""Of a limit, a guarantee or a whole number: what an answer misses by less, it reaches. Ten times ``CERTIFIED``."""

WRITTEN = 1e-6
"""Of a number: files and tables have numbers of about six digits, so an allocation from a file may exceed a limit by as much, and what
people are told differs by more."""
