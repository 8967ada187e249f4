"""Bodies and names that are wrong: always 4xx with a message, nothing opened outside."""

import ctypes
import json
import os
import random
import urllib.parse

from server import Server, png

NAN = float("nan")
TEXT = [3, True, {"a": 1}]
NAME = [3, "a/b", "../x", "x" * 65, "é", "a b"]

# For each path, values of a field that are wrong whatever the other fields are.
WRONG = {
    "/v1/completions": {
        "prompt": [3, True, {}, {"a": 1}, [[]], [-1], [260], [10 ** 9], [1, "a"], [1.5], [], ["a"] * 17, [[1, 2], [-1]], ["a", 3], NAN],
        "max_tokens": [-1, 65537, "1", 1.5, [1], True, 2 ** 63, 2 ** 70, -2 ** 63, 1e308, NAN], "temperature": ["hot", -0.1, 101, 1e308, [], NAN, float("inf")],
        "top_p": [2, -1, "x", [], NAN], "top_k": ["x", -2, 1.5, 2 ** 40], "seed": ["x", 1.5, [1]], "stop": [3, [3], [""], "", ["x"] * 17, "x" * 257, {}],
        "n": [0, 9, "1", 2.5], "stream": ["yes", 1, []], "echo": [2, "x"], "logprobs": [21, -1, "x", 1.5], "repetition_penalty": [0, "x", 101],
        "repetition_window": [0, 4097, "x"], "state": [3, "../x", "nope", "x" * 65], "save_state": NAME, "model": [*TEXT, "gpt-4"], "loops": [-1, 2, "x"],
        "best_of": [2, "x"], "suffix": ["x"], "logit_bias": [{"1": 2}], "stream_options": [3, "x", {"include_usage": 3}], "tools": [[1]],
        "presence_penalty": [1], "response_format": [{"type": "json_object"}], "state_gain": [3]},
    "/v1/chat/completions": {
        "messages": [None, [], 3, "x", {}, [3], [[]], [{}], [{"role": "x", "content": "a"}], [{"role": "user", "content": 3}], [{"role": 3}],
                     [{"role": "user", "content": [{"type": "image_url"}]}], [{"role": "user", "content": [3]}]],
        "max_completion_tokens": [-1, 65537, "1"], "logprobs": [3, "x"], "temperature": [-1], "model": TEXT},
    "/tokenize": {"content": [3, [], {}], "model": [3, "gpt-4", "letters"], "with_pieces": [3, "x"]},
    "/detokenize": {"tokens": [None, 3, "x", {}, [260], [-1], ["a"], [1.5], [[1]], [2 ** 64]], "model": [3, "gpt-4"]},
    "/translate": {"q": [None, 3, {}, [3], ["a"] * 1025, "a\n" * 1025], "source": ["xx", 3], "target": ["yy", 3], "beam": [0, 33, "x", 1.5],
                   "alternatives": [-1, 32, "x"], "model": [3, "novel"], "attention": [3]},
    "/states/kept/fork": {"to": [None, "", *NAME]},
}
RIGHT = {
    "/v1/completions": {"prompt": "a", "max_tokens": 2, "temperature": 0.5, "seed": 1, "n": 2, "echo": True, "stop": ["x"]},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "a"}], "max_tokens": 2, "temperature": 1},
    "/tokenize": {"content": "a", "with_pieces": True}, "/detokenize": {"tokens": [1, 2]}, "/translate": {"q": "a", "beam": 2},
    "/states/kept/fork": {"to": "b"},
}
BROKEN = ["{\"prompt\":\"\\ud800\"}", "{\"prompt\":\"\\udc00\\ud800\"}", "{\"temperature\":NaN}", "{\"temperature\":Infinity}", "{\"temperature\":1e999}", "", " ", "null",
          "3", "\"x\"", "[]", "{", "{}}", "{\"a\":1,}", "{'a':1}", "{\"a\" 1}", "{\"a\":01}", "{\"a\":.5}", "{\"a\":\"\t\"}", "{\"a\":tru}", "[" * 100000,
          "{\"a\":" * 20000, "{\"a\":" + "[" * 32 + "]" * 32 + "}", "\ufeff\ufeff{}"]


def bad_body(draw):
    """A path and a body that is wrong for certain."""
    path = draw.choice(list(WRONG))
    right = RIGHT[path]
    fields = {name: right[name] for name in right if draw.random() < 0.5}
    kind = draw.randrange(6)
    if kind == 0:
        return path, draw.choice(BROKEN).encode("utf-8", "surrogatepass")
    if kind == 1:  # cut off: the object is never closed
        body = json.dumps({**right, **fields})
        return path, body[:draw.randrange(len(body))].encode()
    if kind == 2:  # bytes that no JSON has outside strings, nor UTF-8 inside them
        body = bytearray(json.dumps(right).encode())
        body.insert(draw.randrange(len(body) + 1), draw.choice((0, 1, 0x7F, 0xC0, 0xFF, 0x80) if draw.random() < 0.5 else (0, 1, 0xC0, 0xFF)))
        try:
            json.loads(bytes(body).decode("utf-8"), parse_constant=None)
            return bad_body(draw)  # 0x7F inside a string is allowed
        except ValueError:
            return path, bytes(body)
    if kind == 3:
        picture = png(8, 8)
        return "/classify", draw.choice((picture[:draw.randrange(1, 60)], draw.randbytes(draw.randrange(200)), b"\xff\xd8\xff" + draw.randbytes(50), b""))
    name = draw.choice(list(WRONG[path]))
    fields[name] = draw.choice(WRONG[path][name])
    if fields[name] is None:
        del fields[name]  # required
    return path, json.dumps(fields).encode("utf-8", "surrogatepass")


