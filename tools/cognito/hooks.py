"""The app's own service: what a hub posts to is received, checked and answered here."""

from __future__ import annotations

import hashlib
import hmac
import http.server
import json
import threading
import time
from collections.abc import Callable
from typing import Any

from checks import eventually

# What a post is answered with: a status and a document.
Answer = Callable[[Any], tuple[int, Any]]


class Hooks:
    """A server that keeps all documents that were posted to it, by their path."""

    def __init__(self, secret: str):
        self.secret = secret
        self._lock = threading.Lock()
        self._posts: dict[str, list[tuple[str, Any]]] = {}
        self._answers: dict[str, Answer] = {}
        self.wrong: list[str] = []
        hooks = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                status, document = hooks._take(self.path.strip("/"), dict(self.headers), body)
                content = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *arguments: object) -> None:
                """What matters of it is kept."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _take(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, Any]:
        fields = {name.lower(): value for name, value in headers.items()}
        timestamp = fields.get("x-tidemark-timestamp", "")
        expected = hmac.new(
            self.secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
        is_fresh = timestamp.isdigit() and abs(time.time() - int(timestamp)) < 300
        if fields.get("x-tidemark-signature") != f"v1={expected}" or not is_fresh:
            self.wrong.append(f"a post to {path} is not signed, or not now")
            return 403, {}
        document = json.loads(body)
        with self._lock:
            answer = self._answers.get(path)
        # A trigger answers with the event that it got, changed: what is kept is as it came.
        status, reply = answer(json.loads(body)) if answer else (200, {})
        if status == 200:
            with self._lock:
                self._posts.setdefault(path, []).append(
                    (fields.get("x-tidemark-delivery", ""), document))
        return status, reply

    def answer(self, path: str, answer: Answer) -> None:
        """From now on posts to the path are answered so, in place of 200 and `{}`."""
        with self._lock:
            self._answers[path] = answer

    def posts(self, path: str, identity: str) -> list[Any]:
        """What was posted about an identity, each delivery once, in the order of arrival."""
        with self._lock:
            posts = list(self._posts.get(path, []))
        seen: set[str] = set()
        found = []
        for delivery, document in posts:
            if delivery and delivery in seen:
                continue
            seen.add(delivery)
            # What goes to a device is wrapped in what says to which one.
            if document.get("data", document).get("identityId") == identity:
                found.append(document)
        return found

    def wait(self, path: str, identity: str, count: int, seconds: float = 20) -> list[Any]:
        """The posts about an identity once there are so many."""
        return eventually(
            lambda: posts if len(posts := self.posts(path, identity)) >= count else None,
            f"{count} posts to {path}", seconds)
