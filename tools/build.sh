#!/usr/bin/env bash
# Configures and builds one preset quietly; on failure shows the end of the output.
#
#   tools/build.sh PRESET [TARGET...]           for example: tools/build.sh release rondo rondo_engine
#   tools/build.sh --configure-only PRESET
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/common.sh

configure_only=0
if [[ ${1:-} == --configure-only ]]; then
  configure_only=1
  shift
fi
case ${1:-} in
  -h | --help) print_header "$0" && exit 0 ;;
  '') fail "no preset given (see tools/build.sh --help)" ;;
esac

preset=$1
shift
log=build/$preset.log
mkdir -p build

# show_failure WHAT: prints the messages of the compiler or cmake without the progress lines.
show_failure() {
  { grep -vE '^\[[0-9]+/[0-9]+\] (Building|Linking)|^-- ' "$log" || true; } | tail -n 60 >&2
  fail "$1 of preset '$preset' failed; the full output is in $log"
}

# progress: on a terminal, one line updated in place; otherwise nothing.
progress() {
  if [[ ! -t 1 ]]; then
    cat >/dev/null
  else
    awk '/^\[[0-9]+\/[0-9]+\]/ { printf "\r\033[K%s", substr($0, 1, 78); fflush() } END { printf "\r\033[K" }'
  fi
}

cmake --preset "$preset" >"$log" 2>&1 || show_failure configuration
if ((configure_only)); then exit 0; fi

build=(cmake --build --preset "$preset" --parallel "$(jobs)")
if (($# > 0)); then build+=(--target "$@"); fi
"${build[@]}" 2>&1 | tee -a "$log" | progress || show_failure build

warnings=$(grep -c ' warning: ' "$log" || true)
if ((warnings > 0)); then
  grep ' warning: ' "$log" | sort -u | head -n 10 || true
  say "$warnings compiler warnings (all in $log)"
fi
