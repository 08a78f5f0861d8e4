"""Run a program, then have hamr give back what it keeps for reuse, so that a leak is one.

python tests/gpu/trimmed.py PROGRAM
"""

import gc
import runpy
import sys

import hamr

runpy.run_path(sys.argv[1], run_name="__main__")
gc.collect()
hamr.trim()
