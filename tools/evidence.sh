#!/usr/bin/env bash
# Trains the tables behind docs/results.md and records their scores in records/, one after another.
#
#   tools/evidence.sh DATA RUNS [NAME...]     NAME: a folder of records/, as below; default: all, in this order
#
# DATA holds mt/multi30k, lm/books, lm/code and images/tiny-imagenet/tiny-imagenet-25.tar.gz; Fashion-MNIST is Debian's package.
# Run folders go to RUNS, two at a time with one thread each and the lowest priority. The same command continues; runs that records/
# already has are not trained again, so that another machine can take over (rows that start from another row's weights need that run
# itself). Precision is bf16 everywhere: the fastest products of CPUs that have them, for all rows alike.
# Environment: RONDO (build/release/rondo), a copy of the program that does not change meanwhile.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$root/tools/common.sh"
(($# >= 2)) || { print_header "$0" && exit 2; }
data=$(realpath "$1") runs=$(realpath -m "$2")
names=("${@:3}")
rondo=${RONDO:-$root/build/release/rondo}
failed=()

wanted() { ((${#names[@]} == 0)) || [[ " ${names[*]} " == *" $1 "* ]]; }

# evidence NAME TABLE SEEDS STEPS [ARGUMENT...]
evidence() {
  local name=$1 table=$2 seeds=$3 steps=$4 record=$root/records/$1 status=0
  wanted "$name" || return 0
  say "$name: $table, $seeds seeds, $steps steps"
  [[ -e $runs/$name || ! -e $record ]] || cp -r "$record" "$runs/$name"
  nice -n 19 "$rondo" table run "$table" --mini --seeds "$seeds" --jobs 2 -o "$runs/$name" --data multi30k="$data/mt/multi30k" \
    --data books="$data/lm/books" --data code="$data/lm/code" --data tiny-imagenet-25="$runs/tiny-imagenet-25" \
    "${@:5}" --set train.steps="$steps" --set train.precision=bf16 || status=$?
  if ((status == 0 || status > 128)) && [[ -n $(find "$runs/$name" -name test.json -print -quit) ]]; then
    "$rondo" table record "$runs/$name" -o "$record"
    grep -rlF -e "$data/" -e "$runs/" "$record" | xargs -r sed -i "s|$data/||g; s|$runs/||g"  # paths of this machine
  fi
  ((status < 128)) || exit "$status"  # stopped by a signal
  ((status == 0)) || failed+=("$name")
}

mkdir -p "$runs"
[[ -d $runs/tiny-imagenet-25 ]] || tar -xzf "$data/images/tiny-imagenet/tiny-imagenet-25.tar.gz" -C "$runs"

rows() { printf -- '--rows %s ' "$@"; }

# RingFormer, Table 1 (and Figure 2), Table 2 (and Figure 3), Table 4: six levels in translation, as in the paper.
evidence ringformer-table1 ringformer/table1 3 4000 $(rows vanilla one-wide universal ring) --set model.depth.levels=6
evidence ringformer-table2 ringformer/table2 3 2500
evidence ringformer-table4 ringformer/table4 3 3000 --set model.depth.levels=6

# Block-Recurrent Transformer, Table 1: bytes with windows of 32 and of 128, and code.
evidence block-recurrent-bytes block-recurrent/table1 3 2000 --columns bytes $(rows slide-13l rec-fixed-skip feedback-fixed-skip)
evidence block-recurrent-bytes-128 block-recurrent/table1 3 3000 --columns bytes $(rows slide-13l rec-fixed-skip feedback-fixed-skip) \
  --set model.time.window=128 --set model.time.states=128 --set model.time.segment=512 --set train.batch=4
evidence block-recurrent-code block-recurrent/table1 3 2000 --columns github $(rows slide-13l rec-fixed-skip)

# Block-Recurrent Transformer, Sections 3.3 to 3.6 and 4.5.
evidence block-recurrent-windows block-recurrent/windows 2 1500
evidence block-recurrent-states block-recurrent/states 2 1500
evidence block-recurrent-cells block-recurrent/table1 2 1500 --columns bytes \
  $(rows slide-13l rec-lstm-dual rec-lstm-single rec-lstm-skip rec-fixed-dual rec-fixed-single rec-fixed-skip)
evidence block-recurrent-gates block-recurrent/gates 2 1500
evidence block-recurrent-cell block-recurrent/cell 2 1500

# SReT: recursion, depth, components, slices.
evidence sret-table1 sret/table1 3 2500
evidence sret-section5.2 sret/section5.2 3 2500
evidence sret-table12 sret/table12 3 2500
evidence sret-table3 sret/table3 2 2500
evidence sret-table11 sret/table11 2 2500
evidence sret-table5 sret/table5 3 2500
evidence sret-figure10 sret/figure10 3 2500
evidence sret-figure7 sret/figure7 3 2500
evidence sret-nmt sret/nmt 3 2000

# What none of the papers has.
evidence rondo-depth-time rondo/depth-time 3 2000

((${#failed[@]} == 0)) || fail "not complete: ${failed[*]}"
