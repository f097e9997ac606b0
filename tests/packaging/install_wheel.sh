# Sourced by what tests the package of Python: makes the wheel of an installation, and installs it in python/, an environment
# of its own, in $folder, where the script then is. Of $1, the sources, and $2, a build. Ends with 77, and says why, but in
# long runs, or where the build tools of the wheel cannot be had.
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

install() { python/bin/pip --disable-pip-version-check install -q --retries 2 --timeout 20 "$@"; }
/usr/bin/env python3 -m venv python > venv.log 2>&1 || skip "no virtual environment can be made"
install scikit-build-core nanobind > pip.log 2>&1 ||
  skip "scikit-build-core and nanobind cannot be installed ($(tail -1 pip.log))"
cmake --install "$build" --prefix "$folder/installed" > install.log
soliton_ROOT=$folder/installed python/bin/pip wheel -q --no-build-isolation --no-deps -w wheel "$sources/runtime/python" > wheel.log 2>&1 ||
  { tail -20 wheel.log; exit 1; }
rm -r installed  # the wheel has what it needs
install --no-index wheel/*.whl
template=$sources/tests/chat_template/data/templates/chatml.jinja
