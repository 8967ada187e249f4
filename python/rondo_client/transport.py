"""HTTP to one server: TCP or a Unix socket."""

import http.client
import json
import socket


class RondoError(Exception):
    """An error from the server, with its HTTP status and the offending field; from load(), with the exit code of a server that did not start."""

    def __init__(self, status, message, param=None):
        super().__init__(message)
        self.status = status
        self.param = param


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Transport:
    """Requests to `address`, as `rondo serve` prints it: http://HOST:PORT or unix:PATH. One connection per request."""

    def __init__(self, address, api_key=None, timeout=600.0):
        self.address = address
        self._api_key = api_key
        self._timeout = timeout

    def _connection(self):
        if self.address.startswith("unix:"):
            return _UnixConnection(self.address[5:], self._timeout)
        if not self.address.startswith("http://"):
            raise ValueError(f"expected an address like http://127.0.0.1:8080 or unix:/path.sock, got {self.address!r}")
        return http.client.HTTPConnection(self.address[len("http://"):].rstrip("/"), timeout=self._timeout)

    def open(self, method, path, body=None, content_type=None):
        """Returns (connection, response); the caller reads and closes. Raises RondoError unless the status is 2xx."""
        headers = {}
        if self._api_key:
            headers["Authorization"] = "Bearer " + self._api_key
        if isinstance(body, (dict, list)):
            body, content_type = json.dumps(body).encode(), "application/json"
        if content_type:
            headers["Content-Type"] = content_type
        connection = self._connection()
        try:
            # A body of unknown length (a file) is sent in chunks, as it is read.
            connection.request(method, path, body, headers, encode_chunked=False)
            response = connection.getresponse()
            if response.status >= 300:
                raise _error(response.status, response.read())
            return connection, response
        except BaseException:
            connection.close()
            raise

    def bytes(self, method, path, body=None, content_type=None):
        connection, response = self.open(method, path, body, content_type)
        try:
            return response.read()
        finally:
            connection.close()

    def json(self, method, path, body=None, content_type=None):
        return json.loads(self.bytes(method, path, body, content_type))

    def events(self, path, body):
        """Yields the parsed events of a stream; closing the generator ends the request."""
        connection, response = self.open("POST", path, body)
        try:
            for line in response:
                if not line.startswith(b"data: "):
                    continue
                data = line[len(b"data: "):].strip()
                if data == b"[DONE]":
                    return
                event = json.loads(data)
                if "error" in event:
                    raise RondoError(500, event["error"]["message"], event["error"].get("param"))
                yield event
        finally:
            connection.close()


def _error(status, text):
    try:
        error = json.loads(text)["error"]
        return RondoError(status, error["message"], error.get("param"))
    except (ValueError, KeyError, TypeError):
        return RondoError(status, f"status {status}")
