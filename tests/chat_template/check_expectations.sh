#!/bin/sh
# Compares the stored expectations with what jinja2 says now, in long runs: in others ChatTemplateParity asks it anew, for other
# expressions. Ends with 77, and says why, where there is none.
if [ "${SOLITON_LONG_TESTS:-}" != 1 ]; then
  echo "skipped: in long runs only"
  exit 77
fi
python=${SOLITON_PYTHON:-python3}
if ! command -v "$python" > /dev/null; then
  echo "skipped: no $python (SOLITON_PYTHON names another)"
  exit 77
fi
exec "$python" -B -W ignore "$(dirname "$0")/make_expectations.py" --check
