"""Signature Version 4: every part of a signed request is altered, and each time it is refused."""

from __future__ import annotations

import datetime
import http.client
import json
import urllib.parse
from collections.abc import Callable
from typing import Any

from botocore.auth import SIGV4_TIMESTAMP, SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from checks import Difference, equal, holds, values
from clients import REGION, App, client, patch
from hub import GUESTS
from scenarios import scenario


class _SignerAt(SigV4Auth):
    """botocore's signer with another clock."""

    shift = datetime.timedelta()

    def add_auth(self, request: AWSRequest) -> None:
        now = datetime.datetime.now(datetime.timezone.utc) + self.shift
        request.context["timestamp"] = now.strftime(SIGV4_TIMESTAMP)
        self._modify_request_before_signing(request)
        text = self.string_to_sign(request, self.canonical_request(request))
        self._inject_signature_to_request(request, self.signature(text, request))


class _Signed:
    """A request as it goes over the wire, so that any part of it can be altered."""

    def __init__(
        self, app: App, key: tuple[str, ...], method: str, path: str, body: bytes = b"", *,
        service: str = "cognito-sync", region: str = REGION, minutes: int = 0,
        extra: dict[str, str] | None = None,
    ):
        self._hub = app.hub
        self.method, self.path, self.body = method, path, body
        host = urllib.parse.urlsplit(app.hub.endpoint).netloc
        headers = {"host": host, **({"content-type": "application/json"} if body else {}),
                   **(extra or {})}
        request = AWSRequest(method=method, url=app.hub.endpoint + path, data=body,
                             headers=headers)
        signer = _SignerAt(Credentials(*key), service, region)
        signer.shift = datetime.timedelta(minutes=minutes)
        signer.add_auth(request)
        self.headers = {name.lower(): value for name, value in request.headers.items()}

    def send(self) -> tuple[int, str, Any]:
        """Status, name of the error, and the document."""
        parts = urllib.parse.urlsplit(self._hub.endpoint)
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=20)
        try:
            connection.putrequest(self.method, self.path, skip_host=True,
                                  skip_accept_encoding=True)
            for name, value in self.headers.items():
                connection.putheader(name, value)
            connection.putheader("content-length", str(len(self.body)))
            connection.endheaders(self.body)
            answer = connection.getresponse()
            name = (answer.getheader("x-amzn-errortype") or "").split(":")[0]
            return answer.status, name, json.loads(answer.read())
        finally:
            connection.close()


Alteration = Callable[[_Signed], None]


def _path(app: App, rest: str = "") -> str:
    def quoted(text: str) -> str:
        return urllib.parse.quote(text, safe="-_.~")
    return (f"/identitypools/{quoted(app.pool)}/identities/{quoted(app.identity)}"
            f"/datasets/d{rest}")


def _update(app: App, token: str, value: str, count: int) -> bytes:
    return json.dumps({
        "SyncSessionToken": token, "DeviceId": "phone",
        "RecordPatches": [patch("key", value, count)]}).encode()


def _set(name: str, change: Callable[[str], str]) -> Alteration:
    def alter(request: _Signed) -> None:
        before = request.headers[name]
        request.headers[name] = change(before)
        holds(request.headers[name] != before, f"{name} is altered")
    return alter


def _authorization(old: str, new: str) -> Alteration:
    return _set("authorization", lambda text: text.replace(old, new, 1))


def _flip(text: str) -> str:
    return text[:-1] + ("0" if text[-1] != "0" else "1")


def _drop(name: str) -> Alteration:
    def alter(request: _Signed) -> None:
        del request.headers[name]
    return alter


def _add(name: str, value: str) -> Alteration:
    def alter(request: _Signed) -> None:
        request.headers[name] = value
    return alter


def _attribute(name: str, change: Callable[[Any], Any]) -> Alteration:
    def alter(request: _Signed) -> None:
        setattr(request, name, change(getattr(request, name)))
    return alter


INVALID = {"InvalidSignatureException"}
INCOMPLETE = {"IncompleteSignatureException"}
MISSING = {"MissingAuthenticationTokenException"}
UNKNOWN = {"UnrecognizedClientException"}
SCOPE = INVALID | INCOMPLETE

