#!/usr/bin/env bash
# Installs missing Debian packages from tools/packages.txt. Called by ./demo and ./check.
#
#   tools/setup.sh          install missing packages (as root, or with sudo); does not run apt if there are none
#   tools/setup.sh --list   only list missing packages
#
# On other systems it lists what to install by hand. RONDO_SKIP_SETUP=1 skips it once that is done.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/common.sh

mapfile -t packages < <(sed -e 's/#.*//' -e 's/[[:space:]]//g' -e '/^$/d' tools/packages.txt)

by_hand() {
  {
    say "error: $1"
    say "Rondo installs its dependencies automatically only on Debian 12 and its derivatives. On other systems,"
    say "install the equivalents of these Debian packages by hand:"
    printf '    %s\n' "${packages[@]}"
    say "If libtorch is in a non-standard location:  export CMAKE_PREFIX_PATH=/path/to/libtorch"
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
    command -v sudo >/dev/null || fail "installing packages needs root, and sudo is not available. As root, run:
    apt-get update && apt-get install -y --no-install-recommends $*"
    prefix=(sudo)
    say "Installing packages needs root: sudo may ask for your password."
  fi
  prefix+=(env DEBIAN_FRONTEND=noninteractive)
  "${prefix[@]}" apt-get update -q || fail "apt-get update failed (see above): check the network and the package sources"
  "${prefix[@]}" apt-get install -y -q --no-install-recommends "$@" ||
    fail "apt-get could not install the packages (see above). tools/packages.txt uses the names of Debian 12 (bookworm)."
}

check_blas() {
  local library
  library=$(ldconfig -p 2>/dev/null || /sbin/ldconfig -p 2>/dev/null || true)
  library=$(awk '$1 == "libblas.so.3" {print $NF; exit}' <<<"$library")
  [[ -n $library ]] || return 0
  library=$(readlink -f "$library")
  [[ $library == *openblas* ]] && return 0
  say "warning: libblas.so.3 is $library, not OpenBLAS: everything will be many times slower." >&2
  say "         Fix it with:  sudo update-alternatives --config libblas.so.3-$(uname -m)-linux-gnu" >&2
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
    say "Skipping packages (RONDO_SKIP_SETUP is set)."
    return 0
  fi
  command -v dpkg-query >/dev/null && command -v apt-get >/dev/null || by_hand "this system has no apt."
  debian_like || by_hand "this system is neither Debian nor derived from it."

  local missing
  mapfile -t missing < <(missing_packages)
  if ((${#missing[@]} == 0)); then
    say "All ${#packages[@]} packages in tools/packages.txt are installed."
  elif ((only_list)); then
    printf '%s\n' "${missing[@]}"
    return 0
  else
    say "Installing ${#missing[@]} of ${#packages[@]} packages with apt: ${missing[*]}"
    install "${missing[@]}"
  fi
  check_blas
}

main "$@"
