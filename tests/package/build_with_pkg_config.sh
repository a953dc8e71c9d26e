#!/usr/bin/env bash
# build_with_pkg_config.sh PKGCONFIG_FOLDER CONSUMER_FOLDER BUILD_FOLDER CC CXX: a stranger without
# CMake, against the static library.
set -euo pipefail
export PKG_CONFIG_PATH=$1
consumer=$2 build=$3 cc=$4 cxx=$5
mkdir -p "$build"
read -ra flags <<< "$(pkg-config --cflags firn)"
read -ra libraries <<< "$(pkg-config --static --libs firn)"
"$cxx" -std=c++20 "${flags[@]}" "$consumer/consumer.cpp" -o "$build/consumer_cpp" "${libraries[@]}"
"$cc" -std=c99 "${flags[@]}" "$consumer/consumer.c" -o "$build/consumer_c" "${libraries[@]}"
"$build/consumer_cpp"
"$build/consumer_c"
