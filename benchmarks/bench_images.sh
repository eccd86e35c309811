#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Make images and pack them, unless that was done before; then measure them.
# usage: bench_images.sh MAKE_IMAGES PENSTOCK DATA BENCH
set -eu
if [ ! -e "$3/manifest.json" ]; then
    mkdir -p "$(dirname "$3")"
    rm -rf "$3" "$3.jpg"
    "$1" 1000 "$3.jpg" --classes 10
    "$2" pack "$3.jpg" "$3"
    rm -rf "$3.jpg"
fi
exec "$4" "$3"
