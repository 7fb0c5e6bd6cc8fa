#!/usr/bin/env bash
# Runs a Python test under Bazel (python_test.bzl).
exec "${LATHE_PYTHON:-python3}" -B "$@"
