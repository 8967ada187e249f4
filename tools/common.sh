# Shared by demo, check and the tools: messages, timed phases, number of jobs. Source it, do not run it.
# shellcheck shell=bash

if [[ -t 1 && -z ${NO_COLOR:-} ]]; then bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'; else bold='' dim='' plain=''; fi

# say TEXT: prints a line.
say() { printf '%s\n' "$*"; }

# fail TEXT: prints an error and exits with 1.
fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# phase NAME TEXT: announces a phase and starts its timer.
phase() {
  phase_name=$1
  phase_start=$SECONDS
  printf '\n%s== %s%s  %s\n' "$bold" "$phase_name" "$plain" "${2:-}"
}

# phase_end [TEXT]: prints how long the phase took.
phase_end() {
  local took=$((SECONDS - phase_start))
  printf '%s-- %s: %s%d min %02d s%s\n' "$dim" "$phase_name" "${1:+$1, }" $((took / 60)) $((took % 60)) "$plain"
}

# jobs: parallel compile jobs: one per core, but no more than memory allows (a unity batch with torch takes about 1.5 GB).
jobs() {
  local cores memory
  cores=$(nproc 2>/dev/null || echo 2)
  memory=$(awk '/^MemAvailable:/ {print int($2 / 1572864)}' /proc/meminfo 2>/dev/null || echo "$cores")
  ((memory >= 1)) || memory=1
  echo $((cores < memory ? cores : memory))
}

# print_header FILE: prints the comment at the top of a script, as its help.
print_header() { awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$1"; }
