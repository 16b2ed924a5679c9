"""Arrays by name in a file (.npz), read so that nothing of it is believed: it may be damaged, or come from somebody else.

No array holds objects, and none claims to be larger than what the file holds of it.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     np.savez(Path(folder, "a.npz"), times=np.arange(3.0))
...     read_arrays(Path(folder, "a.npz"))
{'times': array([0., 1., 2.])}
"""

from __future__ import annotations

import io
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.files import read_bytes
from fairopt.limits import check_bytes

__all__ = ["read_arrays"]


def read_arrays(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of a file.

    Raises
    ------
    InvalidInstance
        The file cannot be read, is no such file, or unpacks to more than `fairopt.reading_limit` allows.
    """
    content = read_bytes(path)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            check_bytes(str(path), sum(each.file_size for each in members))
            return {each.filename.removesuffix(".npy"): _array(archive.read(each)) for each in members}
    except InvalidInstance:
        raise
    except Exception as error:  # whatever zipfile, zlib and numpy raise of bytes that are none of theirs
        raise InvalidInstance(f"{path} holds no arrays: {str(error) or type(error).__name__}") from error


def _array(content: bytes) -> np.ndarray[Any, Any]:
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    head = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, kind = head(file)
    if kind.hasobject or math.prod(shape) * kind.itemsize != len(content) - file.tell():
        raise ValueError("an array is not as large as it says, or holds objects")
    return np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
