"""ListRecords and UpdateRecords, as one device sees them."""

from __future__ import annotations

import datetime
from typing import Any

from checks import by_key, equal, fails, holds, is_recent, values
from clients import App, patch
from hub import GUESTS
from scenarios import scenario


@scenario
def an_unknown_dataset_is_empty_and_no_error(hub: Any) -> None:
    """All SDKs begin so; none of them expects a 404."""
    app = App(hub, GUESTS)
    listing = app.list("notes")
    equal(listing.get("DatasetExists"), False, "DatasetExists")
    equal(listing.get("DatasetDeletedAfterRequestedSyncCount"), False, "the deletion flag")
    equal(listing.get("Records"), [], "the records")
    equal(listing.get("Count"), 0, "Count")
    equal(listing.get("DatasetSyncCount"), 0, "DatasetSyncCount")
    equal(listing.get("MergedDatasetNames"), [], "MergedDatasetNames")
    holds(listing.get("SyncSessionToken"), "there is a session token")
    holds(not listing.get("NextToken"), "there is no other page")


@scenario
def what_is_pushed_is_listed(hub: Any) -> None:
    """Values, counts, dates and who wrote, in the answer and in every later list."""
    app = App(hub, GUESTS, device="phone")
    edited = datetime.datetime.fromtimestamp(1_500_000_000, datetime.timezone.utc)
    token = app.list("notes")["SyncSessionToken"]
    answer = app.update("notes", token, [
        patch("title", "Tides", DeviceLastModifiedDate=edited), patch("body", "High at noon")])
    listing = app.list("notes")
    for records, what in ((answer, "the answer"), (listing["Records"], "the list")):
        equal(values(records), {"title": "Tides", "body": "High at noon"}, what)
        for record in records:
            equal(record["SyncCount"], 1, f"{what}, SyncCount")
            equal(record.get("LastModifiedBy"), "phone", f"{what}, LastModifiedBy")
            is_recent(record.get("LastModifiedDate"), f"{what}, LastModifiedDate")
        equal(by_key(records)["title"].get("DeviceLastModifiedDate"), edited,
              f"{what}, DeviceLastModifiedDate")
    equal(listing["DatasetExists"], True, "DatasetExists")
    equal(listing["DatasetSyncCount"], 1, "DatasetSyncCount")
    equal(listing["Count"], 2, "Count")
    equal(listing.get("LastModifiedBy"), "phone", "LastModifiedBy")


@scenario
def a_call_has_one_count_and_a_list_only_what_is_newer(hub: Any) -> None:
    """The dataset's count goes up by one with each call, however many records it has."""
    app = App(hub, GUESTS)
    equal({record["SyncCount"] for record in app.write("d", a="1", b="1", c="1")}, {1}, "first")
    equal({record["SyncCount"] for record in app.write("d", b="2")}, {2}, "second")
    equal({record["SyncCount"] for record in app.write("d", c="3", d="3")}, {3}, "third")
    equal(app.list("d")["DatasetSyncCount"], 3, "DatasetSyncCount")
    # A count that the dataset never had is of another store: all is told.
    everything = {"a", "b", "c", "d"}
    expected = {0: everything, 1: {"b", "c", "d"}, 2: {"c", "d"}, 3: set(), 9: everything}
    for since, keys in expected.items():
        listing = app.list("d", since)
        equal(set(values(listing["Records"])), keys, f"newer than {since}")
        equal(listing["DatasetSyncCount"], 3, f"DatasetSyncCount of the list since {since}")
        equal(listing["DatasetDeletedAfterRequestedSyncCount"], False, f"flag since {since}")
    counts = {key: record["SyncCount"] for key, record in by_key(app.list("d")["Records"]).items()}
    equal(counts, {"a": 1, "b": 2, "c": 3, "d": 3}, "the counts of all records")


