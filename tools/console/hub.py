"""A hub in a process of its own, and the requests that apps send to it."""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
import http.client
import json
import os
import subprocess
import sys
import urllib.parse
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
from hub_process import HubProcess  # noqa: E402

POOL = "us-east-1:c0050000-0000-4000-8000-000000000001"
REGION = "us-east-1"


class Hub(HubProcess):
    """`tidemark serve` over a store, with a pool for guests and a key for developers."""

    def __init__(self, binary: Path, directory: Path, name: str):
        settings = directory / f"{name}.json"
        super().__init__(
            binary, directory / name, directory / f"{name}.log", settings, "--history", "20")
        self.directory = directory
        self.token = os.urandom(32).hex()
        self.token_file = self._file(f"{name}.token", self.token)
        self.key = ("AKIACONSOLE", os.urandom(20).hex())
        settings.write_text(json.dumps({
            "secretFile": self._file(
                f"{name}.secret", base64.b64encode(os.urandom(32)).decode()),
            "adminTokenFile": self.token_file,
            "accessKeys": ["app"],
            "accessKey": {"app": {
                "id": self.key[0], "secretFile": self._file(f"{name}.key", self.key[1])}},
            "pools": ["notes"], "pool": {"notes": {"id": POOL, "allowsGuests": True}},
            # All of the apps here have one address.
            "protection": {"newIdentityBurstOfAddress": 10_000}}))

    def _file(self, name: str, content: str) -> str:
        path = self.directory / name
        path.write_text(content + "\n")
        path.chmod(0o600)
        return str(path)

    # Its life.

    @property
    def url(self) -> str:
        """Its address. The port stays the same over restarts."""
        return f"http://127.0.0.1:{self.port}"

    def command(self, *arguments: Any, status: int | None = 0, stdin: bytes = b"") -> str:
        """What the command line says; fails unless it ends so. None takes any end."""
        done = subprocess.run(
            [self.binary, *map(str, arguments)], input=stdin, capture_output=True, timeout=120)
        if status is not None and done.returncode != status:
            raise RuntimeError(f"{arguments} ended with {done.returncode}:\n{done.stderr!r}")
        return done.stdout.decode(errors="replace")

    # What apps ask for.

    def _send(
        self, method: str, path: str, body: bytes, headers: dict[str, str],
    ) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise RuntimeError(f"{method} {path}: {response.status} {content!r}")
        return json.loads(content)

    def identity_call(self, operation: str, body: dict[str, Any]) -> dict[str, Any]:
        """Of Cognito Identity, not signed."""
        return self._send("POST", "/", json.dumps(body).encode(), {
            "content-type": "application/x-amz-json-1.1",
            "x-amz-target": f"AWSCognitoIdentityService.{operation}"})

    def signed(
        self, key: tuple[str, ...], method: str, path: str, body: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Of Cognito Sync, signed with Signature Version 4."""
        content = json.dumps(body).encode() if body is not None else b""
        now = datetime.datetime.now(datetime.timezone.utc)
        stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
        headers = {"host": f"127.0.0.1:{self.port}", "x-amz-date": stamp,
                   "content-type": "application/json"}
        if len(key) == 3:
            headers["x-amz-security-token"] = key[2]
        names = ";".join(sorted(headers))
        # Paths are encoded once more than they are sent for all services but one.
        canonical = "\n".join([
            method, urllib.parse.quote(path, safe="/~"), "",
            *(f"{name}:{headers[name]}" for name in sorted(headers)), "", names,
            hashlib.sha256(content).hexdigest()])
        scope = f"{day}/{REGION}/cognito-sync/aws4_request"
        text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope,
                          hashlib.sha256(canonical.encode()).hexdigest()])
        secret = f"AWS4{key[1]}".encode()
        for part in (day, REGION, "cognito-sync", "aws4_request"):
            secret = hmac.new(secret, part.encode(), hashlib.sha256).digest()
        signature = hmac.new(secret, text.encode(), hashlib.sha256).hexdigest()
        headers["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={key[0]}/{scope}, SignedHeaders={names}, "
            f"Signature={signature}")
        return self._send(method, path, content, headers)

    def guest(self) -> tuple[str, tuple[str, ...]]:
        """A new identity with its credentials."""
        identity = self.identity_call("GetId", {"IdentityPoolId": POOL})["IdentityId"]
        given = self.identity_call(
            "GetCredentialsForIdentity", {"IdentityId": identity})["Credentials"]
        return identity, (given["AccessKeyId"], given["SecretKey"], given["SessionToken"])

    @staticmethod
    def path(identity: str, *rest: str) -> str:
        """Of what belongs to an identity."""
        parts = ["identitypools", POOL, "identities", identity, *rest]
        return "/" + "/".join(urllib.parse.quote(part, safe="") for part in parts)

    def records(
        self, identity: str, key: tuple[str, ...], dataset: str,
    ) -> dict[str, str | None]:
        """What an app of the identity sees."""
        listing = self.signed(key, "GET", self.path(identity, "datasets", dataset, "records"))
        return {one["Key"]: one.get("Value") for one in listing["Records"]}

    def write(
        self, identity: str, key: tuple[str, ...], dataset: str, values: dict[str, str | None],
    ) -> None:
        """As an app does: lists and pushes."""
        listing = self.signed(key, "GET", self.path(identity, "datasets", dataset, "records"))
        counts = {one["Key"]: one["SyncCount"] for one in listing["Records"]}
        patches = []
        for name, value in values.items():
            patch: dict[str, Any] = {"Key": name, "SyncCount": counts.get(name, 0),
                                     "Op": "remove" if value is None else "replace"}
            if value is not None:
                patch["Value"] = value
            patches.append(patch)
        self.signed(key, "POST", self.path(identity, "datasets", dataset), {
            "SyncSessionToken": listing["SyncSessionToken"], "RecordPatches": patches})
