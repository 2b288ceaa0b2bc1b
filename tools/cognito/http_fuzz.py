"""Sends deformed requests to every route of the document that the hub serves, signed, with tokens
of bearers, and without either, for so many seconds.

Whatever comes, each answer must be one that the API knows: never an internal error, always a name
and a message where something is refused, and never a word of what is another's. Afterwards the hub
must be well, and what others have stored must be what it was.

    python3 http_fuzz.py .build/debug/tidemark --seconds 60 --seed 7
"""

from __future__ import annotations

import argparse
import json
import random
import re
import select
import socket
import sys
import tempfile
import time
import urllib.parse
from collections import Counter
from pathlib import Path
from typing import Any

from checks import Difference, equal, holds, values
from clients import App
from hub import GUESTS, MEMBERS, POOLS, Hub
from notices import signed_headers
from scenarios.push import register, turn_on

CANARY = "canary-3f9d1c"
ANSWER_BYTES_MAX = 32 << 20
RESIDENT_BYTES_MAX = 1 << 30
TARGET = "AWSCognitoIdentityService."
# What messages of the sync protocol begin with: the magic, a version and a kind. No checksum is
# right: what is behind those is for tools/fuzz.
SYNC_TYPE, SYNC_HEAD = "application/x-tidemark-sync", b"TMSY\x01\x00"
WATCH = "/v1/watch"
NATIVE, PUSH = ("/v1/sync", WATCH), "/v1/push"
# After so long a device has heard enough.
PUSH_SECONDS = 0.2
# Who hangs up while it waits for news has gone. So a watch is given so long to be answered first.
WATCH_SECONDS = 0.2


