#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A target's corpus is one archive, corpus/TARGET.tar.gz.
#
# usage: corpus.sh unpack ARCHIVE DIRECTORY    (replaces the directory)
#        corpus.sh pack DIRECTORY ARCHIVE      (the same inputs always give the same bytes)
set -eu
case $1 in
unpack)
    rm -rf "$3"
    mkdir -p "$3"
    tar -xzf "$2" -C "$3"
    ;;
pack)
    tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=644 -C "$2" \
        -cf - $(ls "$2") | gzip -9n >"$3.new"
    mv "$3.new" "$3"
    ;;
*)
    echo "corpus.sh: unpack or pack, not '$1'" >&2
    exit 2
    ;;
esac
