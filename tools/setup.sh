#!/usr/bin/env bash
# Installs the Debian packages of tools/packages.txt that are missing. Called by ./demo and ./check.
#
#   tools/setup.sh          install what is missing (as root, or through sudo); with nothing missing apt is not touched
#   tools/setup.sh --list   only say what is missing
#
# On other systems it names what to install by hand. RONDO_SKIP_SETUP=1 skips it, once you have done so.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/common.sh

mapfile -t packages < <(sed -e 's/#.*//' -e 's/[[:space:]]//g' -e '/^$/d' tools/packages.txt)

by_hand() {
  {
    say "error: $1"
    say "Rondo installs its tools by itself on Debian 12 and its relatives only. Elsewhere install by hand"
    say "the equivalents of these Debian packages:"
    printf '    %s\n' "${packages[@]}"
    say "A libtorch that lies elsewhere is found with  export CMAKE_PREFIX_PATH=/path/to/libtorch"
    say "Then run again with RONDO_SKIP_SETUP=1 in the environment."
  } >&2
  exit 1
}

missing_packages() {
  local package
  for package in "${packages[@]}"; do
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || echo "$package"
  done
}

debian_like() {
  local ids
  ids=$(. /etc/os-release 2>/dev/null && echo "${ID:-} ${ID_LIKE:-}") || return 1
  [[ " $ids " == *" debian "* || " $ids " == *" ubuntu "* ]]
}

install() {
  local prefix=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || fail "installing needs root, and there is no sudo here. As root, run:
    apt-get update && apt-get install -y --no-install-recommends $*"
    prefix=(sudo)
    say "Installing needs root: sudo may ask for your password."
  fi
  prefix+=(env DEBIAN_FRONTEND=noninteractive)
  "${prefix[@]}" apt-get update -q || fail "apt-get update failed (see above): is there a network, and are the sources right?"
  "${prefix[@]}" apt-get install -y -q --no-install-recommends "$@" ||
    fail "apt-get could not install the packages (see above). The names in tools/packages.txt are those of Debian 12 (bookworm)."
}

check_blas() {
  local library
  library=$(ldconfig -p 2>/dev/null || /sbin/ldconfig -p 2>/dev/null || true)
  library=$(awk '$1 == "libblas.so.3" {print $NF; exit}' <<<"$library")
  [[ -n $library ]] || return 0
  library=$(readlink -f "$library")
  [[ $library == *openblas* ]] && return 0
  say "warning: libblas.so.3 is $library, not OpenBLAS: everything will be many times slower." >&2
  say "         Mend it with:  sudo update-alternatives --config libblas.so.3-$(uname -m)-linux-gnu" >&2
}

main() {
  local only_list=0
  case ${1:-} in
    '') ;;
    --list) only_list=1 ;;
    -h | --help) print_header "$0" && exit 0 ;;
    *) fail "unknown option '$1' (see tools/setup.sh --help)" ;;
  esac
  if [[ -n ${RONDO_SKIP_SETUP:-} ]]; then
    say "Packages are not looked at (RONDO_SKIP_SETUP is set)."
    return 0
  fi
  command -v dpkg-query >/dev/null && command -v apt-get >/dev/null || by_hand "this system has no apt."
  debian_like || by_hand "this system is neither Debian nor derived from it."

  local missing
  mapfile -t missing < <(missing_packages)
  if ((${#missing[@]} == 0)); then
    say "All ${#packages[@]} packages of tools/packages.txt are here: nothing to install."
  elif ((only_list)); then
    printf '%s\n' "${missing[@]}"
    return 0
  else
    say "Installing ${#missing[@]} of ${#packages[@]} packages with apt (the rest is here): ${missing[*]}"
    install "${missing[@]}"
  fi
  check_blas
}

main "$@"
