"""Instance + notion -> certified allocation.

===================  ==========================================================================================
``formulation``      the notion that was asked for, checked, and its program
``merged_notion``    a notion on merged rows, in floats or in fractions
``single_servers``   an instance of whole tasks, with a row for each server
``kept_guarantees``  guarantees under notions that follow no tree, as rules
``alone``            what a guaranteed node could hold alone
``posing``           from the question to its program on merged rows
``likeness``         what an answer says of the program of a question much like it
``policy``           which engines try a program, in which order; certify, polish, and when to try the next one
``answer``           from the solution of the merged program back to the rows that were given
``tree_prices``      prices of limits of queues that stop users of a tree without a program
``contradictions``   rules that cannot hold together, for the error where no allocation obeys them
``floats``           the program found and certified in floats, and the answer
``small_fractions``  an answer in floats that fails its check, checked in fractions where its program is small
``fractions``        the program solved and proved in fractions, and the answer
``kept_rows``        a program in fractions solved with the rows of what queues keep
``enclosures``       alpha-fair goals and trade-offs in fractions, with a proved distance to the optimum
``alternatives``     the best of a union of polytopes in fractions
``optimum``          `solve`: all of it
===================  ==========================================================================================
"""

from __future__ import annotations

from fairopt.solving.formulation import checked, formulate, notion_of, to_cvxpy, to_pyomo
from fairopt.solving.optimum import best_found, solve, solve_again, without_remarks

__all__ = ["best_found", "checked", "formulate", "notion_of", "solve", "solve_again", "to_cvxpy", "to_pyomo", "without_remarks"]
