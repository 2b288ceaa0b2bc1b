"""Several devices of one identity."""

from __future__ import annotations

from typing import Any

from checks import equal, fails, holds, values
from clients import App, patch
from hub import GUESTS
from scenarios import scenario


def _two(hub: Any) -> tuple[App, App]:
    first = App(hub, GUESTS, device="phone")
    return first, App(hub, GUESTS, identity=first.identity, device="tablet")


@scenario
def what_one_writes_the_other_reads(hub: Any) -> None:
    """Both ways, each from where it was."""
    phone, tablet = _two(hub)
    phone.write("d", a="1", b="1")
    listing = tablet.list("d", 0)
    equal(values(listing["Records"]), {"a": "1", "b": "1"}, "what the tablet sees")
    equal({record["LastModifiedBy"] for record in listing["Records"]}, {"phone"}, "by whom")
    tablet.update("d", listing["SyncSessionToken"], [patch("b", None, 1), patch("c", "2")])
    news = phone.list("d", 1)
    equal(values(news["Records"]), {"b": None, "c": "2"}, "what the phone sees")
    equal(news["LastModifiedBy"], "tablet", "who was last")


@scenario
def a_conflict_is_told_and_settled(hub: Any) -> None:
    """The second one is refused, takes what is there, and passes with its count."""
    phone, tablet = _two(hub)
    phone.write("d", key="base")
    ours, theirs = phone.list("d"), tablet.list("d")
    phone.update("d", ours["SyncSessionToken"], [patch("key", "phone", 1)])
    fails("ResourceConflictException", 409, tablet.sync.update_records, "key", **tablet.path,
          DatasetName="d", SyncSessionToken=theirs["SyncSessionToken"],
          RecordPatches=[patch("key", "tablet", 1)])
    equal(values(phone.list("d")["Records"]), {"key": "phone"}, "after the refusal")
    listing = tablet.list("d", 1)
    equal(values(listing["Records"]), {"key": "phone"}, "what the tablet has to settle")
    equal(listing["Records"][0]["SyncCount"], 2, "its count")
    merged = tablet.update("d", listing["SyncSessionToken"], [patch("key", "both", 2)])
    equal((merged[0]["Value"], merged[0]["SyncCount"]), ("both", 3), "the answer")
    equal(values(phone.list("d", 2)["Records"]), {"key": "both"}, "what the phone sees")


@scenario
def a_stale_count_is_named(hub: Any) -> None:
    """In the words that the service used, with a token that is good."""
    phone, tablet = _two(hub)
    phone.write("d", key="1")
    tablet.write("d", key="2")
    token = phone.list("d")["SyncSessionToken"]
    fails("ResourceConflictException", 409, phone.sync.update_records,
          "Current SyncCount for: key is: 2 not: 1", **phone.path, DatasetName="d",
          SyncSessionToken=token, RecordPatches=[patch("key", "3", 1)])
    fails("ResourceConflictException", 409, phone.sync.update_records,
          "Current SyncCount for: key is: 2 not: 0", **phone.path, DatasetName="d",
          SyncSessionToken=token, RecordPatches=[patch("key", "3", 0)])
    fails("ResourceConflictException", 409, phone.sync.update_records,
          "Current SyncCount for: new is: 0 not: 7", **phone.path, DatasetName="d",
          SyncSessionToken=token, RecordPatches=[patch("new", "3", 7)])


@scenario
def no_update_is_missed_between_list_and_push(hub: Any) -> None:
    """A push after another device's is refused although the keys differ: a client that moved its
    count to its own answer would never see the other one's record."""
    phone, tablet = _two(hub)
    phone.write("d", a="1")
    ours = phone.list("d")["SyncSessionToken"]
    tablet.write("d", b="1")
    fails("ResourceConflictException", 409, phone.sync.update_records, **phone.path,
          DatasetName="d", SyncSessionToken=ours, RecordPatches=[patch("a", "2", 1)])
    phone.write("d", a="2")
    equal(values(phone.list("d")["Records"]), {"a": "2", "b": "1"}, "what the phone sees")
    equal(phone.list("d")["DatasetSyncCount"], 3, "DatasetSyncCount")


