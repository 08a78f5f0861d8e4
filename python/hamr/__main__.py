"""``python -m hamr`` is the command ``hamr``."""

import sys

from .cli import main

if __name__ == "__main__":  # tools may import this module without running it
    sys.exit(main())
