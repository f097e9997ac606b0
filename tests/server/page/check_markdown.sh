#!/bin/bash
# The page's Markdown against hostile texts, where there is a Node of version 18.17 or later: check_markdown.sh SOURCES. Ends with
# 77, and says why, without one.
set -euo pipefail
skip() { echo "skipped: $*"; exit 77; }
command -v node > /dev/null || skip "no node"
node -e 'process.exit(URL.canParse ? 0 : 1)' || skip "node is older than 18.17"
# An import of a file without package.json is a module by its name only.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$1/runtime/server/page/markdown.js" "$folder/markdown.mjs"
node --max-old-space-size=1024 "$1/tests/server/page/markdown_speed.mjs" "$folder/markdown.mjs"