@scenario
def a_removed_record_is_told_without_a_value(hub: Any) -> None:
    """An empty value is a value; a removed one has no member for it."""
    app = App(hub, GUESTS)
    app.write("d", gone="1", empty="")
    removed = app.write("d", gone=None)
    equal(values(removed), {"gone": None}, "the answer")
    equal(removed[0]["SyncCount"], 2, "the removal's count")
    listing = app.list("d", 1)
    equal(values(listing["Records"]), {"gone": None}, "newer than 1")
    holds("Value" not in listing["Records"][0], "the member Value is left out")
    equal(values(app.list("d")["Records"]), {"gone": None, "empty": ""}, "all")
    equal(app.sync.describe_dataset(**app.path, DatasetName="d")["Dataset"]["NumRecords"], 1,
          "live records")
    again = app.write("d", gone="2")
    equal((again[0]["Value"], again[0]["SyncCount"]), ("2", 3), "written again")


@scenario
def any_text_comes_back_as_it_was(hub: Any) -> None:
    """Keys and values are text of any kind, and none of it is changed on the way."""
    app = App(hub, GUESTS)
    texts = ["", " ", "a b+c%2Fd&e=f", "\u0000\u0001\n\r\t\u007f", "\"\\/\b", "e\u0301 \u00e9",
             "\u2028\u2029\ufeff\ufffd", "漢字 🙂 \U0010ffff", "</script>", "x" * 10_000]
    records = {f"{number} {text}"[:1_000]: text for number, text in enumerate(texts)}
    # Two spellings of one letter are two keys.
    records |= {"\u00e9": "one", "e\u0301": "two"}
    app.write("d", **records)
    equal(values(app.list("d")["Records"]), records, "the records")


@scenario
def a_lost_answer_is_no_conflict(hub: Any) -> None:
    """The same call again, as after a timeout, answers the same and writes nothing."""
    app = App(hub, GUESTS)
    app.write("d", a="1", b="1")
    token = app.list("d")["SyncSessionToken"]
    patches = [patch("a", "2", 1), patch("b", None, 1), patch("c", "new", 0)]
    first = app.update("d", token, patches)
    second = app.update("d", token, patches)
    equal(values(first), {"a": "2", "b": None, "c": "new"}, "the first answer")
    equal(by_key(second), by_key(first), "the second answer")
    equal(app.list("d")["DatasetSyncCount"], 2, "DatasetSyncCount")


@scenario
def all_or_nothing(hub: Any) -> None:
    """One patch that does not fit keeps all others from being written."""
    app = App(hub, GUESTS)
    app.write("d", a="1", b="1")
    app.write("d", b="2")
    token = app.list("d")["SyncSessionToken"]
    fails("ResourceConflictException", 409, app.sync.update_records,
          "Current SyncCount for: b is: 2 not: 1", **app.path, DatasetName="d",
          SyncSessionToken=token,
          RecordPatches=[patch("a", "3", 1), patch("b", "3", 1), patch("new", "3", 0)])
    listing = app.list("d")
    equal(values(listing["Records"]), {"a": "1", "b": "2"}, "the records")
    equal(listing["DatasetSyncCount"], 2, "DatasetSyncCount")


@scenario
def wrong_calls_are_named(hub: Any) -> None:
    """What boto3 does not check itself, the hub does."""
    app = App(hub, GUESTS)
    app.write("d", a="1")
    token = app.list("d")["SyncSessionToken"]
    call, wrong = app.sync.update_records, "InvalidParameterException"

    def refused(*patches: dict[str, Any], token: str = token, dataset: str = "d") -> None:
        fails(wrong, 400, call, **app.path, DatasetName=dataset, SyncSessionToken=token,
              RecordPatches=list(patches))

    refused(patch("a", "2", 1), patch("a", "3", 1))
    refused({"Op": "replace", "Key": "a", "SyncCount": 1})
    refused({"Op": "append", "Key": "a", "Value": "2", "SyncCount": 1})
    refused(patch("a", "2", 1), token="no token")
    refused(patch("b", "2"), dataset="other")
    refused(patch("a", "2", 1), dataset="a b")
    refused(patch("a", "2", 1), dataset="n" * 129)
    refused(patch("k" * 1_025, "2"))
    fails(wrong, 400, app.sync.list_records, **app.path, DatasetName="d", NextToken="none")
    fails(wrong, 400, app.sync.list_records, **app.path, DatasetName="d", LastSyncCount=-1)
    equal(values(app.list("d")["Records"]), {"a": "1"}, "the records")
