#!/bin/bash
# Debian's Emscripten, archiver.
export NODE_PATH=/usr/share/nodejs EM_CONFIG=/usr/share/emscripten/.emscripten
export PATH=/usr/bin:/bin HOME=/tmp
exec /usr/bin/emar "$@"
