#!/usr/bin/env python3
"""Checks that the peers are the networks they are compared with: passes the weights of each to `rondo forward` and
compares the outputs.

  agree.py RONDO [PEER ...]    RONDO: the program; PEER: a name of PEERS below (default: all)

Prints one line per peer. Exit code 1 if an output differs by more than 1e-4 of its largest value, 77 (with a message) if
python3-torch is not installed.
"""

import math
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "examples"))
from tensors import read, values  # noqa: E402

PEERS = {  # small sizes: this checks results, not speed
    "lm": ["lm.py", "--width", "64", "--hidden", "96", "--heads", "4", "--levels", "3", "--vocabulary", "50",
           "--rows", "2", "--tokens", "160"],
    "translation": ["translation.py", "--width", "64", "--hidden", "96", "--heads", "4", "--levels", "3",
                    "--vocabulary", "50", "--rows", "3", "--tokens", "9"],
    "translation-merged": ["translation.py", "--signals", "merged", "--width", "64", "--hidden", "96", "--heads", "4",
                           "--levels", "3", "--vocabulary", "50", "--rows", "3", "--tokens", "9"],
    "image": ["image.py", "--widths", "16,32,64", "--classes", "7", "--rows", "1"],
}
PEERS["translation-ctranslate2"] = ["translation_ctranslate2.py", *PEERS["translation"][1:]]
for engine in ("onnxruntime", "openvino"):  # full size: OpenVINO 2026.4 is off by 1e-2 at small sizes
    PEERS["image-" + engine] = ["image_runtime.py", "--engine", engine, "--classes", "7", "--rows", "1"]


def difference(rondo, words):
    """Largest difference of the logits, relative to the largest logit."""
    with tempfile.TemporaryDirectory() as folder:
        path = {name: os.path.join(folder, name + ".safetensors") for name in ("weights", "inputs", "theirs", "ours")}
        answer = subprocess.run([sys.executable, os.path.join(HERE, words[0]), *words[1:], "--agree", folder],
                                stdout=subprocess.PIPE, check=True, text=True).stdout
        if "not installed" in answer:
            print(answer.strip())
            sys.exit(77)
        subprocess.run([rondo, "forward", os.path.join(folder, "model.toml"), "--weights", path["weights"],
                        "--input", path["inputs"], "--output", path["ours"]], check=True)
        if "log_probabilities" in read(path["theirs"]):
            return probability_difference(read(path["theirs"]), read(path["ours"]))
        theirs, ours = (values(read(path[name])["logits"]) for name in ("theirs", "ours"))
        return max(abs(a - b) for a, b in zip(theirs, ours, strict=True)) / max(abs(a) for a in theirs)


def probability_difference(theirs, ours):
    """The same for log p of given tokens, for peers that return nothing else."""
    logits, labels, wanted = values(ours["logits"]), values(theirs["labels"]), values(theirs["log_probabilities"])
    size = ours["logits"][1][-1]
    largest = 0.0
    for i, label in enumerate(labels):
        row = logits[i * size:(i + 1) * size]
        top = max(row)
        mine = row[label] - top - math.log(sum(math.exp(x - top) for x in row))
        largest = max(largest, abs(mine - wanted[i]))
    return largest / max(abs(x) for x in wanted)


def main(arguments):
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0
    wrong = 0
    for name in arguments[1:] or PEERS:
        apart = difference(arguments[0], PEERS[name])
        wrong += not apart <= 1e-4
        print(f"{name:<25} largest difference {apart:.1e} of the largest logit")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
