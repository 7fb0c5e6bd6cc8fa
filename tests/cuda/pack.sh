#!/bin/bash
# What travels to a machine with a GPU: stripped programs, and fmt, which is not everywhere.
#
#   tests/cuda/pack.sh FILES
set -eu
cd "$(dirname "$(readlink -f "$0")")/../.."
files=$1
mkdir -p "$files"
bazel build --config=release \
  //frontend/cli:lathe //tests/cuda:op_examples_on_gpu //tests/cuda:liblathe.so
install bazel-bin/tests/cuda/op_examples_on_gpu bazel-bin/tests/cuda/liblathe.so "$files"
install /usr/lib/x86_64-linux-gnu/libfmt.so.9 "$files"
xz --threads=0 -6 <bazel-bin/frontend/cli/lathe >"$files/lathe.xz"
# Both configurations write to the same place.
bazel build //frontend/cli:lathe
ls -l "$files"
