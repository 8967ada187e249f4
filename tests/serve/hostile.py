"""Clients that send too much, too slowly, ambiguously, or do not read."""

import json
import random
import select
import socket
import time

from protocol import raw, read_all, status_of
from server import Server

HOST = b"Host: localhost\r\n"


def p99(times):
    return sorted(times)[int(0.99 * (len(times) - 1))]


def sent_until_refused(server, head, piece, limit, most):
    """Sends until the server answers or closes → bytes after `head`, status. On a Unix socket with a small send buffer, what is sent has been read; until shortly
    before the limit the buffer is as usual, which is faster."""
    with server.connect(30) as s:
        sent = 0
        try:
            s.sendall(head)
            while sent < most:
                if sent + (256 << 10) >= limit:
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
                if select.select([s], [], [], 0)[0]:
                    break
                s.sendall(piece)
                sent += len(piece)
        except (ConnectionError, socket.timeout):
            pass
        s.settimeout(5)
        return sent, status_of(read_all(s))


def never_reading(server, most):
    """Bytes of requests that a client can send that never reads an answer."""
    with server.connect(1) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        request = b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n"
        sent = 0
        try:
            while sent < most:
                sent += s.send(request * 20)
        except (socket.timeout, ConnectionError):
            pass
        return sent


def limits(t):
    """1 GiB of header, request line, body, chunks, chunk extension, pipelined requests: bytes taken beyond the limit"""
    total = 1 << 30
    post = b"POST /v1/completions HTTP/1.1\r\n" + HOST
    piece = b"x" * 4096
    with Server(t.binary, [t.run("language")], listen="unix:" + str(t.folder / "limits.sock")) as server:
        before = server.rss()
        for name, head, chunk, limit, expected in (
                ("header", b"GET /health HTTP/1.1\r\nX: ", piece, 16 << 10, 431),
                ("request line", b"GET /", piece, 16 << 10, 431),
                ("body with a length", post + b"Content-Length: %d\r\n\r\n" % total, piece, 0, 413),
                ("chunked body", post + b"Transfer-Encoding: chunked\r\n\r\n", b"1000\r\n" + piece + b"\r\n", 8 << 20, 413),
                ("chunk extension", post + b"Transfer-Encoding: chunked\r\n\r\n1;a=", piece, 16 << 10, 400)):
            sent, status = sent_until_refused(server, head, chunk, limit, total)
            beyond = sent * 4096 // len(chunk) - limit
            assert status == expected, (name, status)
            t.figure(f"1 GiB of {name}", "at most 64 KiB taken beyond the limit", f"{beyond:,} bytes, then {status}", beyond <= 64 << 10)
        sent = never_reading(server, total)
        t.figure("1 GiB of pipelined requests, no answer read", "at most 64 KiB taken", f"{sent:,} bytes", sent <= 64 << 10)
        fields = b"".join(b"A%d: b\r\n" % i for i in range(101))
        assert raw(server, b"GET /health HTTP/1.1\r\n" + HOST + fields + b"\r\n") == 431
        for depth, status in ((32, 404), (33, 400), (100000, 400)):  # 404: the model has this strange name, and does not exist
            nested = '{"model":"x","prompt":"a","other":' + "[" * (depth - 1) + "]" * (depth - 1) + "}"
            assert server.call("POST", "/v1/completions", nested)[0] == status, depth
        grown = (server.rss() - before) / 2**20
        t.figure("memory after these", "at most +100 MiB", f"{grown:+.1f} MiB", grown < 100)
        assert server.alive()


CODINGS = {
    "two lengths": b"Content-Length: 15\r\nContent-Length: 16\r\n\r\n{\"content\":\"a\"}",
    "equal lengths": b"Content-Length: 15\r\nContent-Length: 15\r\n\r\n{\"content\":\"a\"}",
    "length and chunked": b"Content-Length: 15\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked and length": b"Transfer-Encoding: chunked\r\nContent-Length: 15\r\n\r\n0\r\n\r\n",
    "chunked twice": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "unknown coding": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "two codings": b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "space before colon": b"Content-Length : 15\r\n\r\n{\"content\":\"a\"}",
    "negative length": b"Content-Length: -1\r\n\r\n",
    "length with plus": b"Content-Length: +15\r\n\r\n{\"content\":\"a\"}",
    "chunk size": b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
}

WHOLE = {
    "no host": b"GET /health HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /health HTTP/1.1\r\n" + HOST + HOST + b"\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no path": b"GET http://localhost/health HTTP/1.1\r\n" + HOST + b"\r\n",
    "bad percent": b"GET /%zz HTTP/1.1\r\n" + HOST + b"\r\n",
    "bare LF": b"GET /health HTTP/1.1\n" + HOST + b"\n",
    "NUL": b"GET /hea\0lth HTTP/1.1\r\n" + HOST + b"\r\n",
    "old with chunks": b"POST /tokenize HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
}


