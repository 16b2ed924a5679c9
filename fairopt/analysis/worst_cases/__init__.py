"""The search for the small instance on which a schedule is worst."""
