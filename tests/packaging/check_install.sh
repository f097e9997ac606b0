#!/bin/bash
# Installs a build, moves what was installed, and uses it from there, as programs and as a library:
# check_install.sh SOURCES BUILD. With SOLITON_LONG_TESTS=1 also makes a kernel from there, and a Debian package.
set -euo pipefail
sources=$1 build=$2
if grep -q '^CMAKE_CXX_FLAGS:STRING=.*-fsanitize' "$build/CMakeCache.txt"; then
  echo "skipped: programs of others do not run with a library that is built with sanitizers"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export HOME=$folder/home XDG_CACHE_HOME=$folder/cache
unset SOLITON_KERNELS SOLITON_API_KEY
model=$sources/models/tiny-stories
prefix=$folder/moved/soliton

fail() { printf 'check_install.sh: %s\n' "$*" >&2; exit 1; }
expect() { # expect WHAT EXPECTED GOT
  [ "$2" = "$3" ] || fail "$1: expected $2, got $3"
}

cmake --install "$build" --prefix "$folder/first/soliton" > install.log || fail "$(tail -3 install.log)"
mkdir moved
mv first/soliton moved/

# Programs: data, kernel, and answers.
"$prefix/bin/soliton-doctor" --json > doctor.json || true  # without a card it ends with the status of that
grep -qF "\"sources\": \"$prefix/share/soliton\"" doctor.json || fail "sources: expected $prefix, got $(grep sources doctor.json)"
"$prefix/bin/soliton-gen" "$prefix/share/soliton/models/tiny-stories.yaml" --gpu cpu -o made > gen.log
cmp made/kernel.cu <("$build/soliton-gen" "$sources/models/tiny-stories.yaml" --gpu cpu -o built > /dev/null; cat built/kernel.cu)
expect "an answer" ", a small girl" "$("$prefix/bin/soliton-chat" "$model" -p "Once upon a time" -n 4 2> chat.log)"
grep -q "Making" chat.log && fail "the kernel that was installed was not found: $(cat chat.log)"

"$prefix/bin/soliton-server" "$model" --port 0 -c 64 2> server.log &
server=$!
for _ in $(seq 200); do grep -q Serving server.log && break; sleep 0.1; done
kill -TERM $server
wait $server || fail "soliton-server: $(cat server.log)"
grep -q "^Serving tiny-stories at " server.log || fail "soliton-server: $(cat server.log)"

# Man pages and completion speak of the programs' own flags.
grep -q '^\\fB\\-p,\\-\\-prompt' "$prefix/share/man/man1/soliton-chat.1" || fail "soliton-chat.1: expected --prompt"
completed=$(bash -c '. "$0/share/bash-completion/completions/soliton-chat"
  COMP_WORDS=(soliton-chat --pre) COMP_CWORD=1; _soliton "$0/bin/soliton-chat"; echo "${COMPREPLY[@]}"' "$prefix")
expect "completion of --pre" "--predict" "$completed"

# The library: in C by pkg-config, in C++ by find_package.
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
examples=$prefix/share/doc/soliton/examples
cc -std=c99 -Wall -Wextra -Werror -pedantic "$examples/generate.c" $(pkg-config --cflags --libs soliton) -o generate
expect "the example in C" ", a small girl" "$(./generate "$model" "Once upon a time" 4 2> generate.log)"
grep -q "Making" generate.log && fail "the library did not find the kernel: $(cat generate.log)"
mkdir example
cat > example/CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(example LANGUAGES CXX)
find_package(soliton 0.1 REQUIRED)
add_executable(tree_of_thoughts ${EXAMPLES}/tree_of_thoughts.cc)
target_compile_features(tree_of_thoughts PRIVATE cxx_std_17)
target_compile_options(tree_of_thoughts PRIVATE -Wall -Wextra -Werror)
target_link_libraries(tree_of_thoughts PRIVATE soliton::soliton)
CMAKE
cmake -S example -B example/build -G Ninja "-DCMAKE_PREFIX_PATH=$prefix" "-DEXAMPLES=$examples" > example.log && cmake --build example/build >> example.log || fail "$(tail -20 example.log)"
example/build/tree_of_thoughts "$model" "Once upon a time" " They were happy" 2 1 > thoughts.txt 2> thoughts.log || fail "$(cat thoughts.log)"
expect "lines of the example in C++" 2 "$(grep -c '^-[0-9.]* .*Once upon a time' thoughts.txt)"
grep -rIlF -e "$sources" -e "$folder/first" "$prefix" && fail "files above: expected no folder of the build in them"

# The image is built with what ./dev installs, but for what tests need.
for package in $(sed -n '/^packages=(/,/)$/p' "$sources/dev" | sed 's/packages=//; s/[()]//g'); do
  case $package in libgtest-dev | libgmock-dev) continue ;; esac
  grep -qw -e "$package" "$sources/runtime/packaging/Dockerfile" || fail "runtime/packaging/Dockerfile: expected $package, as ./dev installs it"
done

[ "${SOLITON_LONG_TESTS:-}" = 1 ] || exit 0
if command -v docker > /dev/null && docker info > /dev/null 2>&1; then
  docker build -q -t soliton-test -f "$sources/runtime/packaging/Dockerfile" "$sources" > docker.log 2>&1 || fail "$(tail -5 docker.log)"
  docker run --rm soliton-test --version | grep -q '^soliton-server ' || fail "the image: expected soliton-server in it"
  docker image rm soliton-test > /dev/null
fi
rm -r "$prefix/lib/soliton/kernels"
expect "an answer by a new kernel" ", a small girl" "$("$prefix/bin/soliton-chat" "$model" -p "Once upon a time" -n 4 2> chat.log)"
grep -q "^Making the kernel" chat.log || fail "expected a kernel to be made: $(cat chat.log)"
for page in "$prefix"/share/man/man1/*.1; do
  if command -v man > /dev/null; then LC_ALL=C.UTF-8 man --warnings -l "$page" 2>&1 > /dev/null | grep . && fail "$page"; fi
done
if command -v systemd-analyze > /dev/null; then
  mkdir unit
  sed "s|^ExecStart=soliton-server|ExecStart=$prefix/bin/soliton-server|" "$prefix/lib/systemd/system/soliton-server.service" > unit/soliton-server.service
  systemd-analyze verify unit/soliton-server.service > unit.log 2>&1 || fail "$(cat unit.log)"
  grep -F soliton-server.service unit.log && fail "the unit: see above"
fi

# The package, in a system of its own, which has no more than dpkg's lists.
command -v dpkg-deb > /dev/null || exit 0
cpack --config "$build/CPackConfig.cmake" -B package > package.log 2>&1 || fail "$(tail -5 package.log)"
package=$(echo package/*.deb)
mkdir -p system/var/lib/dpkg/{info,updates}
touch system/var/lib/dpkg/{status,available}
dpkg_there() { dpkg --root="$folder/system" --force-not-root --force-depends --force-script-chrootless --log=dpkg.log "$@" > dpkg.out 2>&1 || fail "$(cat dpkg.out)"; }
dpkg_there --install "$package"
expect "an answer by the package" ", a small girl" "$(LD_LIBRARY_PATH= system/usr/bin/soliton-chat "$model" -p "Once upon a time" -n 4 2> chat.log)"
dpkg_there --purge soliton
left=$(find system/usr system/etc -type f 2> /dev/null || true)
expect "files left by the package" "" "$left"
