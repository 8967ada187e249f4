#!/usr/bin/env bash
# Lint: format, include directions and sizes, clang-tidy. Exit code 1 if anything is found.
#
#   tools/lint.sh          clang-tidy over the torch-free sources (a file with torch takes about 20 s)
#   tools/lint.sh --full   clang-tidy over all sources
#   tools/lint.sh --fix    only apply clang-format to all sources
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/common.sh

# sources: every C++ file that git tracks or does not ignore. Without git: every one outside build.
sources() {
  if git rev-parse --git-dir >/dev/null 2>&1; then
    git ls-files --cached --others --exclude-standard -- '*.h' '*.cpp' | while IFS= read -r file; do
      if [[ -f $file ]]; then echo "$file"; fi
    done
  else
    find . -path ./build -prune -o \( -name '*.h' -o -name '*.cpp' \) -print | sed 's|^\./||'
  fi | sort -u
}

# run_tidy FILE...: clang-tidy, one process per core.
run_tidy() {
  local log=build/tidy.log
  tools/build.sh --configure-only tidy || return 1
  if printf '%s\0' "$@" | xargs -0 -n 1 -P "$(nproc)" clang-tidy -p build/tidy --quiet >"$log" 2>build/tidy-errors.log; then
    return 0
  fi
  grep -E '(warning|error): ' "$log" | sort -u >build/tidy-findings.log || true
  sed "s|^$PWD/||" build/tidy-findings.log
  if [[ ! -s build/tidy-findings.log ]]; then tail -n 20 build/tidy-errors.log; fi
  return 1
}

full=0
case ${1:-} in
  '') ;;
  --full) full=1 ;;
  --fix)
    sources | xargs -r -d '\n' clang-format -i
    exit 0
    ;;
  -h | --help) print_header "$0" && exit 0 ;;
  *) fail "unknown option '$1' (see tools/lint.sh --help)" ;;
esac

status=0
mapfile -t files < <(sources)
say "clang-format: ${#files[@]} files"
if ((${#files[@]} > 0)); then
  clang-format --dry-run -Werror "${files[@]}" || {
    status=1
    say "  fix the format with tools/lint.sh --fix"
  }
fi

say "tools/check_includes.py: include directions, torch-free parts, opening comments, sizes"
python3 tools/check_includes.py --self-test || status=1
python3 tools/check_includes.py || status=1

shopt -s nullglob
if ((full)); then
  tidy_files=(cli/*.cpp cli/engine/*.cpp bench/*.cpp bench/cases/*.cpp examples/*.cpp $(find rondo -name '*.cpp' | sort))
else
  tidy_files=(cli/*.cpp)
  while read -r folder _; do tidy_files+=("rondo/$folder"/*.cpp); done < <(grep -E ' base$' rondo/folders.txt)
fi
say "clang-tidy: ${#tidy_files[@]} files"
if ((${#tidy_files[@]} > 0)); then run_tidy "${tidy_files[@]}" || status=1; fi

if ((status == 0)); then say "lint: nothing found"; else say "lint: see above"; fi
exit $status
