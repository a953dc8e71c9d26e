#!/usr/bin/env bash
# Runs the program given once per SIMD target and compares what it prints.
set -euo pipefail
program=$1
expected=$(FIRN_SIMD=reference "$program")
[[ $(wc -l <<< "$expected") -gt 100 ]]
for target in $("$program" --targets); do
  [[ $(FIRN_SIMD=$target "$program" --target) == "$target" ]] || { echo "FIRN_SIMD=$target has no effect" >&2; exit 1; }
  if ! diff <(echo "$expected") <(FIRN_SIMD=$target "$program"); then
    echo "$target differs from the reference" >&2
    exit 1
  fi
  echo "$target: the same"
done
