#!/usr/bin/env bash
# Counts the instructions of small kernels with valgrind and compares them with tests/instructions/counts.txt: unlike
# times, counts do not depend on the machine's load. Exit code 1 if a kernel takes over 5 % more.
#
#   tools/instructions.sh            compare (needs build/release/kernel_instructions)
#   tools/instructions.sh --update   write the measured counts to counts.txt, after a change that justifies them
#
# valgrind emulates a CPU with AVX2, whatever else the real one supports. Without AVX2, or with another g++ than the one
# the counts were made with, nothing is compared.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/common.sh

counts=tests/instructions/counts.txt
program=build/release/kernel_instructions
compiler=$(g++ -dumpversion)

# count KERNEL: instructions per call.
count() {
  local log
  log=$(OMP_NUM_THREADS=1 valgrind --tool=callgrind --toggle-collect=counted_call --callgrind-out-file=/dev/null \
    "$program" "$1" 2>&1) || fail "valgrind $program $1 failed: $log"
  sed -nE 's/^==[0-9]+== Collected : ([0-9]+).*/\1/p' <<<"$log"
}

update=0
case ${1:-} in
  '') ;;
  --update) update=1 ;;
  -h | --help) print_header "$0" && exit 0 ;;
  *) fail "unknown option '$1' (see tools/instructions.sh --help)" ;;
esac

command -v valgrind >/dev/null || fail "valgrind is missing (tools/packages.txt)"
[[ -x $program ]] || fail "$program is missing: run tools/build.sh release"
if ! grep -qw avx2 /proc/cpuinfo; then
  say "this CPU has no AVX2: not compared"
  exit 0
fi

if ((update)); then
  {
    say "# Instructions of one call of tests/instructions/kernels.cpp, by tools/instructions.sh --update."
    say "g++ $compiler"
    for kernel in $("$program"); do say "$kernel $(count "$kernel")"; done
  } >"$counts.new"
  mv "$counts.new" "$counts"
  cat "$counts"
  exit 0
fi

if [[ $(sed -n 's/^g++ //p' "$counts") != "$compiler" ]]; then
  say "the counts were made with $(grep '^g++' "$counts"), this is g++ $compiler: not compared"
  exit 0
fi
status=0
for kernel in $("$program"); do
  before=$(sed -n "s/^$kernel //p" "$counts")
  now=$(count "$kernel")
  [[ $before =~ ^[0-9]+$ && $now =~ ^[1-9][0-9]*$ ]] || fail "$kernel: no count (before '$before', now '$now')"
  change=$(awk -v a="$before" -v b="$now" 'BEGIN { printf "%+.1f", 100 * (b / a - 1) }')
  say "  $kernel: $now instructions ($change %)"
  if ((now * 100 > before * 105)); then
    say "  over 5 % more than before ($before); if the change justifies it: tools/instructions.sh --update"
    status=1
  elif ((now * 100 < before * 95)); then
    say "  over 5 % fewer than before ($before): record it with tools/instructions.sh --update"
  fi
done
exit $status
