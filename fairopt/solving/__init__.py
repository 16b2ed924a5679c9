"""Instance + notion -> certified allocation.

=================  ===============================================================================================
``formulation``    the notion that was asked for, checked, and its program
``merged_notion``  a notion on merged rows, in floats or in fractions
``posing``         from the question to its program on merged rows
``likeness``       what an answer says of the program of a question much like it
``policy``         which engines try a program, in which order; certify, polish, and when to try the next one
``answer``         from the solution of the merged program back to the rows that were given
``floats``         the program found and certified in floats, and the answer
``fractions``      the same in fractions
``optimum``        `solve`: all of it
=================  ===============================================================================================
"""

from __future__ import annotations

from fairopt.solving.formulation import checked, formulate, notion_of, to_cvxpy, to_pyomo
from fairopt.solving.optimum import best_found, solve, solve_again, without_remarks

__all__ = ["best_found", "checked", "formulate", "notion_of", "solve", "solve_again", "to_cvxpy", "to_pyomo", "without_remarks"]
