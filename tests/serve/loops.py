"""Language models that reuse blocks, played with other numbers of loops."""

from server import Server


def loops(t):
    """`loops` of completions: the trained number is the default, others are served with --loops; states belong to one number"""
    universal = t.models.language("universal", depth='scheme = "universal"\nlevels = 3', time='kind = "window"\nwindow = 16\nsegment = 64')
    asked = {"prompt": "the old house", "max_tokens": 30, "seed": 4}
    with Server(t.binary, [universal, "plain=" + t.run("language")], "--loops", "2,5") as server:
        listed = {m["name"]: m["loops"] for m in server.json("GET", "/props")["language"]}
        assert listed == {"universal": [3, 2, 5], "plain": []}, listed
        usual = server.complete(**asked)
        logprobs = {}
        for number in (2, 3, 5):
            reply = server.complete(**asked, loops=number, logprobs=1)
            logprobs[number] = reply["choices"][0]["logprobs"]["token_logprobs"]
            if number == 3:
                assert reply["choices"][0]["text"] == usual["choices"][0]["text"]
        assert len({tuple(numbers) for numbers in logprobs.values()}) == 3, "other loops make no difference"
        error = server.complete(**asked, loops=4, expect=422)["error"]
        assert error["param"] == "loops" and "3 (as trained), 2, 5" in error["message"], error
        assert server.complete(**asked, loops=2, model="plain", expect=400)["error"]["param"] == "loops"
        server.complete(**asked, loops=2, save_state="two")
        assert server.complete(state="two", max_tokens=3, loops=2)["usage"]["prompt_tokens_details"]["cached_tokens"] == 43
        assert "loops" in server.complete(state="two", max_tokens=3, expect=409)["error"]["message"]
        file = server.call("GET", "/states/two")[2]
        assert server.call("PUT", "/states/again", file)[0] == 201
        server.complete(state="again", max_tokens=3, loops=2)
        server.json("POST", "/states?name=read&loops=5", "the old house", expect=201)
        server.complete(state="read", max_tokens=3, loops=5)
        assert server.call("POST", "/states?name=read&loops=4", "the old house")[0] == 422
    refused = Server.refused(t.binary, [t.run("language")], "--loops", "2")
    assert refused.returncode == 2 and "--loops" in refused.stderr, refused


TRIALS = {"loops": loops}
