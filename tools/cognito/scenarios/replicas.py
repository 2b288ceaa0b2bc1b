"""Replicas of Tidemark and clients of Cognito Sync edit the same datasets."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from checks import equal, holds, values
from clients import App
from hub import MEMBERS, PROVIDER
from scenarios import scenario


class Replica:
    """A store of a user's device, by the command line."""

    def __init__(self, hub: Any, subject: str, directory: str):
        self._hub = hub
        self._store = Path(directory) / "store"
        self._token = Path(directory) / "token"
        self._token.write_text(hub.login(subject) + "\n")

    def run(self, *arguments: str) -> str:
        """Runs `tidemark`; what it prints."""
        done = subprocess.run(
            [self._hub.binary, *arguments], capture_output=True, text=True, timeout=60,
            check=False)
        holds(done.returncode == 0, f"tidemark {arguments[0]} ends well: {done.stderr}")
        return done.stdout

    def write(self, dataset: str, **records: str | None) -> None:
        """Puts records, and deletes those whose value is None."""
        for key, value in records.items():
            if value is None:
                self.run("delete", str(self._store), dataset, key)
            else:
                self.run("put", str(self._store), dataset, key, value)

    def sync(self) -> None:
        """Exchanges changes with the hub."""
        self.run("sync", str(self._store), self._hub.endpoint, "--token-file", str(self._token))

    def records(self, dataset: str) -> dict[str, str]:
        """Live records."""
        lines = self.run("scan", str(self._store), dataset, "--json").splitlines()
        return {record["key"]: record["value"] for record in map(json.loads, lines)}

    def datasets(self) -> list[str]:
        """Their names."""
        lines = self.run("datasets", str(self._store), "--json").splitlines()
        return [json.loads(line)["dataset"] for line in lines]


@scenario
def a_replica_and_an_app_see_each_other(hub: Any) -> None:
    """Records, removals and counts, both ways; and nobody else's."""
    with tempfile.TemporaryDirectory() as directory:
        app = App(hub, MEMBERS, logins={PROVIDER: hub.login("greta")})
        other = App(hub, MEMBERS, logins={PROVIDER: hub.login("hanna")})
        other.write("theirs", a="secret")
        app.write("d", a="app", b="app")
        replica = Replica(hub, "greta", directory)
        replica.sync()
        equal(replica.datasets(), ["d"], "the datasets of the replica")
        equal(replica.records("d"), {"a": "app", "b": "app"}, "what the replica sees")

        before = app.list("d")["DatasetSyncCount"]
        replica.write("d", a="replica", b=None, c="replica")
        replica.write("own", x="1")
        replica.sync()
        listing = app.list("d", before)
        equal(values(listing["Records"]), {"a": "replica", "b": None, "c": "replica"},
              "what the app sees since its count")
        equal(listing["DatasetSyncCount"], before + 3, "each of them counts")
        equal(values(app.list("own")["Records"]), {"x": "1"}, "a dataset of the replica's")

        app.write("d", a=None, c="app")
        replica.sync()
        equal(replica.records("d"), {"c": "app"}, "what the replica sees at last")
        equal(values(app.list("d")["Records"]), {"a": None, "b": None, "c": "app"},
              "what the app sees at last")
        equal(values(other.list("theirs")["Records"]), {"a": "secret"}, "another one's records")
