#!/bin/sh
# Builds the stand-in for HIP's runtime: build.sh OUTPUT.so.
set -eu

output=${1:?usage: build.sh OUTPUT.so}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$(dirname "$output")"
# The driver's functions are called without prototypes.
${CC:-cc} -std=gnu11 -O1 -g -fPIC -shared -pthread -fvisibility=hidden -Wall -Wextra -Werror \
  -Wno-strict-prototypes -Wno-deprecated-non-prototype -Wno-unknown-warning-option \
  -DKERNELS="\"$here/../../../backends/cuda/kernels/kernels.ptx\"" \
  -Wl,-soname,libhamr-hip-stand-in.so -Wl,-z,defs -o "$output.$$" "$here"/*.c -ldl
mv "$output.$$" "$output" # at once, for those who load it meanwhile
