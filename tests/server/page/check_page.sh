#!/bin/sh
# Tests the page in headless Chromium: check_page.sh SOLITON-SERVER KERNEL. It takes minutes, so only where
# SOLITON_LONG_TESTS is set. Ends with 77, and says why, where it is not, or where there is no Chromium
# (SOLITON_CHROMIUM names one) or no playwright (SOLITON_PYTHON names a Python that has it).
cd "$(dirname "$0")" || exit 1
if [ -z "${SOLITON_LONG_TESTS:-}" ]; then
  echo "skipped: only in long runs (./dev test --long)"
  exit 77
fi
python=${SOLITON_PYTHON:-python3}
export SOLITON_SERVER=$1 SOLITON_KERNEL=$2
if ! "$python" -c 'import playwright' 2> /dev/null; then
  echo "skipped: no playwright in $python (SOLITON_PYTHON names another)"
  exit 77
fi
if ! "$python" -B -c 'import page_fixture; assert page_fixture.chromium()' 2> /dev/null; then
  echo "skipped: no Chromium found (SOLITON_CHROMIUM names one)"
  exit 77
fi
exec "$python" -B -m unittest discover -p '*_test.py'
