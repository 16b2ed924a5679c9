"""The files in which YARN's queues are written: ``capacity-scheduler.xml`` and the allocation file of the Fair Scheduler.

Both become what the ResourceManager would answer about them (:mod:`fairopt.clusters.yarn.capacity_file`,
:mod:`fairopt.clusters.yarn.fair_file`), so that queues are read in one place. What a file says in percent, or as a weight, is computed of
the nodes that are there now.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from fairopt.clusters.account import Account
from fairopt.clusters.json_export import Part
from fairopt.clusters.yarn.capacity_file import capacity_info
from fairopt.clusters.yarn.fair_file import fair_info
from fairopt.clusters.yarn.resources import Offer
from fairopt.formats.xml_elements import parse_xml

__all__ = ["is_xml", "read_queue_file"]

_READERS = {"configuration": capacity_info, "allocations": fair_info}
_START = re.compile(rf"\s*<(\?xml|!--|!DOCTYPE (?!html)|({'|'.join(_READERS)}|scheduler)\b)", re.IGNORECASE)


def is_xml(text: str) -> bool:
    """Return whether text is XML, by how it begins; a web page is none.

    >>> is_xml("<configuration/>"), is_xml("<html>"), is_xml('{"scheduler": 1}')
    (True, False, False)
    """
    return _START.match(text) is not None


def read_queue_file(text: str, file: str, offers: Sequence[Offer], account: Account) -> Part:
    """Return what the ResourceManager would answer as ``schedulerInfo`` if it had this file and these nodes.

    Raises
    ------
    InvalidInstance
        With the file and the line: what is wrong, and what to do.
    """
    root = parse_xml(text, file)
    if root.name == "scheduler":
        root.refuse("this is the ResourceManager's answer as XML; ask for JSON, with the header Accept: application/json")
    if root.name not in _READERS:
        root.refuse(
            f"there are no queues in <{root.name}>; give capacity-scheduler.xml, which starts with <configuration>, or the allocation "
            "file of the Fair Scheduler, which starts with <allocations>"
        )
    return Part(_READERS[root.name](root, offers, account), file)
