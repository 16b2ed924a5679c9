"""A program as a file that other solvers read: ``.lp``, ``.mps`` and ``.nl``, as Pyomo writes them.

Columns and rows are named after what they are, as in ``x(alice,server_3)`` and ``capacity(cpu@server_3)``: characters that a format does
not allow in names are replaced, and a name that comes twice gets a number. Of ``.nl`` the names are in two files beside it, ``.col`` and
``.row``, and are those of the model: ``x[alice,server-3]``.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairopt.errors import Unsupported
from fairopt.program import Program
from fairopt.solvers.via_pyomo import model as pyomo_model
from fairopt.solvers.via_pyomo import running

__all__ = ["LINEAR", "ModelFiles", "model_files"]

LINEAR = (".lp", ".mps")  # which hold linear goals and rows alone
_BESIDE = (".col", ".row")  # of .nl: names
_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_(),.@]+")  # in names of .lp, of which .mps allows more


@dataclass(frozen=True, slots=True, eq=False)
class ModelFiles:
    """The files of a program.

    Attributes
    ----------
    contents : dict
        Bytes by suffix; the first is the model.
    columns : list of (name, user, server)
        The columns of tasks, in their order.
    """

    contents: dict[str, bytes]
    columns: list[tuple[str, str, str]]


@dataclass(slots=True)
class _Names:
    """Names for components, each another one: what Pyomo calls a labeler."""

    taken: dict[str, int] = field(default_factory=dict)
    of: dict[str, str] = field(default_factory=dict)

    def __call__(self, component: Any) -> str:
        """Return the name of a component; the same one whenever it is asked for."""
        whole = str(component.name)
        if whole not in self.of:
            name = _NOT_ALLOWED.sub("_", whole.replace(" @ ", "@").replace("[", "(").replace("]", ")"))
            again = self.taken[name] = self.taken.get(name, 0) + 1
            self.of[whole] = name if again == 1 else f"{name}_{again}"
        return self.of[whole]


def model_files(program: Program, suffix: str, transformation: str = "bigm") -> ModelFiles:
    """Return the files of a program's model.

    Parameters
    ----------
    suffix : {".lp", ".mps", ".nl"}
    transformation : {"bigm", "hull"}
        What turns alternatives into a MILP.

    Raises
    ------
    Unsupported
        The goal is no single model, or a format for linear programs cannot hold it.
    """
    if suffix in LINEAR and program.goal.has_gradient:
        raise Unsupported(f'the goal of "{program.name}" is not linear, and {suffix} holds linear programs; write .nl, or .tex to read it')
    model = pyomo_model.build(program, transformation)
    names = _Names()
    how = {"symbolic_solver_labels": True} if suffix not in LINEAR else {"labeler": names}
    with tempfile.TemporaryDirectory() as folder, running.inside():
        path = Path(folder, f"model{suffix}")
        model.write(str(path), io_options=how)
        contents = {suffix: path.read_bytes()}
        contents |= {beside: there.read_bytes() for beside in _BESIDE if (there := path.with_suffix(beside)).exists()}
    columns = [(names(column) if suffix in LINEAR else column.name, *pair) for pair, column in model.x.items()]
    return ModelFiles(contents, columns)
