#!/bin/sh
# run_all.sh WHEEL OUT_DIR [OPTIONS]: see run_all.py.
PYTHONPATH="$(cd "$(dirname "$0")/../.." && pwd)${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONPATH
exec "${PYTHON:-python3}" -m tests.gpu.run_all "$@"
