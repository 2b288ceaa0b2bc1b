"""`tidemark import cognito`, out of one hub into the store of another one."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from checks import by_key, equal, fails, holds, values
from clients import App, patch
from hub import DEVELOPER, MEMBERS, POOLS, PROVIDER, Hub
from scenarios import scenario

POOL = POOLS["raced"]


def _run(hub: Any, store: Path, pool: str, *options: str) -> tuple[int, dict[str, Any], str]:
    done = subprocess.run(
        [hub.binary, "import", "cognito", store, "--endpoint", hub.endpoint, "--pool", pool,
         "--access-key", hub.key[0], "--json", *options],
        env={"AWS_SECRET_ACCESS_KEY": hub.key[1]}, capture_output=True, text=True, timeout=120,
        check=False)
    holds(hub.key[1] not in done.stdout + done.stderr, "the secret is not printed")
    return done.returncode, json.loads(done.stdout or "{}"), done.stderr


def _facts(app: App, dataset: str, since: int | None = None) -> dict[str, tuple[Any, ...]]:
    """What a device sees of records, but for the time at which the hub got them."""
    return {key: (record.get("Value"), record["SyncCount"], record.get("LastModifiedBy"),
                  record.get("DeviceLastModifiedDate"))
            for key, record in by_key(app.list(dataset, since)["Records"]).items()}


@scenario
def a_device_goes_on_at_the_new_hub(hub: Any) -> None:
    """With its identity, its counts, and what it has not pushed yet; then again with what is new
    since. Nothing that was written at the new hub is overwritten."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        app = App(hub, POOL, device="phone")
        app.write("notes", a="1", b="1", gone="1")
        app.write("notes", a="2")
        app.write("notes", b="3", gone=None, **{"é 🙂": "\u0000", "\u00e9": "1", "e\u0301": "2"})
        for number in range(5):
            app.write("often", a=str(number))
        app.write("often", b="1")
        before = {dataset: _facts(app, dataset) for dataset in ("notes", "often")}
        counts = {dataset: app.list(dataset)["DatasetSyncCount"] for dataset in before}
        new = Hub(hub.binary, directory / "new") if isinstance(hub, Hub) else hub
        store = directory / "new" / "store"

        status, report, errors = _run(hub, store, POOL)
        equal((status, errors), (0, ""), "the import")
        equal((report["datasets"] >= 2, report["problems"]), (True, 0), "the report")
        new.start()
        try:
            there = App(new, POOL, identity=app.identity, device="phone")
            for dataset, facts in before.items():
                equal(_facts(there, dataset), facts, f"the records of {dataset}")
                equal(there.list(dataset)["DatasetSyncCount"], counts[dataset],
                      f"DatasetSyncCount of {dataset}")
                for since in range(counts[dataset] + 1):
                    equal(set(_facts(there, dataset, since)), set(_facts(app, dataset, since)),
                          f"records of {dataset} after {since}")
        finally:
            new.stop()

        app.write("notes", a="later", b=None)
        app.write("fresh", x="1")
        status, report, errors = _run(hub, store, POOL)
        equal((status, report["records"], report["removals"]), (0, 2, 1), f"again: {errors}")
        new.start()
        try:
            there = App(new, POOL, identity=app.identity, device="phone")
            for dataset in ("notes", "often", "fresh"):
                equal(_facts(there, dataset), _facts(app, dataset), f"{dataset}, again")
            listing = there.list("notes", 4)
            there.update("notes", listing["SyncSessionToken"], [patch("a", "at the new hub", 4)])
        finally:
            new.stop()

        app.write("notes", a="too late")
        status, report, errors = _run(hub, store, POOL)
        equal((status, report["records"], report["problems"]), (65, 0, 1), "once it is used")
        holds(f"{app.identity}/notes" in errors, f"what was left out is named: {errors}")


@scenario
def users_are_who_they_were(hub: Any) -> None:
    """By the logins that are given, or that the app's own service has; nobody else is let in."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        ida = App(hub, MEMBERS, logins={PROVIDER: hub.login("ida")})
        jana = App(hub, MEMBERS, logins={PROVIDER: hub.login("jana")})
        ours = hub.directory_client().get_open_id_token_for_developer_identity(
            IdentityPoolId=MEMBERS, Logins={DEVELOPER: "karla"})["IdentityId"]
        ida.write("d", a="ida")
        jana.write("d", a="jana")
        ids = directory / "ids"
        ids.write_text(f"{ida.identity}\n{jana.identity}\n{ours}\n")
        logins = directory / "logins"
        logins.write_text(json.dumps(
            {"identityId": ida.identity, "provider": PROVIDER, "subject": "ida"}) + "\n")
        new = Hub(hub.binary, directory / "new") if isinstance(hub, Hub) else hub
        status, report, errors = _run(
            hub, directory / "new" / "store", MEMBERS, "--identities", str(ids), "--logins",
            str(logins), "--developer-provider", DEVELOPER)
        equal((status, report["identities"], report["closedIdentities"]), (0, 3, 1),
              f"the report: {errors}")
        new.start()
        try:
            there = App(new, MEMBERS, logins={PROVIDER: new.login("ida")})
            equal(there.identity, ida.identity, "whose login is known")
            equal(values(there.list("d")["Records"]), {"a": "ida"}, "the records")
            found = new.directory_client().lookup_developer_identity(
                IdentityPoolId=MEMBERS, DeveloperUserIdentifier="karla")
            equal(found["IdentityId"], ours, "a user of the app's own service")
            fails("NotAuthorizedException", range(400, 500),
                  there.directory.get_credentials_for_identity, IdentityId=jana.identity)
        finally:
            new.stop()
        wrong = subprocess.run(
            [hub.binary, "import", "cognito", directory / "other", "--endpoint", hub.endpoint,
             "--pool", MEMBERS, "--access-key", hub.key[0]],
            env={"AWS_SECRET_ACCESS_KEY": "wrong"}, capture_output=True, text=True, timeout=60,
            check=False)
        equal(wrong.returncode, 77, f"the status with a wrong secret: {wrong.stderr}")
        holds("InvalidSignature" in wrong.stderr, f"why: {wrong.stderr}")
