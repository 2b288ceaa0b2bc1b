"""What survives the hub's end. These come last, and one after the other: they end it for all."""

from __future__ import annotations

from typing import Any

from checks import equal, holds, values
from clients import App, patch
from hub import GUESTS, POOLS
from notices import Notices
from scenarios import push, scenario


@scenario
def what_was_acknowledged_is_there_after_kill(hub: Any) -> None:
    """Records, removals, counts, credentials and session tokens."""
    app = App(hub, GUESTS, attempts=3)
    app.write("d", a="1", b="1")
    app.write("d", b=None, c="2")
    before = app.list("d")
    answer = app.update("d", before["SyncSessionToken"], [patch("a", "last", 1)])
    holds(answer, "it was answered")
    hub.restart(kill=True)
    listing = app.list("d")
    equal(values(listing["Records"]), {"a": "last", "b": None, "c": "2"}, "the records")
    equal(listing["DatasetSyncCount"], 3, "DatasetSyncCount")
    equal({record["Key"]: record["SyncCount"] for record in listing["Records"]},
          {"a": 3, "b": 2, "c": 2}, "their counts")
    hub.restart(kill=True)
    app.update("d", listing["SyncSessionToken"], [patch("c", "3", 2)])
    equal(values(app.list("d", 3)["Records"]), {"c": "3"}, "by a token of before")


@scenario
def push_and_streams_go_on_after_a_restart(hub: Any) -> None:
    """Subscriptions are kept, and what was not delivered is."""
    push.turn_on(hub, "pushed")
    hub.developer().set_identity_pool_configuration(
        IdentityPoolId=POOLS["streamed"], CognitoStreams={
            "StreamName": "changes", "RoleArn": push.ROLE, "StreamingStatus": "ENABLED"})
    told = App(hub, POOLS["pushed"])
    told.write("d", a="1")
    device = push.register(told, "phone")
    told.sync.subscribe_to_dataset(**told.path, DatasetName="d", DeviceId=device)
    streamed = App(hub, POOLS["streamed"])
    hub.hooks.answer("stream", lambda document: (503, {}))
    streamed.write("d", a="undelivered")
    told.write("d", a="2")
    hub.restart(kill=True)
    hub.hooks.answer("stream", lambda document: (200, {}))
    ear = Notices(told, device)
    equal(ear.wait("d", 2)["syncCount"], 2, "the notice")
    (document,) = hub.hooks.wait("stream", streamed.identity, 1)
    equal([record["value"] for record in document["kinesisSyncRecords"]], ["undelivered"],
          "what was not delivered before")
    ear.close()


@scenario
def it_ends_in_order(hub: Any) -> None:
    """On SIGTERM with status 0, and with somebody connected."""
    push.turn_on(hub, "pushed")
    app = App(hub, POOLS["pushed"], attempts=3)
    app.write("d", a="1")
    device = push.register(app, "phone")
    app.sync.subscribe_to_dataset(**app.path, DatasetName="d", DeviceId=device)
    ear = Notices(app, device)
    hub.restart()
    equal(values(app.list("d")["Records"]), {"a": "1"}, "the records")
    ear.close()
