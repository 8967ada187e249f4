"""Headless Chromium driven over its DevTools protocol, with the standard library alone."""

import base64
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


def program():
    """The path of a Chromium, or None."""
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


class WebSocket:
    """A client connection: text messages of any length, no extensions."""

    def __init__(self, url, timeout=30.0):
        host, path = url[len("ws://"):].split("/", 1)
        name, port = host.rsplit(":", 1)
        self.socket = socket.create_connection((name, int(port)), timeout)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        self.reader = self.socket.makefile("rb")
        status = self.reader.readline()
        assert b" 101 " in status, status
        while self.reader.readline().strip():
            pass

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        length = len(data)
        if length < 126:
            head = struct.pack(">BB", 0x81, 0x80 | length)
        elif length < 65536:
            head = struct.pack(">BBH", 0x81, 0xFE, length)
        else:
            head = struct.pack(">BBQ", 0x81, 0xFF, length)
        stretched = (mask * (length // 4 + 1))[:length]
        masked = (int.from_bytes(data, "big") ^ int.from_bytes(stretched, "big")).to_bytes(length, "big")
        self.socket.sendall(head + mask + masked)

    def receive(self):
        """The next text message."""
        parts = []
        while True:
            first, second = self.reader.read(2)
            length = second & 0x7F
            if length == 126:
                length = struct.unpack(">H", self.reader.read(2))[0]
            elif length == 127:
                length = struct.unpack(">Q", self.reader.read(8))[0]
            data = self.reader.read(length)
            if first & 0x0F in (0, 1):
                parts.append(data)
                if first & 0x80:
                    return b"".join(parts).decode()

    def close(self):
        self.reader.close()
        self.socket.close()


class Browser:
    """One page of a headless Chromium. Script errors, failed loads and CSP violations collect in `problems`."""

    def __init__(self, width=1200, height=900):
        self.folder = tempfile.TemporaryDirectory(prefix="rondo-browser-", ignore_cleanup_errors=True)
        self.process = subprocess.Popen(
            [program(), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-port=0", f"--window-size={width},{height}",
             f"--user-data-dir={self.folder.name}", "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port = self._port()
        pages = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=30))
        self.socket = WebSocket(next(page["webSocketDebuggerUrl"] for page in pages if page["type"] == "page"))
        self.calls, self.problems, self.loaded = 0, [], False
        for domain in ("Page", "Runtime", "Log", "DOM"):
            self.command(domain + ".enable")

    def _port(self):
        path = pathlib.Path(self.folder.name) / "DevToolsActivePort"
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if path.exists() and path.read_text().count("\n") >= 1:
                return int(path.read_text().split("\n")[0])
            assert self.process.poll() is None, f"chromium ended with {self.process.returncode}"
            time.sleep(0.05)
        raise RuntimeError("chromium did not start within a minute")

    def _note(self, message):
        method, about = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(about["exceptionDetails"].get("exception", {}).get("description", "exception"))
        elif method == "Log.entryAdded" and about["entry"]["level"] == "error":
            self.problems.append(about["entry"]["text"] + " " + about["entry"].get("url", ""))
        elif method == "Page.loadEventFired":
            self.loaded = True

    def command(self, method, **parameters):
        self.calls += 1
        self.socket.send(json.dumps({"id": self.calls, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.receive())
            if message.get("id") == self.calls:
                assert "error" not in message, (method, message["error"])
                return message["result"]
            self._note(message)

    def open(self, url):
        self.loaded = False
        self.command("Page.navigate", url=url)
        while not self.loaded:
            self._note(json.loads(self.socket.receive()))

    def js(self, expression):
        """The value of an expression; promises are awaited."""
        result = self.command("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, (expression, result["exceptionDetails"])
        return result["result"].get("value")

    def wait(self, expression, seconds=60.0):
        """Waits until the expression is true; returns its value."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            value = self.js(expression)
            if value:
                return value
            time.sleep(0.02)
        raise AssertionError(f"not true within {seconds} s: {expression}")

    def choose_file(self, selector, path):
        root = self.command("DOM.getDocument")["root"]["nodeId"]
        node = self.command("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.command("DOM.setFileInputFiles", nodeId=node, files=[str(path)])

    def press(self, key, code, modifiers=0):
        for kind in ("rawKeyDown", "keyUp"):
            self.command("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, modifiers=modifiers)

    def dark(self, on):
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if on else "light"}])

    def resize(self, width, height):
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def screenshot(self, path):
        pathlib.Path(path).write_bytes(base64.b64decode(self.command("Page.captureScreenshot", format="png")["data"]))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        self.process.terminate()
        self.process.wait(30)
        self.folder.cleanup()
