"""What ends by itself: waiting in the queue, long requests, unused states; images that are too large."""

import json
import struct
import threading
import time
import zlib

from faults import send_completion
from server import Server


def in_background(work):
    results = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    return thread, results


def until_metric(server, name, value, seconds=20):
    until = time.monotonic() + seconds
    while server.metric(name) < value and time.monotonic() < until:
        time.sleep(0.005)
    assert server.metric(name) >= value, name


def queue_wait(t):
    """a request that waits longer than --queue-seconds gets 503, one that computes longer than --request-seconds too"""
    with Server(t.binary, [t.run("language")], "--running", 1, "--queue-seconds", 1, "--request-seconds", 3, "--max-tokens", 10 ** 8) as server:
        thread, results = in_background(lambda: server.call("POST", "/v1/completions", {"prompt": "a", "max_tokens": 10 ** 8, "stop": ["\u2603"]}))
        began = time.monotonic()
        until_metric(server, "rondo_running", 1)
        asked = time.monotonic()
        status, headers, text = server.call("POST", "/v1/completions", {"prompt": "a", "max_tokens": 1})
        waited = time.monotonic() - asked
        assert status == 503 and int(headers["Retry-After"]) >= 1 and "queue" in json.loads(text)["error"]["message"], (status, text)
        t.figure("waiting in the queue with --queue-seconds 1", "503 after 1 s", f"{status} after {waited:.2f} s", 0.9 <= waited < 2, timed=waited >= 0.9)
        thread.join()
        took = time.monotonic() - began
        status, _, text = results[0]
        assert status == 503 and "too long" in json.loads(text)["error"]["message"], (status, text[:300])
        t.figure("computing with --request-seconds 3", "503 after 3 s", f"{status} after {took:.2f} s", 2.8 <= took < 5, timed=took >= 2.8)
        assert server.complete(prompt="a", max_tokens=3)["usage"]["completion_tokens"] == 3


def state_ttl(t):
    """--state-ttl: unused states leave, used ones stay"""
    with Server(t.binary, [t.run("language")], "--state-ttl", 2, "--state-folder", t.folder / "short-lived") as server:
        for name in ("used", "unused"):
            server.complete(prompt="the", max_tokens=3, save_state=name)
        began = time.monotonic()
        while time.monotonic() - began < 2.5:
            server.complete(state="used", max_tokens=1)
            time.sleep(0.1)
        names = {s["name"] for s in server.json("GET", "/states")["states"]}
        gone = server.call("GET", "/states/unused")[0]
        t.figure("states 2.5 s later with --state-ttl 2", "the used one stays, the unused one is gone", f"{', '.join(sorted(names))} left, GET unused {gone}",
                 names == {"used"} and gone == 404)
        assert server.stop() == 0
        assert [p.name for p in (t.folder / "short-lived").glob("*.state")] == ["used.state"]


def flat_png(width, height):
    """A gray picture of one color, small as a file."""

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    packer = zlib.compressobj(1)
    row = b"\0" + b"\x80" * width
    data = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def megapixels(t):
    """50 megapixels are classified; more, or a side above 16,384, are refused before they are decoded"""
    with Server(t.binary, [t.run("images")]) as server:
        before = server.rss()
        for width, height in ((10000, 5001), (16385, 8), (2 ** 31 - 1, 2 ** 31 - 1)):
            began = time.monotonic()
            claim = bytearray(flat_png(4, 4))
            claim[16:24] = struct.pack(">II", width, height)
            claim[29:33] = struct.pack(">I", zlib.crc32(bytes(claim[12:29])))
            status, _, text = server.call("POST", "/classify", bytes(claim))
            message = json.loads(text)["error"]["message"]
            assert status == 400 and ("per side" in message or width > 16385), (status, message)
            grown = (server.rss() - before) / 2**20
            t.figure(f"image of {width:,} × {height:,}", "400, nothing of its size allocated", f"{status} after {1e3 * (time.monotonic() - began):.0f} ms, {grown:+.1f} MiB",
                     grown < 20)
        largest = flat_png(10000, 5000)
        began = time.monotonic()
        status, _, text = server.call("POST", "/classify", largest)
        assert status == 200, text
        t.figure("image of 10,000 × 5,000 (50 megapixels)", "classified", f"{status} after {time.monotonic() - began:.1f} s", True)


def loading(t):
    """while models are loading: /health and requests get 503, the page is served"""
    models = [f"m{i}={t.run('language')}" for i in range(t.count(20, 100))]
    path = str(t.folder / "loading.sock")
    seen = {}
    with Server(t.binary, models, listen="unix:" + path, wait=False) as server:
        until = time.monotonic() + 60
        while time.monotonic() < until and 200 not in seen.get("/health", ()):
            for url in ("/health", "/v1/models", "/"):
                try:
                    seen.setdefault(url, set()).add(server.call("GET", url)[0])
                except OSError:
                    time.sleep(0.002)  # it does not listen yet
        server.wait_ready()
        assert server.json("GET", "/v1/models")["data"][-1]["id"] == f"m{len(models) - 1}"
    t.figure("/health, /v1/models, / until loaded", "503 then 200; 503 then 200; 200",
             "; ".join(" then ".join(map(str, sorted(seen[url], reverse=True))) for url in ("/health", "/v1/models", "/")),
             seen["/health"] == {503, 200} and seen["/"] == {200} and 503 in seen["/v1/models"])


def disconnected_while_queued(t):
    """a client that leaves the queue makes room in it at once"""
    with Server(t.binary, [t.run("language")], "--running", 1, "--queue", 1) as server, server.connect() as first:
        send_completion(first, prompt="a", max_tokens=65536, stream=True)
        first.recv(100)
        with server.connect() as second:
            send_completion(second, prompt="a", max_tokens=5)
            until_metric(server, "rondo_queued", 1)
            assert server.call("POST", "/v1/completions", {"prompt": "a", "max_tokens": 1})[0] == 429
        until = time.monotonic() + 10
        while server.metric("rondo_queued") > 0 and time.monotonic() < until:
            time.sleep(0.002)
        assert server.metric("rondo_queued") == 0


TRIALS = {"queue_wait": queue_wait, "state_ttl": state_ttl, "megapixels": megapixels, "loading": loading, "disconnected_while_queued": disconnected_while_queued}
