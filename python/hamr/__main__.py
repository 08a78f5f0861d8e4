"""``python -m hamr`` is the command ``hamr``."""

import sys

from .cli import main

if __name__ == "__main__":  # and not for tools that import every module to look at it
    sys.exit(main())
