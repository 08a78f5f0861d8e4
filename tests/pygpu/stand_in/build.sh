#!/bin/sh
# Builds the stand-in for NVIDIA's management library: build.sh OUTPUT.so. With OLD=1 it has what the
# library had before its functions had versions.
set -eu

output=${1:?usage: build.sh OUTPUT.so}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$(dirname "$output")"
${CC:-cc} -std=gnu11 -O1 -g -fPIC -shared -pthread -fvisibility=hidden -Wall -Wextra -Werror \
  ${OLD:+-DOLD} -Wl,-soname,libhamr-nvml-stand-in.so -Wl,-z,defs -o "$output.$$" "$here"/*.c
mv "$output.$$" "$output" # at once, for those who load it meanwhile
