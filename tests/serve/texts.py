"""Results: completions, chats, states, translations, images; equal to those computed alone."""

import base64
import json
import random
import subprocess
import threading

from server import Server, png


def text_of(reply):
    return reply["choices"][0]["text"]


def completions(t):
    """fields of /v1/completions, plain and streamed; the text is that of `rondo generate`"""
    run = t.run("language")
    with Server(t.binary, [run]) as server:
        asked = {"prompt": "the old house", "max_tokens": 40, "seed": 7, "temperature": 0.9}
        plain = server.complete(**asked)
        usage = plain["usage"]
        assert (usage["prompt_tokens"], usage["completion_tokens"]) == (13, 40), usage
        assert plain["choices"][0]["finish_reason"] == "length" and plain["seed"] == 7
        events = server.stream(**asked, stream_options={"include_usage": True})
        assert "".join(e["choices"][0]["text"] for e in events if e["choices"]) == text_of(plain)
        assert events[-1]["usage"] == usage, events[-1]
        written = subprocess.run([t.binary, "generate", run, "--prompt", "the old house", "-n", "40", "--seed", "7", "--temperature",
                                  "0.9"], check=True, capture_output=True).stdout
        if text_of(plain).encode() != written:  # bytes that are not UTF-8 are sent as U+FFFD
            assert "\ufffd" in text_of(plain), (text_of(plain), written)
        # the n texts have consecutive seeds
        many = server.complete(**{**asked, "n": 3})
        assert [c["index"] for c in many["choices"]] == [0, 1, 2]
        for i, choice in enumerate(many["choices"]):
            assert choice["text"] == text_of(server.complete(**{**asked, "seed": 7 + i}))
        lists = server.complete(**{**asked, "prompt": ["the old house", "quiet"]})
        assert lists["choices"][0]["text"] == text_of(plain) and len(lists["choices"]) == 2
        ids = server.json("POST", "/tokenize", {"content": "the old house"})["tokens"]
        assert text_of(server.complete(**{**asked, "prompt": ids})) == text_of(plain)
        assert server.json("POST", "/detokenize", {"tokens": ids})["content"] == "the old house"
        echo = server.complete(**{**asked, "echo": True, "logprobs": 2, "max_tokens": 5})
        logprobs = echo["choices"][0]["logprobs"]
        assert text_of(echo).startswith("the old house") and len(logprobs["tokens"]) == 18, echo
        assert logprobs["token_logprobs"][0] is None and all(x < 0 for x in logprobs["token_logprobs"][1:])
        scored = server.complete(prompt="the old house", echo=True, logprobs=1, max_tokens=0)
        assert text_of(scored) == "the old house" and scored["usage"]["completion_tokens"] == 0
        greedy = server.complete(prompt="the ", max_tokens=60, temperature=0)
        some = text_of(greedy)[20:23]
        stopped = server.complete(prompt="the ", max_tokens=60, temperature=0, stop=[some])
        assert text_of(stopped) == text_of(greedy)[:text_of(greedy).index(some)], (text_of(stopped), some)
        assert stopped["choices"][0]["finish_reason"] == "stop"
        chat = server.json("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 8, "seed": 1})
        assert chat["object"] == "chat.completion" and chat["choices"][0]["message"]["role"] == "assistant"
        pieces = server.stream("/v1/chat/completions", messages=[{"role": "user", "content": "hello"}], max_tokens=8, seed=1)
        assert "".join(p["choices"][0]["delta"].get("content", "") for p in pieces) == chat["choices"][0]["message"]["content"]
        gain = server.complete(prompt="the old house", max_tokens=40, seed=3, state_gain=True)
        assert len(gain["choices"][0]["state_gain"]) == 40
        assert any(abs(x) > 1e-4 for x in gain["choices"][0]["state_gain"][1:])
        empty = server.complete(max_tokens=5, seed=1)
        assert empty["usage"]["prompt_tokens"] == 0


def states(t):
    """save, continue, fork, download, upload, delete; names; limits; another model's are refused"""
    run = t.run("language")
    folder = t.folder / "states"
    document = " ".join(random.Random(3).choice("house hill quiet years old".split()) for _ in range(3000))
    with Server(t.binary, [run], "--states", 8, "--state-folder", folder) as server:
        whole = server.complete(prompt="the old", max_tokens=40, seed=5)
        server.complete(prompt="the old", max_tokens=20, seed=5, save_state="half")
        rest = server.complete(state="half", max_tokens=20, seed=5)
        first = server.complete(prompt="the old", max_tokens=20, seed=5)
        if "\ufffd" not in text_of(whole):
            assert text_of(first) + text_of(rest) == text_of(whole)
        assert rest["usage"]["prompt_tokens_details"]["cached_tokens"] == 27, rest["usage"]
        made = server.json("POST", "/states?name=book", document, expect=201)
        assert made["tokens"] == len(document), made
        by_prompt = server.complete(prompt=document + "the", max_tokens=30, seed=9)
        by_state = server.complete(state="book", prompt="the", max_tokens=30, seed=9)
        assert by_state["usage"]["prompt_tokens"] == by_prompt["usage"]["prompt_tokens"]
        again = server.complete(state="book", prompt="the", max_tokens=30, seed=9)
        assert text_of(again) == text_of(by_state)
        server.json("POST", "/states/book/fork", {"to": "copy"}, expect=201)
        status, _, file = server.call("GET", "/states/book")
        assert status == 200
        server.json("DELETE", "/states/book")
        assert server.call("GET", "/states/book")[0] == 404
        status, _, text = server.call("PUT", "/states/again", file)
        assert status == 201, text
        assert text_of(server.complete(state="again", prompt="the", max_tokens=30, seed=9)) == text_of(by_state)
        assert text_of(server.complete(state="copy", prompt="the", max_tokens=30, seed=9)) == text_of(by_state)
        assert server.call("PUT", "/states/bad", b"no state file")[0] == 400
        damaged = bytearray(file)
        damaged[-5] ^= 1
        assert server.call("PUT", "/states/bad", bytes(damaged))[0] == 400
        listed = {s["name"]: s for s in server.json("GET", "/states")["states"]}
        assert set(listed) == {"half", "copy", "again"} and listed["copy"]["tokens"] == len(document)
        for i in range(10):
            server.complete(prompt="a", max_tokens=1, save_state=f"s{i}")
        names = {s["name"] for s in server.json("GET", "/states")["states"]}
        assert len(names) == 8 and "half" not in names and "s9" in names, names
        assert server.stop() == 0
    with Server(t.binary, [run], "--state-folder", folder) as server:
        assert text_of(server.complete(state="again", prompt="the", max_tokens=30, seed=9)) == text_of(by_state) if "again" in {
            s["name"] for s in server.json("GET", "/states")["states"]} else True
        assert len(server.json("GET", "/states")["states"]) == 8
    other = t.models.language("other", steps=3)
    with Server(t.binary, [other]) as server:
        status, _, text = server.call("PUT", "/states/foreign", file)
        assert status == 409, (status, text)


def utf8(t):
    """every frame of a byte model with random weights is UTF-8 and JSON"""
    count = t.count(60, 10000)
    broken = 0
    with Server(t.binary, [t.run("language")], "--queue", 1024) as server:
        lock = threading.Lock()
        numbers = iter(range(count))

        def work():
            nonlocal broken
            while True:
                with lock:
                    i = next(numbers, None)
                if i is None:
                    return
                events = server.stream(prompt="é", max_tokens=24, seed=i, temperature=2.0)
                text = "".join(e["choices"][0]["text"] for e in events)
                if i % 10 == 0:
                    assert text == text_of(server.complete(prompt="é", max_tokens=24, seed=i, temperature=2.0))
                with lock:
                    broken += "\ufffd" in text

        errors = in_threads(8, work)
        assert not errors, errors[0]
        t.figure(f"{count:,} streams of random bytes", "every frame valid UTF-8 and JSON", f"all valid; {broken:,} texts held bytes that are no UTF-8", broken > 0)


def in_threads(number, work):
    errors = []

    def guarded():
        try:
            work()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def interleaved(t):
    """seeded requests beside others, some hostile, are what they are alone, bit for bit"""
    count = t.count(200, 10000)
    kinds = []
    for i in range(24):
        kinds.append({"prompt": "the old house " * (1 + 5 * (i % 7)), "max_tokens": 10 + 7 * (i % 5), "seed": i, "n": 1 + (i % 3 == 2),
                      "temperature": 0.5 + 0.1 * (i % 6), "top_k": 50 * (i % 2), "logprobs": 1})
    with Server(t.binary, [t.run("language")], "--queue", 1024) as server:
        alone = [server.complete(**kind)["choices"] for kind in kinds]
        draw = random.Random(6)
        order = [draw.randrange(len(kinds)) for _ in range(count)]
        lock = threading.Lock()
        left = iter(order)
        hostile = 0

        def work():
            nonlocal hostile
            while True:
                with lock:
                    which = next(left, None)
                    bad = draw.random() < 0.02
                    hostile += bad
                if which is None:
                    return
                if bad:
                    with server.connect() as s:
                        body = json.dumps({"prompt": "x" * 500, "max_tokens": 5000, "stream": True}).encode()
                        s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                        s.recv(100)
                else:
                    assert server.complete(**kinds[which])["choices"] == alone[which], kinds[which]

        errors = in_threads(12, work)
        assert not errors, errors[0]
        t.figure(f"{count:,} seeded requests by 12 clients at once, 1 in 50 hostile", "equal to solo runs",
                 f"{count - hostile:,} texts and log-probabilities as alone, {hostile} hostile", hostile > 0)


def others(t):
    """translation and images beside the language model, alone and together"""
    runs = [t.run("language"), "letters=" + t.run("translation"), "pictures=" + t.run("images")]
    with Server(t.binary, runs) as server:
        assert [m["task"] for m in server.json("GET", "/v1/models")["data"]] == ["lm", "translation", "image"]
        assert server.json("GET", "/languages")[0]["code"] == "de"
        one = server.json("POST", "/translate", {"q": "abcd", "source": "de", "target": "en", "alternatives": 2})
        assert isinstance(one["translatedText"], str) and len(one["alternatives"]) == 2, one
        lines = ["abc", "hgf", "", "bcd\nefg"]
        alone = [server.json("POST", "/translate", {"q": q})["translatedText"] for q in lines]
        assert server.json("POST", "/translate", {"q": lines})["translatedText"] == alone
        written = subprocess.run([t.binary, "translate", t.run("translation")], input="abc\nhgf\n", check=True, capture_output=True,
                                 text=True).stdout.splitlines()
        assert written == alone[:2], (written, alone)
        assert alone[3].count("\n") == 1
        assert server.json("POST", "/translate", {"q": "a", "source": "xx", "target": "yy"}, expect=400)
        assert server.json("POST", "/translate", {"q": "a", "beam": 33}, expect=422)
        picture = png(20, 20)
        best = server.json("POST", "/classify?top=2", picture)
        assert len(best["classes"]) == 2 and abs(sum(c["probability"] for c in best["classes"]) - 1) < 1e-6, best
        heat = server.json("POST", "/classify?top=1&heat=true", picture)["heat"]
        assert len(heat) == 2 and all(base64.b64decode(h["png"]).startswith(b"\x89PNG") for h in heat), heat
        looked = server.json("POST", "/translate", {"q": "abcd", "attention": True})["attention"]
        assert len(looked["source"]) == 5 and len(looked["weights"]) == len(looked["target"])
        assert all(abs(sum(row) - 1) < 1e-6 for row in looked["weights"])
        form = (b"--b\r\nContent-Disposition: form-data; name=\"top\"\r\n\r\n2\r\n--b\r\nContent-Disposition: form-data; name=\"image\"; "
                b"filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\n" + picture + b"\r\n--b--\r\n")
        status, _, text = server.call("POST", "/classify", form, {"Content-Type": "multipart/form-data; boundary=b"})
        assert status == 200 and json.loads(text) == best, text
        assert server.call("POST", "/classify", picture[:60])[0] == 400
        assert server.call("POST", "/classify", png(8000, 1)[:-20])[0] == 400
        seeded = {"prompt": "old", "max_tokens": 60, "seed": 2, "model": "novel"}
        text = text_of(server.complete(**seeded))

        def mixed():
            for _ in range(5):
                assert server.json("POST", "/translate", {"q": lines})["translatedText"] == alone
                assert server.json("POST", "/classify?top=2", picture) == best
                assert text_of(server.complete(**seeded)) == text

        errors = in_threads(4, mixed)
        assert not errors, errors[0]


TRIALS = {"completions": completions, "states": states, "utf8": utf8, "interleaved": interleaved,
          "others": others}
