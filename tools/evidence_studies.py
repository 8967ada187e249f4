#!/usr/bin/env python3
"""Compares how networks represent and attend, on the runs of RingFormer's Tables 1 and 2 (its Figures 2 and 3).

  tools/evidence_studies.py RUNS [NAME...]     RUNS: the folder that tools/evidence.sh trains into; NAME: cka, distance (default: both)

For every seed whose runs are in RUNS: `rondo study` of Vanilla's run, those of the others, and Vanilla's run of the seed before, the
yardstick; the numbers go to records/TABLE/NAME-seedN.json, the page of seed 1 to docs/reports. Then the means over all seeds of the
record, with 95 % intervals (Student's t), go to its notes.md, between <!-- NAME --> and <!-- /NAME -->.
Environment: RONDO (build/release/rondo).
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RONDO = os.environ.get("RONDO", str(ROOT / "build/release/rondo"))
COLUMN = {"cka": "wmt14", "distance": "imagenet-small"}
YARDSTICK = "the same, another seed"
# 97.5 % quantiles of Student's t by degrees of freedom.
T = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776}


def studied(kind, name, runs, record, rows):
    """The numbers of all seeds: labels of the runs, and what the study printed of them."""
    column = runs / record.name / COLUMN[name]
    for seed in (1, 2, 3):
        models = {label: f"{row}/seed{seed}" for row, label in rows.items()}
        models[YARDSTICK] = f"{next(iter(rows))}/seed{seed - 1}"
        models = {label: run for label, run in models.items() if all((column / run / f).exists() for f in ("test.json", "best.safetensors"))}
        if len(models.keys() - {YARDSTICK}) == len(rows):
            page = [] if seed > 1 else ["-o", str(ROOT / "docs/reports" / f"{record.name}-{name}.html")]
            command = [RONDO, "study", kind, *models.values(), "--json", *page]
            found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=column).stdout)
            numbers = {"labels": list(models), "found": found}
            (record / f"{name}-seed{seed}.json").write_text(json.dumps(numbers) + "\n", encoding="utf-8")
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(record.glob(f"{name}-seed*.json"))]


def interval(values):
    mean = statistics.mean(values)
    if len(values) < 2:
        return f"{mean:.3f}"
    return f"{mean:.3f} ± {T[len(values) - 1] * statistics.stdev(values) / len(values) ** 0.5:.3f}"


def cka(seeds, page):
    means = {}
    for seed in seeds:
        for label, pair in zip(seed["labels"][1:], seed["found"]["pairs"]):
            for group in pair["groups"]:
                means.setdefault(label, {}).setdefault(group["name"], []).append(group["diagonal_mean"])
    first = seeds[0]
    lines = [f"CKA with {first['labels'][0]}, mean of the diagonal over levels, {first['found']['pairs'][0]['items']} sentence pairs, "
             f"{len(seeds)} seeds ([page of seed 1]({page})):", "", "| | encoder | decoder |", "|---|---:|---:|"]
    return lines + [f"| {label} | {interval(by['encoder'])} | {interval(by['decoder'])} |" for label, by in means.items()]


def distance(seeds, page):
    columns = {}
    for seed in seeds:
        heads = {label: [sorted(level["distance"]) for level in run["levels"]] for label, run in zip(seed["labels"], seed["found"]["runs"])}
        vit = heads[seed["labels"][0]]
        for label, levels in heads.items():
            apart = statistics.mean(abs(a - b) for x, y in zip(levels, vit) for a, b in zip(x, y))
            spread = statistics.mean(level[-1] - level[0] for level in levels)
            columns.setdefault(label, []).append((statistics.mean(levels[0]), statistics.mean(levels[-1]), spread, apart))
    lines = [f"Attention distance in pixels, {seeds[0]['found']['runs'][0]['items']} images, {len(seeds)} seeds ([page of seed 1]({page})). Apart from "
             "ViT: the difference of the heads' distances, sorted within each level, mean over heads and levels:", "",
             "| | first level | last level | from the nearest to the farthest head of a level | apart from ViT |", "|---|---:|---:|---:|---:|"]
    return lines + [f"| {label} | " + " | ".join(interval(values) for values in zip(*rows)) + " |" for label, rows in columns.items()]


def write_notes(path, name, lines):
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    before, _, rest = text.partition(begin)
    after = rest.partition(end)[2]
    block = "\n".join([begin, *lines, "", end])
    path.write_text((before.rstrip() + "\n\n" if before.strip() else "") + block + (after if after.strip() else "\n"), encoding="utf-8")


STUDIES = {
    "cka": ("cka", "ringformer-table1",
            {"vanilla": "Vanilla", "ring": "RingFormer", "one-wide": "One Wide FFN", "universal": "Universal"}, cka),
    "distance": ("attention-distance", "ringformer-table2",
                 {"vit": "ViT", "ring-s": "RingFormer (s)", "owf": "One Wide FFN", "uit-s": "UiT (s)"}, distance)}


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 0 if len(sys.argv) > 1 else 2
    runs, names = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:] or ["cka", "distance"]
    reports = ROOT / "docs/reports"
    reports.mkdir(exist_ok=True)
    for name, (kind, table, rows, summary) in STUDIES.items():
        record = ROOT / "records" / table
        if name not in names or not record.is_dir():
            continue
        seeds = studied(kind, name, runs, record, rows)
        if seeds:
            lines = summary(seeds, f"reports/{table}-{name}.html")
            write_notes(record / "notes.md", name, lines)
            print("\n".join(lines), end="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
