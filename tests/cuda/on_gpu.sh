#!/bin/bash
# Everything that takes a GPU, without Bazel or LLVM:
#
#   tests/cuda/on_gpu.sh FILES OUT [PHASE ...]
#
# FILES is what pack.sh made, OUT gets a JSON file or a log for each phase. Every phase ends within
# 9 minutes.
set -u
files=$(realpath "$1") out=$2 here=$(realpath "$(dirname "$0")")
shift 2
mkdir -p "$out"
export LATHE_LIBRARY=$files/liblathe.so LATHE_ROOT=$here/../.. PYTHONUNBUFFERED=1
# PyTorch's own CUDA libraries.
VIRTUAL_ENV=${VIRTUAL_ENV:-$(python3 -c 'import sys; print(sys.prefix)')}
export VIRTUAL_ENV

# GoogleTest exits with 0 when it skips everything; a run on no GPU must not pass.
ran_all() { # log
  grep -q '\[  PASSED  \]' "$1" && ! grep -q '\[  SKIPPED \]' "$1"
}

# racecheck reports hazards inside cuDNN's own attention kernels, also when PyTorch launches
# them: they are left out there, and there alone.
run_phase() { # phase
  case $1 in
    ops)
      timeout 500 "$files/op_examples_on_gpu" >"$out/ops.log" 2>&1 && ran_all "$out/ops.log"
      ;;
    sizes)
      timeout 500 "$files/sizes_on_gpu" --gtest_filter='Gpu*' >"$out/sizes.log" 2>&1 &&
        ran_all "$out/sizes.log"
      ;;
    math)
      timeout 300 "$files/math_on_gpu" "$LATHE_ROOT/tests/math/ulp.txt" "$out/ulp.txt" \
        >"$out/math.log" 2>&1
      ;;
    sanitize)
      timeout 260 compute-sanitizer --tool memcheck --error-exitcode 1 \
        "$files/op_examples_on_gpu" >"$out/memcheck.log" 2>&1 && ran_all "$out/memcheck.log" &&
        timeout 260 compute-sanitizer --tool racecheck --error-exitcode 1 \
          --kernel-name-exclude kernel_substring=cudnn_generated \
          "$files/op_examples_on_gpu" >"$out/racecheck.log" 2>&1 && ran_all "$out/racecheck.log"
      ;;
    config)
      [ -x "$files/lathe" ] || { xz -dk "$files/lathe.xz" && chmod +x "$files/lathe"; } || return 1
      timeout 530 "$files/lathe" run "$LATHE_ROOT/experiments/configs/cuda.json" \
        --json "$out/config.json" | tee "$out/config.txt"
      [ "${PIPESTATUS[0]}" = 0 ]
      ;;
    cliffs)
      timeout 530 python3 "$here/cliffs.py" --json "$out/cliffs.json" >"$out/cliffs.log"
      ;;
    more | families)
      timeout 530 python3 "$here/models.py" "$1" --jobs 6 --json "$out/$1.json" >"$out/$1.log"
      ;;
    errors)
      timeout 120 python3 "$here/bad_input.py" >"$out/errors.log" 2>&1
      ;;
    *)
      timeout 530 python3 "$here/models.py" "$1" --json "$out/$1.json"
      ;;
  esac
}

failed=0
[ $# -gt 0 ] || set -- ops sizes math errors f32 bf16 f16 bandwidth time compile config cliffs \
  sanitize
for phase; do
  start=$SECONDS
  if run_phase "$phase"; then verdict=passed; else verdict=FAILED failed=1; fi
  echo "$phase $verdict in $((SECONDS - start)) s"
done
exit $failed
