#!/usr/bin/env python3
"""The cost of training on several machines: a model of the time per step, and measurements to check it.

  tools/scale.py table                  days for each paper's full recipe on 1 to 256 nodes (docs/scale.md)
  tools/scale.py measure                training between network namespaces with shaped links, against the model; needs root
                                        and iproute2; --task, --processes and --gigabits choose from what it measures
  tools/scale.py efficiency             two processes with one thread each against one process with two threads, taking turns;
                                        --task, --turns
  --binary PATH                         another binary than build/release/rondo

The model: step(N) = 6 · multiply-adds · rows / (N · rate) + wait(N), where 6 = 2 operations, forward once and backward twice.
A sum takes 2 (N - 1) / N · bytes / bandwidth + 2 (N - 1) · latency: each number passes every link of a ring twice. Translation
sends the head's gradients when the forward pass ends (which computes them), those of the decoder and the target embedding after
the decoder's backward pass, the others at the end; it waits for what is not sent by then. Other networks send all at the end.
Standard library only.
"""

import argparse
import itertools
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile

# Recipe, model, rows per step, steps, tokens per row (0: the model's default).
RECIPES = [("ringformer-translation", "ringformer/mt-base", 512, 210000, 28),
           ("ringformer-image-1k", "ringformer/image-base", 4096, 15650, 0),
           ("block-recurrent-bytes", "brt/rec-fixed-skip", 32, 500000, 0),
           ("sret", "sret/t", 512, 750684, 0)]
# Parts of `rondo info` whose gradients translation sends early (EncoderDecoder::gradient_stages).
STAGES = [["head"], ["decoder", "target_embedding"]]
NODES = [1, 2, 4, 16, 64, 256]
GIGABITS = [1, 10, 100]

TASKS = {"lm-mini": """
[model]
kind = "language-model"
width = 256
hidden = 1024
heads = 4
head_width = 64
dropout = 0.0
[model.depth]
levels = 4
[model.time]
kind = "block-recurrent"
window = 32
segment = 256
states = 32
recurrent_layers = [3]
[data]
train = "DATA/text"
[train]
batch = 4
""", "lm": """
[model]
kind = "language-model"
width = 512
hidden = 2048
heads = 8
head_width = 64
dropout = 0.0
[model.depth]
levels = 4
[model.time]
kind = "block-recurrent"
window = 128
segment = 256
states = 64
recurrent_layers = [3]
[data]
train = "DATA/text"
[train]
batch = 4
""", "ring": """
[model]
base = "ringformer/mt-base"
source_vocabulary = 8000
target_vocabulary = 8000
padding = 256
dropout = 0.0
[data]
train = "DATA/pairs"
tokenizer = "bytes"
batch_tokens = 1024
[train]
batch = 64
"""}
TRAINING = """
steps = STEPS
log_every = LOG
eval_every = 0
save_every = 1000000
probe_every = 0
[schedule]
kind = "constant"
rate = 0.0001
"""


def sum_seconds(nodes, size, gigabits, latency):
    return 2 * (nodes - 1) / nodes * size * 8 / (gigabits * 1e9) + 2 * (nodes - 1) * latency


def parts_of(found, names):
    return [part for part in found["parts"] if part["name"].split(".")[0] in names]


def step_seconds(found, compute, sum_of):
    """A step that computes for `compute` seconds, and how long of it the process waits for sums; sum_of: bytes → seconds."""
    total = lambda key, parts: sum(part[key] for part in parts)
    stages = [parts_of(found, names) for names in STAGES] if parts_of(found, ["decoder"]) else []
    backward = lambda name: 4 / 6 * compute * total("macs", parts_of(found, [name])) / found["macs"]
    ready = [compute - backward("encoder") - backward("decoder"), compute - backward("encoder")]
    sent = 0
    for parts, when in zip(stages, ready):
        sent = max(sent, when) + sum_of(4 * total("parameters", parts))
    rest = found["parameters"] - sum(total("parameters", parts) for parts in stages)
    end = max(sent, compute) + sum_of(4 * rest)
    return end, end - compute


