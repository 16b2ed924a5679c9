"""What a table in LaTeX must be, so that LaTeX takes it: commands that exist, rows of one length."""

from __future__ import annotations

import re

_COMMANDS = {  # what the tables may use, of LaTeX and booktabs alone, and how many arguments it takes
    **dict.fromkeys(("toprule", "midrule", "bottomrule", "par", "smallskip", "footnotesize", "linewidth", "pm", "Delta", "geq", "leq"), 0),
    **dict.fromkeys(
        ("infty", "to", "ldots", "textbackslash", "textasciitilde", "textasciicircum", "textless", "textgreater", "textbar"), 0
    ),
    **dict.fromkeys(("textasciigrave", "%", "#", "&", "_", "{", "}", "$", "\\"), 0),
    **{"textit": 1, "begin": 1, "end": 1, "multicolumn": 3},
}


_TOKEN = re.compile(r"\\(?P<command>[a-zA-Z]+|[^a-zA-Z\n])|(?P<special>[{}$&%#_^~\\])|(?P<text>[^\\{}$&%#_^~]+)")


def check_latex(text: str) -> list[str]:
    """Read a table as LaTeX does, strictly: only known commands, balanced groups and formulas, rows of equal width, ASCII alone.

    Returns the cells of all rows.
    """
    body = text.replace(r" % \usepackage{booktabs} in the preamble", "", 1)
    assert body != text
    assert body.isascii()
    assert [match.start() for match in _TOKEN.finditer(body)] == [0, *(match.end() for match in _TOKEN.finditer(body))][:-1], "unread"
    depth, formula, width, cell = 0, False, 1, ""
    environments: list[str] = []
    widths: list[int] = []
    cells: list[str] = []
    tokens = list(_TOKEN.finditer(body))
    for place, token in enumerate(tokens):
        command, special = token["command"], token["special"]
        inside = environments[-1:] == ["tabular"]
        if command is not None:
            assert command in _COMMANDS, command
            after = body[token.end() :]
            if _COMMANDS[command]:
                assert re.match(rf"(\{{[^\n]*?\}}){{{_COMMANDS[command]}}}", after), command
            if command == "begin":
                environments.append(after[1:].partition("}")[0])
            elif command == "end":
                assert environments.pop() == after[1:].partition("}")[0]
            elif command == "multicolumn":
                width += int(after[1:].partition("}")[0]) - 1
            elif command == "\\":
                assert inside
                assert depth == 0
                assert not after.lstrip().startswith(("[", "*")), "would be an argument of the end of the row"
                widths.append(width)
                cells.append(cell.strip())
                width, cell = 1, ""
                continue
        elif special == "{":
            depth += 1
        elif special == "}":
            depth -= 1
            assert depth >= 0
        elif special == "$":
            formula = not formula
        elif special == "&":
            assert inside
            assert depth == 0
            width += 1
            cells.append(cell.strip())
            cell = ""
            continue
        else:
            assert special is None, f"{special} at {body[max(token.start() - 20, 0) : token.end()]!r}"
        if token["text"] and not formula:
            assert "--" not in token["text"]
            assert "''" not in token["text"] or tokens[place - 1]["special"] == "{"
        cell += token[0]
    assert (depth, formula, environments) == (0, False, [])
    (columns,) = re.findall(r"\\begin\{tabular\}\{([lrc]+)\}", body)
    assert set(widths) == {len(columns)}
    return cells
