"""A server that gives out identities and credentials, and answers `{}` to all else: a scenario that
passes against it looks at nothing, and is no test."""

from __future__ import annotations

import http.server
import json
import threading
import time
from pathlib import Path

from hooks import Hooks
from hub import Reachable

IDENTITY = "us-east-1:00000000-0000-4000-8000-00000000000f"


class _Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        operation = self.headers.get("x-amz-target", "").split(".")[-1]
        answer: dict[str, object] = {}
        if operation in ("GetId", "GetCredentialsForIdentity"):
            answer = {"IdentityId": IDENTITY}
        elif operation == "GetOpenIdTokenForDeveloperIdentity":
            answer = {"IdentityId": IDENTITY, "Token": "token"}
        if operation == "GetCredentialsForIdentity":
            answer["Credentials"] = {
                "AccessKeyId": "ASIAAAAAAAAAAAAAAAAA", "SecretKey": "secret",
                "SessionToken": "token", "Expiration": time.time() + 3_600}
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_DELETE = do_PUT = _answer

    def log_message(self, *arguments: object) -> None:
        """It has nothing to say."""


class Nothing(Reachable):
    """The server, with what scenarios ask of a hub."""

    key = ("AKIANOTHING", "a secret of nothing")
    limited_key = key
    issuer_secret = admin_token = "s" * 32

    def __init__(self, binary: Path, directory: Path) -> None:
        self.binary = binary
        self.directory = directory
        self.hooks = Hooks("secret")
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.port = self._server.server_address[1]
        self.endpoint = f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        """Takes no more requests."""
        self._server.shutdown()
        self._server.server_close()

    def restart(self, kill: bool = False) -> None:
        """It has no memory that a restart could lose."""
