"""Linear programs in rational numbers, lifted from floating point."""
