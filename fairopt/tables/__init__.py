"""The one reader and writer of typed tables."""
