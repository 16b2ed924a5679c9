r"""A program as a formula: LaTeX for papers, MathML for pages and notebooks, which browsers draw without scripts or network.

A `Formula` holds both forms. Small functions put formulas together, so that the two forms cannot say different things.

>>> formula = row(product(number(0.5), index(letter("x"), letter("n"))), operator("≤"), number(2e-9))
>>> print(formula.latex)
0.5\,x_{n} \le 2 \cdot {10}^{-9}
>>> row(letter("t"), operator("≤"), number(2e-9)).mathml
'<mi>t</mi><mo>≤</mo><mn>2</mn><mo>⋅</mo><msup><mrow><mn>10</mn></mrow><mrow><mn>-9</mn></mrow></msup>'
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.instance import FloatArray, IntArray
from fairopt.program.goals import AlphaFair, Disjunctive, Equalize, Equilibrium, FinishTimes, Leximin, Total, Tradeoff
from fairopt.program.nested import Nested
from fairopt.program.text import kept_sentences, stated_limits, tree_rows
from fairopt.program.tree_filling import TreeFilling
from fairopt.wording import in_latex, plural, printable

if TYPE_CHECKING:
    from fairopt.program.program import Program

__all__ = ["Formula", "index", "latex_of", "letter", "mathml_of", "number", "operator", "product", "row", "words"]

_GREEK = {"φ": r"\varphi", "δ": r"\delta"}
_SIGNS = {"\N{MINUS SIGN}": "-", "≤": r"\le", "≥": r"\ge", "∑": r"\sum", "⋅": r"\cdot", "…": r"\dots"}
_SENSES = {"<=": "≤", "==": "=", ">=": "≥"}
_LISTED = 8  # weights
_LEFT = ' style="text-align: left"'


@dataclass(frozen=True, slots=True)
class Formula:
    """A piece of mathematics in both forms."""

    latex: str
    mathml: str


# Pieces --------------------------------------------------------------------------------------------------------------------------


def words(text: str) -> Formula:
    """Return text within mathematics: a label, or part of a sentence."""
    shown = printable(text)
    latex = in_latex(shown).replace("  ", r"\quad ")
    return Formula(rf"\text{{{latex}}}", f"<mtext>{html.escape(shown).replace(' ', '&#160;')}</mtext>")  # MathML drops spaces at the ends


def letter(name: str) -> Formula:
    """Return a variable."""
    return Formula(_GREEK.get(name, name), f"<mi>{name}</mi>")


def operator(sign: str) -> Formula:
    """Return a sign."""
    return Formula(_SIGNS.get(sign, sign), f"<mo>{sign}</mo>")


def function(name: str) -> Formula:
    """Return the name of a function, upright."""
    return Formula(rf"\operatorname{{{name}}}", f'<mi mathvariant="normal">{name}</mi>')


def number(value: float) -> Formula:
    """Return a number in six digits."""
    digits, _, exponent = f"{value:.6g}".partition("e")
    if exponent:
        ten = Formula("{10}", "<mn>10</mn>")
        return row(number(float(digits)), operator("⋅"), power(ten, number(int(exponent))))
    return Formula(digits, f"<mn>{digits}</mn>")


def row(*parts: Formula) -> Formula:
    """Return pieces side by side."""
    return Formula(" ".join(part.latex for part in parts), "".join(part.mathml for part in parts))


def product(first: Formula, second: Formula) -> Formula:
    """Return two factors, with a thin space between them."""
    return Formula(rf"{first.latex}\,{second.latex}", f'{first.mathml}<mspace width="0.17em"/>{second.mathml}')


def space(first: Formula, second: Formula) -> Formula:
    """Return two pieces far apart."""
    return Formula(rf"{first.latex} \qquad {second.latex}", f'{first.mathml}<mspace width="2em"/>{second.mathml}')


def listed(parts: list[Formula], sign: str = ",") -> Formula:
    """Return pieces with a sign between them."""
    return row(*[piece for part in parts for piece in (operator(sign), part)][1:])


def index(base: Formula, *below: Formula) -> Formula:
    """Return a variable with indices."""
    inner = listed(list(below))
    return Formula(f"{base.latex}_{{{inner.latex}}}", f"<msub>{base.mathml}<mrow>{inner.mathml}</mrow></msub>")


def power(base: Formula, exponent: Formula) -> Formula:
    """Return a power."""
    return Formula(f"{base.latex}^{{{exponent.latex}}}", f"<msup><mrow>{base.mathml}</mrow><mrow>{exponent.mathml}</mrow></msup>")


def fraction(above: Formula, below: Formula) -> Formula:
    """Return a quotient."""
    return Formula(rf"\frac{{{above.latex}}}{{{below.latex}}}", f"<mfrac><mrow>{above.mathml}</mrow><mrow>{below.mathml}</mrow></mfrac>")


def under(name: Formula, below: Formula) -> Formula:
    """Return an operator with what it ranges over below it."""
    return Formula(rf"\mathop{{{name.latex}}}\limits_{{{below.latex}}}", f"<munder>{name.mathml}<mrow>{below.mathml}</mrow></munder>")


_N, _U, _X, _T = letter("n"), letter("U"), letter("x"), letter("t")
_UTILITY, _WEIGHT = index(_U, _N), index(letter("φ"), _N)
_SUM = under(operator("∑"), _N)


# The program ---------------------------------------------------------------------------------------------------------------------

Line = tuple[str, Formula]  # what it says ("maximise", the name of a limit), and the mathematics


def latex_of(program: Program, lines: int | None, terms: int | None) -> str:
    """Return the program as LaTeX, to stand in display mathematics; it needs amsmath."""
    rows = [rf"{words(head).latex if head else ''} & {body.latex}" for head, body in _lines(program, lines, terms)]
    return "\\begin{array}{ll}\n" + " \\\\\n".join(rows) + "\n\\end{array}"


def mathml_of(program: Program, lines: int | None, terms: int | None) -> str:
    """Return the program as MathML."""
    rows = [
        f"<mtr><mtd{_LEFT}>{words(head).mathml}</mtd><mtd{_LEFT}><mrow>{body.mathml}</mrow></mtd></mtr>"
        for head, body in _lines(program, lines, terms)
    ]
    table = f"<mtable{_LEFT}>{''.join(rows)}</mtable>"
    return f'<math xmlns="http://www.w3.org/1998/Math/MathML" displaystyle="true">{table}</math>'


def _lines(program: Program, lines: int | None, terms: int | None) -> Iterator[Line]:
    """Yield goal, utilities and limits, with at most ``lines`` lines in a block and ``terms`` terms in a sum (None: all)."""
    yield from _goal(program.goal, program, lines)
    head = "where"
    for n in program.members[:lines]:
        own = np.flatnonzero(program.pair_users == n)
        total = _sum(program, program.utilities[own], own, terms)
        if program.goal.is_equilibrium:
            seen = [row(number(program.utilities[p]), words(f" at {program.servers[program.pair_servers[p]]}")) for p in own[:terms]]
            ones = _sum(program, np.ones(own.size), own, terms)
            total = row(product(letter("u"), row(operator("("), ones, operator(")"))), words(",  u = "), listed(seen))
        yield head, row(index(_U, words(program.users[n])), operator("="), total)
        head = ""
    yield from _more(program.members.size, lines, "utility", "utilities")
    head, limits = "subject to", stated_limits(program)
    for limit in limits[:lines]:
        left = _sum(program, limit.coefficients, limit.columns, terms)
        yield head, space(row(left, operator(_SENSES[limit.sense]), number(limit.bound)), words(f"({limit.name})"))
        head = ""
    yield from _more(len(limits), lines, "limit", "limits")
    yield from (("", words(sentence.replace("<=", "≤"))) for sentence in kept_sentences(program, lines))
    whole = ", whole numbers" if program.integral else ""
    users, servers = plural(program.members.size, "user"), plural(len(program.servers), "server")
    of = words(f"for {plural(program.n_pairs, 'eligible pair')} of {users} and {servers}")
    yield head, space(row(_X, operator("≥"), number(0), *([words(whole)] if whole else [])), of)


def _more(total: int, shown: int | None, one: str, many: str) -> Iterator[Line]:
    if shown is not None and total > shown:
        yield "", words(f"… and {plural(total - shown, f'more {one}', f'more {many}')}")


def _sum(program: Program, coefficients: FloatArray, columns: IntArray, terms: int | None) -> Formula:
    """Return a sum over pairs."""
    parts = list[Formula]()
    for value, p in zip(coefficients[:terms], columns[:terms], strict=True):
        x = index(_X, words(program.users[program.pair_users[p]]), words(program.servers[program.pair_servers[p]]))
        term = x if abs(value) == 1 else product(number(abs(value)), x)
        parts += [operator("\N{MINUS SIGN}" if value < 0 else "+"), term] if parts or value < 0 else [term]
    if hidden := len(columns) - len(columns[:terms]):
        parts += [operator("+"), words(f"… ({plural(hidden, 'more term')})")]
    return row(*(parts or [number(0)]))


@singledispatch
def _goal(goal: Any, program: Program, lines: int | None) -> Iterator[Line]:
    """Yield the lines of a goal."""
    weights = goal.inner.weights[program.members]
    weighted = bool((weights != 1).any())
    if program.is_separate:
        yield "on each server", words("by itself, one after the other")
    if goal.inner.is_equilibrium:
        yield "at each server i", words("given what the others do")
    yield "maximise", _each(goal.inner, weighted)
    if weighted:
        yield "", _numbers("φ", weights)
    if isinstance(goal.inner, FinishTimes):
        yield "", _numbers("δ", goal.inner.delay[program.members])


def _numbers(name: str, values: FloatArray) -> Formula:
    some = [number(value) for value in values[:_LISTED]]
    dots = [operator("…")] if values.size > _LISTED else []
    return row(letter(name), operator("="), operator("("), listed([*some, *dots]), operator(")"))


@_goal.register(Nested)
def _(goal: Nested, program: Program, lines: int | None) -> Iterator[Line]:
    yield "maximise", words("depth by depth, with all sums kept, the leximin of S / (w S of the parent) over queues and users")
    yield from _tree(program, goal, lines)


@_goal.register(Disjunctive)
def _(goal: Disjunctive, program: Program, lines: int | None) -> Iterator[Line]:
    yield "maximise", words(f"a preference of x, where of each of {plural(len(goal.clauses), 'clause')} one alternative holds")


@_goal.register(TreeFilling)
def _(goal: TreeFilling, program: Program, lines: int | None) -> Iterator[Line]:
    start, rate = index(letter("S"), _N), index(letter("R"), _N)
    yield (
        "fill level by level",
        row(words("maximise "), _T, words(" with "), _UTILITY, operator("≥"), start, operator("+"), product(rate, _T)),
    )
    yield "", row(words("for all who rise, "), _UTILITY, operator("≥"), start, words(" for the others"))
    w, c, v, m = (letter(name) for name in "wcvm")
    of_child = fraction(product(index(letter("R"), v), index(w, c)), index(m, v))
    own = row(index(letter("R"), c), operator("="), index(w, c), words(" of a child of the root,  "))
    yield "rates", row(own, index(letter("R"), c), operator("="), of_child, words(" of a child of v"))
    both = index(letter("e"), c, letter("r"))
    every = row(under(operator("∑"), c), index(w, c) if goal.takes is None else product(index(w, c), both))
    most = every if goal.takes is None else row(under(function("max"), letter("r")), every)
    yield "", row(index(m, v), operator("="), most, words(" over rising children"))
    if goal.tree.listed.any():
        yield "", words("in a queue that serves one after the other, the first child that is not stopped rises alone")
    yield "parts", words("; ".join(part.title for part in goal.parts))
    yield from _tree(program, goal, lines)


@singledispatch
def _each(goal: Any, weighted: bool) -> Formula:
    """Return a goal of utilities."""
    raise TypeError(f"there is no formula for the goal {type(goal).__name__}")


def _level(weighted: bool) -> Formula:
    return fraction(_UTILITY, _WEIGHT) if weighted else _UTILITY


def _summand(value: Formula, weighted: bool) -> Formula:
    return product(_WEIGHT, value) if weighted else value


@_each.register
def _(goal: Leximin | Equilibrium, weighted: bool) -> Formula:
    return product(under(function("leximin"), _N), _level(weighted))


@_each.register
def _(goal: FinishTimes, weighted: bool) -> Formula:
    delayed = row(number(1), operator("+"), product(index(letter("δ"), _N), letter("z")))
    level = fraction(letter("z"), delayed)
    return row(product(under(function("leximin"), _N), level), words("  with  "), letter("z"), operator("="), _level(weighted))


@_each.register
def _(goal: Equalize, weighted: bool) -> Formula:
    return row(_T, words("  with  "), _level(weighted), operator("="), _T, words("  for all "), _N)


@_each.register
def _(goal: Total, weighted: bool) -> Formula:
    return product(_SUM, _summand(_UTILITY, weighted))


@_each.register
def _(goal: AlphaFair, weighted: bool) -> Formula:
    if goal.alpha == 1:
        return product(_SUM, _summand(product(function("log"), _UTILITY), weighted))
    return product(_SUM, _summand(fraction(power(_UTILITY, number(1 - goal.alpha)), number(1 - goal.alpha)), weighted))


@_each.register
def _(goal: Tradeoff, weighted: bool) -> Formula:
    e, rest = goal.efficiency, number(1 - goal.beta)
    mean = power(row(operator("("), _SUM, _summand(power(_UTILITY, rest), weighted), operator(")")), number(1 / (1 - goal.beta)))
    fair = product(number(1 - e), row(function("log"), mean)) if e else row(function("log"), mean)
    return row(fair, operator("+"), product(number(e), row(function("log"), _SUM, _UTILITY))) if e else fair


def _tree(program: Program, goal: TreeFilling | Nested, lines: int | None) -> Iterator[Line]:
    for place, text in enumerate(tree_rows(program, goal, lines)):
        yield "tree" if place == 0 else "", words(text)
