"""Load on a server: requests that are signed beforehand, sent by wrk."""

from __future__ import annotations

import datetime
import hashlib
import hmac
import subprocess
import tempfile
import urllib.parse
from dataclasses import dataclass
from pathlib import Path

THREADS = 2


@dataclass(frozen=True)
class Load:
    """What wrk has measured."""

    requests: int
    seconds: float
    p50_us: float
    p99_us: float
    max_us: float

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.requests / self.seconds


class Signer:
    """Signature Version 4 for many requests in a row: the key of a day is made once."""

    def __init__(self, key: tuple[str, ...], host: str, service: str = "cognito-sync"):
        self._id, secret, *token = key
        self._token = token[0] if token else None
        self._host = host
        now = datetime.datetime.now(datetime.timezone.utc)
        self._time = now.strftime("%Y%m%dT%H%M%SZ")
        self._scope = f"{self._time[:8]}/us-east-1/{service}/aws4_request"
        self._key = f"AWS4{secret}".encode()
        for part in self._scope.split("/"):
            self._key = hmac.new(self._key, part.encode(), hashlib.sha256).digest()

    def request(self, method: str, path: str, query: str = "", body: bytes = b"") -> bytes:
        """A request as it goes over the wire. The path is encoded, the query sorted."""
        fields = {"host": self._host, "x-amz-date": self._time}
        if self._token:
            fields["x-amz-security-token"] = self._token
        if body:
            fields["content-type"] = "application/json"
        names = ";".join(sorted(fields))
        canonical = "\n".join([
            method, urllib.parse.quote(path, safe="/-_.~"), query,
            *(f"{name}:{fields[name]}" for name in sorted(fields)), "", names,
            hashlib.sha256(body).hexdigest()])
        text = "\n".join(["AWS4-HMAC-SHA256", self._time, self._scope,
                          hashlib.sha256(canonical.encode()).hexdigest()])
        signature = hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()
        fields["authorization"] = (f"AWS4-HMAC-SHA256 Credential={self._id}/{self._scope}, "
                                   f"SignedHeaders={names}, Signature={signature}")
        fields["content-length"] = str(len(body))
        head = f"{method} {path}{'?' + query if query else ''} HTTP/1.1\r\n"
        return (head + "".join(f"{name}: {value}\r\n" for name, value in fields.items())
                + "\r\n").encode() + body


def plain(method: str, path: str, host: str, body: bytes = b"", **fields: str) -> bytes:
    """A request that is not signed."""
    lines = [f"{method} {path} HTTP/1.1", f"host: {host}", f"content-length: {len(body)}",
             *(f"{name.replace('_', '-')}: {value}" for name, value in fields.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def segment(text: str) -> str:
    """A part of a path, as clients of AWS encode it."""
    return urllib.parse.quote(text, safe="-_.~")


def run(url: str, requests: list[bytes], seconds: float, *, connections: int = 64,
        once: bool = False) -> Load:
    """Sends the requests again and again for so long, or each of them once at most.

    Fails if one of them is refused: a server that refuses is fast.
    """
    with tempfile.NamedTemporaryFile(suffix=".requests") as file:
        file.write(b"".join(request + b"\0" for request in requests))
        file.flush()
        script = Path(__file__).with_name("requests.lua")
        output = subprocess.run(
            ["wrk", "-t", str(THREADS), "-c", str(connections), "-d", f"{max(1, round(seconds))}s",
             "--timeout", "10s", "-s", str(script), url, "--", file.name, str(THREADS),
             "once" if once else "again"],
            capture_output=True, text=True, check=True, timeout=seconds + 60).stdout
    for line in output.splitlines():
        if line.startswith("RESULT "):
            count, taken, p50, p99, most, errors = map(float, line.split()[1:])
            # Of those that are stopped at their end the last answers are not waited for.
            if errors > (connections if once else 0):
                raise RuntimeError(f"{errors:.0f} of {count:.0f} requests failed: {output}")
            return Load(int(count), taken, p50, p99, most)
    raise RuntimeError(f"wrk says nothing: {output}")