# What is altered after signing, and what the answer may be called.
ALTERATIONS: dict[str, tuple[Alteration, set[str]]] = {
    "the signature": (_set("authorization", _flip), INVALID),
    "the signature, cut": (_set("authorization", lambda text: text[:-1]), INVALID),
    "no signature": (_drop("authorization"), MISSING),
    "another algorithm": (_authorization("AWS4-HMAC-SHA256", "AWS4-HMAC-SHA512"), INCOMPLETE),
    "the time": (_set("x-amz-date", lambda text: text[:-2] + ("0Z" if text[-2] != "0" else "1Z")),
                 INVALID),
    "no time": (_drop("x-amz-date"), INCOMPLETE),
    "the host": (_set("host", lambda text: "hub.example.com"), INVALID),
    "the token": (_set("x-amz-security-token", _flip), UNKNOWN | INVALID),
    "no token": (_drop("x-amz-security-token"), UNKNOWN | SCOPE),
    "the content type": (_set("content-type", lambda text: "text/plain"), INVALID),
    "the context": (_set("x-amz-client-context", lambda text: "another"), INVALID),
    "an unsigned header of AWS": (_add("x-amz-later", "1"), SCOPE),
    "the body": (_attribute("body", lambda body: body.replace(b"phone", b"pnohe")), INVALID),
    "a longer body": (_attribute("body", lambda body: body + b" "), INVALID),
    "no body": (_attribute("body", lambda body: b""), INVALID),
    "the body unsigned": (_add("x-amz-content-sha256", "UNSIGNED-PAYLOAD"), SCOPE),
    "the path": (_attribute("path", lambda path: path + "e"), INVALID),
    "the path, encoded otherwise": (_attribute("path", lambda path: path.replace("%3A", "%3a", 1)),
                                    INVALID),
    "a query": (_attribute("path", lambda path: path + "?syncSessionToken=x"), INVALID),
    "the region": (_authorization(f"/{REGION}/", "/eu-west-1/"), INVALID),
    "the service": (_authorization("/cognito-sync/", "/cognito-identity/"), INVALID),
    "the terminator": (_authorization("/aws4_request", "/aws5_request"), INCOMPLETE),
    "the day": (_authorization("/20", "/19"), INVALID),
    "the key's id": (_authorization("Credential=ASIA", "Credential=ASIB"), UNKNOWN | INVALID),
    "fewer signed headers": (_authorization("SignedHeaders=content-type;", "SignedHeaders="),
                             INVALID),
    "no signed host": (_authorization(";host;", ";"), INCOMPLETE),
}


@scenario
def every_altered_part_is_refused(hub: Any) -> None:
    """And the unaltered request passes, so that it was the alteration."""
    app = App(hub, GUESTS)
    app.write("d", key="1")
    token = app.list("d")["SyncSessionToken"]
    body = _update(app, token, "altered", 1)
    context = {"x-amz-client-context": "context"}
    for what, (alter, names) in ALTERATIONS.items():
        request = _Signed(app, app.key, "POST", _path(app), body, extra=context)
        alter(request)
        status, name, document = request.send()
        if status not in (400, 403) or name not in names or document.get("__type") != name:
            raise Difference(f"{what}: {status} {name} {document}, not one of {names}")
        holds(document.get("message"), f"{what}: there is a message")
        for secret in (app.key[1], app.key[2], hub.key[1]):
            holds(secret not in json.dumps(document), f"{what}: no secret is told")
    equal(values(app.list("d")["Records"]), {"key": "1"}, "the records")
    status, _, document = _Signed(app, app.key, "POST", _path(app), body, extra=context).send()
    equal((status, values(document["Records"])), (200, {"key": "altered"}), "unaltered")