class Fuzzer:
    """A source of requests. The same seed gives the same ones, but for signatures and times."""

    def __init__(self, hub: Hub, seed: int):
        self.hub = hub
        self.random = random.Random(seed)
        self.app = App(hub, GUESTS, device="fuzzer")
        self.app.write("d", key="1")
        self.owner = App(hub, GUESTS)
        self.owner.write("d", key=CANARY)
        turn_on(hub, "pushed")
        self.listener = App(hub, POOLS["pushed"])
        self.listener.write("d", key="1")
        self.device = register(self.listener, "token")
        self.bearers = (hub.admin_token, hub.login("fuzzer"))
        self.targets: list[str] = []
        self.operations = self._operations()
        self.statuses: Counter[int] = Counter()
        # By the routes as they are described.
        self.asked: Counter[tuple[str, str]] = Counter()
        self.answered: Counter[tuple[str, str]] = Counter()

    def _operations(self) -> list[tuple[str, str]]:
        status, _, content = self.hub.get("/openapi.json")
        equal(status, 200, "the status of /openapi.json")
        document = json.loads(content)
        holds(document["openapi"].startswith("3."), "it is a document of OpenAPI 3")
        found = [(method.upper(), path) for path, item in document["paths"].items()
                 for method in item if method in ("get", "post", "delete", "put", "head")]
        holds(sum(path.startswith("/identitypools") for _, path in found) >= 17,
              "it has all operations of the sync API")
        names = document["paths"]["/"]["post"]["parameters"][0]
        equal(names["name"], "X-Amz-Target", "the parameter of /")
        self.targets = names["schema"]["enum"]
        holds(all(target.startswith(TARGET) for target in self.targets), "targets of the service")
        return found

    # The parts of a request.

    def _text(self) -> str:
        choice = self.random.choice
        return choice((
            "", "d", "a:b", ".", "..", "../../etc/passwd", "%", "%zz", "%00", "\u0000", "é", "🙂",
            "a/b", "a\\b", "'", '"', "<x>", "{}", "hub:pools", "-1", "0", "9" * 30, "NaN",
            "n" * 128, "n" * 129, "n" * 5_000, self.app.identity, self.owner.identity, GUESTS,
            MEMBERS, "us-east-1:" + "0" * 60, " ", "\r\nx: y", "\u202e", "\ud7ff"))

    def _value(self, depth: int = 0) -> Any:
        choice = self.random.choice
        kind = self.random.randrange(12 if depth < 4 else 8)
        if kind >= 10:
            return {self._text(): self._value(depth + 1) for _ in range(choice((0, 1, 3)))}
        if kind >= 8:
            return [self._value(depth + 1) for _ in range(choice((0, 1, 3, 30)))]
        return choice((None, True, False, -1, 0, 1, 2**31, 2**53, 2**63, 2**64, 1.5, -0.0, 1e308,
                       self._text(), self._text(), self._text()))

    def _segment(self, name: str) -> str:
        lower = name.lower()
        known = "d" if "dataset" in lower else "device"
        if "pool" in lower:
            known = self.random.choice((GUESTS, MEMBERS) * 4 + tuple(POOLS.values()))
        elif "identity" in lower:
            known = self.random.choice((self.app.identity,) * 3 + (self.owner.identity,))
        text = known if self.random.random() < 0.85 else self._text()
        if self.random.random() < 0.03:
            return self.random.choice(("%", "%2", "%ff%fe", "%2e%2e", "%2F", "%00", ""))
        return urllib.parse.quote(text, safe="-_.~")

    def _path(self, template: str) -> str:
        path = re.sub(r"\{([^}]*)\}", lambda match: self._segment(match[1]), template)
        if self.random.random() < 0.03:
            path = self.random.choice((path + "/", "/" + path, path + "/x", path[:-1], path + "%20",
                                       path.upper(), path + "#x", path * 3)) or "/"
        names = ("lastSyncCount", "nextToken", "maxResults", "syncSessionToken", "X-Amz-Date", "x")
        pairs = [f"{self.random.choice(names)}={urllib.parse.quote(self._text(), safe='')}"
                 for _ in range(self.random.choice((0, 0, 0, 1, 2, 5)))]
        if template == PUSH:
            device = self.device if self.random.random() < 0.8 else self._text()
            pairs.append("device=" + urllib.parse.quote(device, safe=""))
        return path + ("?" + "&".join(pairs) if pairs else "")

    def _document(self) -> dict[str, Any]:
        patches = [{"Op": "replace", "Key": "key", "Value": "2", "SyncCount": 1}]
        document: dict[str, Any] = {
            "SyncSessionToken": "token", "RecordPatches": patches, "DeviceId": "device",
            "Platform": "GCM", "Token": "token", "Events": {"SyncTrigger": ""},
            "PushSync": {"ApplicationArns": [], "RoleArn": "arn:aws:iam::1:role/x"},
            "CognitoStreams": {"StreamName": "s", "StreamingStatus": "DISABLED"},
            "IdentityPoolId": GUESTS, "IdentityId": self.app.identity, "MaxResults": 10,
            "Logins": {}, "LoginsToRemove": []}
        for _ in range(self.random.choice((0, 1, 1, 2, 4))):
            place: Any = document
            while True:
                key = (self.random.choice(list(place)) if isinstance(place, dict)
                       else self.random.randrange(len(place)))
                inner = place[key]
                if not isinstance(inner, (dict, list)) or not inner or self.random.random() < 0.4:
                    break
                place = inner
            if isinstance(place, dict) and self.random.random() < 0.3:
                del place[key]
                if not place:
                    break
            else:
                place[key] = self._value()
        return document

    def _body(self) -> bytes:
        text = json.dumps(self._document(), ensure_ascii=self.random.random() < 0.5)
        body = text.encode("utf-8", "surrogatepass")
        kind = self.random.randrange(12)
        if kind == 0:
            return body[:self.random.randrange(len(body) + 1)]
        if kind == 1:
            place = self.random.randrange(len(body))
            return body[:place] + self.random.randbytes(3) + body[place:]
        if kind == 2:
            return self.random.choice((
                b"", b"null", b"[]", b'"', b"{", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 50_000,
                b'{"Events":{"SyncTrigger":"","SyncTrigger":""}}', b"1e999999999",
                b'{"RecordPatches":[' + b"{}," * 5_000 + b"{}]}", b"\xef\xbb\xbf{}"))
        return body

    def _message(self) -> bytes:
        """What a replica would not send."""
        junk = self.random.randbytes(self.random.choice((0, 1, 8, 100, 5_000)))
        return SYNC_HEAD[:self.random.choice((0, 3, 4, 5, 6, 6, 6))] + junk

    def _bearer_headers(self) -> dict[str, str]:
        good = self.random.random() < 0.8
        token = self.random.choice(self.bearers) if good else self._text()
        return {"authorization": f"Bearer {token}"}

    def _headers(self, method: str, path: str, body: bytes, template: str) -> dict[str, str]:
        headers: dict[str, str] = {}
        if template in NATIVE:
            if self.random.random() < 0.9:
                headers["content-type"] = SYNC_TYPE
            return headers | (self._bearer_headers() if self.random.random() < 0.9 else {})
        if template == "/metrics" or self.random.random() < 0.05:
            return self._bearer_headers()
        if path.split("?")[0] == "/":
            headers["x-amz-target"] = self.random.choice(
                (*self.targets, TARGET + "NoSuchOperation", TARGET, ""))
        if body:
            headers["content-type"] = self.random.choice(
                ("application/json", "application/x-amz-json-1.1", "text/plain", "x"))
        if self.random.random() < 0.05:
            headers["x-amz-client-context"] = self.random.choice(("x", "x" * 9_000))
        # A developer of another pool than that of whose data must stay as they are.
        key = self.random.choice(
            (self.app.key,) * 4 + (self.hub.limited_key,) * 3 + (None, ("A", "b")))
        if template == PUSH and self.random.random() < 0.8:
            key = self.listener.key
        if key:
            service = "cognito-identity" if "x-amz-target" in headers else "cognito-sync"
            headers = signed_headers(self.hub.endpoint + path, key, method, body, service,
                                     **headers)
        elif self.random.random() < 0.5:
            headers["authorization"] = self.random.choice((
                "Bearer x", "Bearer", "AWS4-HMAC-SHA256 Credential=a/b/c/d/aws4_request",
                "AWS4-HMAC-SHA256 " + "x=y," * 2_000, "Basic eDp4", "x" * 20_000))
        return headers

    def request(self, number: int) -> tuple[tuple[str, str], str, str, bytes]:
        """The route, method, path and the bytes of a request. Each route has its turn first."""
        rounds = 4 * len(self.operations)
        route = (self.operations[number % len(self.operations)] if number < rounds
                 else self.random.choice(self.operations))
        method, template = route
        if self.random.random() < 0.05:
            method = self.random.choice(
                ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "HEAD", "X"))
        path = self._path(template)
        has_body = method in ("POST", "PUT", "PATCH") or self.random.random() < 0.05
        body = b""
        if has_body:
            body = self._message() if template in NATIVE else self._body()
        headers = self._headers(method, path, body, template)
        lines = [f"{method} {path} HTTP/1.1", f"host: 127.0.0.1:{self.hub.port}",
                 "connection: close", *(f"{name}: {value}" for name, value in headers.items()
                                        if name.lower() != "host")]
        framing = self.random.random()
        if framing < 0.9 or not body:
            lines.append(f"content-length: {len(body)}")
        elif framing < 0.96:
            lines.append("transfer-encoding: chunked")
            body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        else:
            lines += self.random.choice((
                ["content-length: 5", "content-length: 6"], ["content-length: -1"],
                ["transfer-encoding: x"], ["content-length: 99999999999"],
                [f"content-length: {len(body)}", "content-encoding: gzip"],
                [f"x-{number}: y" for number in range(200)]))
        head = "\r\n".join(lines).encode("utf-8", "replace")
        return route, method, path, head + b"\r\n\r\n" + body

    # Sending and judging.

    def _exchange(self, content: bytes, template: str) -> bytes:
        is_push = template == PUSH
        with socket.create_connection(("127.0.0.1", self.hub.port), timeout=15) as connection:
            answer = b""
            try:
                connection.sendall(content)
                if template == WATCH:
                    select.select([connection], [], [], WATCH_SECONDS)
                connection.shutdown(socket.SHUT_WR)
            except OSError:
                # It has hung up; what it said before is still there to be read.
                pass
            try:
                while part := connection.recv(1 << 16):
                    answer += part
                    holds(len(answer) < ANSWER_BYTES_MAX, "an answer has an end")
                    if is_push and b"text/event-stream" in answer:
                        connection.settimeout(PUSH_SECONDS)
            except TimeoutError:
                # Notices have no end. Any other answer has one, and comes.
                holds(b"text/event-stream" in answer, "an answer comes to its end")
            except ConnectionError:
                pass
            return answer

    def _judge(self, route: tuple[str, str], method: str, path: str, answer: bytes) -> None:
        self.asked[route] += 1
        if not answer:
            # The connection was closed: of a request that is no HTTP nothing more can be said.
            self.statuses[0] += 1
            return
        head, _, content = answer.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        match = re.fullmatch(r"HTTP/1\.1 (\d{3}) .*", lines[0])
        holds(match, f"a status line: {lines[0]!r}")
        status = int(match[1])
        fields = {name.lower(): value.strip() for name, _, value in
                  (line.partition(":") for line in lines[1:])}
        self.statuses[status] += 1
        self.answered[route] += status == 200
        holds(status < 500 or (status == 503 and "retry-after" in fields) or status in (501, 505),
              f"no failure of the hub's own: {status} {content[:300]!r}")
        holds(CANARY.encode() not in answer, "nothing of another identity is told")
        for secret in (self.app.key[1], self.hub.limited_key[1], self.hub.admin_token):
            holds(secret.encode() not in answer, "no secret is told")
        if method == "HEAD" or status < 200:
            return
        if fields.get("transfer-encoding") == "chunked":
            return
        plain = path.split("?")[0]
        is_of_api = plain == "/identitypools" or plain.startswith("/identitypools/")
        if is_of_api and "x-amzn-requestid" in fields and (status >= 400 or method != "OPTIONS"):
            document = json.loads(content)
            holds(isinstance(document, dict), "a document")
            if status >= 400:
                name = fields.get("x-amzn-errortype", "")
                holds(name and document.get("__type") == name, f"a name: {fields} {document}")
                holds(document.get("message"), "a message")
        holds("date" in fields or status in (400, 431), f"a date: {fields}")

    def run(self, seconds: float) -> int:
        """How many requests were sent."""
        end, count = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            route, method, path, content = self.request(count)
            count += 1
            try:
                self._judge(route, method, path, self._exchange(content, route[1]))
            except Exception as error:
                raise Difference(f"request {count}: {error!r}\n{content[:3_000]!r}") from error
        return count

    def check_routes(self) -> None:
        """Whether each route was met, and those with a way of their own to be let in let some in.
        """
        missing = [route for route in self.operations if not self.asked[route]]
        equal(missing, [], "routes that were not asked for")
        for path in (*NATIVE, PUSH, "/", "/metrics", "/openapi.json", "/health", "/ready"):
            for route in self.operations:
                # Of a few all may have been deformed.
                if route[1] == path and self.asked[route] >= 30:
                    holds(self.answered[route], f"{route} answers well now and then")

    def check_hub(self) -> None:
        """Whether it is well, and others have what they had."""
        equal(self.hub.get("/health")[0], 200, "health")
        self.owner.sign_in()
        equal(values(self.owner.list("d")["Records"]), {"key": CANARY}, "another's records")
        self.app.sign_in()
        holds(self.app.list("d")["SyncSessionToken"], "the dataset can be listed")
        status = Path(f"/proc/{self.hub.process}/status").read_text()
        resident = int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) << 10
        holds(resident < RESIDENT_BYTES_MAX, f"{resident >> 20} MiB are resident")


def main() -> int:
    """The status is 1 at the first answer that is not as it must be."""
    parser = argparse.ArgumentParser(description="Deformed requests to every route of a hub.")
    parser.add_argument("binary", type=Path, help="the command tidemark")
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--seed", type=lambda text: int(text, 0),
                        default=random.SystemRandom().getrandbits(32))
    options = parser.parse_args()
    print(f"seed {options.seed:#x}", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        hub = Hub(options.binary, Path(directory) / "hub").start()
        try:
            fuzzer = Fuzzer(hub, options.seed)
            count = fuzzer.run(options.seconds)
            fuzzer.check_routes()
            fuzzer.check_hub()
            hub.stop()
        except BaseException:
            print(f"the hub's log ends so:\n{hub.log_end()}", file=sys.stderr)
            raise
        finally:
            hub.kill()
    statuses = ", ".join(f"{status or 'closed'}: {number}" for status, number in
                         sorted(fuzzer.statuses.items()))
    print(f"{count} requests to {len(fuzzer.operations)} routes ({statuses})")
    # Fuzzing that gets no further than the door finds nothing.
    equal(fuzzer.statuses[200] * 50 > count, True, "one of 50 requests is good")
    return 0


if __name__ == "__main__":
    sys.exit(main())