def info(options, model, tokens=0):
    more = ["--tokens", str(tokens)] if tokens else []
    return json.loads(subprocess.run([options.binary, "info", str(model), "--json", *more], check=True, stdout=subprocess.PIPE).stdout)


def table(options):
    print(f"Days of a full recipe; a node computes {options.rate / 1e12:g} TFLOP/s in training, latency {options.latency * 1e6:g} µs.\n")
    print("| recipe | MB to sum | Gbit/s | " + " | ".join(f"{n} nodes" if n > 1 else "1 node" for n in NODES) + " |")
    print("|---|---|---|" + "---|" * len(NODES))
    for recipe, model, rows, steps, tokens in RECIPES:
        found = info(options, model, tokens)
        size = 4 * found["parameters"]
        for gigabits in GIGABITS:
            cells = []
            for nodes in NODES:
                if nodes > rows:
                    cells.append("—")
                    continue
                step, waits = step_seconds(found, 6 * found["macs"] * rows / (nodes * options.rate),
                                           lambda n: sum_seconds(nodes, n, gigabits, options.latency))
                cells.append(f"{step * steps / 86400:.1f} ({waits / step:.0%})")
            print(f"| {recipe} | {size / 1e6:.0f} | {gigabits} | " + " | ".join(cells) + " |")
    print("\nIn parentheses: the share of waiting for the sum of gradients. —: fewer rows than nodes.")


class Workplace:
    """Data, recipes and runs for the measurements."""

    def __init__(self, options, steps, log):
        self.options = options
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rondo-scale-"))
        (self.folder / "text").mkdir()
        text = (pathlib.Path(__file__).resolve().parent.parent / "ARCHITECTURE.md").read_text()
        for i in range(16):
            (self.folder / "text" / f"{i}.txt").write_text(text[i * 500:] + text)
        words = text.split()
        for side in "de", "en":
            (self.folder / f"pairs.{side}").write_text("".join(" ".join(words[i:i + 3 + i % 6]) + "\n" for i in range(2000)))
        for name, recipe in TASKS.items():
            end = TRAINING.replace("STEPS", str(steps)).replace("LOG", str(log))
            (self.folder / f"{name}.toml").write_text(recipe.replace("DATA", str(self.folder)).rstrip("\n") + end)

    def words(self, task, run, *more):
        return [self.options.binary, "train", str(self.folder / f"{task}.toml"), "-o", str(self.folder / run), "--cache",
                str(self.folder / "cache"), *more]

    def metrics(self, run):
        """The logged training lines without the first, which includes start-up."""
        lines = [json.loads(line) for line in (self.folder / run / "metrics.jsonl").read_text().splitlines()]
        return [line for line in lines if "rate" in line][1:]


