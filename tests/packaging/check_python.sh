#!/bin/bash
# Tests the package of Python in an environment of its own: check_python.sh SOURCES BUILD.
source "$(dirname "$0")/install_wheel.sh"
python/bin/python "$sources/tests/packaging/python_test.py" "$sources/models/tiny-stories" "$template"
package=$(python/bin/python -c 'import os, soliton; print(os.path.dirname(soliton.__file__))')
grep -q '^class Model' "$package/_soliton.pyi" && test -f "$package/py.typed"
