#!/bin/sh
# The man page of a program, by its --help and --version and the exit codes of models/error.h: man_page.sh PROGRAM ERROR_H
set -eu
name=$(basename "$1")
version=$("$1" --version)
"$1" --help | awk -v name="$name" -v version="$version" '
  function text(line) { gsub(/\\/, "\\e", line); gsub(/-/, "\\-", line); sub(/^[.\x27]/, "\\\\\\&&", line); return line }
  function section(title) { print ".SH " toupper(title) }
  NR == 1 {
    printf ".TH %s 1 \"\" \"%s\" \"Soliton\"\n", toupper(name), version
    section("name"); print text(name) " \\- " text($0)
    next
  }
  /^Usage: / { section("synopsis"); print text(substr($0, 8)); next }
  /^[A-Z][A-Za-z ]*:$/ { section(substr($0, 1, length($0) - 1)); next }
  /^  [^ ]/ {
    line = substr($0, 3); gap = match(line, /   */)
    flag = gap ? substr(line, 1, gap - 1) : line
    print ".TP"; print "\\fB" text(flag) "\\fR"
    if (gap) print text(substr(line, gap + RLENGTH))
    next
  }
  /^ / { sub(/^ +/, ""); print text($0); next }
  NF { print text($0) }
'
echo ".SH EXIT STATUS"
sed -nE 's|^  k[A-Za-z]+ = ([0-9]+),? *(// *)?(.*)$|\1 \3|p' "$2" | while read -r code meaning; do
  printf '.TP\n%s\n%s\n' "$code" "${meaning:-success}"
done
cat <<'PAGE'
.SH SEE ALSO
The manual: share/doc/soliton/runtime/README.md of the installation; soliton\-chat(1), soliton\-server(1), soliton\-bench(1), soliton\-doctor(1), soliton\-gen(1)
PAGE
