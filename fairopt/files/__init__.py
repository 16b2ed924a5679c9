"""Files read with a clear refusal, and replaced as a whole.

============  ==============================================================================
``reading``   bytes and texts of a file, packed or not
``writing``   files replaced as a whole; what is not to be replaced
``limits``    how much reading may cost: its bytes after unpacking, and what they expand to
``stores``    what a long run keeps, so that it goes on where it was stopped
``progress``  the state of one search, with the question that it answers
============  ==============================================================================

>>> import tempfile
>>> from pathlib import Path
>>> with tempfile.TemporaryDirectory() as folder:
...     write_files({Path(folder, "a.txt"): "one\\n"})
...     read_text(Path(folder, "a.txt"))
'one\\n'
"""

from fairopt.files.reading import beginning, first_line, missing_file, read_bytes, read_old_text, read_stdin, read_text
from fairopt.files.writing import is_device, refuse_existing, refuse_read, write_files

__all__ = [
    "beginning",
    "first_line",
    "is_device",
    "missing_file",
    "read_bytes",
    "read_old_text",
    "read_stdin",
    "read_text",
    "refuse_existing",
    "refuse_read",
    "write_files",
]
