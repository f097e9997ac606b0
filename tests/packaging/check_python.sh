#!/bin/bash
# Makes the wheel of an installation, installs it in an environment of its own, and tests it there: check_python.sh SOURCES
# BUILD. Ends with 77, and says why, but in long runs, or where the build tools of the wheel cannot be had.
set -euo pipefail
sources=$1 build=$2
skip() { echo "skipped: $*"; exit 77; }
[ "${SOLITON_LONG_TESTS:-}" = 1 ] || skip "for long runs (SOLITON_LONG_TESTS=1)"
grep -q '^CMAKE_CXX_FLAGS:STRING=.*-fsanitize' "$build/CMakeCache.txt" && skip "Python does not run with sanitizers"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export HOME=$folder/home XDG_CACHE_HOME=$folder/cache
unset SOLITON_KERNELS

/usr/bin/env python3 -m venv python > venv.log 2>&1 || skip "no virtual environment can be made"
python/bin/pip --disable-pip-version-check install -q --retries 2 --timeout 20 scikit-build-core nanobind > pip.log 2>&1 ||
  skip "scikit-build-core and nanobind cannot be installed ($(tail -1 pip.log))"
cmake --install "$build" --prefix "$folder/installed" > install.log
soliton_ROOT=$folder/installed python/bin/pip wheel -q --no-build-isolation --no-deps -w wheel "$sources/runtime/python" > wheel.log 2>&1 ||
  { tail -20 wheel.log; exit 1; }
rm -r installed  # the wheel has what it needs
python/bin/pip --disable-pip-version-check install -q --no-index wheel/*.whl
python/bin/python "$sources/tests/packaging/python_test.py" "$sources/models/tiny-stories" \
  "$sources/tests/chat_template/data/templates/chatml.jinja"
package=$(python/bin/python -c 'import os, soliton; print(os.path.dirname(soliton.__file__))')
grep -q '^class Model' "$package/_soliton.pyi" && test -f "$package/py.typed"
