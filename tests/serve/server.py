"""A server under test: tiny models made once, the built program started on a free port, requests by plain sockets."""

import http.client
import json
import os
import pathlib
import random
import signal
import socket
import struct
import subprocess
import tempfile
import time
import zlib

LANGUAGE = """
[model]
kind = "language-model"
width = 32
hidden = 64
heads = 2
head_width = 16
dropout = 0.0
[model.depth]
{depth}
[model.time]
{time}
[data]
train = "{data}/text"
valid = "{data}/text"
test = "{data}/text"
[train]
steps = {steps}
batch = 2
"""

RECURRENT = """kind = "block-recurrent"
window = 16
segment = 64
states = 8
recurrent_layers = [2]"""

TRANSLATION = """
[model]
kind = "encoder-decoder"
source_vocabulary = 260
target_vocabulary = 260
padding = 256
width = 32
hidden = 64
heads = 2
dropout = 0.0
[model.depth]
scheme = "ring"
levels = 2
[data]
train = "{data}/pairs"
valid = "{data}/pairs"
test = "{data}/pairs"
tokenizer = "bytes"
batch_tokens = 512
[train]
steps = 30
batch = 32
[schedule]
kind = "cosine"
rate = 0.01
warmup = 5
"""

IMAGES = """
[model]
kind = "vision"
image = 16
patch = 4
classes = 2
width = 16
hidden = 32
heads = 2
dropout = 0.0
positions = "learned"
[model.depth]
levels = 2
[data]
train = "{data}/pictures"
test = "{data}/pictures"
[augment]
crop = "none"
[train]
steps = 5
batch = 4
"""


def png(width, height, seed=0):
    """An RGB picture of random blocks, as the bytes of a PNG file."""
    draw = random.Random(seed)
    rows = []
    for y in range(height):
        row = bytearray([0])
        for x in range(width):
            row += bytes((draw.randrange(256) if (x // 4 + y // 4) % 2 else 40, (7 * x) % 256, (5 * y) % 256))
        rows.append(bytes(row))

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"".join(rows))) + chunk(b"IEND", b"")


class Models:
    """Tiny trained models in a temporary folder."""

    def __init__(self, binary, folder):
        self.binary = binary
        self.folder = pathlib.Path(folder)

    def _train(self, name, config):
        run = self.folder / name
        path = self.folder / f"{name}.toml"
        path.write_text(config)
        subprocess.run([self.binary, "train", path, "-o", run], check=True, capture_output=True)
        return str(run)

    def language(self, name="novel", steps=2, depth="levels = 3", time=RECURRENT):
        text = self.folder / "text"
        text.mkdir(exist_ok=True)
        draw = random.Random(1)
        words = "the old house on the hill was quiet and full of small things that nobody had seen for years".split()
        for i in range(3):
            (text / f"{i}.txt").write_text(" ".join(draw.choice(words) for _ in range(4000)))
        return self._train(name, LANGUAGE.format(data=self.folder, steps=steps, depth=depth, time=time))

    def translation(self, name="letters"):
        """Each letter becomes the next one."""
        draw = random.Random(2)
        lines = ["".join(draw.choice("abcdefgh") for _ in range(draw.randint(2, 7))) for _ in range(300)]
        (self.folder / "pairs.de").write_text("\n".join(lines) + "\n")
        (self.folder / "pairs.en").write_text("\n".join("".join(chr(ord(c) + 1) for c in line) for line in lines) + "\n")
        return self._train(name, TRANSLATION.format(data=self.folder))

    def images(self, name="pictures-net"):
        for number, label in enumerate(("dark", "light")):
            folder = self.folder / "pictures" / label
            folder.mkdir(parents=True, exist_ok=True)
            for i in range(4):
                (folder / f"{i}.png").write_bytes(png(16 + number * 8, 16, seed=i))
        return self._train(name, IMAGES.format(data=self.folder))


class Server:
    """`rondo serve` as a child process."""

    def __init__(self, binary, runs, *options, listen="127.0.0.1:0", limit=None, wait=True):
        self.log = tempfile.NamedTemporaryFile("w+", suffix=".log")
        command = [binary, "serve", *runs, "--listen", listen, *map(str, options)]
        if limit:
            command = ["bash", "-c", limit + ' && exec "$0" "$@"', *command]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.host, self.port = listen.partition("unix:")[2], None
        if wait:
            self.wait_ready()

    @classmethod
    def started(cls, process, path):
        """One that was started otherwise and listens on a Unix socket."""
        server = object.__new__(cls)
        server.process, server.host, server.port = process, path, None
        return server

    @staticmethod
    def refused(binary, runs, *options):
        """The result of a command line that must not start a server."""
        return subprocess.run([binary, "serve", *runs, *map(str, options), "--listen", "127.0.0.1:0"], capture_output=True, text=True, timeout=60)

    def wait_ready(self):
        """Until all models are loaded."""
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            raise RuntimeError("the server did not start: " + self.errors())
        if not self.address.startswith("unix:"):
            self.host, port = self.address[len("http://"):].rsplit(":", 1)
            self.port = int(port)

    def errors(self):
        self.log.seek(0)
        return self.log.read()

    def connect(self, timeout=30.0, source=None):
        if self.port is None:
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(timeout)
            s.connect(self.host)
            return s
        s = socket.create_connection((self.host, self.port), timeout, source_address=source and (source, 0))
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s

    def call(self, method, path, body=None, headers=None, timeout=120.0):
        """One request on a connection of its own → (status, header fields, body)."""
        connection = http.client.HTTPConnection("localhost", self.port, timeout=timeout)
        connection.sock = self.connect(timeout)
        headers = dict(headers or {})
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        if isinstance(body, str):
            body = body.encode()
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()
        finally:
            connection.close()

    def json(self, method, path, body=None, expect=200, headers=None):
        status, _, text = self.call(method, path, body, headers)
        assert status == expect, f"{method} {path}: expected {expect}, got {status}: {text[:400]!r}"
        return json.loads(text)

    def complete(self, expect=200, **fields):
        return self.json("POST", "/v1/completions", fields, expect)

    def stream(self, path="/v1/completions", **fields):
        """The events of a streamed completion, parsed; checks that every frame is UTF-8 and JSON."""
        status, headers, text = self.call("POST", path, dict(fields, stream=True))
        assert status == 200, (status, text[:300])
        assert headers["Content-Type"].startswith("text/event-stream"), headers
        frames = text.decode("utf-8").split("\n\n")
        assert frames[-1] == "" and frames[-2] == "data: [DONE]", frames[-3:]
        return [json.loads(frame[len("data: "):]) for frame in frames[:-2]]

    def metric(self, name):
        _, _, text = self.call("GET", "/metrics")
        for line in text.decode().splitlines():
            if line.split(" ")[0] == name:
                return float(line.split(" ")[1])
        return 0.0

    def rss(self):
        with open(f"/proc/{self.process.pid}/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def alive(self):
        return self.process.poll() is None and self.call("GET", "/health")[0] == 200

    def wait_idle(self, seconds=20.0, pause=0.02):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self.metric("rondo_running") == 0 and self.metric("rondo_queued") == 0:
                return True
            time.sleep(pause)
        return False

    def stop(self, sig=signal.SIGTERM, timeout=60):
        """Ends it → exit code."""
        if self.process.poll() is None:
            self.process.send_signal(sig)
        code = self.process.wait(timeout)
        self.process.stdout.close()
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
