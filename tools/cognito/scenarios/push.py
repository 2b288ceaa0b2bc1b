"""Push sync: devices, subscriptions, and who is told of what."""

from __future__ import annotations

import time
from typing import Any

from checks import equal, eventually, fails, holds
from clients import App, patch
from hub import POOLS
from notices import Notices
from scenarios import scenario

ROLE = "arn:aws:iam::123456789012:role/push"
TOPIC = "arn:aws:sns:us-east-1:123456789012:app/GCM/notes"


def turn_on(hub: Any, pool: str) -> None:
    """Push for a pool. Of scenarios that do so at once one may be told to try again."""
    developer = hub.developer()
    push = {"ApplicationArns": [TOPIC], "RoleArn": ROLE}

    def is_on() -> bool:
        try:
            answer = developer.set_identity_pool_configuration(
                IdentityPoolId=POOLS[pool], PushSync=push)
        except developer.exceptions.ConcurrentModificationException:
            return False
        equal(answer["PushSync"], push, "PushSync")
        return True

    eventually(is_on, "push is turned on")


def register(app: App, token: str) -> str:
    return app.sync.register_device(**app.path, Platform="GCM", Token=token)["DeviceId"]


@scenario
def without_push_no_device_is_taken(hub: Any) -> None:
    """A pool must have it turned on."""
    app = App(hub, POOLS["guests"])
    app.write("d", a="1")
    fails("InvalidConfigurationException", 400, app.sync.register_device, **app.path,
          Platform="GCM", Token="token")


@scenario
def devices_are_told_apart(hub: Any) -> None:
    """The same token is the same device; what is unknown is named."""
    turn_on(hub, "pushed")
    app = App(hub, POOLS["pushed"])
    app.write("d", a="1")
    phone = register(app, "token of the phone")
    equal(register(app, "token of the phone"), phone, "registered again")
    holds(register(app, "token of the tablet") != phone, "another token is another device")
    fails("InvalidParameterException", 400, app.sync.register_device, **app.path,
          Platform="SDM", Token="token")
    path = {**app.path, "DatasetName": "d"}
    for call in (app.sync.subscribe_to_dataset, app.sync.unsubscribe_from_dataset):
        fails("ResourceNotFoundException", 404, call, **path, DeviceId="unknown / device")
        fails("ResourceNotFoundException", 404, call, **app.path, DatasetName="none",
              DeviceId=phone)
    other = App(hub, POOLS["pushed"])
    other.write("d", a="1")
    fails("ResourceNotFoundException", 404, other.sync.subscribe_to_dataset, **other.path,
          DatasetName="d", DeviceId=phone)
    app.sync.subscribe_to_dataset(**path, DeviceId=phone)
    app.sync.subscribe_to_dataset(**path, DeviceId=phone)
    app.sync.unsubscribe_from_dataset(**path, DeviceId=phone)
    fails("ResourceNotFoundException", 404, app.sync.unsubscribe_from_dataset, **path,
          DeviceId=phone)


@scenario
def a_device_is_told_of_others_changes(hub: Any) -> None:
    """At once if it is connected, and by the endpoint for those that are not; never of its own."""
    turn_on(hub, "pushed")
    app = App(hub, POOLS["pushed"])
    app.write("d", a="1")
    app.write("quiet", a="1")
    phone, tablet, watch = (register(app, name) for name in ("phone", "tablet", "watch"))
    for device in (phone, tablet, watch):
        app.sync.subscribe_to_dataset(**app.path, DatasetName="d", DeviceId=device)
    ears = {phone: Notices(app, phone), tablet: Notices(app, tablet)}
    for ear in ears.values():
        # Whoever connects is told where its datasets are.
        equal(ear.wait("d", 1)["syncCount"], 1, "what is told at the start")
    app.device = phone
    app.write("quiet", a="2")
    app.write("d", a="2")
    notice = ears[tablet].wait("d", 2)
    equal(notice, {"source": "cognito-sync", "identityPoolId": app.pool,
                   "identityId": app.identity, "datasetName": "d", "syncCount": 2}, "the notice")
    app.device = tablet
    app.write("d", a="3")
    equal(ears[phone].wait("d", 3)["syncCount"], 3, "what the phone hears")
    equal([event["syncCount"] for event in ears[phone].events() if event["syncCount"] == 2], [],
          "what the phone hears of its own change")
    for ear in ears.values():
        equal([event for event in ear.events() if event["datasetName"] != "d"], [],
              "what nobody has subscribed to")
    app.device = None

    def posted() -> list[Any]:
        return [post for post in hub.hooks.posts("push", app.identity)
                if post["deviceId"] == watch and post["data"]["syncCount"] == 3]

    (post, *_) = eventually(posted, "what is posted for the one that is not connected")
    equal((post["platform"], post["token"]), ("GCM", "watch"), "for whom")
    equal(post["data"], {**notice, "syncCount": 3}, "what is posted")
    equal(hub.hooks.wrong, [], "posts with a wrong signature")
    for ear in ears.values():
        ear.close()


@scenario
def whoever_was_away_is_told_on_coming_back(hub: Any) -> None:
    """Of the present count of each dataset, once."""
    turn_on(hub, "pushed")
    app = App(hub, POOLS["pushed"])
    app.write("d", a="1")
    device = register(app, "phone")
    app.sync.subscribe_to_dataset(**app.path, DatasetName="d", DeviceId=device)
    for number in range(5):
        app.write("d", a=f"while away {number}")
    ear = Notices(app, device)
    equal(ear.wait("d", 6)["syncCount"], 6, "the count")
    time.sleep(0.2)
    equal(len(ear.events()), 1, "notices")
    ear.close()


@scenario
def after_unsubscribing_nobody_is_told(hub: Any) -> None:
    """Of one dataset; others go on."""
    turn_on(hub, "pushed")
    app = App(hub, POOLS["pushed"])
    device = register(app, "phone")
    for name in ("d", "e"):
        app.write(name, a="1")
        app.sync.subscribe_to_dataset(**app.path, DatasetName=name, DeviceId=device)
    ear = Notices(app, device)
    for name in ("d", "e"):
        ear.wait(name, 1)
    app.sync.unsubscribe_from_dataset(**app.path, DatasetName="d", DeviceId=device)
    listing = app.list("d")
    app.update("d", listing["SyncSessionToken"], [patch("a", "2", 1)])
    app.write("e", a="2")
    ear.wait("e", 2)
    equal([event for event in ear.events() if event["datasetName"] == "d"
           and event["syncCount"] >= 2], [], "notices of the dataset that was left")
    ear.close()
