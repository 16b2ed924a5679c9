"""The declaration of each result: its keys, what they mean, and their units."""
