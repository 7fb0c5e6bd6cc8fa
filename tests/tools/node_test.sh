#!/usr/bin/env bash
# Runs a Node test under Bazel (node_test.bzl). A machine without Node skips it.
if node=$(PATH=$PATH:/usr/local/bin command -v node); then
  exec "$node" "$@"
fi
echo "skipped: no node on the path"
[ -z "${XML_OUTPUT_FILE:-}" ] || cat >"$XML_OUTPUT_FILE" <<'XML'
<testsuite name="node">
<testcase name="node" classname="node" time="0"><skipped message="no node on the path"/></testcase>
</testsuite>
XML
