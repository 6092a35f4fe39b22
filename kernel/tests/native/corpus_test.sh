#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The fuzzers' seeds are those that make_corpus makes: `make build PART=corpus` makes them again.
set -euo pipefail
cd "$(dirname "$0")/../../.."

made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
build/tests/make_corpus "$made"
diff -r "$made" kernel/tests/fuzz/corpus
echo "$(find "$made" -type f | wc -l) checks"
