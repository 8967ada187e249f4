"""Shared by all peers: command line, threads, and the protocol of `rondo bench`.

A peer is plain PyTorch as Debian packages it (python3-torch 1.13), written idiomatically, with the same shapes,
parameters, threads and optimizer as the network it is compared with. It builds the network, prints

    ready {"parameters": ..., "torch": ...}

and then answers requests: "go N" with the seconds for N executions, "memory" with its peak resident bytes. It exits at the
end of its input. To try one by hand:  echo 'go 1' | bench/peers/lm.py --what forward
"""

import argparse
import json
import os
import struct
import sys
import time


def arguments(description, **sizes):
    """The command line: --threads, --precision, --what and one option per entry of `sizes`, with its default."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--clock", choices=["wall", "processor"], default="wall",
                        help="processor: CPU time of all threads divided by their number")
    parser.add_argument("--agree", metavar="FOLDER", help="only write weights, inputs and outputs there (for agree.py)")
    for name, default in sizes.items():
        parser.add_argument("--" + name.replace("_", "-"), type=type(default), default=default)
    return parser.parse_args()


def load_torch(options):
    """Imports torch and sets its threads; exits with a one-line message if it is not installed."""
    # oneDNN 2.7 in Debian 12 executes AMX instructions without configuring the tiles, and crashes. Without them bf16 is
    # slower than this CPU allows, but it is the best python3-torch can do.
    os.environ.setdefault("DNNL_MAX_CPU_ISA", "AVX512_CORE_BF16")
    try:
        import torch
    except ImportError:
        leave("python3-torch is not installed")
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    return torch


def write_safetensors(path, tensors):
    """Accepts torch tensors or numpy arrays."""
    header, body = {}, b""
    for name, tensor in tensors.items():
        data = (tensor.detach().contiguous().numpy() if hasattr(tensor, "detach") else tensor).tobytes()
        kind = {"float32": "F32", "int64": "I64"}[str(tensor.dtype).replace("torch.", "")]
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)


def shake(torch, module):
    """Perturbs every parameter, including those initialized to zero or one, so that all affect the output."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)


def agree(folder, toml, weights, inputs, logits):
    """Writes everything another program needs to reproduce the output, and the output."""
    with open(os.path.join(folder, "model.toml"), "w") as file:
        file.write(toml)
    write_safetensors(os.path.join(folder, "weights.safetensors"), weights)
    write_safetensors(os.path.join(folder, "inputs.safetensors"), inputs)
    write_safetensors(os.path.join(folder, "theirs.safetensors"), {"logits": logits})
    sys.exit(0)


def peak_bytes():
    """Peak memory of this process (getrusage would inherit that of the parent process)."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))


def leave(why):
    """Exits without a network; `why` appears in the report."""
    print(why, flush=True)
    sys.exit(0)


def serve(torch, module, work, options):
    """Prints ready, then works on request."""
    facts = {
        "parameters": sum(p.numel() for p in module.parameters()),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "precision": options.precision,
    }
    answer(facts, work, options)


def answer(facts, work, options):
    clock = time.perf_counter if options.clock == "wall" else lambda: time.process_time() / options.threads
    print("ready " + json.dumps(facts), flush=True)
    for line in sys.stdin:
        words = line.split()
        if words and words[0] == "go":
            started = clock()
            for _ in range(int(words[1])):
                work()
            print(clock() - started, flush=True)
        elif words == ["memory"]:
            print(peak_bytes(), flush=True)


def autocast(torch, options):
    """PyTorch's standard mixed precision on CPUs, or none."""
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=options.precision == "bf16")


def training_step(torch, module, loss, options, **settings):
    """One iteration of a training loop: forward, backward, AdamW."""
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4, **settings)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with autocast(torch, options):
            value = loss()
        value.backward()
        optimizer.step()

    return step
