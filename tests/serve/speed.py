"""Speed, as ratios of things measured side by side. Use a release build on a quiet machine; --run gives a trained model."""

import json
import pathlib
import statistics
import subprocess
import time

from load import Streams
from server import Server


def first_token_times(server, number, prompt, **fields):
    """Seconds to the first event of a stream, sorted."""
    times = []
    for i in range(number):
        with server.connect() as s:
            body = json.dumps({"stream": True, "prompt": prompt, "max_tokens": 2, "seed": i, **fields}).encode()
            request = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            began = time.monotonic()
            s.sendall(request)
            data = b""
            while b"data: {" not in data:
                data += s.recv(4096)
            times.append(time.monotonic() - began)
    return sorted(times)


def p99(times):
    return times[int(0.99 * (len(times) - 1))]


def many_clients(t):
    """16 streaming clients against one, and against 16 rows of a Session without HTTP (target: 3 ×, 80 %)"""
    run = t.given_run or t.run("language")
    baseline = pathlib.Path(t.binary).parent / "serve_baseline"
    rounds = t.count(1, 5)
    rates = {"one": [], "sixteen": [], "session": []}
    busy = {"clients": [], "server": []}  # cores that 16 clients and their server keep busy
    with Server(t.binary, [run], "--connections-per-address", 128) as server:
        for _ in range(rounds):
            for name, clients in (("one", 1), ("sixteen", 16)):
                streams = Streams(server, clients, prompt="The old house", max_tokens=20000, temperature=0.8)
                streams.run(0.5)
                before, began = server.metric("rondo_completion_tokens_total"), time.monotonic()
                used = time.process_time(), server.cpu_seconds()
                streams.run(4)
                seconds = time.monotonic() - began
                if name == "sixteen":
                    busy["clients"].append((time.process_time() - used[0]) / seconds)
                    busy["server"].append((server.cpu_seconds() - used[1]) / seconds)
                rates[name].append((server.metric("rondo_completion_tokens_total") - before) / seconds)
                streams.close()
                server.wait_idle()
            if baseline.exists():
                out = subprocess.run([baseline, run, "16", "4"], check=True, capture_output=True, text=True).stdout
                rates["session"].append(float(out.split()[0]))
    medians = {name: statistics.median(values) for name, values in rates.items() if values}
    ratio = medians["sixteen"] / medians["one"]
    t.target("tokens/s of 16 streaming clients against one", "3 ×", f"{medians['sixteen']:,.0f} and {medians['one']:,.0f}, {ratio:.2f} ×", ratio >= 3)
    if "session" in medians:
        ratio = medians["sixteen"] / medians["session"]
        t.target("against 16 rows of a Session without HTTP", "0.80", f"{medians['sixteen']:,.0f} and {medians['session']:,.0f}, {ratio:.2f}", ratio >= 0.8)
    clients, serving = statistics.median(busy["clients"]), statistics.median(busy["server"])
    t.target("cores kept busy by 16 clients and by their server", "reported", f"{clients:.2f} and {serving:.2f}", True)


def first_token(t):
    """first token of a 100-byte prompt while 15 others stream (target: p99 at most 3 × alone)"""
    run = t.given_run or t.run("language")
    prompt = ("It was a quiet evening and nobody had come to the old house on the hill since the snow had gone away. " * 2)[:100]
    number = t.count(20, 200)
    with Server(t.binary, [run], "--connections-per-address", 128) as server:
        first_token_times(server, 5, prompt)
        alone = first_token_times(server, number, prompt)
        streams = Streams(server, 15, prompt="The", max_tokens=60000)
        streams.run(0.5)
        import threading
        stop = threading.Event()
        reader = threading.Thread(target=lambda: [streams.poll(again=True, pause=0.01) for _ in iter(stop.is_set, True)])
        reader.start()
        beside = first_token_times(server, number, prompt)
        stop.set()
        reader.join()
        streams.close()
    ratio = p99(beside) / p99(alone)
    t.target("first token of a 100-byte prompt beside 15 streams, p99", "at most 3 × alone",
             f"{1e3 * p99(beside):.1f} ms, alone {1e3 * p99(alone):.1f} ms, {ratio:.2f} ×", ratio <= 3)


def long_prompt(t):
    """streams while a 100,000-byte prompt is read (target: at most 2 × slower)"""
    run = t.given_run or t.run("language")
    with Server(t.binary, [run], "--connections-per-address", 128) as server:
        streams = Streams(server, 8, prompt="The", max_tokens=60000)
        streams.run(1)
        ratios = []
        for _ in range(t.count(1, 3)):
            alone = streams.run(2)
            s = server.connect()
            body = json.dumps({"prompt": "the old house on the hill " * 3847, "max_tokens": 1}).encode()
            s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            s.setblocking(False)
            before, began = streams.frames, time.monotonic()
            while True:
                streams.poll(again=True)
                try:
                    s.recv(100)
                    break
                except BlockingIOError:
                    pass
            took = time.monotonic() - began
            ratios.append(alone / ((streams.frames - before) / took))
            s.close()
        streams.close()
    ratio = statistics.median(ratios)
    t.target("8 streams while a prompt of 100,022 bytes is read", "at most 2 × slower", f"{ratio:.2f} ×, read in {took:.1f} s", ratio <= 2)


def restore(t):
    """a saved state of 16,384 tokens against reading the document again (target: 20 ×)"""
    run = t.given_run or t.run("language")
    document = ("the old house on the hill was quiet " * 500)[:16384]
    with Server(t.binary, [run]) as server:
        server.json("POST", "/states?name=doc", document, expect=201)
        file = server.call("GET", "/states/doc")[2]
        read, use, upload = [], [], []
        for i in range(t.count(2, 7)):
            began = time.monotonic()
            server.complete(prompt=document, max_tokens=1, seed=i)
            read.append(time.monotonic() - began)
            began = time.monotonic()
            server.complete(state="doc", max_tokens=1, seed=i)
            use.append(time.monotonic() - began)
            began = time.monotonic()
            assert server.call("PUT", f"/states/doc{i}", file)[0] == 201
            server.complete(state=f"doc{i}", max_tokens=1, seed=i)
            upload.append(time.monotonic() - began)
    read, use, upload = map(statistics.median, (read, use, upload))
    t.target("document of 16,384 tokens: its saved state against reading it", "20 × faster", f"{1e3 * use:.1f} ms, {1e3 * read:.0f} ms, {read / use:.0f} ×", read / use >= 20)
    t.target(f"the same with its file of {len(file):,} bytes uploaded", "20 × faster", f"{1e3 * upload:.1f} ms, {read / upload:.0f} ×", read / upload >= 20)


TRIALS = {"many_clients": many_clients, "first_token": first_token, "long_prompt": long_prompt, "restore": restore}
