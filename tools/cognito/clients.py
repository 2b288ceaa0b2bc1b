"""Clients of a hub as apps have them: boto3 as it comes, with another address."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from typing import Any

import boto3
import botocore.session
from botocore.config import Config
from botocore.loaders import Loader

REGION = "us-east-1"

# The models are read once for all clients.
_loader = Loader(extra_search_paths=[botocore.__path__[0] + "/data"])
_lock = threading.Lock()


def client(
    service: str, endpoint: str, key: tuple[str, ...] | None = None, *, attempts: int = 1,
    region: str = REGION, verify: str | bool | None = None, timeout: float = 30,
) -> Any:
    """A client of a service.

    The key is the id of an access key, its secret and, if it is a temporary one, its token. Of
    several attempts a failure is seen only if all have failed: scenarios make one.
    """
    core = botocore.session.Session()
    core.register_component("data_loader", _loader)
    session = boto3.Session(botocore_session=core)
    id_, secret, token = ((*key, None) if key and len(key) == 2 else key) or (None, None, None)
    with _lock:
        return session.client(
            service, endpoint_url=endpoint, region_name=region, aws_access_key_id=id_ or "none",
            aws_secret_access_key=secret or "none", aws_session_token=token, verify=verify,
            config=Config(
                retries={"total_max_attempts": attempts, "mode": "standard"},
                connect_timeout=5, read_timeout=timeout, max_pool_connections=4))


class App:
    """An app on a device: an identity with temporary credentials."""

    def __init__(
        self, hub: Any, pool: str, *, identity: str | None = None,
        logins: dict[str, str] | None = None, device: str | None = None, attempts: int = 1,
    ):
        self.hub = hub
        self.pool = pool
        self.device = device
        self.logins = logins or {}
        self.attempts = attempts
        self.directory = client("cognito-identity", hub.endpoint, attempts=attempts)
        arguments: dict[str, Any] = {"Logins": logins} if logins else {}
        self.identity = identity or self.directory.get_id(
            IdentityPoolId=pool, **arguments)["IdentityId"]
        self.sign_in()

    def sign_in(self, logins: dict[str, str] | None = None) -> dict[str, Any]:
        """Takes new credentials, perhaps with other logins than before."""
        if logins is not None:
            self.logins = logins
        arguments: dict[str, Any] = {"Logins": self.logins} if self.logins else {}
        answer = self.directory.get_credentials_for_identity(
            IdentityId=self.identity, **arguments)
        given = answer["Credentials"]
        self.identity = answer["IdentityId"]
        self.key = (given["AccessKeyId"], given["SecretKey"], given["SessionToken"])
        self.expiration = given["Expiration"]
        self.sync = client(
            "cognito-sync", self.hub.endpoint, self.key, attempts=self.attempts)
        return answer

    @property
    def path(self) -> dict[str, str]:
        """What every call about an identity names."""
        return {"IdentityPoolId": self.pool, "IdentityId": self.identity}

    def list(self, dataset: str, since: int | None = None, **arguments: Any) -> dict[str, Any]:
        """All that is newer, or all."""
        if since is not None:
            arguments["LastSyncCount"] = since
        return self.sync.list_records(**self.path, DatasetName=dataset, **arguments)

    def update(
        self, dataset: str, token: str, patches: list[dict[str, Any]], **arguments: Any
    ) -> list[dict[str, Any]]:
        """Pushes; the records as they are afterwards."""
        if self.device:
            arguments.setdefault("DeviceId", self.device)
        return self.sync.update_records(
            **self.path, DatasetName=dataset, SyncSessionToken=token, RecordPatches=patches,
            **arguments)["Records"]

    def write(self, dataset: str, **records: str | None) -> list[dict[str, Any]]:
        """Lists and pushes, as clients do: a value of None removes."""
        listing = self.list(dataset)
        counts = {record["Key"]: record["SyncCount"] for record in listing["Records"]}
        return self.update(dataset, listing["SyncSessionToken"], [
            patch(key, value, counts.get(key, 0)) for key, value in records.items()])


def patch(key: str, value: str | None, count: int = 0, **members: Any) -> dict[str, Any]:
    """A change to a record of which that count is known."""
    change: dict[str, Any] = {"Op": "remove" if value is None else "replace", "Key": key}
    if value is not None:
        change["Value"] = value
    return {**change, "SyncCount": count, **members}


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def token(
    secret: bytes, issuer: str, audience: str, subject: str, *, seconds: int = 600,
    algorithm: str = "HS256", **claims: Any,
) -> str:
    """What an issuer of tokens gives to a user (RFC 7519), signed with HMAC."""
    now = int(time.time())
    head = _text(json.dumps({"alg": algorithm, "typ": "JWT"}).encode())
    body = _text(json.dumps({
        "iss": issuer, "aud": audience, "sub": subject, "iat": now, "exp": now + seconds,
        **claims}).encode())
    signed = f"{head}.{body}"
    if algorithm == "none":
        return signed + "."
    return f"{signed}.{_text(hmac.new(secret, signed.encode(), hashlib.sha256).digest())}"
