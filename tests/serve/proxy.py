"""The files of docs/serving.md for a service: the nginx configuration in front of a server, the systemd unit checked by systemd itself."""

import base64
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import time

from server import Server

DOCUMENT = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "serving.md"


def block(language):
    """The document's only code block in this language."""
    return re.search(rf"```{language}\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.S).group(1)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Proxy:
    """nginx with the documented server block; only addresses and paths are changed."""

    def __init__(self, folder, socket_path):
        self.port = free_port()
        certificate, key, passwords = folder / "models.pem", folder / "models.key", folder / "passwords"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost", "-keyout", key, "-out", certificate],
                       check=True, capture_output=True)
        passwords.write_text("reader:{PLAIN}secret\n")
        changes = {"listen 443 ssl": f"listen 127.0.0.1:{self.port} ssl", "/etc/ssl/models.pem": certificate, "/etc/ssl/models.key": key,
                   "/etc/nginx/rondo.passwords": passwords, "/run/rondo/rondo.sock": socket_path}
        text = block("nginx")
        for old, new in changes.items():
            assert text.count(old) == 1, old
            text = text.replace(old, str(new))
        config = folder / "nginx.conf"
        temporary = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        config.write_text(f"user {pathlib.Path(folder).owner()};\ndaemon off;\npid {folder}/nginx.pid;\nerror_log {folder}/error.log;\nevents {{}}\n"
                          f"http {{\naccess_log off;\n{temporary}{text}}}\n")
        self.process = subprocess.Popen(["nginx", "-c", str(config), "-p", str(folder)], stderr=subprocess.PIPE, text=True)
        until = time.monotonic() + 20
        while time.monotonic() < until:
            assert self.process.poll() is None, self.process.stderr.read()
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.05)
        raise AssertionError("nginx does not listen")

    def connect(self):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context.wrap_socket(socket.create_connection(("127.0.0.1", self.port), 300))

    def send(self, method, path, body=b"", password="secret", **headers):
        """A connection on which the request was sent."""
        s = self.connect()
        fields = {"Host": f"127.0.0.1:{self.port}", "Connection": "close", "Content-Length": len(body), **{k.capitalize(): v for k, v in headers.items()}}
        if password:
            fields["Authorization"] = "Basic " + base64.b64encode(f"reader:{password}".encode()).decode()
        s.sendall(f"{method} {path} HTTP/1.1\r\n".encode() + "".join(f"{k}: {v}\r\n" for k, v in fields.items()).encode() + b"\r\n" + body)
        return s

    def status(self, *request, **options):
        with self.send(*request, **options) as s:
            return int(s.recv(65536).split(b" ", 2)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)
        self.process.stderr.close()


def stream_times(proxy, tokens):
    """When each piece of a streamed completion arrived, in seconds after the request."""
    body = json.dumps({"prompt": "the old", "max_tokens": tokens, "seed": 1, "stream": True}).encode()
    times, began = [], time.monotonic()
    with proxy.send("POST", "/v1/completions", body) as s:
        data = b""
        while piece := s.recv(65536):
            times.append(time.monotonic() - began)
            data += piece
    assert b"data: [DONE]" in data, data[-300:]
    return times


def nginx(t):
    """the documented nginx configuration: password, page, streaming without buffering, uploads, other sites' pages"""
    if not shutil.which("nginx") or not shutil.which("openssl"):
        t.say("skipped: no nginx or openssl (apt-get install nginx-light openssl)")
        return
    folder = t.folder / "nginx"
    folder.mkdir()
    path = folder / "rondo.sock"
    with Server(t.binary, [t.run("language")], listen=f"unix:{path}"), Proxy(folder, path) as proxy:
        assert proxy.status("GET", "/health", password="") == 401
        assert proxy.status("GET", "/health", password="wrong") == 401
        assert proxy.status("GET", "/health") == 200 and proxy.status("GET", "/") == 200
        assert proxy.status("GET", "/v1/models", origin=f"https://127.0.0.1:{proxy.port}") == 200
        assert proxy.status("GET", "/v1/models", origin="https://evil.example") == 403
        times = stream_times(proxy, 12000)
        assert len(times) > 20 and times[0] < 0.5 * times[-1], "the stream was buffered"
        assert proxy.status("POST", "/states?name=book", b"the old house on the hill " * 1000) == 201
        assert proxy.status("PUT", "/states/none", b"x" * 1_100_000) == 400, "more than nginx accepts by default: our refusal, not its 413"
        t.say(f"12,000 tokens in {len(times)} pieces, the first after {1e3 * times[0]:.0f} ms, the last after {1e3 * times[-1]:.0f}; 1.1 MB passed on")


