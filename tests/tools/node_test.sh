#!/usr/bin/env bash
# Runs a Node test under Bazel (node_test.bzl). A machine without Node skips it, unless
# LATHE_EXPECTS_NODE says that it is there.
if node=$(PATH=$PATH:/usr/local/bin command -v node); then
  exec "$node" "$@"
fi
if [ -n "${LATHE_EXPECTS_NODE:-}" ]; then
  echo "no node on the path"
  exit 1
fi
echo "skipped: no node on the path"
[ -z "${XML_OUTPUT_FILE:-}" ] || cat >"$XML_OUTPUT_FILE" <<'XML'
<testsuite name="node">
<testcase name="node" classname="node" time="0"><skipped message="no node on the path"/></testcase>
</testsuite>
XML
