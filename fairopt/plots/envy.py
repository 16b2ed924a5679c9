"""Envy between users: a row for the user who envies, a column for the user who is envied."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairopt import wording
from fairopt.instance import FloatArray
from fairopt.plots.colours import contrast
from fairopt.plots.sheets import sheet
from fairopt.plots.style import GREY, WHITE_TO_DARK, short_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_envy"]

_MOST = 40  # users that have a row and a column
_NUMBERS = 12  # users up to which each cell has its number
_LIGHT = 4.58  # contrast of a cell to white from which it is better to white than to black
_LABEL = 16
_LINE = 32  # characters above a narrow picture


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
    from matplotlib.colors import LinearSegmentedColormap, to_hex

    number = len(users)
    shown = np.arange(number)
    if number > _MOST:
        most = np.maximum(envy.max(axis=0), envy.max(axis=1))
        shown = np.sort(np.argsort(-most, kind="stable")[:_MOST])
    cells = envy[np.ix_(shown, shown)]
    largest = float(cells.max(initial=0.0))
    heading = f"Envy: {title}" if title else "Envy"
    if number > _NUMBERS and not largest > 0:  # an empty grid would say as much
        page = sheet(ax, figsize, (4.6, 1.3))
        page.axes[0].set_axis_off()
        users_are = f" ({number:,} users)" if number > _MOST else ""
        page.axes[0].set_title(f"nobody envies anybody{users_are}", loc="left", fontsize=9, color=GREY)
        page.headline(heading, None)
        return page.figure
    envying, envied = shown, shown
    if number > _NUMBERS and largest > 0:  # no empty rows and columns among many users
        envying, envied = shown[cells.max(axis=1) > 0], shown[cells.max(axis=0) > 0]
        cells = envy[np.ix_(envying, envied)]
    numbered = max(cells.shape) <= _NUMBERS
    page = sheet(ax, figsize, (max(4.6, 0.24 * envied.size + 3.6), max(3.8, 0.24 * envying.size + 2.8)))
    (axes,) = page.axes
    ramp = LinearSegmentedColormap.from_list("envy", WHITE_TO_DARK)
    picture = axes.imshow(cells, cmap=ramp, vmin=0.0, vmax=largest or 1.0, interpolation="nearest")
    axes.set_xticks(np.arange(-0.5, envied.size), minor=True)
    axes.set_yticks(np.arange(-0.5, envying.size), minor=True)
    axes.grid(which="minor", color="#DDDDDD", linewidth=0.5)
    axes.tick_params(which="both", length=0)
    labels = dict(zip(shown.tolist(), short_labels([users[n] for n in shown.tolist()], _LABEL), strict=True))
    small = 9 if numbered else 7
    axes.set_yticks(np.arange(envying.size), [labels[n] for n in envying.tolist()], fontsize=small)
    rotation = 0 if numbered and max(len(labels[n]) for n in envied.tolist()) <= 4 else 90
    axes.set_xticks(np.arange(envied.size), [labels[n] for n in envied.tolist()], fontsize=small, rotation=rotation)
    if numbered:
        for (n, m), value in np.ndenumerate(cells):
            if value > 0:
                axes.text(
                    m,
                    n,
                    "< .01" if value < 0.01 else wording.figure(value),
                    ha="center",
                    va="center",
                    fontsize=8,
                    color="white" if contrast(to_hex(ramp(value / largest))) >= _LIGHT else "black",
                )
    axes.set_ylabel("user who envies")
    axes.set_xlabel("user who is envied")
    if largest > 0:
        page.figure.colorbar(picture, ax=axes, label="envy, in tasks", shrink=0.8)
    whole = cells.shape == (shown.size, shown.size)
    if not largest > 0:
        note = "nobody envies anybody"
    elif number == shown.size:
        note = "" if whole else textwrap.fill(f"{envying.size:,} who envy and {envied.size:,} who are envied, of {number:,} users", _LINE)
    else:
        note = f"the {shown.size} of {wording.plural(number, 'user')} with the largest envy, as envying or envied"
        note = note if whole else textwrap.fill(f"{envying.size:,} who envy and {envied.size:,} who are envied, of {note}", _LINE)
    if note:
        axes.set_title(note, loc="left", fontsize=9, color=GREY)
    page.headline(heading, None)
    return page.figure
