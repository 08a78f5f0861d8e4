#!/bin/sh
# Builds the stand-in for NVRTC: build.sh OUTPUT.so.
set -eu

output=${1:?usage: build.sh OUTPUT.so}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$(dirname "$output")"
${CC:-cc} -std=gnu11 -O1 -g -fPIC -shared -fvisibility=hidden -Wall -Wextra -Werror \
  -Wl,-soname,libhamr-nvrtc-stand-in.so -o "$output.$$" "$here"/nvrtc.c
mv "$output.$$" "$output" # at once, for those who load it meanwhile