def refusals(t):
    """bodies that are wrong get 4xx with a message, never 5xx"""
    draw = random.Random(11)
    known = [("/v1/completions", {"prompt": "a", "max_tokens": 65537}, 422), ("/v1/completions", {"prompt": "a", "n": 9}, 422),
             ("/v1/completions", {"prompt": [99999]}, 400), ("/v1/completions", {"prompt": 3}, 400),
             ("/v1/completions", {"prompt": "a", "temperature": "hot"}, 400), ("/v1/completions", {"model": "gpt-4", "prompt": "a"}, 404),
             ("/v1/completions", {"prompt": "a", "state": "none"}, 404), ("/v1/completions", {"prompt": "a", "state": "../x"}, 422),
             ("/v1/completions", {"prompt": "a", "logit_bias": {"1": 2}}, 400), ("/v1/completions", {"prompt": "a", "loops": 2}, 400),
             ("/v1/chat/completions", {"messages": []}, 400), ("/v1/completions", "{\"prompt\":\"\\ud800\"}", 400),
             ("/v1/completions", "{\"temperature\":NaN}", 400), ("/v1/completions", b"{\"prompt\":\"\xff\"}", 400), ("/v1/completions", "", 400),
             ("/detokenize", {"tokens": [260]}, 400), ("/translate", {"q": "a", "source": "xx", "target": "yy"}, 400), ("/classify", b"no image", 400)]
    with Server(t.binary, [t.run("language"), "letters=" + t.run("translation"), t.run("images")], "--queue", "4096") as server:
        server.complete(prompt="a", max_tokens=2, save_state="kept")
        for path, body, status in known:
            got, _, text = server.call("POST", path, body)
            assert got == status, (path, body, got, text)
        for path, body in RIGHT.items():
            assert server.call("POST", path, body)[0] in (200, 201), path
        count = t.count(400, 20000)
        counted = {}
        for _ in range(count):
            path, body = bad_body(draw)
            status, _, text = server.call("POST", path, body)
            assert 400 <= status < 500, (status, path, body[:300], text[:300])
            error = json.loads(text)["error"]
            assert error["message"] and set(error) == {"message", "type", "param", "code"}, error
            counted[status] = counted.get(status, 0) + 1
        t.figure(f"{count:,} generated bad bodies", "100 % 4xx, alive", ", ".join(f"{n:,} × {s}" for s, n in sorted(counted.items())), server.alive())


class Watch:
    """Whether files are opened, told by inotify."""

    OPENED, NONBLOCK = 0x20, 0x800

    def __init__(self, *paths):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(self.NONBLOCK)
        assert self.fd >= 0
        for path in paths:
            assert libc.inotify_add_watch(self.fd, str(path).encode(), self.OPENED) >= 0, path

    def opened(self):
        try:
            return len(os.read(self.fd, 65536)) > 0
        except BlockingIOError:
            return False


def hostile_name(draw):
    if draw.random() < 0.5:  # towards the real file outside
        up = "".join(draw.choice(("../", "..\\", "./", "....//", "..;/", "%2e%2e/")) for _ in range(draw.randrange(1, 5)))
        return up + draw.choice(("outside", "outside.state", "outside.state\0", "states/../../outside"))
    return draw.choice("./%") + "".join(draw.choice("./\\%0aé\0 ~$") for _ in range(draw.randrange(90)))


def traversal(t):
    """names that lead out of the folder of states, and of the page's files: nothing there is opened or written"""
    folder = t.folder / "place" / "states"
    outside = folder.parent / "outside.state"
    draw = random.Random(4)
    count = t.count(25, 2000)
    with Server(t.binary, [t.run("language")], "--state-folder", folder) as server:
        server.complete(prompt="a", max_tokens=2, save_state="inside")
        outside.write_bytes(server.call("GET", "/states/inside")[2])
        before = sorted(p for p in t.folder.rglob("*") if p.parent != folder)
        watch = Watch(outside)
        for _ in range(count):
            name = hostile_name(draw)
            quoted = "".join(f"%{b:02x}" for b in name.encode()) if draw.random() < 0.5 else urllib.parse.quote(name, safe="./;")
            for method, path in (("GET", f"/states/{quoted}"), ("DELETE", f"/states/{quoted}"), ("PUT", f"/states/{quoted}"), ("POST", f"/states?name={quoted}"),
                                 ("POST", f"/states/{quoted}/fork"), ("GET", f"/assets/{quoted}")):
                body = {"to": name} if path.endswith("/fork") else b"x" if method in ("POST", "PUT") else None
                status = server.call(method, path, body)[0]
                assert status in (400, 404, 405, 422), (status, method, path)
            assert server.call("POST", "/states/inside/fork", {"to": name})[0] == 422
            assert server.complete(prompt="a", state=name, expect=422)["error"]["param"] == "state"
        opened = watch.opened()
        assert server.stop() == 0
    assert sorted(p for p in t.folder.rglob("*") if p.parent != folder) == before
    with open(outside, "rb"):
        assert watch.opened(), "the watch does not see anything"
    t.figure(f"{count:,} names that lead elsewhere, each in 8 requests", "nothing opened outside", "a file outside was opened" if opened else "nothing opened or written", not opened)


TRIALS = {"refusals": refusals, "traversal": traversal}