# What systemd does for the documented unit, as far as a shell can: a read-only system, private /run, /tmp and /var/lib, a user without capabilities.
SERVICE = """set -e
mount --make-rprivate /
cp -r {run} /dev/shm/{name}
for place in {places}; do mount -t tmpfs none $place; done
mkdir -p /run/rondo /var/lib/rondo/runs /var/lib/rondo/states
mv /dev/shm/{name} /var/lib/rondo/runs/novel
chown -R {user} /run/rondo /var/lib/rondo
mount -o remount,bind,ro /
umask {umask}
exec prlimit --nofile={files} {setpriv} {command}
"""
SETPRIV = "setpriv --reuid={user} --regid={user} --clear-groups --no-new-privs --bounding-set=-all --"


def service(t):
    """the ExecStart line of the documented unit, as another user in a read-only system: serves, saves states, ends with exit code 0"""
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "setpriv", "prlimit"))):
        t.say("skipped: needs root and util-linux")
        return
    settings = dict(line.split("=", 1) for line in block("ini").splitlines() if "=" in line)
    user, binary = "daemon", str(pathlib.Path(t.binary).resolve())
    # By a second program: the first one that setpriv starts may still be found with the capabilities of root.
    if subprocess.run([*SETPRIV.format(user=user).split(), "sh", "-c", 'test -r "$0"', binary]).returncode != 0:
        t.say(f"skipped: {user} cannot read {binary}")
        return
    # A private folder would hide a program below it.
    places = " ".join(place for place in ("/run", "/var/lib", "/tmp") if not binary.startswith(place + "/"))
    if not places.startswith("/run /var/lib"):
        t.say(f"skipped: {binary} is in a folder of the system")
        return
    command = settings["ExecStart"]
    assert command.startswith("/usr/bin/rondo serve ")
    script = SERVICE.format(run=t.run("language"), name=t.folder.name, places=places, user=user, setpriv=SETPRIV.format(user=user),
                            umask=settings["UMask"], files=settings["LimitNOFILE"], command=command.replace("/usr/bin/rondo", binary, 1))
    process = subprocess.Popen(["unshare", "-m", "bash", "-c", script], stdout=subprocess.PIPE, text=True)
    inside = f"/proc/{process.pid}/root"
    with Server.started(process, inside + "/run/rondo/rondo.sock") as server:
        assert process.stdout.readline() == "unix:/run/rondo/rondo.sock\n"
        assert server.json("GET", "/health") == {"status": "ok"}
        server.complete(prompt="the", max_tokens=5, save_state="kept")
        assert os.stat(server.host).st_mode & 0o777 == 0o700
        with open(f"/proc/{process.pid}/status", encoding="ascii") as f:
            status = dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)
        assert status["NoNewPrivs"] == "1" and int(status["CapBnd"], 16) == 0, status
        saved = pathlib.Path(inside + "/var/lib/rondo/states/kept.state")
        until = time.monotonic() + 10
        while not saved.exists() and time.monotonic() < until:
            time.sleep(0.02)
        assert saved.stat().st_mode & 0o77 == 0
        assert server.stop() == 0
    t.say("ExecStart with another program path and user: served, saved a state, ended with exit code 0")


def systemd(t):
    """the documented systemd unit, by systemd-analyze verify"""
    if not shutil.which("systemd-analyze"):
        t.say("skipped: no systemd-analyze")
        return
    unit = t.folder / "rondo.service"
    text = block("ini").replace("/usr/bin/rondo", str(pathlib.Path(t.binary).resolve())).replace("User=rondo", "User=daemon")
    unit.write_text(text)
    found = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", unit], capture_output=True, text=True)
    wrong = [line for line in found.stderr.splitlines() if "rondo.service" in line]
    assert found.returncode == 0 and not wrong, found.stderr


TRIALS = {"nginx": nginx, "systemd": systemd, "service": service}
