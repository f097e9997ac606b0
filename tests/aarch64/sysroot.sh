#!/usr/bin/env bash
# tests/aarch64/sysroot.sh FOLDER: fetches what the programs are built with, for aarch64, into FOLDER, through apt-get but
# beside the system's own packages: those know nothing of a second architecture afterwards. Done once. With status 77
# and a reason if it cannot be had.
set -euo pipefail
folder=$(realpath -m "${1:?usage: tests/aarch64/sysroot.sh FOLDER}")
packages=(libc6-dev libstdc++6 libyaml-cpp-dev libcli11-dev libfmt-dev nlohmann-json3-dev libboost-context-dev libpcre2-dev
          libutf8proc-dev libedit-dev libcurl4-openssl-dev libssl-dev)

[ "$(cat "$folder/packages.txt" 2>/dev/null)" = "${packages[*]}" ] && exit 0
rm -rf "$folder"
mkdir -p "$folder/apt/lists/partial" "$folder/apt/archives/partial"
: > "$folder/apt/status"
apt=(apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Install-Recommends=false
     -o APT::Sandbox::User= -o Acquire::Retries=2 -o Debug::NoLocking=1
     -o Dir::State::lists="$folder/apt/lists" -o Dir::State::status="$folder/apt/status"
     -o Dir::Cache="$folder/apt" -o Dir::Cache::archives="$folder/apt/archives")
if ! { "${apt[@]}" update && "${apt[@]}" install --yes --download-only "${packages[@]}"; } > "$folder/apt.log" 2>&1; then
  echo "the packages of arm64 cannot be had: $(tail -1 "$folder/apt.log")"
  exit 77
fi
for package in "$folder"/apt/archives/*.deb; do dpkg-deb --extract "$package" "$folder"; done
# What points to the root of a system would leave this one.
find "$folder" -type l -lname '/*' | while read -r link; do ln -sfn "$folder$(readlink "$link")" "$link"; done
rm -rf "$folder/apt"
echo "${packages[*]}" > "$folder/packages.txt"
