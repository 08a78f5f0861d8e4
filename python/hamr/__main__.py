"""``python -m hamr``."""

import sys

from .cli import main

sys.exit(main())
