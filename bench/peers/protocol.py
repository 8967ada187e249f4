"""What every peer shares: command line, threads, and the conversation with `rondo bench`.

A peer is plain PyTorch as Debian packages it (python3-torch 1.13), written the way its manual would have it, with the
same shapes, parameters, threads and optimizer as the network it is compared with. It builds the network, prints

    ready {"parameters": ..., "torch": ...}

and then answers lines: "go N" by the seconds of N executions, "memory" by the most bytes it ever held. It leaves at the
end of its input. Try one by hand:  echo 'go 1' | bench/peers/lm.py --what forward
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
                        help="processor: time spent on all threads, divided by their number")
    parser.add_argument("--agree", metavar="FOLDER", help="instead: write weights, inputs and answers there (agree.py)")
    for name, default in sizes.items():
        parser.add_argument("--" + name.replace("_", "-"), type=type(default), default=default)
    return parser.parse_args()


def load_torch(options):
    """torch with as many threads as asked; a line instead of a traceback where there is none."""
    # oneDNN 2.7, Debian 12's, executes AMX instructions without having configured the tiles, and dies of it. Without
    # them bf16 is slower than this CPU could be, but it is what python3-torch can do.
    os.environ.setdefault("DNNL_MAX_CPU_ISA", "AVX512_CORE_BF16")
    try:
        import torch
    except ImportError:
        leave("python3-torch is not installed")
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    return torch


def write_safetensors(path, tensors):
    """Tensors of torch or arrays of numpy."""
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
    """Moves every parameter a little, also those that begin as zero or one: all of them must count."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)


def agree(folder, toml, weights, inputs, logits):
    """Leaves what another program needs to compute the same, and what came out here."""
    with open(os.path.join(folder, "model.toml"), "w") as file:
        file.write(toml)
    write_safetensors(os.path.join(folder, "weights.safetensors"), weights)
    write_safetensors(os.path.join(folder, "inputs.safetensors"), inputs)
    write_safetensors(os.path.join(folder, "theirs.safetensors"), {"logits": logits})
    sys.exit(0)


def peak_bytes():
    """The most memory this process ever had (getrusage begins with that of the process which started it)."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))


def leave(why):
    """Without a network: `why` is what the report says."""
    print(why, flush=True)
    sys.exit(0)


def serve(torch, module, work, options):
    """Says ready, then works when told."""
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
    """The usual mixed precision of PyTorch on a CPU, or none."""
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=options.precision == "bf16")


def training_step(torch, module, loss, options, **settings):
    """Forward, backward, AdamW: what a training loop does."""
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4, **settings)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with autocast(torch, options):
            value = loss()
        value.backward()
        optimizer.step()

    return step
