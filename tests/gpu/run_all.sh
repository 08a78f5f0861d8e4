#!/bin/sh
# run_all.sh WHEEL OUT_DIR [OPTIONS]: see run_all.py.
exec "${PYTHON:-python3}" "$(dirname "$0")/run_all.py" "$@"
