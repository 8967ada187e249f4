"""Disconnecting clients, and more of them than can be served."""

import json
import random
import selectors
import statistics
import threading
import time

from server import Server


def send_completion(s, **fields):
    body = json.dumps(fields).encode()
    s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


def disconnects(t):
    """clients that go away while queued, while their prompt is read, in mid-stream: nothing is left of them"""
    count = t.count(60, 2000)
    with Server(t.binary, [t.run("language")], "--running", 4, "--queue", 4096, "--connections-per-address", 4096) as server:
        server.complete(prompt="warm up", max_tokens=5)
        memory, files, freed = None, server.descriptors(), []
        draw = random.Random(7)
        for i in range(count):
            with server.connect() as s:
                kind = i % 3
                if kind == 0:  # in mid-stream
                    send_completion(s, prompt="x", max_tokens=60000, stream=True)
                    s.recv(200)
                elif kind == 1:  # while a long prompt is read
                    send_completion(s, prompt="y" * 50000, max_tokens=10, stream=True)
                    time.sleep(draw.random() * 0.01)
                else:  # while others are ahead
                    first = [server.connect() for _ in range(5)]
                    for other in first:
                        send_completion(other, prompt="z", max_tokens=60000, stream=True)
                    send_completion(s, prompt="w", max_tokens=10)
                    for other in first:
                        other.close()
            if i % 3 == 0 and i % 30 == 0:
                left = time.monotonic()
                assert server.wait_idle(5, pause=0)
                freed.append(1e3 * (time.monotonic() - left))
            if i == count // 2:
                server.wait_idle()
                memory = server.rss()
        assert server.wait_idle(5), "slots are still taken"
        until = time.monotonic() + 5
        while server.descriptors() > files and time.monotonic() < until:
            time.sleep(0.01)
        grown = 100 * (server.rss() / memory - 1)
        t.figure(f"{count:,} disconnects (queued, in prefill, in mid-stream)", "no leak", f"descriptors {files} before, {server.descriptors()} after; memory {grown:+.1f} % in the "
                 "second half", server.descriptors() <= files + 3 and grown < 10)
        t.figure("slot free after a disconnect in mid-stream", "within a step: too short to see, so within 50 ms",
                 f"seen free {max(freed):.1f} ms later at most, median {statistics.median(freed):.1f}, of {len(freed)}", max(freed) < 50, timed=True)
        assert server.complete(prompt="the", max_tokens=5, seed=1)


class Burst:
    """Requests on connections of their own, all at once, by one thread that waits for whichever answers first."""

    def __init__(self, server, count):
        self.server, self.selector = server, selectors.DefaultSelector()
        self.times = {}  # status → seconds of each
        self.health, self.broken = [], 0
        self.watch = self.open(b"")
        self.asked = 0.0
        for i in range(count):
            body = json.dumps({"prompt": "a", "max_tokens": 50, "seed": i}).encode()
            s = self.open(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            self.selector.register(s, selectors.EVENT_READ, [time.monotonic(), b""])
            self.poll(0)
        while len(self.selector.get_map()) > 0:
            self.poll(0.005)
        self.watch.close()

    def open(self, request):
        s = self.server.connect(60)
        s.sendall(request)
        s.setblocking(False)
        return s

    def poll(self, seconds):
        self.look_at_health()
        for key, _ in self.selector.select(seconds):
            began, data = key.data
            try:
                piece = key.fileobj.recv(65536)
            except ConnectionError:
                piece, data = b"", b""
            key.data[1] = data = data + piece
            if piece and not data[:12].startswith(b"HTTP/1.1 429"):
                continue  # a refusal counts when it arrives, a text when it is complete
            status = int(data[9:12]) if data else 0
            self.times.setdefault(status, []).append(time.monotonic() - began)
            whole = b"Retry-After: " in data if status == 429 else data.endswith(b"}")
            self.broken += not whole
            self.selector.unregister(key.fileobj)
            key.fileobj.close()

    def look_at_health(self):
        """One /health after the other, on one connection."""
        now = time.monotonic()
        if self.asked:
            try:
                assert self.watch.recv(4096).startswith(b"HTTP/1.1 200"), "/health"
                self.health.append(now - self.asked)
                self.asked = 0.0
            except BlockingIOError:
                return
        self.watch.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.asked = time.monotonic()


def burst(t):
    """a burst beyond the queue: refusals are 429 at once, all accepted complete, /health answers throughout"""
    count = t.count(300, 2000)
    with Server(t.binary, [t.run("language")], "--connections-per-address", 4096, "--connections", 4096) as server:
        server.complete(prompt="a", max_tokens=50)
        found = Burst(server, count)
        assert set(found.times) <= {200, 429} and not found.broken, ({s: len(n) for s, n in found.times.items()}, found.broken)
        refused = found.times.get(429, [])
        longest = 1e3 * max(refused, default=0)
        t.figure(f"burst of {count:,} requests at queue 64", "accepted ones complete, the others 429",
                 ", ".join(f"{len(n):,} × {s}" for s, n in sorted(found.times.items())), len(refused) > 0)
        t.figure("every refusal of the burst", "in less than 100 ms", f"{longest:.1f} ms at most, median {1e3 * statistics.median(refused):.1f}", longest < 100, timed=True)
        slowest = 1e3 * max(found.health)
        t.figure("/health during the burst", "less than 50 ms throughout", f"{slowest:.1f} ms at most of {len(found.health)}", slowest < 50, timed=True)


def queue_really_full(t):
    """one running, four waiting: every further request is refused with 429 in less than 100 ms, and the waiting ones complete"""
    body = {"prompt": "a", "max_tokens": 2000, "seed": 1}
    with Server(t.binary, [t.run("language")], "--running", 1, "--queue", 4, "--connections-per-address", 64) as server:
        waiting, results = [], []
        first = threading.Thread(target=lambda: results.append(server.call("POST", "/v1/completions", dict(body, max_tokens=20000))[0]))
        first.start()
        while server.metric("rondo_running") < 1:
            time.sleep(0.005)
        for _ in range(4):
            waiting.append(threading.Thread(target=lambda: results.append(server.call("POST", "/v1/completions", body)[0])))
            waiting[-1].start()
        while server.metric("rondo_queued") < 4:
            time.sleep(0.005)
        times = []
        for i in range(t.count(20, 200)):
            began = time.monotonic()
            status, headers, _ = server.call("POST", "/v1/completions", dict(body, seed=i))
            times.append(time.monotonic() - began)
            if status != 429:
                break  # the first text ended: the queue has moved on
            assert int(headers["Retry-After"]) >= 1, headers
        for thread in [first, *waiting]:
            thread.join()
        refused = sorted(times[:-1] if status != 429 else times)
        assert len(refused) >= 10, "the queue was not full for long enough"
        assert results.count(200) >= 5, results
        t.figure(f"{len(refused)} refusals of a full queue (1 running, 4 waiting)", "each in less than 100 ms",
                 f"{1e3 * refused[-1]:.1f} ms at most, median {1e3 * refused[len(refused) // 2]:.1f}", refused[-1] < 0.1, timed=True)


TRIALS = {"queue_really_full": queue_really_full, "disconnects": disconnects, "burst": burst}
