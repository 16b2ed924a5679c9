"""Programs as formulas: both forms well formed for every goal, every label escaped, and the numbers those of the program."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

import fairopt as fo
from fairopt.program.formula import index, latex_of, letter, mathml_of, number, operator, product, row, words

BAD = r'<script>alert("x")</script> & \$x_{1}%~^#'


def two_servers(**data: object) -> fo.Instance:
    """Two users, one with a name that would break a page or a formula."""
    return fo.Instance([[9, 18], [4, 4]], [[1, 4], [3, 1e-9]], users=[BAD, "b"], resources=["cpu", "memory"], **data)  # type: ignore[arg-type]


def pool(**data: object) -> fo.Instance:
    """The same users on one server."""
    return fo.Instance([[9, 18]], [[1, 4], [3, 1e-9]], users=[BAD, "b"], resources=["cpu", "memory"], **data)  # type: ignore[arg-type]


def tree() -> fo.Instance:
    """Queues with a guarantee, so that the filling has parts."""
    queues = [fo.Queue("q", weight=2, guarantee={"cpu": 1}), fo.Queue(BAD)]
    return two_servers(queues=queues, queue_of=["q", BAD])


def programs() -> dict[str, fo.Program]:
    """Every notion on an instance that it accepts, with weights where it takes them, and trees."""
    found = {}
    for name in fo.NOTIONS:
        for instance in (two_servers(weights=[1, 2]), two_servers(), pool(weights=[1, 2])):
            try:
                found[name] = fo.formulate(instance, name)
            except fo.FairoptError:
                continue
            break
    found["tree"] = fo.formulate(tree(), "drfh")
    found["late"] = fo.formulate(two_servers(tasks=[6, 6]), "finish-time", left=[3, 6], elapsed=[0, 2])
    found["nested"] = fo.formulate(fo.Instance([[9]], [[1], [2]], queues=[fo.Queue("q")], queue_of=["q", None]), "drfh", tree="nested")
    return found


PROGRAMS = programs()


def test_every_notion_is_there() -> None:
    """So that no goal escapes the tests below."""
    assert set(fo.NOTIONS) <= set(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_mathml_is_well_formed(name: str) -> None:
    """It is XML, and a label is text in it, letter by letter."""
    root = ElementTree.fromstring(mathml_of(PROGRAMS[name], None, None))
    texts = ["".join(node.itertext()).replace("\N{NO-BREAK SPACE}", " ") for node in root.iter() if node.tag.endswith("mtext")]
    assert name == "nested" or any(BAD in text for text in texts)
    assert not [node for node in root.iter() if node.tag.endswith("script")]
    assert not re.search(r"\s", "".join(node.text or "" for node in root.iter() if node.tag.endswith(("mn", "mi", "mo"))))


@pytest.mark.parametrize("name", PROGRAMS)
def test_latex_is_well_formed(name: str) -> None:
    """Braces match, no special character of a label stands by itself, and letters of other alphabets stand in labels only."""
    latex = latex_of(PROGRAMS[name], None, None)
    assert re.sub(r"\\text\{(?:[^{}\\]|\\.|\{[^}]*\})*\}", "", latex).isascii()
    bare = re.sub(r"\\[\\{}&%$#_]", "", latex)  # without what is escaped
    depth = 0
    for character in bare:
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth >= 0
    assert depth == 0
    body = bare.split("\n", 1)[1].rsplit("\n", 1)[0]
    assert not set("%$#~") & set(body)
    assert all(line.count("&") == 1 for line in body.splitlines())


def test_the_numbers_are_those_of_the_program() -> None:
    """Each coefficient and bound of a limit, with the pair that it belongs to."""
    instance = fo.Instance([[9, 18]], np.array([[1, 4], [3, 2.5]]), users=["a", "b"], servers=["s"], resources=["cpu", "memory"])
    lines = fo.formulate(instance, "drf").to_latex().splitlines()
    assert r"\text{subject to} & x_{\text{a} , \text{s}} + 3\,x_{\text{b} , \text{s}} \le 9 \qquad \text{(cpu @ s)} \\" in lines
    assert r" & 4\,x_{\text{a} , \text{s}} + 2.5\,x_{\text{b} , \text{s}} \le 18 \qquad \text{(memory @ s)} \\" in lines


def test_what_is_left_out_is_counted() -> None:
    """Lines and terms."""
    program = fo.formulate(fo.Instance([[9, 9, 9]], np.ones((5, 3))), "drf")
    latex = program.to_latex(lines=2, terms=3)
    assert r"\text{… and 3 more utilities}" in latex
    assert r"\text{… and 1 more limit}" in latex
    assert latex.count(r"\text{… (2 more terms)}") == 2


def test_goals_are_what_they_are() -> None:
    """One notion of each kind of goal."""
    assert r"\sum}\limits_{n}\,\varphi_{n}\,\operatorname{log}\,U_{n}" in PROGRAMS["proportional"].to_latex()
    assert r"\operatorname{leximin}}\limits_{n}\,\frac{U_{n}}{\varphi_{n}}" in PROGRAMS["drfh"].to_latex()
    assert r"\varphi = ( 1 , 2 )" in PROGRAMS["drfh"].to_latex()
    # Half of both servers runs 4.5 / 3 + 2 / 3 = 13 / 6 tasks of the second user at once: alone 6 / (13 / 6) s, of which 2 s are 26 / 36.
    assert r"\delta = ( 0 , 0.722222 )" in PROGRAMS["late"].to_latex()
    assert "z[n] = U[n], delay = (0, 0.722222)" in PROGRAMS["late"].to_text()
    fair = fo.formulate(two_servers(), "proportional", alpha=3).to_latex()
    assert r"\frac{U_{n}^{-2}}{-2}" in fair


def test_pieces() -> None:
    """Powers of ten, products and indices."""
    formula = row(product(number(1.5e300), index(letter("φ"), words("a_b"))), operator("≤"), number(-2.0))
    assert formula.latex == r"1.5 \cdot {10}^{300}\,\varphi_{\text{a\_b}} \le -2"


def test_rules_are_read_with_their_own_sense() -> None:
    """An equation is one line, a floor is >=, and signs stand between terms; the same in all three forms."""
    rules = ["x[a] >= 2 * x[b]", "x[a] == x[b] + 1", "x[b] <= 3"]
    program = fo.formulate(fo.Instance([[9]], [[1], [1]], users=["a", "b"], servers=["s"], resources=["gpu"], rules=rules), "drfh")
    text = program.to_text()
    assert "  x[a] >= 2 * x[b] : x[a, s] - 2 x[b, s] >= 0\n  x[a] == x[b] + 1 : x[a, s] - x[b, s] == 1\n" in text
    assert text.count("x[a] == x[b] + 1") == 1
    latex = program.to_latex()
    assert r"x_{\text{a} , \text{s}} - 2\,x_{\text{b} , \text{s}} \ge 0" in latex
    assert r"x_{\text{a} , \text{s}} - x_{\text{b} , \text{s}} = 1" in latex
    assert "<mo>≥</mo><mn>0</mn>" in program.to_mathml()
    assert "<mo>\N{MINUS SIGN}</mo>" in program.to_mathml()