@scenario
def a_deleted_dataset_is_told_and_may_be_made_again(hub: Any) -> None:
    """Its count goes on, so that a device that was away misses nothing of the new one."""
    phone, tablet = _two(hub)
    phone.write("d", a="1", b="1")
    phone.write("d", a="2")
    path = {**phone.path, "DatasetName": "d"}
    deleted = phone.sync.delete_dataset(**path)["Dataset"]
    equal((deleted["DatasetName"], deleted["IdentityId"]), ("d", phone.identity), "the answer")
    equal(deleted["NumRecords"], 2, "the records it had")
    fails("ResourceNotFoundException", 404, phone.sync.delete_dataset, **path)
    fails("ResourceNotFoundException", 404, phone.sync.describe_dataset, **path)
    equal(phone.sync.list_datasets(**phone.path)["Datasets"], [], "the datasets")

    gone = tablet.list("d", 2)
    equal((gone["DatasetExists"], gone["Records"]), (False, []), "for who knew it")
    fresh = tablet.list("d")
    equal(fresh["DatasetDeletedAfterRequestedSyncCount"], False, "for who did not")
    equal(tablet.list("d", 0)["DatasetDeletedAfterRequestedSyncCount"], False, "for who asks by 0")

    again = tablet.update("d", fresh["SyncSessionToken"], [patch("a", "new")])
    holds(again[0]["SyncCount"] > 2, "its counts go on")
    old, new = phone.list("d", 2), phone.list("d")
    equal(old["DatasetDeletedAfterRequestedSyncCount"], True, "for who knew the old one")
    equal(old["DatasetExists"], True, "DatasetExists")
    equal(values(old["Records"]), {"a": "new"}, "since the old count")
    equal(new["DatasetDeletedAfterRequestedSyncCount"], False, "for a new device")
    equal(values(new["Records"]), {"a": "new"}, "all of it")
    equal(phone.list("d", new["DatasetSyncCount"])["DatasetDeletedAfterRequestedSyncCount"],
          False, "for who knows the new one")


@scenario
def what_two_say_alike_is_said_by_one(hub: Any) -> None:
    """Two devices count one up from the same number: the second one is refused, with the token of
    its list and with a new one, though what it sends is there already."""
    phone, tablet = _two(hub)
    phone.write("d", count="5")
    ours, theirs = phone.list("d")["SyncSessionToken"], tablet.list("d")["SyncSessionToken"]
    six = patch("count", "6", 1)
    phone.update("d", ours, [six])
    for token in theirs, tablet.list("d")["SyncSessionToken"]:
        fails("ResourceConflictException", 409, tablet.sync.update_records,
              "Current SyncCount for: count is: 2 not: 1", **tablet.path, DatasetName="d",
              SyncSessionToken=token, RecordPatches=[six])
    again = phone.update("d", ours, [six])
    equal((again[0]["Value"], again[0]["SyncCount"]), ("6", 2), "the phone's own repeat")


@scenario
def many_devices_count_together(hub: Any) -> None:
    """Each adds one to a number, again after each refusal, as an app does: none is lost."""
    phone, _ = _two(hub)
    phone.write("d", count="0")
    devices = [App(hub, GUESTS, identity=phone.identity, device=f"d{n}") for n in range(4)]
    left = {device.device: 5 for device in devices}
    rounds = 0
    while any(left.values()):
        rounds += 1
        holds(rounds < 100, "it comes to an end")
        listings = {device.device: device.list("d") for device in devices}
        passed = 0
        for device in devices:
            if not left[device.device]:
                continue
            listing = listings[device.device]
            (record,) = listing["Records"]
            try:
                device.update("d", listing["SyncSessionToken"], [
                    patch("count", str(int(record["Value"]) + 1), record["SyncCount"])])
            except device.sync.exceptions.ResourceConflictException:
                continue
            left[device.device] -= 1
            passed += 1
        equal(passed, 1, "those that pass of a round")
    equal(values(phone.list("d")["Records"]), {"count": "20"}, "the sum")
    equal(phone.list("d")["DatasetSyncCount"], 21, "DatasetSyncCount")
