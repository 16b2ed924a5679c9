"""One description of a table, in every form: the same cells, each form with its own rules for text."""

from __future__ import annotations

import csv
import io
import re
from fractions import Fraction

import numpy as np
import pytest

from fairopt.formats.results import rendered
from fairopt.show.html import Html, notebook_table, table_html
from fairopt.show.table import Column, Format, Table, ids, names, numbers, percents, words
from fairopt.show.text import to_latex, to_markdown

TABLE = Table.of(
    names("user", ["<A>", "b"], styles=("strong", ""), indents=(0, 1)),
    words("why", [("one", "two"), ""]),
    numbers("tasks", [399.2, np.inf], errors=[12.4, np.nan], above="drfh"),
    percents("in use", [0.5, None], 1),
    numbers("price", [None, None]),
    title="Who <gets>",
)


def test_text_of_cells() -> None:
    """A value has its error to two digits of it; what is not there is empty."""
    assert TABLE.rows == [("<A>", "one\ntwo", "399 ± 12", "50.0 %", ""), ("b", "", "inf", "", "")]
    assert [column.heading for column in TABLE.columns] == ["user", "why", "drfh tasks", "in use", "price"]
    assert [column.title for column in TABLE.without_empty().columns] == ["user", "why", "tasks", "in use"]


@pytest.mark.parametrize(
    ("form", "values", "texts"),
    [
        (Format(4), [1 / 3, 12345.6, None, "none", True], ["0.3333", "12,346", "", "none", "yes"]),
        (Format(alike=True), [2.5, None, 12.0, "-"], ["2.5", "", "12.0", "-"]),
        (Format(alike=True), [Fraction(1, 3), Fraction(2)], ["1/3", "2"]),
        (Format(alike=True, radius=Fraction(1, 10**8)), [Fraction(1, 3), Fraction(2)], ["0.33333333", "2"]),
        (Format(percent=True, decimals=1), [0.9996, 5e-5], ["100.0 %", "0.0 %"]),
        (Format(percent=True, decimals=1, tiny=True), [0.9996, 5e-5], ["100.0 %", "0.005 %"]),
        (Format(signed=True), [0.5, -0.5, 0.0, Fraction(1, 3)], ["+0.5", "-0.5", "0", "+1/3"]),
        (Format(unit="s", missing="-"), [1.5, float("nan")], ["1.5 s", "-"]),
    ],
)
def test_formats(form: Format, values: list[object], texts: list[str]) -> None:
    """Of numbers; text stays."""
    assert form.write(values) == texts


@pytest.mark.parametrize(
    ("mean", "error", "text"), [(45.061, 0.72, "45.06 ± 0.72"), (1451.8, 170.4, "1,450 ± 170"), (45.061, 1e-14, "45.1"), (3.0, 0.0, "3")]
)
def test_a_mean_has_the_digits_of_its_error(mean: float, error: float, text: str) -> None:
    """An error that is only rounding is left out."""
    assert Format().write([mean], [error]) == [text]


def test_frame() -> None:
    """Values as they are; an error is a column of its own."""
    frame = TABLE.to_frame()
    assert list(frame) == ["user", "why", "drfh tasks", "drfh tasks error", "in use", "price"]
    assert frame["drfh tasks"].tolist() == [399.2, np.inf]
    assert frame["drfh tasks error"].tolist()[0] == 12.4
    assert frame["why"].tolist() == ["one two", ""]
    assert Table.of_frame(frame).rows[0] == ("<A>", "one two", "399.2", "12.4", "0.5", "")
    back = list(csv.reader(io.StringIO(str(rendered(frame, "csv")))))
    assert back[1] == ["<A>", "one two", "399.2", "12.4", "0.5", ""]


def test_chosen_columns_and_digits() -> None:
    """In the order of the choice; a title that is not there is an error."""
    table = Table.of(names("user", ["a"]), numbers("tasks", [1 / 3]), numbers("share", [0.123456])).chosen("share", "user").with_digits(5)
    assert (table.rows, [column.title for column in table.columns]) == ([("0.12346", "a")], ["share", "user"])
    with pytest.raises(KeyError):
        table.chosen("tasks")


def test_markdown_and_latex() -> None:
    """Without commas in numbers, and without empty columns; totals below a rule."""
    assert to_markdown(TABLE).splitlines() == [
        "| user | why | drfh tasks | in use |",
        "| --- | --- | ---: | ---: |",
        r"| \<A\> | one two | 399 ± 12 | 50.0 % |",
        "| b |  | inf |  |",
    ]
    table = Table.of(names("user", ["a_b", "all"]), numbers("tasks", [12345.0, -1.5], 6), totals=1)
    assert to_latex(table).splitlines()[3:] == [
        r"\midrule",
        r"a\_b & 12345 \\",
        r"\midrule",
        r"all & $-1.5$ \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    assert r"$399 \pm 12$" in to_latex(TABLE)


def test_html() -> None:
    """Headings of rows and columns, a caption that names the region; missing numbers are dashes; a mark stands before its name."""
    page = table_html(TABLE, marks={"b": Html("<svg></svg>")}, picked=True)
    assert page.startswith('<div class="scroll" role="region" tabindex="0" aria-label="Who &lt;gets&gt;"><table><caption>Who &lt;gets&gt;')
    assert '<tr data-user="&lt;A&gt;"><th scope="row"><bdi><b>&lt;A&gt;</b></bdi></th><td class="words"><bdi>one<br>two</bdi></td>' in page
    assert '<th scope="col"><bdi>drfh</bdi><br><bdi>tasks</bdi></th>' in page
    assert '<th scope="row"><svg></svg><bdi>\xa0\xa0\xa0b</bdi></th>' in page
    assert "<bdi></bdi></td><td>∞</td><td>-</td><td>-</td></tr>" in page
    assert "The first 1 of 2 rows." in table_html(TABLE, most=1)
    assert "∞" not in table_html(TABLE, most=1)


def test_notebooks_cut_long_and_wide_tables() -> None:
    """Ten rows at each end, twelve columns; both say so."""
    columns = [numbers(f"c{j}", range(25)) for j in range(14)]
    page = notebook_table(Table.of(names("user", (f"user-{n}" for n in range(25))), *columns))
    assert page.count("<tr>") == 1 + 20 + 1
    assert re.search(r"25 rows, 2 more columns: see to_frame\(\)", page)
    assert ("user-9<" in page, "user-10<" in page, "user-15<" in page, "c11<" in page, "c12<" in page) == (True, False, True, True, False)


def test_a_part_of_the_rows() -> None:
    """With their errors, styles and indents."""
    column = Column("x", (1, 2, 3), errors=(0.1, 0.2, 0.3), styles=("", "bad", ""), indents=(0, 1, 2))
    (part,) = Table.of(column, totals=1).part(1, 3).columns
    assert (part.values, part.errors, part.styles, part.indents) == ((2, 3), (0.2, 0.3), ("bad", ""), (1, 2))
    assert len(Table.of(ids("name", ["a", "b"]))) == 2
