#!/bin/bash
# Runs the example of replicas on Ray, two of them in emulation: check_ray.sh SOURCES BUILD. Ends with 77, too, where Ray cannot
# be had: it is 100 MB with what it needs.
source "$(dirname "$0")/install_wheel.sh"
install "ray[serve]==2.60.0" httpx==0.28.1 > pip.log 2>&1 || skip "Ray cannot be installed ($(tail -1 pip.log))"
export RAY_USAGE_STATS_ENABLED=0
python/bin/python "$sources/tests/packaging/ray_test.py" "$sources/runtime/examples/ray_serve" "$sources/models/tiny-stories" \
  "$template" > ray.log 2>&1 || { grep -v '^.\{0,6\}(' ray.log | tail -60; exit 1; }