def efficiency(options):
    place = Workplace(options, 13, 6)
    print("| model | rows or pairs a second, one process of two threads | two processes of one thread | ratio | sum: MB, ms, share |")
    print("|---|---|---|---|---|")
    for task in options.task or ["lm-mini", "ring"]:
        whole, parts, shares, seconds = [], [], [], []
        unit = "sentences" if task == "ring" else "tokens"
        for turn in range(options.turns):
            alone = ["--set", "train.threads=2"] + ["--set", "train.accumulate=2" if task == "ring" else "train.batch=8"]
            for name, more, speeds in (f"{task}-one-{turn}", alone, whole), (
                    f"{task}-two-{turn}", ["--workers", "2", "--set", "train.threads=1"], parts):
                subprocess.run(place.words(task, name, *more), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                line = place.metrics(name)[-1]
                speeds.append(line[unit + "_per_second"])
                if "reduce_share" in line:
                    before = place.metrics(name)[-2]
                    shares.append(line["reduce_share"])
                    seconds.append((line["seconds"] - before["seconds"]) / (line["step"] - before["step"]))
        run = json.loads((place.folder / f"{task}-two-0" / "run.json").read_text())
        ratio = [b / a for a, b in zip(whole, parts)]
        share = statistics.median(shares)
        print(f"| {task} | {statistics.median(whole):.0f} {unit} | {statistics.median(parts):.0f} | {statistics.median(ratio):.2f} "
              f"({min(ratio):.2f} to {max(ratio):.2f}) | {4 * run['parameters'] / 1e6:.0f} MB, "
              f"{1000 * share * statistics.median(seconds):.0f} ms, {share:.1%} |", flush=True)
    shutil.rmtree(place.folder)


def ip(*words):
    subprocess.run(["ip", *words], check=True)


class ShapedNetwork:
    """One network namespace per process, joined by a bridge, each link limited to `gigabits` Gbit/s."""

    def __init__(self, size, gigabits):
        self.names = [f"rondo{os.getpid() % 10000}n{i}" for i in range(size)]
        self.bridge = f"rb{os.getpid() % 10000}"
        ip("link", "add", self.bridge, "type", "bridge")
        ip("link", "set", self.bridge, "up")
        for i, name in enumerate(self.names):
            ip("netns", "add", name)
            ip("link", "add", f"{self.bridge}v{i}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", f"{self.bridge}v{i}", "master", self.bridge, "up")
            ip("-n", name, "addr", "add", f"10.99.0.{i + 1}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
            for where, device in (["-n", name], "eth0"), ([], f"{self.bridge}v{i}"):
                subprocess.run(["tc", *where, "qdisc", "add", "dev", device, "root", "tbf", "rate", f"{gigabits}gbit", "burst",
                                "512kb", "latency", "50ms"], check=True)

    def close(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False)
        subprocess.run(["ip", "link", "del", self.bridge], check=False)


def measure(options):
    place = Workplace(options, 8, 1)
    secret = place.folder / "secret"
    secret.write_text("only for this measurement")
    secret.chmod(0o600)
    print("| model | processes | Gbit/s | MB | a step | of it waiting for sums | by the model |")
    print("|---|---|---|---|---|---|---|")
    for task, size, gigabits in itertools.product(options.task or ["lm", "ring"], options.processes, options.gigabits):
        network = ShapedNetwork(size, gigabits)
        try:
            run = f"{task}-{size}-{gigabits}"
            children = []
            for rank in range(size):
                words = place.words(task, run, "--group-secret-file", str(secret), "--set", "train.threads=1", "--set",
                                    f"train.batch={1 if task == 'lm' else options.rows}")
                environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_WORLD_SIZE": "1",
                               "MASTER_ADDR": "10.99.0.1", "MASTER_PORT": "29400"}
                children.append(subprocess.Popen(["ip", "netns", "exec", network.names[rank], *words], env=environment,
                                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            if any([child.wait() != 0 for child in children]):
                raise SystemExit("a process failed")
        finally:
            network.close()
        lines = place.metrics(run)
        steps = [b["seconds"] - a["seconds"] for a, b in zip(lines, lines[1:])]
        waits = [b["reduce_share"] * step for b, step in zip(lines[1:], steps)]
        compute = statistics.median(step - wait for step, wait in zip(steps, waits))
        found = info(options, place.folder / f"{task}.toml")
        model = step_seconds(found, compute, lambda n: sum_seconds(size, n, gigabits, options.latency))[1]
        print(f"| {task} | {size} | {gigabits:g} | {4 * found['parameters'] / 1e6:.0f} | {statistics.median(steps):.2f} s | "
              f"{statistics.median(waits):.2f} s | {model:.2f} s |", flush=True)
    shutil.rmtree(place.folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["table", "measure", "efficiency"])
    parser.add_argument("--binary", default="build/release/rondo")
    parser.add_argument("--rate", type=float, default=1e12, help="operations per second of a node in training")
    parser.add_argument("--latency", type=float, default=50e-6, help="seconds")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--task", action="append", choices=TASKS)
    parser.add_argument("--processes", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--rows", type=int, default=64, help="measure: sentence pairs per batch, at most")
    parser.add_argument("--gigabits", type=float, nargs="+", default=[1, 0.25])
    options = parser.parse_args()
    options.binary = str(pathlib.Path(options.binary).resolve())
    {"table": table, "measure": measure, "efficiency": efficiency}[options.what](options)


if __name__ == "__main__":
    main()
