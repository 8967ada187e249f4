"""Disconnecting clients, and servers that are stopped."""

import json
import random
import signal
import threading
import time

from server import Server
from texts import in_threads


def send_completion(s, **fields):
    body = json.dumps(fields).encode()
    s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


def disconnects(t):
    """clients that go away while queued, while their prompt is read, in mid-stream: nothing is left of them"""
    count = t.count(60, 2000)
    with Server(t.binary, [t.run("language")], "--running", 4, "--queue", 4096, "--connections-per-address", 4096) as server:
        server.complete(prompt="warm up", max_tokens=5)
        memory, files = None, server.descriptors()
        draw = random.Random(7)
        for i in range(count):
            with server.connect() as s:
                kind = i % 3
                if kind == 0:  # in mid-stream
                    send_completion(s, prompt="x", max_tokens=60000, stream=True)
                    s.recv(200)
                elif kind == 1:  # while a long prompt is read
                    send_completion(s, prompt="y" * 50000, max_tokens=10, stream=True)
                    time.sleep(draw.random() * 0.01)
                else:  # while others are ahead
                    first = [server.connect() for _ in range(5)]
                    for other in first:
                        send_completion(other, prompt="z", max_tokens=60000, stream=True)
                    send_completion(s, prompt="w", max_tokens=10)
                    for other in first:
                        other.close()
            if i == count // 2:
                server.wait_idle()
                memory = server.rss()
        began = time.monotonic()
        assert server.wait_idle(5), "slots are still taken"
        t.say(f"{count} disconnects: all slots free {1e3 * (time.monotonic() - began):.0f} ms after the last; descriptors {files} before, "
              f"{server.descriptors()} after; memory {100 * (server.rss() / memory - 1):+.1f} % in the second half")
        assert server.descriptors() <= files + 3
        assert server.rss() < 1.1 * memory
        assert server.complete(prompt="the", max_tokens=5, seed=1)


def terminate(t):
    """SIGTERM while requests run and wait: no new ones, all finished, exit code 0, states kept"""
    running, waiting = 16, 32
    folder = t.folder / "kept"
    with Server(t.binary, [t.run("language")], "--state-folder", folder, "--connections-per-address", 128) as server:
        results = []

        def work(i):
            status, _, text = server.call("POST", "/v1/completions", {"prompt": "a", "max_tokens": 2000, "seed": i, "save_state": f"s{i}"})
            results.append((status, text))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(running + waiting)]
        for thread in threads:
            thread.start()
        until = time.monotonic() + 20
        while server.metric("rondo_queued") < waiting and time.monotonic() < until:
            time.sleep(0.01)
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        try:
            refused = server.call("POST", "/v1/completions", {"prompt": "a", "max_tokens": 1}, timeout=5)[0]
        except OSError:
            refused = 0
        code = server.process.wait(60)
        took = time.monotonic() - began
        for thread in threads:
            thread.join()
        finished = sum(status == 200 for status, _ in results)
        t.say(f"SIGTERM with {running} running and {waiting} waiting: {finished} finished, {len(results) - finished} told no, a new one got "
              f"{refused or 'no connection'}; ended after {took:.1f} s with exit code {code}")
        assert code == 0 and took <= 31 and refused in (0, 503), server.errors()
        assert all(status in (200, 503) for status, _ in results), results
        kept = len(list(folder.glob("*.state")))
        assert kept == finished, (kept, finished)


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
            assert time.monotonic() - began < 5


def queue_full(t):
    """a burst beyond the queue: refusals are 429 at once, all accepted complete, /health answers throughout"""
    count, clients = t.count((200, 60), (2000, 500))
    with Server(t.binary, [t.run("language")], "--connections-per-address", 4096, "--connections", 4096) as server:
        statuses, slow, health, stop = {}, [], [], threading.Event()
        lock = threading.Lock()
        numbers = iter(range(count))

        def work():
            while True:
                with lock:
                    i = next(numbers, None)
                if i is None:
                    return
                began = time.monotonic()
                status, headers, text = server.call("POST", "/v1/completions", {"prompt": "a", "max_tokens": 50, "seed": i})
                took = time.monotonic() - began
                with lock:
                    statuses[status] = statuses.get(status, 0) + 1
                    if status == 429:
                        slow.append(took)
                        assert headers["Retry-After"] and json.loads(text)["error"]["type"] == "rate_limit_error"

        def watch():
            while not stop.is_set():
                began = time.monotonic()
                assert server.call("GET", "/health")[0] == 200
                health.append(time.monotonic() - began)
                time.sleep(0.005)

        watcher = threading.Thread(target=watch)
        watcher.start()
        errors = in_threads(clients, work)
        stop.set()
        watcher.join()
        assert not errors, errors[0]
        slow.sort()
        health.sort()
        t.say(f"{count} requests by {clients} clients: " + ", ".join(f"{n} × {s}" for s, n in sorted(statuses.items())) +
              (f"; 429 after {1e3 * slow[len(slow) // 2]:.1f} ms (median), {1e3 * slow[int(0.99 * (len(slow) - 1))]:.1f} ms (p99)" if slow else "") +
              f"; /health {1e3 * health[len(health) // 2]:.1f} ms (median), {1e3 * health[int(0.99 * (len(health) - 1))]:.1f} ms (p99)")
        assert set(statuses) <= {200, 429}, statuses


def queue_really_full(t):
    """one running, four waiting: every further request is refused with 429 in less than 100 ms, and the waiting ones complete"""
    body = {"prompt": "a", "max_tokens": 2000, "seed": 1}
    with Server(t.binary, [t.run("language")], "--running", 1, "--queue", 4, "--connections-per-address", 64) as server:
        waiting, results = [], []
        first = threading.Thread(target=lambda: results.append(server.call("POST", "/v1/completions", dict(body, max_tokens=20000))[0]))
        first.start()
        while server.metric("rondo_running") < 1:
            time.sleep(0.005)
        for _ in range(4):
            waiting.append(threading.Thread(target=lambda: results.append(server.call("POST", "/v1/completions", body)[0])))
            waiting[-1].start()
        while server.metric("rondo_queued") < 4:
            time.sleep(0.005)
        times = []
        for i in range(t.count(20, 200)):
            began = time.monotonic()
            status, headers, _ = server.call("POST", "/v1/completions", dict(body, seed=i))
            times.append(time.monotonic() - began)
            if status != 429:
                break  # the first text ended: the queue has moved on
            assert int(headers["Retry-After"]) >= 1, headers
        for thread in [first, *waiting]:
            thread.join()
        refused = sorted(times[:-1] if status != 429 else times)
        assert len(refused) >= 10, "the queue was not full for long enough"
        assert refused[int(0.9 * len(refused))] < 0.1, refused[-5:]
        assert results.count(200) >= 5, results
        t.say(f"{len(refused)} refusals of a full queue: {1e3 * refused[len(refused) // 2]:.1f} ms (median), {1e3 * refused[-1]:.1f} ms (longest)")


TRIALS = {"queue_really_full": queue_really_full, "disconnects": disconnects, "terminate": terminate, "second_signal": second_signal, "queue_full": queue_full}