@scenario
def wrong_times_scopes_and_keys_are_refused(hub: Any) -> None:
    """Signed well, but not for here and now."""
    app, other = App(hub, GUESTS), App(hub, GUESTS)
    app.write("d", key="1")
    path = _path(app, "/records")
    wrong: dict[str, tuple[_Signed, set[str]]] = {
        "expired": (_Signed(app, app.key, "GET", path, minutes=-10), INVALID),
        "not yet": (_Signed(app, app.key, "GET", path, minutes=10), INVALID),
        "another region": (_Signed(app, app.key, "GET", path, region="eu-west-1"), INVALID),
        "another service": (_Signed(app, app.key, "GET", path, service="s3"), INVALID),
        "another secret": (_Signed(app, (app.key[0], other.key[1], app.key[2]), "GET", path),
                           INVALID),
        "another token": (_Signed(app, (app.key[0], app.key[1], other.key[2]), "GET", path),
                          INVALID | UNKNOWN),
        "another key": (_Signed(app, (other.key[0], app.key[1], app.key[2]), "GET", path),
                        INVALID | UNKNOWN),
        "an unknown key": (_Signed(app, ("AKIAUNKNOWN", "secret"), "GET", path), UNKNOWN),
        "a wrong secret": (_Signed(app, (hub.key[0], "secret"), "GET", path), INVALID),
        "another's path": (_Signed(app, other.key, "GET", path), {"NotAuthorizedException"}),
    }
    for what, (request, names) in wrong.items():
        status, name, document = request.send()
        if status not in (400, 403) or name not in names:
            raise Difference(f"{what}: {status} {name} {document}, not one of {names}")
    for minutes in (-4, 0, 4):
        status, _, document = _Signed(app, app.key, "GET", path, minutes=minutes).send()
        equal((status, values(document["Records"])), (200, {"key": "1"}), f"{minutes} min away")


@scenario
def a_signature_is_good_for_its_body_alone(hub: Any) -> None:
    """Replayed with another body it is refused; with the same one it changes nothing more."""
    app = App(hub, GUESTS)
    app.write("d", key="1")
    token = app.list("d")["SyncSessionToken"]
    first = _Signed(app, app.key, "POST", _path(app), _update(app, token, "2", 1))
    equal(first.send()[0], 200, "the first time")
    equal(first.send()[0], 200, "the same again")
    equal(app.list("d")["DatasetSyncCount"], 2, "DatasetSyncCount")
    first.body = _update(app, app.list("d")["SyncSessionToken"], "3", 2)
    equal(first.send()[:2], (403, "InvalidSignatureException"), "with another body")
    equal(values(app.list("d")["Records"]), {"key": "2"}, "the records")


@scenario
def a_signature_may_stand_in_the_query(hub: Any) -> None:
    """For what can set no headers; it ends when it says."""
    app = App(hub, GUESTS)
    app.write("d", key="1")

    def presigned(expires: int, alter: Callable[[str], str] = lambda url: url) -> tuple[int, str]:
        request = AWSRequest(method="GET", url=hub.endpoint + _path(app, "/records"))
        SigV4QueryAuth(Credentials(*app.key), "cognito-sync", REGION, expires).add_auth(request)
        parts = urllib.parse.urlsplit(alter(request.url))
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=20)
        connection.request("GET", f"{parts.path}?{parts.query}")
        answer = connection.getresponse()
        content = answer.read().decode()
        connection.close()
        return answer.status, content

    status, content = presigned(60)
    equal((status, values(json.loads(content)["Records"])), (200, {"key": "1"}), "as it is")
    for what, alter in {
        "the expiry": lambda url: url.replace("X-Amz-Expires=60", "X-Amz-Expires=600"),
        "the signature": _flip,
        "the path": lambda url: url.replace("/datasets/d/", "/datasets/e/"),
        "another parameter": lambda url: url + "&lastSyncCount=5",
    }.items():
        equal(presigned(60, alter)[0], 403, f"altered: {what}")


@scenario
def other_services_and_regions_of_boto3(hub: Any) -> None:
    """As a client that is set up wrongly does it."""
    app = App(hub, GUESTS)
    app.write("d", key="1")
    elsewhere = client("cognito-sync", hub.endpoint, app.key, region="eu-central-1")
    try:
        elsewhere.list_records(**app.path, DatasetName="d")
    except elsewhere.exceptions.ClientError as error:
        equal(error.response["Error"]["Code"], "InvalidSignatureException", "the refusal")
        holds("region" in error.response["Error"]["Message"], "it says why")
    else:
        raise Difference("a request that was signed for another region passes")
