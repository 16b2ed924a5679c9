"""Envy between users: a row for the user who envies, a column for the user who is envied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairopt import wording
from fairopt.instance import FloatArray
from fairopt.plots.sheets import sheet
from fairopt.plots.style import GREY, WHITE_TO_DARK, short_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_envy"]

_MOST = 40  # users that have a row and a column
_NUMBERS = 12  # users up to which each cell has its number
_LABEL = 16


def plot_envy(
    envy: FloatArray,
    users: Sequence[str],
    title: str = "",
    *,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
) -> Figure:
    """Draw envy in tasks, white where there is none; of more than 40 users, the 40 with the largest envy, as envying or envied.

    Parameters
    ----------
    envy : array (users, users)
        Tasks that user n could run with what user m holds, less its own, >= 0: `fairopt.analysis.measures.envy_matrix`.
    users : sequence of str
    title : str, optional
        Which allocation it is of.
    ax : matplotlib Axes, optional
        Draw into these axes.
    figsize : (float, float), optional
        Width and height of a new figure, in inches.

    Returns
    -------
    matplotlib.figure.Figure

    >>> import fairopt as fo
    >>> from fairopt.analysis.measures import envy_matrix
    >>> instance = fo.Instance([[4, 1]], [[1, 0.1], [2, 1]], users=["A", "B"])
    >>> envy = envy_matrix(fo.solve(instance, "efficiency"))
    >>> envy.round(3)
    array([[0. , 0. ],
           [0.4, 0. ]])
    >>> plot_envy(envy, instance.users).axes[0].get_xlabel()
    'user who is envied'
    """
    from matplotlib.colors import LinearSegmentedColormap

    number = len(users)
    shown = np.arange(number)
    if number > _MOST:
        most = np.maximum(envy.max(axis=0), envy.max(axis=1))
        shown = np.sort(np.argsort(-most, kind="stable")[:_MOST])
    cells = envy[np.ix_(shown, shown)]
    largest = float(cells.max(initial=0.0))
    side = max(3.2, 0.24 * shown.size + 2.2)
    page = sheet(ax, figsize, (side + 1.4, side + 0.6))
    (axes,) = page.axes
    ramp = LinearSegmentedColormap.from_list("envy", WHITE_TO_DARK)
    picture = axes.imshow(cells, cmap=ramp, vmin=0.0, vmax=largest or 1.0, interpolation="nearest")
    axes.set_xticks(np.arange(-0.5, shown.size), minor=True)
    axes.set_yticks(np.arange(-0.5, shown.size), minor=True)
    axes.grid(which="minor", color="#DDDDDD", linewidth=0.5)
    axes.tick_params(which="both", length=0)
    labels = [short_label(users[n], _LABEL) for n in shown.tolist()]
    small = 9 if shown.size <= _NUMBERS else 7
    axes.set_yticks(np.arange(shown.size), labels, fontsize=small)
    rotation = 0 if shown.size <= _NUMBERS and max(map(len, labels)) <= 4 else 90
    axes.set_xticks(np.arange(shown.size), labels, fontsize=small, rotation=rotation)
    if shown.size <= _NUMBERS:
        for (n, m), value in np.ndenumerate(cells):
            if value > 0:
                axes.text(
                    m,
                    n,
                    "< .01" if value < 0.01 else wording.figure(value),
                    ha="center",
                    va="center",
                    fontsize=8,
                    color="white" if value > 0.55 * largest else "black",
                )
    axes.set_ylabel("user who envies")
    axes.set_xlabel("user who is envied")
    if largest > 0:
        page.figure.colorbar(picture, ax=axes, label="envy, in tasks", shrink=0.8)
    note = "" if largest > 0 else "nobody envies anybody"
    if number > shown.size:
        note = (
            f"the {shown.size} of {wording.plural(number, 'user')} with the largest envy, as envying or envied"
            if largest > 0
            else f"{note} ({number:,} users)"
        )
    if note:
        axes.set_title(note, loc="left", fontsize=9, color=GREY)
    heading = f"Envy: {title}" if title else "Envy"
    page.headline(heading, None)
    return page.figure
