"""Clients: rondo_client, curl, and the real openai client where it is installed."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

from server import Server, png

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python"))


def python_client(t):
    """python/rondo_client: texts, streams, states, translation, images, errors"""
    import rondo_client
    with rondo_client.load(t.run("language"), rondo=t.binary) as model:
        text = model.generate("the old", max_tokens=30, seed=1)
        assert text.completion_tokens == 30 and text.seed == 1
        assert "".join(model.generate("the old", max_tokens=30, seed=1, stream=True)) == str(text)
        stream = model.generate("the old", max_tokens=50000, stream=True)
        next(stream)
        stream.close()
        document = t.folder / "client.txt"
        document.write_text("quiet old hill " * 2000)
        book = model.read(document, name="book")
        assert book.info()["tokens"] == 30000
        first = book.generate("the", max_tokens=20, seed=2)
        assert first.cached_tokens == 30000
        fork = book.fork("copy")
        book.save(t.folder / "client.state")
        book.delete()
        restored = rondo_client.State.load(model, t.folder / "client.state", "restored")
        assert str(fork.generate("the", max_tokens=20, seed=2)) == str(restored.generate("the", max_tokens=20, seed=2)) == str(first)
        other = rondo_client.connect(model.address, "novel")
        assert set(other.states()) == {"copy", "restored"}
        for work, status in ((lambda: model.state("book"), 404), (lambda: model.generate("a", max_tokens=-1), 422),
                             (lambda: rondo_client.connect(model.address, "none"), 404)):
            try:
                work()
                raise AssertionError("expected a RondoError")
            except rondo_client.RondoError as error:
                assert error.status == status, error
        process = model._process
    assert process.poll() == 0, "the server still runs"
    with rondo_client.load(t.run("translation"), rondo=t.binary) as model:
        found = model.translate(["abc", "fgh"], beam=4, n_best=3)
        assert len(found) == 2 and len(found[0].texts) == 3
    with rondo_client.load(t.run("images"), rondo=t.binary) as model:
        path = t.folder / "client.png"
        path.write_bytes(png(20, 20))
        by_path, by_bytes = model.classify([path, png(20, 20)], top=2)
        assert by_path == by_bytes and len(by_path) == 2


def installed_client(t):
    """pip install ./python (a copy), then the client in a Python that knows nothing else of it"""
    copy, target = t.folder / "python", t.folder / "site"
    shutil.copytree(ROOT / "python", copy)
    pip = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--target", target, copy], capture_output=True, text=True)
    if pip.returncode != 0:
        t.say("skipped: pip cannot install it here: " + (pip.stderr.strip().splitlines() or ["?"])[-1])
        return
    program = ("import rondo_client, sys\n"
               "with rondo_client.load(sys.argv[1], rondo=sys.argv[2]) as model:\n"
               "    print(rondo_client.__file__, len(str(model.generate('the old', max_tokens=8, seed=1))))\n")
    found = subprocess.run([sys.executable, "-c", program, t.run("language"), os.path.abspath(t.binary)], capture_output=True, text=True, cwd=t.folder,
                           env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(target)})
    assert found.returncode == 0 and str(target) in found.stdout, (found.stdout, found.stderr)


def other_clients(t):
    """curl, and the openai client from PyPI if this Python has it"""
    if not shutil.which("curl"):
        t.say("skipped: no curl (apt-get install curl)")
        return
    with Server(t.binary, [t.run("language")]) as server:
        # Long enough for curl to send Expect: 100-continue, with no more tokens than a prompt may have.
        body = json.dumps({"prompt": "x" * 1000000, "max_tokens": 3}) + " " * 200000
        reply = subprocess.run(["curl", "-sS", "--fail", server.address + "/tokenize", "-d", "@-"], input=json.dumps({"content": "abc"}),
                               check=True, capture_output=True, text=True)
        assert len(json.loads(reply.stdout)["tokens"]) == 3
        if t.long:
            subprocess.run(["curl", "-sS", "--fail", server.address + "/v1/completions", "-d", "@-"], input=body, check=True,
                           capture_output=True, text=True)
        upload = subprocess.run(["curl", "-sS", "--fail", "-T", "-", "-X", "POST", server.address + "/states?name=piped"], input="abc " * 5000,
                                check=True, capture_output=True, text=True)
        assert json.loads(upload.stdout)["tokens"] == 20000
        stream = subprocess.run(["curl", "-sS", "-N", server.address + "/v1/completions", "-d", '{"prompt":"a","max_tokens":5,"stream":true}'],
                                check=True, capture_output=True, text=True).stdout
        assert stream.endswith("data: [DONE]\n\n")
        t.say("curl: bodies, chunked upload, stream")
        python = t.openai_python
        if subprocess.run([python, "-c", "import openai"], capture_output=True).returncode != 0:
            t.say("openai: not installed, left out")
            return
        script = pathlib.Path(__file__).resolve().parent / "openai_client.py"
        done = subprocess.run([python, script, server.address], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        t.say(done.stdout.strip())


TRIALS = {"python_client": python_client, "installed_client": installed_client, "other_clients": other_clients}
