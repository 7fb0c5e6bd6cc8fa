#!/bin/bash
# What travels to a machine with a GPU: stripped programs, and fmt, which is not everywhere.
#
#   tests/cuda/pack.sh FILES
#
# Needs what `./lathe run` installs, and two packages more, which it names when they are missing.
set -eu
cd "$(dirname "$(readlink -f "$0")")/../.."
stop() {
  printf '%s\n' "$1" >&2
  exit 2
}
[ $# -eq 1 ] || stop "usage: tests/cuda/pack.sh FILES"
command -v bazel >/dev/null ||
  stop "tests/cuda/pack.sh builds with Bazel; ./lathe doctor installs it"
missing=()
[ -e /usr/src/googletest/CMakeLists.txt ] || missing+=(googletest)
command -v xz >/dev/null || missing+=(xz-utils)
[ ${#missing[@]} -eq 0 ] ||
  stop "tests/cuda/pack.sh lacks Debian packages; as root: apt-get install ${missing[*]}"
files=$1
mkdir -p "$files"
bazel build --config=release \
  //frontend/cli:lathe //tests/cuda:op_examples_on_gpu //tests/cuda:sizes_on_gpu \
  //tests/cuda:math_on_gpu //tests/cuda:liblathe.so
install bazel-bin/tests/cuda/{op_examples_on_gpu,sizes_on_gpu,math_on_gpu,liblathe.so} "$files"
install /usr/lib/x86_64-linux-gnu/libfmt.so.9 "$files"
xz --threads=0 -6 <bazel-bin/frontend/cli/lathe >"$files/lathe.xz"
# Both configurations write to the same place.
bazel build //frontend/cli:lathe
ls -l "$files"
