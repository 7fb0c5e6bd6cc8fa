#!/bin/bash
# Debian's Emscripten, compiler and linker. Its cache is read-only and complete: no EM_CACHE here.
export NODE_PATH=/usr/share/nodejs EM_CONFIG=/usr/share/emscripten/.emscripten
export PATH=/usr/bin:/bin HOME=/tmp
exec /usr/bin/em++ "$@"
