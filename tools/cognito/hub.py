"""A hub in a process of its own, as `tidemark serve` starts it."""

from __future__ import annotations

import base64
import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import clients
from hooks import Hooks

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
from hub_process import HubProcess  # noqa: E402

# Pools: of guests, of users that have signed in, and one for each thing that is the whole pool's.
_NAMES = ("guests", "members", "counted", "configured", "raced", "streamed", "published",
          "triggered", "pushed", "merging", "latest", "resolved")
POOLS = {name: f"us-east-1:0b0e0a7e-0000-4000-8000-{number:012x}"
         for number, name in enumerate(_NAMES, 1)}
GUESTS, MEMBERS, COUNTED = POOLS["guests"], POOLS["members"], POOLS["counted"]

PROVIDER = "accounts.example.com"
ISSUER = f"https://{PROVIDER}"
AUDIENCE = "proof"
DEVELOPER = "login.proof.example"


def _secret(characters: int) -> str:
    return os.urandom(characters // 2).hex()


class Reachable:
    """What scenarios ask of a server: an address, clients of developers, and logins of users."""

    key: tuple[str, str]
    issuer_secret: str
    endpoint: str

    def developer(self) -> Any:
        """Cognito Sync with the key of whoever runs the app's service."""
        return clients.client("cognito-sync", self.endpoint, self.key)

    def directory_client(self) -> Any:
        """Cognito Identity, likewise."""
        return clients.client("cognito-identity", self.endpoint, self.key)

    def login(
        self, subject: str, *, secret: bytes | None = None, issuer: str = ISSUER,
        audience: str = AUDIENCE, **arguments: Any,
    ) -> str:
        """The token of a user of an issuer that the hub trusts."""
        return clients.token(
            secret or self.issuer_secret.encode(), issuer, audience, subject, **arguments)


class Hub(HubProcess, Reachable):
    """A hub with a store, settings and secrets in a directory, and endpoints for its webhooks."""

    def __init__(
        self, binary: Path, directory: Path, *, settings: dict[str, Any] | None = None,
        tls: tuple[Path, Path] | None = None,
    ):
        super().__init__(
            binary, directory / "store", directory / "hub.log", directory / "settings.json")
        self.directory = directory
        self.scheme = "https" if tls else "http"
        self.hooks = Hooks(_secret(64))
        self.admin_token = _secret(64)
        self.key = ("AKIAPROOF", _secret(40))
        self.limited_key = ("AKIALIMITED", _secret(40))
        self.issuer_secret = _secret(64)
        directory.mkdir(parents=True, exist_ok=True)
        document = self._settings(tls)
        for key, value in (settings or {}).items():
            *above, last = key.split(".")
            place = document
            for name in above:
                place = place.setdefault(name, {})
            place[last] = value
        (directory / "settings.json").write_text(json.dumps(document, indent=2))

    def _file(self, name: str, content: str) -> str:
        path = self.directory / name
        path.write_text(content + "\n")
        path.chmod(0o600)
        return str(path)

    def _settings(self, tls: tuple[Path, Path] | None) -> dict[str, Any]:
        hook = self._file("hook", self.hooks.secret)
        master = base64.b64encode(os.urandom(32)).decode()

        def endpoint(path: str) -> dict[str, str]:
            return {"url": f"{self.hooks.endpoint}/{path}", "secretFile": hook}

        pools: dict[str, dict[str, Any]] = {
            name: {"id": id_, "allowsGuests": True} for name, id_ in POOLS.items()}
        pools["guests"]["providers"] = [PROVIDER]
        pools["members"] |= {"allowsGuests": False, "providers": [PROVIDER],
                             "developerProvider": DEVELOPER}
        pools["triggered"]["trigger"] = endpoint("trigger")
        pools["streamed"]["stream"] = {"kind": "endpoint", **endpoint("stream")}
        pools["published"]["stream"] = {
            "kind": "file", "path": str(self.directory / "published.jsonl")}
        pools["pushed"]["push"] = {"kind": "endpoint", **endpoint("push")}
        pools["merging"]["strategy"] = "autoMerge"
        pools["latest"]["strategy"] = "lastWriterWins"
        pools["resolved"] |= {"strategy": "resolver", "resolver": endpoint("resolver")}
        document: dict[str, Any] = {
            "secretFile": self._file("master", master),
            "adminTokenFile": self._file("admin", self.admin_token),
            "accessKeys": ["all", "limited"],
            "accessKey": {
                "all": {"id": self.key[0], "secretFile": self._file("all", self.key[1])},
                "limited": {"id": self.limited_key[0], "pools": [MEMBERS],
                            "secretFile": self._file("limited", self.limited_key[1])}},
            "issuers": ["proof"],
            "issuer": {"proof": {
                "provider": PROVIDER, "issuer": ISSUER, "audiences": [AUDIENCE],
                "algorithms": ["HS256"],
                "secretFile": self._file("issuer", self.issuer_secret)}},
            # Of the first pool that takes a login is whoever brings it as a bearer's token.
            "pools": sorted(POOLS, key=lambda name: name != "members"), "pool": pools,
            # All clients here have one address and come at once.
            "protection": {
                "connectionsPerAddressMax": 4_096,
                "requestsPerSecondOfAddress": 100_000, "requestBurstOfAddress": 100_000,
                "requestsPerSecondOfIdentity": 100_000, "requestBurstOfIdentity": 100_000,
                "newIdentitiesPerSecondOfAddress": 100_000,
                "newIdentityBurstOfAddress": 100_000},
        }
        if tls:
            document["tls"] = {
                "certificateFile": str(tls[0]), "keyFile": str(tls[1]), "reloadSeconds": 1}
        return document

    # Its life.

    @property
    def endpoint(self) -> str:
        """Its address. The port stays the same over restarts."""
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def restart(self, kill: bool = False) -> None:
        """Ends it in order or by `kill -9`, and starts it again at the same address."""
        if kill:
            self.kill()
        else:
            self.stop()
        self.start()

    # Who talks to it.

    def get(self, path: str, token: str | None = None) -> tuple[int, dict[str, str], bytes]:
        """What it answers to a plain request."""
        request = urllib.request.Request(self.endpoint + path)
        if token:
            request.add_header("authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, dict(answer.headers), answer.read()
        except urllib.error.HTTPError as error:
            return error.code, dict(error.headers), error.read()
