"""Servers that are told to end: while they start, load and run."""

import os
import random
import signal
import subprocess
import threading
import time

from faults import send_completion
from server import Server


def terminate(t):
    """SIGTERM while requests run and wait: no new ones, all finished, exit code 0, states kept"""
    running, waiting = 16, 32
    folder = t.folder / "kept"
    with Server(t.binary, [t.run("language")], "--state-folder", folder, "--connections-per-address", 128) as server:
        results = []

        def work(i):
            status, _, text = server.call("POST", "/v1/completions", {"prompt": "a", "max_tokens": 6000, "seed": i, "save_state": f"s{i}"})
            results.append((status, text))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(running + waiting)]
        for thread in threads:
            thread.start()
        until = time.monotonic() + 20
        while server.metric("rondo_queued") < waiting and time.monotonic() < until:
            time.sleep(0.01)
        busy = (server.metric("rondo_running"), server.metric("rondo_queued"))
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        try:
            refused = server.call("POST", "/v1/completions", {"prompt": "a", "max_tokens": 1}, timeout=5)[0]
        except OSError:
            refused = 0
        code = server.process.wait(60)
        took = time.monotonic() - began
        for thread in threads:
            thread.join()
        finished = sum(status == 200 for status, _ in results)
        assert all(status in (200, 503) for status, _ in results), results
        kept = len(list(folder.glob("*.state")))
    with Server(t.binary, [t.run("language")], "--state-folder", folder) as server:
        loaded = len(server.json("GET", "/states")["states"])
    assert busy == (running, waiting), f"running and queued when the signal was sent: {busy}"
    t.figure(f"SIGTERM with {running} running and {waiting} queued", "no new work; ends within 30 s; exit code 0; states flushed",
             f"a new one got {refused or 'no connection'}; {finished} finished, {len(results) - finished} told no; {took:.1f} s; exit code {code}; "
             f"{kept} states in files, {loaded} loaded again",
             code == 0 and took <= 31 and refused in (0, 503) and kept == finished == loaded)


def second_signal(t):
    """a second signal ends it at once"""
    with Server(t.binary, [t.run("language")]) as server:
        with server.connect() as s:
            send_completion(s, prompt="a", max_tokens=65000, stream=True)
            s.recv(100)
            server.process.send_signal(signal.SIGINT)
            time.sleep(0.3)
            began = time.monotonic()
            assert server.stop(signal.SIGINT) == 0
            took = time.monotonic() - began
            t.figure("second signal", "ends at once, exit code 0", f"{took:.2f} s, exit code 0", took < 5)


def blocks_signals(pid):
    """Whether the program has taken charge of SIGTERM (which it does before anything else)."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        for line in f:
            if line.startswith("SigBlk:"):
                return int(line.split()[1], 16) >> (signal.SIGTERM - 1) & 1 == 1
    return False


def signals_while_loading(t):
    """SIGTERM and SIGINT from the first moments until all models are loaded: exit code 0, no socket or folder left behind"""
    models = [f"m{i}={t.run('language')}" for i in range(t.count(20, 100))]
    path = t.folder / "stopped.sock"
    draw = random.Random(8)
    whole = time.monotonic()
    with Server(t.binary, models, listen=f"unix:{path}") as server:
        whole = time.monotonic() - whole
        assert server.stop() == 0
    early, codes, slowest, count = 0, {}, 0.0, t.count(8, 60)
    for i in range(count):
        process = subprocess.Popen([t.binary, "serve", *models, "--listen", f"unix:{path}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        while not blocks_signals(process.pid):
            assert process.poll() is None
        time.sleep(whole * (0.0 if i == 0 else draw.random()))
        began = time.monotonic()
        process.send_signal(draw.choice((signal.SIGTERM, signal.SIGINT)))
        output = process.communicate(timeout=60)[0]
        slowest = max(slowest, time.monotonic() - began)
        early += output == b""
        codes[process.returncode] = codes.get(process.returncode, 0) + 1
        assert not path.exists(), "the socket was left behind"
        for place in ("/dev/shm", "/tmp"):
            assert not [name for name in os.listdir(place) if name.startswith(f"rondo-serve-{process.pid}-")], "a folder was left behind"
    t.figure(f"{count} signals within the {whole:.1f} s of starting, {early} before the address was printed", "exit code 0, at once",
             ", ".join(f"{n} × {code}" for code, n in codes.items()) + f"; ended after {slowest:.2f} s at most", set(codes) == {0} and early > 0)


TRIALS = {"terminate": terminate, "second_signal": second_signal, "signals_while_loading": signals_while_loading}
