"""``python -m fairopt``: the command line, where the console script is not on the path."""

from __future__ import annotations

from fairopt.cli import main

if __name__ == "__main__":
    main()
