#!/usr/bin/env bash
# install_packages.sh [PACKAGE...]: installs what the build needs and is not there yet, and these if it can, by apt, as root
# or by sudo; asks nothing. Debian 12, Ubuntu 24.04 and newer. Where nothing is missing it needs neither root nor a network.
# Fails only if something stays missing.
set -euo pipefail

# A program that is found counts as installed, whatever its origin.
programs=(g++:g++ cmake:cmake ninja:ninja-build pkg-config:pkg-config)
libraries=(
  libdnnl-dev          # oneDNN: matrix products
  libhwy-dev           # Highway: SIMD
  libtomlplusplus-dev  # run.toml
  libcli11-dev         # the command line
  nlohmann-json3-dev   # checkpoints, tokenizers, metrics
  libspdlog-dev        # log lines
  libfmt-dev           # formatting
  libpcre2-dev         # the patterns of tokenizers
  libonig-dev          # their patterns in full
  libutf8proc-dev      # Unicode normalization
  libxxhash-dev        # checksums
  libgtest-dev         # tests
)
# Each gives a transport, reads a kind of compressed text, tells languages apart, or serves HTTP; the build does without what the system does not
# have.
optional=(libopenmpi-dev openmpi-bin libmpich-dev mpich zlib1g-dev libzstd-dev libcpp-httplib-dev libcld2-dev "$@")

missing=() wanted=()
for pair in "${programs[@]}"; do
  command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
done
if ! command -v dpkg-query >/dev/null; then
  echo "This system has no dpkg, so its packages are not checked. The build needs: g++ cmake ninja pkg-config, and the" \
       "libraries that Debian calls ${libraries[*]}"
  exit 0
fi
for package in "${libraries[@]}"; do
  status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
  [[ $status == "install ok installed" ]] || missing+=("$package")
done
for package in "${optional[@]}"; do
  status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
  [[ $status == "install ok installed" ]] || wanted+=("$package")
done
if ((${#missing[@]} + ${#wanted[@]} == 0)); then
  echo "packages: all there"
  exit 0
fi

as_root=()
if ((EUID != 0)); then
  # -n: a script must not wait for a password; on a terminal sudo may ask.
  if command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
    as_root=(sudo)
  elif ((${#missing[@]} == 0)); then
    echo "packages: all there that must be; the build does without ${wanted[*]}"
    exit 0
  else
    echo "error: missing: ${missing[*]}; there is neither root nor sudo here; let someone who may run:" \
         "apt-get install ${missing[*]}" >&2
    exit 1
  fi
fi
echo "packages: installing ${missing[*]} ${wanted[*]}"
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
"${apt[@]}" update >/dev/null || echo "apt-get update failed; trying with the lists that are there" >&2
for package in "${wanted[@]}"; do
  "${apt[@]}" install -y --no-install-recommends "$package" >/dev/null 2>&1 ||
    echo "packages: $package could not be installed; the build does without it" >&2
done
if ((${#missing[@]} > 0)) && ! log=$("${apt[@]}" install -y --no-install-recommends "${missing[@]}" 2>&1); then
  tail -n 20 <<<"$log" >&2
  echo "error: apt-get could not install ${missing[*]}; what it said is above" >&2
  exit 1
fi
echo "packages: installed"
