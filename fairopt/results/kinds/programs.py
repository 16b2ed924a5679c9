"""The program of a notion on an instance."""

from __future__ import annotations

from fairopt.results.declaring import choice, flag, items, nullable, number, optional, record, text, texts, whole
from fairopt.results.kinds.parts import NAME, OF_SOLVE, kind, question

__all__ = ["KINDS"]

KINDS = {
    "formulate": kind(
        "formulate",
        "The program of a notion on an instance: x of each column, a pair of user and server, is the number of tasks there.",
        question(
            "What was formulated; of a program that fairopt.formulate did not make, only integral.",
            {key: OF_SOLVE[key] for key in ("notion", "options", "sharing", "integral")},
        ),
        {
            "notion": text("The notion."),
            "title": text("What it is, in one line."),
            "goal": text("The goal, as mathematics; U[n] is the sum over the columns of user n of utility times x."),
            "integral": flag("Must x be whole numbers?"),
            "users": items(
                record(
                    "A user.",
                    {
                        "name": NAME,
                        "weight": nullable(number("phi[n] of the goal, or null; in a tree of queues, the weight beside siblings.", "1")),
                    },
                ),
                "The users of the goal: those who have a column.",
            ),
            "columns": items(
                record(
                    "A column, x >= 0.",
                    {
                        "user": text("The user."),
                        "server": text("The row of servers."),
                        "utility": number("What a task counts in the goal.", "1"),
                    },
                ),
                "The columns.",
            ),
            "limits": items(
                record(
                    "A limit: the sum of coefficients times x.",
                    {
                        "name": NAME,
                        "sense": choice("How the sum compares with the bound.", "<=", ">=", "=="),
                        "bound": nullable(number("The bound; null: none.", "1")),
                        "columns": items(whole("", "1"), "Positions of the columns that the limit has, from 0."),
                        "coefficients": items(number("", "1"), "Their coefficients."),
                    },
                ),
                "The limits.",
            ),
            "kept": texts(
                "What queues keep of their guarantees, in words: a family of limits, of which those above are the ones that were made."
            ),
            "files": optional(texts("The files that were written.")),
        },
    ),
}
