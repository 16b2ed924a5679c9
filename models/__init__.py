"""The notions of fairness, one a file: Instance -> Program, pure mathematics.

`NOTIONS` maps each identifier to its class. To add a notion of your own::

    fo.NOTIONS["mine"] = Mine

or name a file, ``fo.solve(instance, "mine.py:Mine")``, or install a package with an entry point in the group ``fairopt.notions``.

`CRITERIA` maps identifiers to criteria of progressive filling that have no program, and so no optimum. Every notion that equalises a share
is a criterion too.
"""

from __future__ import annotations

from fairopt.models.asset import Asset
from fairopt.models.bbf import BBF
from fairopt.models.cdrf import CDRF
from fairopt.models.counting import only_text, weights_mapping, weights_text
from fairopt.models.drf import DRF
from fairopt.models.drfh import DRFH
from fairopt.models.efficiency import Efficiency
from fairopt.models.fds import FDS
from fairopt.models.finish_time import FinishTime
from fairopt.models.gfj import GFJ
from fairopt.models.max_min import MaxMin
from fairopt.models.notion import Notion, Property, Sharing, default_sharing
from fairopt.models.per_server_drf import PerServerDRF
from fairopt.models.proportional import Proportional
from fairopt.models.psdsf import PSDSF
from fairopt.models.queue_tree import OPTIONS_OF_TREES
from fairopt.models.rpsdsf import ResidualPSDSF
from fairopt.models.share_notion import ShareNotion
from fairopt.models.stated import Stated
from fairopt.models.tsf import TSF
from fairopt.models.uniform import Uniform
from fairopt.registry import Registry

__all__ = [
    "CRITERIA",
    "NOTIONS",
    "OPTIONS_OF_TREES",
    "Efficiency",
    "FinishTime",
    "Notion",
    "Property",
    "ShareNotion",
    "Sharing",
    "Stated",
    "default_sharing",
    "only_text",
    "weights_mapping",
    "weights_text",
]


def _wrong(entry: object) -> str:
    return "" if isinstance(entry, type) and issubclass(entry, Notion) else "it must be a subclass of fairopt.Notion or fairopt.ShareNotion"


NOTIONS: Registry[type[Notion]] = Registry(
    "notion",
    "fairopt.notions",
    {
        notion.name: notion
        for notion in (
            *(DRF, DRFH, CDRF, TSF, Asset, MaxMin, FinishTime),
            *(PerServerDRF, PSDSF, Uniform, BBF, Proportional, Efficiency, FDS, GFJ),
        )
    },
    _wrong,
)

CRITERIA: Registry[type[Notion]] = Registry("criterion", "", {ResidualPSDSF.name: ResidualPSDSF}, _wrong)
