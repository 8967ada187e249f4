"""Many clients for a long time."""

import json
import time

from server import Server


class Streams:
    """Streaming clients in one thread, which looks at its sockets every few milliseconds: it shares the cores with the server."""

    def __init__(self, server, number, **fields):
        self.server, self.fields = server, fields
        self.open = {}
        self.frames = 0
        self.finished = 0
        self.errors = []
        self.seed = 0
        for _ in range(number):
            self.start()

    def start(self):
        self.seed += 1
        s = self.server.connect(60)
        body = json.dumps({"stream": True, "seed": self.seed, **self.fields}).encode()
        s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        s.setblocking(False)
        self.open[s] = b""

    def poll(self, again, pause=0.004):
        """Reads what has come; streams that end are started again if `again`."""
        time.sleep(pause)
        for s in list(self.open):
            try:
                data = s.recv(1 << 18)
            except BlockingIOError:
                continue
            except ConnectionError as error:
                self.errors.append(str(error))
                data = b""
            self.frames += data.count(b"data: {")
            tail = self.open[s] = (self.open[s] + data)[-64:]
            if b"[DONE]" in tail or not data:
                if b"[DONE]" not in tail:
                    self.errors.append(f"cut off after {tail!r}")
                self.finished += 1
                s.close()
                del self.open[s]
                if again:
                    self.start()

    def run(self, seconds):
        """Frames in so many seconds."""
        before, began = self.frames, time.monotonic()
        while time.monotonic() - began < seconds:
            self.poll(again=True)
        return (self.frames - before) / (time.monotonic() - began)

    def finish(self):
        while self.open:
            self.poll(again=False)

    def close(self):
        for s in self.open:
            s.close()
        self.open = {}


def soak(t):
    """64 streaming clients for minutes: no errors, memory and descriptors flat"""
    seconds = t.count(3, 600)
    with Server(t.binary, [t.run("language")], "--queue", 128, "--connections-per-address", 128, "--queue-seconds", 600) as server:
        streams = Streams(server, 64, prompt="the old house", max_tokens=100)
        streams.run(max(2, seconds / 10))
        memory, files = server.rss(), server.descriptors()
        pace = streams.run(seconds)
        grown = server.rss() / memory - 1
        assert not streams.errors, streams.errors[:3]
        flat = abs(server.descriptors() - files) < 8
        t.figure(f"64 streaming clients for {seconds} s", "0 errors", f"{streams.finished:,} texts, {pace:,.0f} events/s, 0 errors", streams.finished > 0)
        t.figure("memory and descriptors meanwhile", "at most +5 %; flat", f"{100 * grown:+.1f} %; {files} → {server.descriptors()}", grown < 0.05 and flat)
        streams.finish()


def waiting(t):
    """memory of connections that wait, CPU of a server without requests"""
    count = t.count(200, 900)
    with Server(t.binary, [t.run("language")], "--connections-per-address", 2000, "--keep-alive-seconds", 300) as server:
        server.complete(prompt="a", max_tokens=3)
        before = server.rss()
        sockets = []
        for _ in range(count):
            s = server.connect()
            s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert s.recv(4096).startswith(b"HTTP/1.1 200")
            sockets.append(s)
        each = (server.rss() - before) / count
        seconds = t.count(2, 20)
        cpu = server.cpu_seconds()
        time.sleep(seconds)
        idle = (server.cpu_seconds() - cpu) / seconds
        t.figure(f"{count} waiting connections", "less than 64 KiB each", f"{each / 1024:.1f} KiB each", each < 64 << 10)
        t.figure("CPU of a server without requests", "below 1 %", f"{100 * idle:.2f} %", idle < 0.01)
        for s in sockets:
            s.close()


TRIALS = {"soak": soak, "waiting": waiting}
