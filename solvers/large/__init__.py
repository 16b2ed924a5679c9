"""Programs of a million pairs and more: groups of similar users, and regions of servers; built on the levels of ``interior_point`` and ``via_highs``."""
