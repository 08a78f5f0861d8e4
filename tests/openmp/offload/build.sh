#!/bin/sh
# Builds what tests of OpenMP load, and prints the file: build.sh WHAT FOLDER [LLVM].
# WHAT is
#   plugin      a plugin of libgomp's
#   changing    a runtime whose devices come later
#   registered  what makes the devices of LLVM's x86_64 plugin appear
#   add         functions with target regions, with libgomp
#   regions     the same by Clang, for the devices of LLVM's x86_64 plugin
#   threads     the one without, with LLVM's libomp, which has what GCC calls, too
# and LLVM the folder of libomptarget.so and libomp.so.5.
set -eu

what=${1:?usage: build.sh WHAT FOLDER [LLVM]}
here=$(cd "$(dirname "$0")" && pwd)
flags="-std=gnu11 -O1 -g -fPIC -Wall -Wextra -Werror"
output=$2/libhamr-$what.so
case $what in
plugin)
  output=$2/libgomp-plugin-nvptx.so.1
  ${CC:-cc} $flags -shared -Wl,-soname,libgomp-plugin-nvptx.so.1 -o "$output" "$here/plugin.c"
  ;;
changing)
  ${CC:-cc} $flags -shared -o "$output" "$here/changing.c"
  ;;
registered)
  echo 'int hamr_nothing(void) { return 0; }' | ${CC:-cc} $flags -shared -xc -o "$2/image.so" -
  ${CC:-cc} $flags -shared -DIMAGE="\"$2/image.so\"" -o "$output" "$here/registered.c" \
    -Wl,--no-as-needed -Wl,-rpath,"$3" "$3/libomptarget.so" "$3/libomp.so.5"
  ;;
add)
  # For the host alone: the tools for devices may be there in part.
  offload=-foffload=disable
  ${CC:-cc} $offload -E -xc /dev/null >/dev/null 2>&1 || offload=
  ${CC:-cc} $flags -shared -fopenmp $offload -o "$output" "$here/add.c"
  ;;
regions)
  "${CLANG:-$3/../bin/clang}" $flags -shared -fopenmp -fopenmp-targets="$(uname -m)-pc-linux-gnu" \
    -o "$output" "$here/add.c" -L"$3" -Wl,-rpath,"$3"
  ;;
threads)
  ${CC:-cc} $flags -fopenmp -DWITHOUT_TARGET -c -o "$2/threads.o" "$here/add.c"
  ${CC:-cc} -shared -o "$output" "$2/threads.o" -Wl,-rpath,"$3" "$3/libomp.so.5"
  ;;
esac
echo "$output"
