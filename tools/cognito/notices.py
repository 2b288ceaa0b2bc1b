"""A connected device: hears of changes by server-sent events."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
import urllib.parse
from typing import Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from checks import Difference, eventually
from clients import REGION


def signed_headers(
    url: str, key: tuple[str, ...], method: str = "GET", body: bytes = b"",
    service: str = "cognito-sync", **headers: str,
) -> dict[str, str]:
    """The headers of a request that boto3 has no operation for, signed by botocore."""
    request = AWSRequest(method=method, url=url, data=body, headers=headers)
    SigV4Auth(Credentials(*key), service, REGION).add_auth(request)
    return dict(request.headers.items())


class Notices:
    """The notices of a device, from the moment of making."""

    def __init__(self, app: Any, device: str):
        parts = urllib.parse.urlsplit(app.hub.endpoint)
        path = f"/v1/push?device={urllib.parse.quote(device, safe='')}"
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
        self._connection.request(
            "GET", path, headers=signed_headers(app.hub.endpoint + path, app.key))
        self._socket = self._connection.sock
        self._answer = self._connection.getresponse()
        kind = self._answer.getheader("content-type", "")
        if self._answer.status != 200 or not kind.startswith("text/event-stream"):
            content = self._answer.read(1_000)
            raise Difference(f"no events but {self._answer.status} {kind}: {content!r}")
        self._lock = threading.Lock()
        self._events: list[tuple[float, dict[str, Any]]] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        event: dict[str, str] = {}
        try:
            while line := self._answer.readline():
                text = line.decode().rstrip("\r\n")
                if not text:
                    if event.get("event") == "sync":
                        with self._lock:
                            self._events.append((time.monotonic(), json.loads(event["data"])))
                    event = {}
                elif not text.startswith(":"):
                    name, _, value = text.partition(":")
                    event[name] = value.removeprefix(" ")
        except (OSError, ValueError, http.client.HTTPException):
            # Closed, by either side.
            pass
        finally:
            self._connection.close()

    def events(self) -> list[dict[str, Any]]:
        """What has come."""
        with self._lock:
            return [event for _, event in self._events]

    def wait(self, dataset: str, count: int, seconds: float = 20) -> dict[str, Any]:
        """The notice of a dataset at a count, or of a later one."""
        return eventually(
            lambda: next((event for event in self.events() if event["datasetName"] == dataset
                          and event["syncCount"] >= count), None),
            f"a notice of {dataset} at {count}", seconds)

    def close(self) -> None:
        """Hangs up. Whoever reads sees the end, and closes."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
