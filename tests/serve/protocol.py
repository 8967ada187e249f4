"""HTTP itself: limits, time-outs, keep-alive, keys, malformed and ambiguous requests."""

import json
import os
import random
import socket
import subprocess
import time

from server import Server


def read_all(s, limit=1 << 20):
    data = b""
    try:
        while len(data) < limit:
            piece = s.recv(65536)
            if not piece:
                break
            data += piece
    except (ConnectionResetError, socket.timeout):
        pass
    return data


def status_of(data):
    return int(data.split(b" ", 2)[1]) if data.startswith(b"HTTP/1.1 ") else 0


def raw(server, request, timeout=10.0):
    """The status of a request given as bytes; 0: closed without an answer."""
    with server.connect(timeout) as s:
        try:
            s.sendall(request)
        except (BrokenPipeError, ConnectionResetError):
            pass
        return status_of(read_all(s))


def basics(t):
    """health, models, props, metrics, errors, keep-alive, pipelining, HEAD, Unix socket"""
    with Server(t.binary, [t.run("language")]) as server:
        assert server.json("GET", "/health") == {"status": "ok"}
        models = server.json("GET", "/v1/models")
        assert models["object"] == "list" and models["data"][0]["id"] == "novel", models
        props = server.json("GET", "/props")
        assert props["limits"]["queue"] == 64 and props["limits"]["header_bytes"] == 16384, props
        assert server.metric("rondo_responses_total{status=\"200\"}") >= 3
        for path, status in (("/nothing", 404), ("/v1/completions", 405), ("/states/a/b/c", 404), ("/states/..%2f..", 404)):
            error = server.json("GET", path, expect=status)["error"]
            assert set(error) == {"message", "type", "param", "code"}, error
        request = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with server.connect() as s:  # keep-alive, then two at once
            for _ in range(3):
                s.sendall(request)
                assert status_of(s.recv(65536)) == 200
            s.sendall(request + request + request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            assert read_all(s).count(b"HTTP/1.1 200 OK") == 3
        assert server.call("HEAD", "/health")[2] == b""
        old = b"GET /health HTTP/1.0\r\n\r\n"
        assert raw(server, old) == 200
        assert server.stop() == 0
    path = str(t.folder / "s.sock")
    with Server(t.binary, [t.run("language")], listen="unix:" + path) as server:
        assert server.json("GET", "/health") == {"status": "ok"}
        assert oct(os.stat(path).st_mode & 0o777) == "0o700", "others may connect"
        assert server.stop() == 0
    assert not os.path.exists(path)


def keys(t):
    """API keys, addresses beyond this machine, other sites' pages, names of other hosts"""
    key_file = t.folder / "keys"
    key_file.write_text("0123456789abcdef0123\n")
    runs = [t.run("language")]
    refused = subprocess.run([t.binary, "serve", *runs, "--listen", "0.0.0.0:0"], capture_output=True, text=True)
    assert refused.returncode == 2 and "--api-key-file" in refused.stderr, refused
    with Server(t.binary, runs, "--api-key-file", key_file) as server:
        assert server.call("GET", "/health")[0] == 200
        assert server.call("GET", "/")[0] == 200
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer 0123456789abcdef012"}):
            error = server.json("GET", "/v1/models", expect=401, headers=headers)
            assert error["error"]["code"] == "invalid_api_key"
        for headers in ({"Authorization": "Bearer 0123456789abcdef0123"}, {"X-API-Key": "0123456789abcdef0123"}):
            server.json("GET", "/v1/models", headers=headers)
            text = server.call("GET", "/props", headers=headers)[2] + server.call("GET", "/metrics", headers=headers)[2]
            assert b"0123456789abcdef" not in text
        assert server.stop() == 0
        assert "0123456789abcdef" not in server.errors()
    with Server(t.binary, runs) as server:
        assert server.call("GET", "/v1/models", headers={"Host": "evil.example"})[0] == 403
        assert server.call("GET", "/v1/models", headers={"Origin": "http://evil.example"})[0] == 403
        assert server.call("GET", "/v1/models", headers={"Origin": server.address, "Host": f"127.0.0.1:{server.port}"})[0] == 200


def limits(t):
    """sizes counted as they arrive: header, fields, body, chunked body, endless pipelining"""
    total = t.count(16 << 20, 1 << 30)
    with Server(t.binary, [t.run("language")]) as server:
        host = b"Host: localhost\r\n"

        def sent_until_refused(head, piece, most):
            """Bytes that could be sent before the server answered or closed, and its status."""
            with server.connect(5) as s:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16384)
                sent = 0
                try:
                    s.sendall(head)
                    while sent < most:
                        s.settimeout(0.0001)
                        try:
                            if s.recv(1, socket.MSG_PEEK):
                                break
                        except (socket.timeout, BlockingIOError):
                            pass
                        s.settimeout(5)
                        s.sendall(piece)
                        sent += len(piece)
                except (ConnectionError, socket.timeout):
                    pass
                s.settimeout(5)
                return sent, status_of(read_all(s))

        before = server.rss()
        piece = b"x" * 4096
        for name, head, chunk, limit, expected in (
                ("header", b"GET /health HTTP/1.1\r\nX: ", piece, 16 << 10, 431),
                ("request line", b"GET /", piece, 16 << 10, 431),
                ("body", b"POST /v1/completions HTTP/1.1\r\n" + host + b"Content-Length: %d\r\n\r\n" % total, piece, 0, 413),
                ("chunked body", b"POST /v1/completions HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n",
                 b"1000\r\n" + piece + b"\r\n", 8 << 20, 413),
                ("chunk extension", b"POST /v1/completions HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n1;a=", piece,
                 16 << 10, 400)):
            sent, status = sent_until_refused(head, chunk, total)
            t.say(f"{name}: refused with {status} after {sent:,} bytes (limit {limit:,})")
            assert status == expected, (name, status)
            assert sent <= limit * 1.02 + (64 << 10) + (512 << 10), (name, sent)  # and what the system's buffers hold
        fields = b"".join(b"A%d: b\r\n" % i for i in range(101))
        assert raw(server, b"GET /health HTTP/1.1\r\n" + host + fields + b"\r\n") == 431
        deep = "[" * 100000
        assert server.call("POST", "/v1/completions", '{"prompt":' + deep)[0] == 400
        with server.connect() as s:  # one request after the other, never waiting for an answer
            s.settimeout(0.05)
            request = b"GET /health HTTP/1.1\r\n" + host + b"\r\n"
            for _ in range(t.count(200, 5000)):
                try:
                    s.sendall(request * 20)
                except (socket.timeout, ConnectionError):
                    break
        t.say(f"memory grew by {(server.rss() - before) / 2**20:.1f} MiB")
        assert server.rss() - before < 100 << 20
        assert server.alive()


