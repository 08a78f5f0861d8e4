#!/bin/sh
# Builds the emulator: build.sh OUTPUT.so. With the kernels' source beside it in
# the repository, their host version becomes part of it. SONAME=... gives it another
# name than the driver's, for processes in which nobody should take it for one;
# KERNELS=... takes other kernels.
set -eu

output=${1:?usage: build.sh OUTPUT.so}
here=$(cd "$(dirname "$0")" && pwd)
kernels=${KERNELS:-$here/../../backends/cuda/kernels/kernels.cu}
flags="-O1 -g -fPIC -pthread -fvisibility=hidden -Wall -Wextra -Werror"
linker=${CC:-cc}

objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT

for source in "$here"/*.c; do
  ${CC:-cc} -std=c11 $flags -c "$source" -o "$objects/$(basename "$source" .c).o"
done
if [ -f "$kernels" ]; then
  linker=${CXX:-c++}
  $linker -x c++ -std=c++17 $flags -DHAMR_KERNELS_ON_HOST -c "$kernels" \
    -o "$objects/host_kernels.o"
fi
$linker -shared -pthread -Wl,-soname,${SONAME:-libcuda.so.1} -Wl,-z,defs \
  -o "$objects/library" "$objects"/*.o -ldl
mkdir -p "$(dirname "$output")"
cp "$objects/library" "$output.$$"
mv "$output.$$" "$output" # at once, for those who load it meanwhile
