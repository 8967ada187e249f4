"""Models and saved states."""

import os
import shutil
import subprocess
import tempfile
import urllib.parse
from dataclasses import dataclass, field
from typing import List, Optional

from .transport import RondoError, Transport


@dataclass
class Generation:
    """A generated text and its statistics."""

    text: str
    finish_reason: str
    seed: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int

    def __str__(self):
        return self.text


@dataclass
class Translation:
    """The translations of one text, best first."""

    texts: List[str] = field(default_factory=list)

    def __str__(self):
        return self.texts[0]


def connect(address, model=None, api_key=None, timeout=600.0):
    """The model named `model` (default: the first) of a running server."""
    return Model(Transport(address, api_key, timeout), model)


def load(path, rondo=None, options=(), timeout=600.0):
    """Starts a server for a model on a free local port; close() or the end of `with` stops it.

    rondo: the program; default: $RONDO, otherwise the one on the PATH. options: additional options of `rondo serve`.
    """
    program = rondo or os.environ.get("RONDO") or shutil.which("rondo")
    if not program:
        raise FileNotFoundError("the program rondo was not found: pass load(..., rondo=PATH), or set RONDO")
    command = [program, "serve", os.fspath(path), "--listen", "127.0.0.1:0", *map(str, options)]
    errors = tempfile.TemporaryFile("w+")
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True)
    address = process.stdout.readline().strip()
    if not address:
        process.wait()
        errors.seek(0)
        raise RondoError(process.returncode, errors.read().strip() or "the server did not start")
    return Model(Transport(address, None, timeout), None, process)


class Model:
    """A model of a server."""

    def __init__(self, transport, name=None, process=None):
        self._transport = transport
        self._process = process
        models = transport.json("GET", "/v1/models")["data"]
        found = [m for m in models if name is None or m["id"] == name]
        if not found:
            raise RondoError(404, f"model {name!r} does not exist; the server has {', '.join(m['id'] for m in models)}")
        self.name, self.task = found[0]["id"], found[0]["task"]

    @property
    def address(self):
        return self._transport.address

    def close(self):
        """Stops the server if load() started it."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process.stdout.close()
            self._process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def generate(self, prompt="", max_tokens=256, temperature=1.0, seed=None, state=None, stream=False, save_state=None, **more):
        """Returns a Generation, or with stream=True an iterator over text chunks. state: a State or its name. more: fields of /v1/completions."""
        body = {"model": self.name, "prompt": prompt, "max_tokens": max_tokens, "temperature": temperature, **more}
        if seed is not None:
            body["seed"] = seed
        if state is not None:
            body["state"] = str(state)
        if save_state is not None:
            body["save_state"] = save_state
        if stream:
            events = self._transport.events("/v1/completions", {**body, "stream": True})
            return (e["choices"][0]["text"] for e in events if e["choices"])
        reply = self._transport.json("POST", "/v1/completions", body)
        usage, choice = reply["usage"], reply["choices"][0]
        return Generation(choice["text"], choice["finish_reason"], reply["seed"], usage["prompt_tokens"],
                          usage["prompt_tokens_details"]["cached_tokens"], usage["completion_tokens"])

    def read(self, document, name):
        """Returns the State after a document (a path or an open binary file), which is streamed to the server."""
        query = urllib.parse.urlencode({"name": name, "model": self.name})
        if hasattr(document, "read"):
            self._transport.json("POST", "/states?" + query, document, "text/plain")
        else:
            with open(document, "rb") as file:
                self._transport.json("POST", "/states?" + query, file, "text/plain")
        return State(self, name)

    def state(self, name):
        """The saved state named `name`. Raises RondoError if it does not exist."""
        if name not in self.states():
            raise RondoError(404, f"state {name!r} does not exist")
        return State(self, name)

    def states(self):
        """All saved states of the server: name → model, tokens, bytes, age and idle time."""
        return {s["name"]: s for s in self._transport.json("GET", "/states")["states"]}

    def load_state(self, path, name):
        """Restores a state file written by State.save() or `rondo generate --state-out`."""
        with open(path, "rb") as file:
            self._transport.json("PUT", "/states/" + urllib.parse.quote(name, safe=""), file, "application/octet-stream")
        return State(self, name)

    def translate(self, texts, beam=5, n_best=1):
        """Returns a Translation for each text."""
        body = {"q": list(texts), "beam": beam, "alternatives": n_best - 1, "model": self.name}
        reply = self._transport.json("POST", "/translate", body)
        others = reply.get("alternatives") or [[] for _ in reply["translatedText"]]
        return [Translation([best, *more]) for best, more in zip(reply["translatedText"], others)]

    def classify(self, images, top=5):
        """Returns the most likely classes of each image (a path, or the bytes of a JPEG or PNG file): [{"name", "probability", ...}]."""
        query = urllib.parse.urlencode({"top": top, "model": self.name})
        results = []
        for image in images:
            if not isinstance(image, (bytes, bytearray)):
                with open(image, "rb") as file:
                    image = file.read()
            results.append(self._transport.json("POST", "/classify?" + query, bytes(image), "application/octet-stream")["classes"])
        return results


class State:
    """The state after a document, kept by the server under a name."""

    def __init__(self, model, name):
        self.model, self.name = model, name

    def __str__(self):
        return self.name

    @property
    def _path(self):
        return "/states/" + urllib.parse.quote(self.name, safe="")

    def generate(self, prompt="", **fields):
        return self.model.generate(prompt, state=self, **fields)

    def fork(self, name):
        self.model._transport.json("POST", self._path + "/fork", {"to": name})
        return State(self.model, name)

    def save(self, path):
        """Writes the state to a file."""
        data = self.model._transport.bytes("GET", self._path)
        temporary = f"{os.fspath(path)}.part"
        with open(temporary, "wb") as file:
            file.write(data)
        os.replace(temporary, path)

    @staticmethod
    def load(model, path, name):
        return model.load_state(path, name)

    def delete(self):
        self.model._transport.json("DELETE", self._path)

    def info(self) -> Optional[dict]:
        return self.model.states().get(self.name)
