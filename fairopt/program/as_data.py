"""A program as plain data: its goal in words, its columns, and its limits with their terms; every limit that the text has, once.

>>> import fairopt as fo
>>> found = fo.formulate(fo.Instance([[9]], [[2], [1]], users=["a", "b"], servers=["s"], resources=["cpu"]), "drf").to_dict()
>>> found["goal"], found["columns"][1]
('maximise    leximin of U[n]', {'user': 'b', 'server': 's', 'utility': 0.1111111111111111})
>>> [(limit["name"], limit["sense"], limit["bound"], limit["columns"], limit["coefficients"]) for limit in found["limits"]]
[('cpu @ s', '<=', 9.0, [0, 1], [2.0, 1.0])]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairopt.program.text import goal_lines, kept_sentences, stated_limits
from fairopt.results import finite, options_of, result

if TYPE_CHECKING:
    from fairopt.program import Program

__all__ = ["program_data"]


def program_data(program: Program) -> dict[str, Any]:
    """Return a program as plain data, ready for JSON."""
    source = program.source
    asked = {} if source is None else {"notion": source.notion.name, "options": options_of(source.notion), "sharing": source.sharing}
    servers = (program.servers[i] for i in program.pair_servers)
    users = (program.users[n] for n in program.pair_users)
    weights = getattr(program.goal.inner, "weights", None)  # a choice among alternatives has none
    found = {
        "notion": program.name,
        "title": program.title,
        "goal": "\n".join(goal_lines(program.goal, program, None)),
        "integral": program.integral,
        "users": [{"name": program.users[n], "weight": None if weights is None else float(weights[n])} for n in program.members.tolist()],
        "columns": [
            {"user": user, "server": server, "utility": utility}
            for user, server, utility in zip(users, servers, program.utilities.tolist(), strict=True)
        ],
        "limits": [
            {
                "name": limit.name,
                "sense": limit.sense,
                "bound": finite(limit.bound),
                "columns": limit.columns.tolist(),
                "coefficients": limit.coefficients.tolist(),
            }
            for limit in stated_limits(program)
        ],
        "kept": list(kept_sentences(program, None)),
    }
    return result("formulate", asked | {"integral": program.integral}, {} if source is None else source.instance.units, found)
