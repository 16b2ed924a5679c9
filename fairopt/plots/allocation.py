"""An allocation: on the left, what each user gets; on the right, what it takes of each server.

Up to 30 users are bars, more are a curve of sorted shares with the levels marked; up to 8 users keep one colour on both sides.
In a figure of less than 6 inches, as for a column of a paper, the servers are below the users.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fairopt.plots.shares import draw_users, rows_of_users
from fairopt.plots.sheets import is_narrow, sheet
from fairopt.plots.style import headline
from fairopt.plots.utilization import draw_servers, rows_of_servers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fairopt.allocation import Allocation

__all__ = ["plot_allocation"]


def plot_allocation(
    allocation: Allocation, *, ax: Sequence[Axes] | None = None, figsize: tuple[float, float] | None = None, title: str | None = None
) -> Figure:
    """Draw tasks (or sorted shares) per user and utilization per server.

    Parameters
    ----------
    allocation : Allocation
    ax : sequence of two matplotlib Axes, optional
        Draw into these axes: the users, and the servers.
    figsize : (float, float), optional
        Width and height of a new figure, in inches.
    title : str, optional
        In place of the default; "" for none.

    Returns
    -------
    matplotlib.figure.Figure

    >>> import fairopt as fo
    >>> allocation = fo.solve(fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"]), "drf")
    >>> [axes.get_title(loc="left") for axes in plot_allocation(allocation).axes]
    ['Tasks of each user', 'Use of each server']
    """
    left, right = rows_of_users(allocation), rows_of_servers(allocation)
    size = (10.0, max(1.5 + 0.25 * max(left, right), 2.8))
    down = is_narrow(figsize) and ax is None
    ratios: dict[str, Any] = {"height_ratios": (left, right)} if down else {"width_ratios": (1, 1.1)}
    page = sheet(ax, figsize, size, ("tasks of each user", "use of each server"), down=down, **ratios)
    users, servers = page.axes
    for axes, number, bars in (
        (users, left, draw_users(users, allocation)),
        (servers, right, draw_servers(page, servers, allocation)),
    ):
        if bars:  # bars at most twice as thick as on the other side
            axes.set_ylim((number if down else max(number, left / 2, right / 2)) - 0.5, -0.6)
    if down:
        servers.set_xticks([0.0, 0.5, 1.0], ["0", "50 %", "100 %"])
        servers.set_xlabel(servers.get_xlabel().replace("on the left", "above"))
    page.headline(headline(allocation), title)
    return page.figure
