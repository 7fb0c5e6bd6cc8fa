# What `./lathe sweep` and `./lathe report` need: PyTorch and small Python packages in .lathe/venv.
# Sourced by ./lathe, whose words (say, stop, step_begin, need_torch, ...) it uses.
# shellcheck shell=bash disable=SC2154

sweep_packages=(jsonschema==4.26.0 tqdm==4.70.1 numpy)
# Installed when a sweep names a model of theirs, and for ./lathe test --all. torchvision is the one
# made for PyTorch's version.
torchvision_packages=(torchvision==0.28.0)
timm_packages=(torchvision==0.28.0 timm==1.0.31)
transformers_packages=(transformers==4.46.3)
ray_packages=(ray==2.60.0)
report_packages=(numpy Jinja2==3.1.6 vl-convert-python==1.9.0.post1)

# Packages of .lathe/venv, as pip pins them; PyTorch stays the one that need_torch has installed.
need_python() { # what for, packages...
  local start=$SECONDS venv=$state/venv label="$1. Installing"
  shift
  python=$venv/bin/python
  mkdir -p "$state"
  [ -x "$venv/bin/pip" ] || python3 -m venv "$venv" >"$state/pip.log" 2>&1 ||
    stop "python3 -m venv failed; its whole output is in ${state#"$PWD"/}/pip.log"
  "$python" - "$@" 2>/dev/null <<'EOF' && return 0
import importlib.metadata as metadata, sys
for package in sys.argv[1:]:
    name, _, version = package.partition("==")
    found = metadata.version(name)
    if version and found.partition("+")[0] != version:
        sys.exit(1)
EOF
  step_begin "$label"
  if ! "$venv/bin/pip" install --quiet --constraint <(printf 'torch==%s\n' "$torch_version") \
    "$@" >"$state/pip.log" 2>&1; then
    step_end "$label" "failed"
    tail -n 5 "$state/pip.log" >&2
    stop "pip did not install it; its whole output is in ${state#"$PWD"/}/pip.log"
  fi
  step_end "$label" "done in $(spent "$start")"
}

# A module of the package, in the caller's folder.
run_module() { # module, arguments...
  local module=$1
  shift
  PYTHONPATH=$root/frontend/python${PYTHONPATH:+:$PYTHONPATH} exec "$python" -m "$module" "$@"
}

run_sweep() { # arguments...
  local word source packages=("${sweep_packages[@]}")
  build
  begin_turn
  # Inductor, with which Lathe is compared, compiles C++ against Python's headers.
  need_packages "${packages_build[@]}" python3 python3-venv libpython3-dev
  need_torch
  for word in "$@"; do
    [ "$word" != ray ] && [ "$word" != --engine=ray ] || packages+=("${ray_packages[@]}")
    [ -f "$word" ] || continue
    for source in torchvision timm transformers; do
      local -n of_source=${source}_packages
      ! grep -q "\"$source:" "$word" || packages+=("${of_source[@]}")
    done
  done
  need_python "Packages of sweeps" "${packages[@]}"
  end_turn
  run_module lathe.sweep "$@"
}

run_report() { # arguments...
  begin_turn
  need_packages python3 python3-venv
  need_python "Packages of reports" "${report_packages[@]}"
  end_turn
  run_module lathe.report "$@"
}
