"""The commands, one a file, and what they share: options, the console, tables."""
