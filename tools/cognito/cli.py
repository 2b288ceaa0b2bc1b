"""The aws command line, as it comes, calls all 17 operations and what it prints is compared."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from checks import Difference, equal, eventually, holds, values
from hub import POOLS, Hub

ROLE = "arn:aws:iam::123456789012:role/sync"
TOPIC = "arn:aws:sns:us-east-1:123456789012:app/GCM/notes"


class CommandLine:
    """`aws`, with a configuration of its own."""

    def __init__(self, hub: Hub, key: tuple[str, ...] | None, directory: Path):
        self._endpoint = hub.endpoint
        self.operations: set[str] = set()
        id_, secret, token = (*(key or ("none", "none")), "")[:3]
        self._environment = {
            "PATH": os.environ["PATH"], "HOME": str(directory), "AWS_MAX_ATTEMPTS": "1",
            "AWS_ACCESS_KEY_ID": id_, "AWS_SECRET_ACCESS_KEY": secret,
            "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
            **({"AWS_SESSION_TOKEN": token} if token else {}),
            **{name: value for name, value in os.environ.items() if name.startswith("PYTHON")}}

    def run(self, service: str, operation: str, *options: str) -> tuple[int, str, str]:
        """Status, output and errors of one call."""
        done = subprocess.run(
            [Path(sys.executable).parent / "aws", "--endpoint-url", self._endpoint, "--output",
             "json", service, operation, *options],
            env=self._environment, capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, done.stdout, done.stderr

    def call(self, operation: str, *options: str, service: str = "cognito-sync") -> Any:
        """The document that a call prints; it must end well."""
        status, output, errors = self.run(service, operation, *options)
        if status != 0:
            raise Difference(f"aws {operation} ended with {status}: {errors}")
        self.operations.add(operation)
        return json.loads(output) if output.strip() else {}


def _all_operations(hub: Hub, directory: Path) -> None:
    nobody = CommandLine(hub, None, directory)
    identity = nobody.call("get-id", "--identity-pool-id", POOLS["pushed"],
                           service="cognito-identity")["IdentityId"]
    given = nobody.call("get-credentials-for-identity", "--identity-id", identity,
                        service="cognito-identity")["Credentials"]
    app = CommandLine(
        hub, (given["AccessKeyId"], given["SecretKey"], given["SessionToken"]), directory)
    developer = CommandLine(hub, hub.key, directory)
    pool = ("--identity-pool-id", POOLS["pushed"])
    path = (*pool, "--identity-id", identity)
    d = (*path, "--dataset-name", "notes:1.a")

    listing = app.call("list-records", *d)
    equal((listing["DatasetExists"], listing["Records"]), (False, []), "list-records")
    patches = json.dumps([
        {"Op": "replace", "Key": "title", "Value": "Tides \u2248", "SyncCount": 0,
         "DeviceLastModifiedDate": 1_500_000_000},
        {"Op": "replace", "Key": "body", "Value": "High at noon", "SyncCount": 0}])
    update = ("update-records", *d, "--device-id", "shell", "--record-patches", patches,
              "--client-context", "context", "--sync-session-token", listing["SyncSessionToken"])
    equal(values(app.call(*update)["Records"]), {"title": "Tides \u2248", "body": "High at noon"},
          "update-records")
    listing = app.call("list-records", *d, "--last-sync-count", "0")
    equal(values(listing["Records"]), {"title": "Tides \u2248", "body": "High at noon"},
          "list-records, afterwards")
    equal(listing["DatasetSyncCount"], 1, "DatasetSyncCount")
    status, _, errors = app.run("cognito-sync", *update[:-1], listing["SyncSessionToken"],
                                "--record-patches",
                                '[{"Op":"replace","Key":"title","Value":"x","SyncCount":0}]')
    holds(status != 0 and "ResourceConflictException" in errors
          and "Current SyncCount for: title is: 1 not: 0" in errors, f"a conflict: {errors}")
    dataset = app.call("describe-dataset", *d)["Dataset"]
    equal((dataset["DatasetName"], dataset["NumRecords"], dataset["DataStorage"]),
          ("notes:1.a", 2, len("titlebody") + len("Tides \u2248".encode()) + 12),
          "describe-dataset")
    equal([one["DatasetName"] for one in app.call("list-datasets", *path)["Datasets"]],
          ["notes:1.a"], "list-datasets")
    usage = app.call("describe-identity-usage", *path)["IdentityUsage"]
    equal((usage["DatasetCount"], usage["DataStorage"]), (1, dataset["DataStorage"]),
          "describe-identity-usage")

    push = {"ApplicationArns": [TOPIC], "RoleArn": ROLE}
    developer.call("set-identity-pool-configuration", *pool, "--push-sync", json.dumps(push))
    equal(developer.call("get-identity-pool-configuration", *pool)["PushSync"], push,
          "get-identity-pool-configuration")
    device = app.call("register-device", *path, "--platform", "GCM", "--token", "ab" * 32)
    device_id = device["DeviceId"]
    holds(device_id, "register-device")
    app.call("subscribe-to-dataset", *d, "--device-id", device_id)
    app.call("unsubscribe-from-dataset", *d, "--device-id", device_id)
    status, _, errors = app.run("cognito-sync", "unsubscribe-from-dataset", *d, "--device-id",
                                device_id)
    holds(status != 0 and "ResourceNotFoundException" in errors, f"unsubscribed twice: {errors}")

    found = developer.call("describe-identity-pool-usage", *pool)["IdentityPoolUsage"]
    equal(found["IdentityPoolId"], POOLS["pushed"], "describe-identity-pool-usage")
    holds(found["DataStorage"] >= dataset["DataStorage"], "DataStorage of the pool")
    listed = developer.call("list-identity-pool-usage")["IdentityPoolUsages"]
    equal({one["IdentityPoolId"] for one in listed}, set(POOLS.values()),
          "list-identity-pool-usage")

    triggered = ("--identity-pool-id", POOLS["triggered"])
    events = {"SyncTrigger": f"{hub.hooks.endpoint}/trigger"}
    developer.call("set-cognito-events", *triggered, "--events", json.dumps(events))
    equal(developer.call("get-cognito-events", *triggered)["Events"], events, "the events")

    published = ("--identity-pool-id", POOLS["published"])
    developer.call("set-identity-pool-configuration", *published, "--cognito-streams", json.dumps(
        {"StreamName": "changes", "RoleArn": ROLE, "StreamingStatus": "ENABLED"}))
    equal(developer.call("bulk-publish", *published)["IdentityPoolId"], POOLS["published"],
          "bulk-publish")
    eventually(lambda: developer.call("get-bulk-publish-details", *published)[
        "BulkPublishStatus"] == "SUCCEEDED", "get-bulk-publish-details")

    equal(app.call("delete-dataset", *d)["Dataset"]["DatasetName"], "notes:1.a",
          "delete-dataset")
    equal(app.call("list-records", *d)["DatasetExists"], False, "the dataset afterwards")
    equal(len(app.operations | developer.operations), 17, "operations that were called")


def main() -> int:
    """The status is 1 if anything is not as it must be."""
    parser = argparse.ArgumentParser(description="The aws command line against a hub.")
    parser.add_argument("binary", type=Path, help="the command tidemark")
    options = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        hub = Hub(options.binary, Path(directory) / "hub").start()
        try:
            _all_operations(hub, Path(directory))
            hub.stop()
        except BaseException:
            print(f"the hub's log ends so:\n{hub.log_end()}", file=sys.stderr)
            raise
        finally:
            hub.kill()
    print(f"the aws command line: 17 operations called ({time.monotonic() - started:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
