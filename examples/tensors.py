#!/usr/bin/env python3
"""Creates and shows small safetensors files, using only the Python standard library.

  tensors.py text TEXT > FILE          the bytes of TEXT as `tokens` [1, N]: input of a byte-level language model
  tensors.py image SIDE > FILE         a smooth image as `images` [1, 3, SIDE, SIDE]
  tensors.py below PREFIX FILE > FILE  the tensors whose names start with PREFIX, without the prefix
  tensors.py show FILE                 names, types, shapes and first values
  tensors.py compare FILE FILE NAME    the largest difference between the two tensors NAME

A file is the length of its header (8 bytes), the header (JSON: type, shape, offsets of every tensor) and the data.
"""

import json
import signal
import struct
import sys

CODES = {"F64": "d", "F32": "f", "I64": "q", "I32": "i", "U8": "B", "BOOL": "?"}


def read(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    body = data[8 + size :]
    return {name: (t["dtype"], t["shape"], body[slice(*t["data_offsets"])]) for name, t in header.items()}


def write(tensors):
    header, body = {}, b""
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    sys.stdout.buffer.write(struct.pack("<Q", len(text)) + text + body)


def values(tensor):
    dtype, _, data = tensor
    code = CODES[dtype]
    return struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}", data)


def show(path):
    tensors = read(path)
    width = max(len(name) for name in tensors)
    for name, tensor in sorted(tensors.items()):
        numbers = values(tensor) if tensor[0] in CODES else ()
        first = ", ".join(f"{v:.4f}" if isinstance(v, float) else str(v) for v in numbers[:4])
        print(f"{name:<{width}}  {tensor[0]:<4}  {str(tensor[1]):<18}  {first}{', ...' if len(numbers) > 4 else ''}")


def main(arguments):
    verb = arguments[0] if arguments else "help"
    if verb == "text":
        data = arguments[1].encode()
        write({"tokens": ("I64", [1, len(data)], struct.pack(f"<{len(data)}q", *data))})
    elif verb == "image":
        side = int(arguments[1])
        plane = [(x + (c + 1) * y) / (4 * side) for c in range(3) for y in range(side) for x in range(side)]
        write({"images": ("F32", [1, 3, side, side], struct.pack(f"<{len(plane)}f", *plane))})
    elif verb == "below":
        prefix, path = arguments[1:]
        write({name[len(prefix) :]: t for name, t in read(path).items() if name.startswith(prefix)})
    elif verb == "show":
        show(arguments[1])
    elif verb == "compare":
        one, two = (values(read(path)[arguments[3]]) for path in arguments[1:3])
        print(f"{arguments[3]}: largest difference {max(abs(a - b) for a, b in zip(one, two, strict=True)):.1e}")
    else:
        print(__doc__)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # exit silently in `show FILE | head`
    main(sys.argv[1:])
