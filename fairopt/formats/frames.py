"""An instance as frames of pandas, and arrays of an instance or an allocation with labels, for xarray.

The frames are the tables of a folder (:mod:`fairopt.formats.tables`), so that `Instance.from_frame` reads them back.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairopt.errors import SolverUnavailable, Unsupported
from fairopt.wording import installing, joined

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from fairopt.instance import Instance

__all__ = ["dataset", "frame_of"]


def frame_of(instance: Instance, of: str) -> pd.DataFrame:
    """Return a table of an instance; its index is the first column.

    Raises
    ------
    Unsupported, InvalidInstance
        The instance has no such table. A table cannot hold a label.
    """
    import pandas as pd

    from fairopt.formats.table_writing import columns_of_tables

    tables = columns_of_tables(instance, Path("the frames"), "frames", sys.maxsize)
    if of not in tables:
        raise Unsupported(f'this instance has no table of "{of}"; it has {joined(list(tables))}')
    names, (labels, *columns) = tables[of]
    cells = {name: [None if cell == "" else cell for cell in column] for name, column in zip(names[1:], columns, strict=True)}
    return pd.DataFrame(cells, index=pd.Index(labels, name=names[0]))


def dataset(instance: Instance, arrays: Mapping[str, tuple[tuple[str, ...], Any]], facts: Mapping[str, Any]) -> xr.Dataset:
    """Return arrays with named dimensions: "user", "server", "resource" and the like, whose labels are those of the instance.

    Raises
    ------
    SolverUnavailable
        xarray is not installed.
    """
    try:
        import xarray as xr
    except ImportError:
        raise SolverUnavailable(f"arrays with labels need xarray; install it with: {installing('xarray')}") from None
    labels = {"user": list(instance.users), "server": list(instance.servers), "resource": list(instance.resources)}
    labels |= {"server_resource": list(instance.server_resources), "shared": list(instance.shared)}
    used = {name for dimensions, _ in arrays.values() for name in dimensions}
    return xr.Dataset(dict(arrays), coords={name: values for name, values in labels.items() if name in used}, attrs=dict(facts))
