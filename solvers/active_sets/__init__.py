"""The exact end of alpha-fair goals and trade-offs: the equations of the used pairs and full limits that an approximate answer shows."""
