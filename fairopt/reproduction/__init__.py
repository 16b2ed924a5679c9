"""What the papers print, computed again: results, random trials, and figures over time, beside the published numbers."""