def ambiguous(t):
    """requests that two readers might take for different ones, and malformed HTTP"""
    post = b"POST /tokenize HTTP/1.1\r\n" + HOST
    cases = {**{name: post + rest for name, rest in CODINGS.items()}, **WHOLE}
    with Server(t.binary, [t.run("language")], "--header-seconds", "1") as server:
        for name, request in cases.items():
            with server.connect(5) as s:
                s.sendall(request + b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n")
                data = read_all(s)
            assert 400 <= status_of(data) <= 505, (name, data[:200])
            assert data.count(b"\r\nServer: rondo") == 1, f"{name}: a second request was taken from it: {data[:400]!r}"
        draw = random.Random(5)
        count = t.count(200, 5000)
        for _ in range(count):
            noise = bytes(draw.randrange(256) for _ in range(draw.randrange(1, 200)))
            status = raw(server, noise + b"\r\n\r\n", 5)
            assert status == 0 or 400 <= status <= 505, (status, noise)
        t.figure("ambiguous requests (smuggling) and requests of noise", "all refused", f"{len(cases)} and {count} refused", True)
        assert server.alive()


class SlowClients:
    """Connections that stall, each watched by one thread: when they were cut off, and how."""

    def __init__(self, server, counts):
        self.began, self.cut = [], []
        self.sockets = [self.open(server, i, counts) for i in range(sum(counts))]
        self.counts = counts

    def open(self, server, i, counts):
        s = server.connect(60)
        if i < counts[0]:
            s.sendall(b"GET /health HTTP/1.1\r\nHost: loc")
        elif i < counts[0] + counts[1]:
            s.sendall(b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
        else:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            body = json.dumps({"prompt": "x", "max_tokens": 60000, "stream": True}).encode()
            s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        self.began.append(time.monotonic())
        return s

    def statuses(self, first, last):
        """Statuses of these and how long each was kept, in seconds."""
        found, kept = {}, []
        for i in range(first, last):
            status = status_of(read_all(self.sockets[i]))
            kept.append(time.monotonic() - self.began[i])
            found[status] = found.get(status, 0) + 1
        return found, max(kept)

    def close(self):
        for s in self.sockets:
            s.close()


def tokenize_times(server, number):
    times = []
    for _ in range(number):
        began = time.monotonic()
        assert server.call("POST", "/tokenize", {"content": "hello"})[0] == 200
        times.append(time.monotonic() - began)
    return times


def slow(t):
    """slow headers, slow bodies and clients that do not read, beside healthy ones"""
    counts = t.count((20, 20, 8), (500, 500, 200))
    header, body, stall = t.count((2, 2, 3), (5, 10, 20))
    options = ["--header-seconds", header, "--body-idle-seconds", body, "--write-stall-seconds", stall, "--connections", 4096,
               "--connections-per-address", 4096]
    with Server(t.binary, [t.run("language")], *options) as server:
        samples = t.count(50, 1000)
        tokenize_times(server, 20)
        alone = p99(tokenize_times(server, samples))
        before = server.rss()
        clients = SlowClients(server, counts)
        beside = p99(tokenize_times(server, samples))
        grown = (server.rss() - before) / 2**20
        who = f"beside {counts[0]} slow headers, {counts[1]} slow bodies, {counts[2]} not reading"
        t.figure(f"p99 of healthy requests {who}", "at most 2 × alone", f"{1e3 * beside:.1f} ms, {beside / alone:.2f} × {1e3 * alone:.1f} ms",
                 beside <= 2 * alone, timed=True)
        found, kept = clients.statuses(0, counts[0])
        t.figure(f"slow headers, limit {header} s", "all get 408 at the limit", f"{found.get(408, 0)} × 408, the last after {kept:.1f} s",
                 set(found) == {408} and kept >= header - 0.2 and (kept < header + 5), timed=set(found) == {408})
        found, kept = clients.statuses(counts[0], counts[0] + counts[1])
        t.figure(f"slow bodies, limit {body} s", "all get 408 at the limit", f"{found.get(408, 0)} × 408, the last after {kept:.1f} s",
                 set(found) == {408} and kept < body + 5, timed=set(found) == {408})
        until = time.monotonic() + 3 * stall + 30
        # One connection is the one that asks; for a moment the previous one may be counted beside it.
        while (left := server.metric("rondo_connections") - 1) > 0 and time.monotonic() < until:
            time.sleep(0.1)
        kept = time.monotonic() - clients.began[-1]
        t.figure(f"clients that do not read, limit {stall} s", "all closed", f"{counts[2] - left:.0f} closed, the last after {kept:.1f} s", left <= 0)
        grown = max(grown, (server.rss() - before) / 2**20)
        t.figure(f"memory {who}", "at most +100 MiB", f"{grown:+.1f} MiB", grown < 100)
        clients.close()
        assert server.alive()


def descriptors(t):
    """ulimit -n 64: refused, without spinning"""
    with Server(t.binary, [t.run("language")], "--header-seconds", 60, limit="ulimit -n 64") as server:
        sockets = []
        for _ in range(80):
            try:
                sockets.append(server.connect(2))
            except OSError:
                break
        time.sleep(0.5)
        before = server.cpu_seconds()
        time.sleep(1.5)
        used = (server.cpu_seconds() - before) / 1.5
        t.figure(f"{len(sockets)} connections with ulimit -n 64", "the accept loop does not spin", f"{100 * used:.0f} % of a core", used < 0.2)
        for s in sockets:
            s.close()
        time.sleep(0.5)
        assert server.alive()


TRIALS = {"limits": limits, "ambiguous": ambiguous, "slow": slow, "descriptors": descriptors}
