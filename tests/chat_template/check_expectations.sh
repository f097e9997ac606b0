#!/bin/sh
# Compares the stored expectations with what jinja2 says now. Ends with 77, and says why, where there is none.
python=${SOLITON_PYTHON:-python3}
if ! command -v "$python" > /dev/null; then
  echo "skipped: no $python (SOLITON_PYTHON names another)"
  exit 77
fi
exec "$python" -B -W ignore "$(dirname "$0")/make_expectations.py" --check