def ambiguous(t):
    """requests that two readers might take for different ones, and malformed HTTP"""
    host = b"Host: localhost\r\n"
    post = b"POST /tokenize HTTP/1.1\r\n" + host
    body = b'{"content":"a"}'
    cases = {
        "two lengths": post + b"Content-Length: 15\r\nContent-Length: 16\r\n\r\n" + body,
        "equal lengths": post + b"Content-Length: 15\r\nContent-Length: 15\r\n\r\n" + body,
        "length and chunked": post + b"Content-Length: 15\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "chunked and length": post + b"Transfer-Encoding: chunked\r\nContent-Length: 15\r\n\r\n0\r\n\r\n",
        "chunked twice": post + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "unknown coding": post + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "two codings": post + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "space before colon": post + b"Content-Length : 15\r\n\r\n" + body,
        "negative length": post + b"Content-Length: -1\r\n\r\n",
        "length with plus": post + b"Content-Length: +15\r\n\r\n" + body,
        "no host": b"GET /health HTTP/1.1\r\n\r\n",
        "two hosts": b"GET /health HTTP/1.1\r\n" + host + host + b"\r\n",
        "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "no path": b"GET http://localhost/health HTTP/1.1\r\n" + host + b"\r\n",
        "bad percent": b"GET /%zz HTTP/1.1\r\n" + host + b"\r\n",
        "bare LF": b"GET /health HTTP/1.1\n" + host + b"\n",
        "NUL": b"GET /hea\0lth HTTP/1.1\r\n" + host + b"\r\n",
        "chunk size": post + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        "old with chunks": b"POST /tokenize HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    }
    with Server(t.binary, [t.run("language")], "--header-seconds", "1") as server:
        for name, request in cases.items():
            with server.connect(5) as s:
                s.sendall(request + b"GET /health HTTP/1.1\r\n" + host + b"\r\n")
                data = read_all(s)
            assert 400 <= status_of(data) <= 505, (name, data[:200])
            assert data.count(b"\r\nServer: rondo") == 1, f"{name}: a second request was taken from it: {data[:400]!r}"
        draw = random.Random(5)
        count = t.count(200, 5000)
        for _ in range(count):
            noise = bytes(draw.randrange(256) for _ in range(draw.randrange(1, 200)))
            status = raw(server, noise + b"\r\n\r\n", 5)
            assert status == 0 or 400 <= status <= 505, (status, noise)
        t.say(f"{len(cases)} ambiguous requests and {count} of noise refused")
        assert server.alive()


def slow(t):
    """slow headers, slow bodies and clients that do not read, beside healthy ones"""
    counts = t.count((20, 20, 8), (500, 500, 200))
    options = ["--header-seconds", 2, "--body-idle-seconds", 2, "--write-stall-seconds", 3, "--connections", 4096,
               "--connections-per-address", 4096, "--keep-alive-seconds", 2]
    with Server(t.binary, [t.run("language")], *options) as server:

        def latencies(number):
            times = []
            for _ in range(number):
                began = time.monotonic()
                assert server.call("POST", "/tokenize", {"content": "hello"})[0] == 200
                times.append(time.monotonic() - began)
            return sorted(times)

        alone = latencies(t.count(50, 300))
        before = server.rss()
        sockets = []
        for i in range(sum(counts)):
            s = server.connect(30)
            if i < counts[0]:
                s.sendall(b"GET /health HTTP/1.1\r\nHost: loc")
            elif i < counts[0] + counts[1]:
                s.sendall(b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
            else:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                body = json.dumps({"prompt": "x", "max_tokens": 60000, "stream": True}).encode()
                s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            sockets.append(s)
        beside = latencies(t.count(50, 300))
        grown = server.rss() - before
        p99 = [times[int(0.99 * (len(times) - 1))] for times in (alone, beside)]
        t.say(f"{counts[0]} slow headers, {counts[1]} slow bodies, {counts[2]} not reading: p99 {p99[1] * 1e3:.1f} ms beside them, "
              f"{p99[0] * 1e3:.1f} ms alone; memory +{grown / 2**20:.1f} MiB")
        assert grown < 100 << 20
        until = time.monotonic() + 60
        while server.metric("rondo_connections") > 1 and time.monotonic() < until:
            time.sleep(0.2)
        assert server.metric("rondo_connections") <= 1, "not all were cut off"
        statuses = {}
        for s in sockets[:counts[0] + counts[1]]:
            status = status_of(read_all(s))
            statuses[status] = statuses.get(status, 0) + 1
        assert set(statuses) == {408}, statuses
        for s in sockets:
            s.close()
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
        t.say(f"{len(sockets)} connections asked for with 64 descriptors: {100 * used:.0f} % of a core while there are none left")
        assert used < 0.2
        for s in sockets:
            s.close()
        time.sleep(0.5)
        assert server.alive()


def settable(t):
    """limits given as options: state files, lines of a translation"""
    with Server(t.binary, [t.run("language"), t.run("translation")], "--state-file-bytes", 1000, "--lines", 2) as server:
        assert server.call("PUT", "/states/a", b"x" * 2000)[0] == 413
        assert server.call("PUT", "/states/a", b"x" * 900)[0] == 400
        assert server.json("POST", "/translate", {"q": ["ab", "cd"]})["translatedText"]
        assert server.call("POST", "/translate", {"q": ["ab", "cd", "ef"]})[0] == 422
        assert server.json("GET", "/props")["limits"]["state_file_bytes"] == 1000


TRIALS = {"settable": settable, "basics": basics, "keys": keys, "limits": limits, "ambiguous": ambiguous, "slow": slow, "descriptors": descriptors}
