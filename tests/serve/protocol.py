"""HTTP itself: answers, keep-alive, keys, and every limit with its option."""

import os
import socket
import subprocess

from server import Server, png


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


def settable(t):
    """every limit of serve.md: its default in /props, another value by an option, and what happens beyond it"""
    with Server(t.binary, [t.run("language")]) as server:
        props = server.json("GET", "/props")
        assert props["limits"] == DEFAULTS, {k: (v, DEFAULTS.get(k)) for k, v in props["limits"].items() if v != DEFAULTS.get(k)}
        assert props["libtorch"] and props["version"]
    runs = [t.run("language"), t.run("translation"), t.run("images")]
    options = [word for pair in OTHERS.values() for word in pair[:2]]
    with Server(t.binary, runs, *options) as server:
        found = server.json("GET", "/props")["limits"]
        assert set(OTHERS) == set(DEFAULTS) - {"sequences"}
        for name, (option, value) in OTHERS.items():
            assert found[name] == value, (option, value, found[name])
        assert found["sequences"] == found["running"]

        def refused(status, method, path, body, headers=None):
            got, _, text = server.call(method, path, body, headers)
            assert got == status, (status, got, path, body if len(str(body)) < 200 else "", text[:300])

        refused(431, "GET", "/health", None, {"X": "x" * 2000})
        refused(431, "GET", "/health", None, {f"X{i}": "x" for i in range(9)})
        refused(413, "POST", "/tokenize", {"content": "x" * 6000})
        refused(413, "POST", "/classify", b"x" * 7000)
        refused(413, "PUT", "/states/a", b"x" * 200001)
        refused(400, "PUT", "/states/a", b"x" * 900)
        refused(400, "POST", "/tokenize", {"content": "x", "y": [[[[1]]]]})
        refused(413, "POST", "/v1/completions", {"prompt": "x" * 101})
        refused(422, "POST", "/v1/completions", {"prompt": "x", "max_tokens": 21})
        refused(422, "POST", "/v1/completions", {"prompt": "x", "n": 3})
        refused(422, "POST", "/v1/completions", {"prompt": ["x"] * 4})
        refused(422, "POST", "/translate", {"q": "x", "beam": 4})
        refused(422, "POST", "/translate", {"q": ["ab", "cd", "ef"]})
        refused(400, "POST", "/classify", png(40, 10))  # 400 pixels of 300
        refused(400, "POST", "/classify", png(60, 2))  # a side of 60 of 50
        assert server.json("POST", "/classify", png(15, 15))["classes"]
        assert server.complete(prompt="x")["usage"]["completion_tokens"] == 7
        for name in ("a", "b", "c"):
            server.complete(prompt="x", save_state=name)
        assert {s["name"] for s in server.json("GET", "/states")["states"]} == {"b", "c"}
        held = [server.connect() for _ in range(5)]
        with server.connect() as s:
            assert status_of(read_all(s)) == 503
        for s in held:
            s.close()
    t.say(f"{len(DEFAULTS)} limits printed by /props, {len(OTHERS)} settable")


# What serve.md and docs/serving.md say.
DEFAULTS = {
    "header_bytes": 16384, "header_fields": 100, "header_seconds": 5, "body_idle_seconds": 10, "write_stall_seconds": 20, "keep_alive_seconds": 30,
    "request_seconds": 600, "connections": 1024, "connections_per_address": 64, "text_bytes": 8 << 20, "image_bytes": 16 << 20,
    "image_pixels": 50_000_000, "image_side": 16384, "state_file_bytes": 1 << 30, "json_depth": 32, "prompt_tokens": 1 << 20,
    "default_max_tokens": 256, "max_tokens": 65536, "n": 8, "beam": 32, "lines": 1024, "sequences": 16, "running": 16, "queue": 64,
    "queue_seconds": 30, "states": 256, "state_bytes": 1 << 30, "state_ttl_seconds": 0, "drain_seconds": 30}

OTHERS = {
    "header_bytes": ("--header-bytes", 1024), "header_fields": ("--header-fields", 8), "header_seconds": ("--header-seconds", 6),
    "body_idle_seconds": ("--body-idle-seconds", 7), "write_stall_seconds": ("--write-stall-seconds", 8),
    "keep_alive_seconds": ("--keep-alive-seconds", 9), "request_seconds": ("--request-seconds", 60), "connections": ("--connections", 100),
    "connections_per_address": ("--connections-per-address", 5), "text_bytes": ("--text-bytes", 5000), "image_bytes": ("--image-bytes", 6000),
    "image_pixels": ("--image-pixels", 300), "image_side": ("--image-side", 50), "state_file_bytes": ("--state-file-bytes", 200000),
    "json_depth": ("--json-depth", 4), "prompt_tokens": ("--prompt-tokens", 100), "default_max_tokens": ("--default-tokens", 7),
    "max_tokens": ("--max-tokens", 20), "n": ("--choices", 2), "beam": ("--beam", 3), "lines": ("--lines", 2), "running": ("--running", 3),
    "queue": ("--queue", 4), "queue_seconds": ("--queue-seconds", 11), "states": ("--states", 2), "state_bytes": ("--state-bytes", 10_000_000),
    "state_ttl_seconds": ("--state-ttl", 1000), "drain_seconds": ("--drain-seconds", 5)}

TRIALS = {"basics": basics, "keys": keys, "settable": settable}
