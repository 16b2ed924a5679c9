"""Programs of a million pairs and more: groups of similar users, and regions of servers."""
