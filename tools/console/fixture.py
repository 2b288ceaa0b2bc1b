"""What the console is shown with: identities, datasets, records of every kind, tombstones,
versions, conflicts, replicas and devices."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path

from hub import POOL, Hub

SCRIPT = '<script>document.title="taken"</script><img src=x onerror=alert(1)>'
DIRECTION = "invoice\u202excod.exe\u2066\u200f"
LONG = "0123456789abcdef" * 65_536
SHARED = "shared-notes"


@dataclass
class Fixture:
    """The hub, and who has what there."""

    hub: Hub
    identity: str
    key: tuple[str, ...]
    device: str


def make(binary: Path, directory: Path) -> Fixture:
    """A hub that runs, over a store with all of it."""
    hub = Hub(binary, directory, "hub")
    replica = Hub(binary, directory, "replica")
    records = [{"key": f"page-{number:04}", "value": f"value {number}"} for number in range(230)]
    records += [{"key": SCRIPT, "value": SCRIPT}, {"key": DIRECTION, "value": DIRECTION},
                {"key": "long", "value": LONG}, {"key": "settled", "value": "line 1\nline 2"},
                {"key": "contested", "value": "title\nfirst line\nlast line"}]
    lines = directory / "records.jsonl"
    lines.write_text("".join(json.dumps(record) + "\n" for record in records))
    hub.command("import", hub.store, SHARED, lines)
    binary_key = base64.b64encode(bytes([0xFF, 0x00, 0xC3, 0x28])).decode()
    hub.command("put", hub.store, SHARED, binary_key, binary_key, "--base64-key", "--base64")
    _conflicts(hub, replica)
    hub.start()
    identity, key, device = _apps(hub)
    return Fixture(hub, identity, key, device)


def _conflicts(hub: Hub, replica: Hub) -> None:
    """One that waits, one that is settled, and a replica that is behind."""
    hub.start()
    hub.command("sync", replica.store, hub.url, "--token-file", hub.token_file)
    hub.stop()
    hub.command("put", hub.store, SHARED, "contested", "title\nfirst line, here\nlast line")
    hub.command("put", hub.store, SHARED, "settled", "here")
    hub.command("put", replica.store, SHARED, "settled", "there")
    replica.start()
    try:
        # A policy's write is kept in the journal, unlike what was left to the last writer.
        hub.command("sync", hub.store, replica.url, "--token-file", replica.token_file,
                    "--policy", "local")
    finally:
        replica.stop()
    hub.command("put", hub.store, SHARED, "contested", "title\nfirst line, here again\nlast line")
    hub.command("put", replica.store, SHARED, "contested", "title\nfirst line\nlast, there\nmore")
    replica.start()
    try:
        # It ends with a status of its own, since a conflict waits.
        hub.command("sync", hub.store, replica.url, "--token-file", replica.token_file,
                    "--policy", "leave", status=None)
    finally:
        replica.stop()
    # Kept for as long as the replica has not heard of it.
    hub.command("delete", hub.store, SHARED, "page-0007")
    hub.command("put", hub.store, SHARED, "news", "that the replica lacks", "--author", "ada")


def _apps(hub: Hub) -> tuple[str, tuple[str, ...], str]:
    """Sixty identities, one of them with datasets and a device."""
    hub.signed(hub.key, "POST", f"/identitypools/{POOL}/configuration", {
        "PushSync": {"ApplicationArns": ["arn:aws:sns:us-east-1:1:app/GCM/notes"]}})
    for _ in range(59):
        hub.identity_call("GetId", {"IdentityPoolId": POOL})
    identity, key = hub.guest()
    hub.write(identity, key, "notes", {"monday": "buy milk", "tuesday": "rest", SCRIPT: SCRIPT})
    hub.write(identity, key, "notes", {"tuesday": None})
    # Through the hub, which keeps them.
    for version in range(4):
        hub.write(identity, key, "notes", {"versions": f"version {version}"})
    device = hub.signed(
        key, "POST", f"/identitypools/{POOL}/identity/{identity}/device",
        {"Platform": "GCM", "Token": "a-token-that-nobody-sees"})["DeviceId"]
    hub.signed(
        key, "POST", hub.path(identity, "datasets", "notes", "subscriptions", device), {})
    hub.write(identity, key, "notes", {"wednesday": "after the subscription"})
    return identity, key, device
