#!/usr/bin/env python3
"""Compares how networks represent and attend, on the runs of RingFormer's Tables 1 and 2 (its Figures 2 and 3).

  tools/evidence_studies.py RUNS [NAME...]     RUNS: the folder that tools/evidence.sh trains into; NAME: cka, distance (default: both)

For every seed: `rondo study cka` of Vanilla's run with those of the others and with Vanilla's run of the next seed, the yardstick;
likewise `rondo study attention-distance`. Writes the means over seeds, with 95 % intervals (Student's t), to the notes of the records,
between <!-- NAME --> and <!-- /NAME -->, and the pages of seed 1 to docs/reports. Environment: RONDO (build/release/rondo).
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RONDO = os.environ.get("RONDO", str(ROOT / "build/release/rondo"))
# 97.5 % quantiles of Student's t by degrees of freedom.
T = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776}


def study(kind, runs, page):
    """The numbers of one study; the page as well, if there is a path for it."""
    command = [RONDO, "study", kind, *map(str, runs), "--json", *(["-o", str(page)] if page else [])]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def interval(values):
    mean = statistics.mean(values)
    if len(values) < 2:
        return f"{mean:.3f}"
    return f"{mean:.3f} ± {T[len(values) - 1] * statistics.stdev(values) / len(values) ** 0.5:.3f}"


def seeds_of(column, rows):
    return sorted(set.intersection(*({int(p.parent.name[4:]) for p in (column / row).glob("seed*/test.json")} for row in rows)))


def runs_of(column, rows, seed, seeds):
    """Runs of all rows with one seed, then the first row's run with the next."""
    other = seeds[(seeds.index(seed) + 1) % len(seeds)]
    return [column / row / f"seed{seed}" for row in rows] + [column / rows[0] / f"seed{other}"]


def cka(column, page):
    rows = {"vanilla": "", "ring": "RingFormer", "one-wide": "One Wide FFN", "universal": "Universal"}
    seeds = seeds_of(column, rows)
    means = {label: {} for label in [*list(rows.values())[1:], "Vanilla, another seed"]}
    for seed in seeds:
        found = study("cka", runs_of(column, rows, seed, seeds), page if seed == seeds[0] else None)
        for label, pair in zip(means, found["pairs"]):
            for group in pair["groups"]:
                means[label].setdefault(group["name"], []).append(group["diagonal_mean"])
    lines = [f"CKA with Vanilla, mean of the diagonal over levels, {found['items']} sentence pairs, {len(seeds)} seeds "
             f"([page of seed {seeds[0]}](reports/{page.name})):", "", "| | encoder | decoder |", "|---|---:|---:|"]
    return lines + [f"| {label} | {interval(by['encoder'])} | {interval(by['decoder'])} |" for label, by in means.items()]


def distance(column, page):
    rows = {"vit": "ViT", "ring-s": "RingFormer (s)", "owf": "One Wide FFN", "uit-s": "UiT (s)"}
    seeds = seeds_of(column, rows)
    labels = [*rows.values(), "ViT, another seed"]
    first, last, spread, apart = ({label: [] for label in labels} for _ in range(4))
    for seed in seeds:
        found = study("attention-distance", runs_of(column, rows, seed, seeds), page if seed == seeds[0] else None)["runs"]
        heads = {label: [sorted(level["distance"]) for level in run["levels"]] for label, run in zip(labels, found)}
        for label, levels in heads.items():
            first[label].append(statistics.mean(levels[0]))
            last[label].append(statistics.mean(levels[-1]))
            spread[label].append(statistics.mean(level[-1] - level[0] for level in levels))
            apart[label].append(statistics.mean(abs(a - b) for x, y in zip(levels, heads["ViT"]) for a, b in zip(x, y)))
    lines = [f"Attention distance in pixels, {found[0]['items']} images, {len(seeds)} seeds ([page of seed {seeds[0]}](reports/{page.name})). "
             "Apart from ViT: the difference of the heads' distances, sorted within each level, mean over heads and levels:", "",
             "| | first level | last level | from the nearest to the farthest head of a level | apart from ViT |", "|---|---:|---:|---:|---:|"]
    return lines + [f"| {label} | {interval(first[label])} | {interval(last[label])} | {interval(spread[label])} | "
                    f"{interval(apart[label]) if label != 'ViT' else '–'} |" for label in labels]


def write_notes(path, name, lines):
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    before, _, rest = text.partition(begin)
    after = rest.partition(end)[2]
    block = "\n".join([begin, *lines, "", end])
    path.write_text((before.rstrip() + "\n\n" if before.strip() else "") + block + (after if after.strip() else "\n"), encoding="utf-8")


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 0 if len(sys.argv) > 1 else 2
    runs, names = pathlib.Path(sys.argv[1]), sys.argv[2:] or ["cka", "distance"]
    reports = ROOT / "docs/reports"
    reports.mkdir(exist_ok=True)
    for name, table, column, function in (("cka", "ringformer-table1", "wmt14", cka), ("distance", "ringformer-table2", "imagenet-small", distance)):
        if name in names:
            lines = function(runs / table / column, reports / f"{table}-{name}.html")
            write_notes(ROOT / "records" / table / "notes.md", name, lines)
            print("\n".join(lines), end="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
