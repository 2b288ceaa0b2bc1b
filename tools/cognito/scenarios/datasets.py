"""ListDatasets, DescribeDataset and the usages, with paging."""

from __future__ import annotations

from typing import Any

from checks import equal, fails, holds, is_recent, values
from clients import App, patch
from hub import COUNTED, GUESTS
from scenarios import scenario


@scenario
def a_dataset_is_described(hub: Any) -> None:
    """Bytes are those of keys and values in UTF-8; removed records do not count."""
    app = App(hub, GUESTS, device="phone")
    app.write("d", a="12345", **{"é": "🙂", "gone": "x"})
    app.write("d", gone=None)
    described = app.sync.describe_dataset(**app.path, DatasetName="d")["Dataset"]
    equal(described["IdentityId"], app.identity, "IdentityId")
    equal(described["DatasetName"], "d", "DatasetName")
    equal(described["NumRecords"], 2, "NumRecords")
    equal(described["DataStorage"], 1 + 5 + 2 + 4, "DataStorage")
    equal(described["LastModifiedBy"], "phone", "LastModifiedBy")
    is_recent(described["CreationDate"], "CreationDate")
    is_recent(described["LastModifiedDate"], "LastModifiedDate")
    holds(described["CreationDate"] <= described["LastModifiedDate"], "the order of the dates")
    (listed,) = app.sync.list_datasets(**app.path)["Datasets"]
    equal(listed, described, "as it is listed")


@scenario
def names_may_hold_colons_and_dots(hub: Any) -> None:
    """A name is one segment of the path, whatever stands in it."""
    app, other = App(hub, GUESTS), App(hub, GUESTS)
    names = ["a:b", "a.b", "a_b-c", "hub:pools", f"{other.identity}:d", "records", ".a", "n" * 128]
    for name in names:
        app.write(name, key=name)
    for name in names:
        equal(values(app.list(name)["Records"]), {"key": name}, f"the records of {name}")
    listed = app.sync.list_datasets(**app.path)["Datasets"]
    equal(sorted(dataset["DatasetName"] for dataset in listed), sorted(names), "the list")
    equal(other.list("d")["DatasetExists"], False, "another identity's dataset of that name")


@scenario
def pages_of_datasets_hold_each_once(hub: Any) -> None:
    """Whatever their size."""
    app = App(hub, GUESTS)
    names = {f"d{number}" for number in range(9)}
    for name in names:
        app.write(name, a="1")
    for size in (1, 4, 9, 64):
        found: list[str] = []
        arguments: dict[str, Any] = {}
        while True:
            page = app.sync.list_datasets(**app.path, MaxResults=size, **arguments)
            equal(page["Count"], len(page["Datasets"]), "Count")
            holds(len(page["Datasets"]) <= size, "a page has no more than were asked for")
            found += [dataset["DatasetName"] for dataset in page["Datasets"]]
            if not page.get("NextToken"):
                break
            arguments = {"NextToken": page["NextToken"]}
        equal(sorted(found), sorted(names), f"all pages of {size}")


@scenario
def pages_of_records_hold_each_once(hub: Any) -> None:
    """1,024 records by pages, each with all that clients look at."""
    app = App(hub, GUESTS)
    token = app.list("d")["SyncSessionToken"]
    records = {f"key {number:04}": f"value {number}" for number in range(1_024)}
    app.update("d", token, [patch(key, value) for key, value in records.items()])
    equal(values(app.list("d")["Records"]), records, "without a bound, all in one page")
    for size in (100, 512, 1_024):
        found: dict[str, Any] = {}
        arguments: dict[str, Any] = {}
        while True:
            page = app.list("d", 0, MaxResults=size, **arguments)
            part = values(page["Records"])
            holds(len(part) <= size, "a page has no more than were asked for")
            holds(not part.keys() & found.keys(), "no record comes twice")
            found |= part
            equal((page["DatasetSyncCount"], page["DatasetExists"]), (1, True), "each page")
            equal(page["DatasetDeletedAfterRequestedSyncCount"], False, "each page's flag")
            holds(page["SyncSessionToken"], "each page has a session token")
            if not page.get("NextToken"):
                break
            arguments = {"NextToken": page["NextToken"]}
        equal(found, records, f"all pages of {size}")
    app.update("d", page["SyncSessionToken"], [patch("key 0000", "new", 1)])
    equal(values(app.list("d", 1)["Records"]), {"key 0000": "new"}, "what is newer")


@scenario
def a_page_token_is_good_for_its_dataset_alone(hub: Any) -> None:
    """It cannot be made, changed or carried elsewhere."""
    app, other = App(hub, GUESTS), App(hub, GUESTS)
    for writer in (app, other):
        writer.write("d", a="1", b="1", c="1")
    app.write("e", a="1", b="1")
    token = app.list("d", 0, MaxResults=1)["NextToken"]
    for caller, dataset in ((other, "d"), (app, "e")):
        fails("InvalidParameterException", 400, caller.sync.list_records, **caller.path,
              DatasetName=dataset, NextToken=token)
    altered = ("B" if token[20] == "A" else "A").join((token[:20], token[21:]))
    fails("InvalidParameterException", 400, app.sync.list_records, **app.path, DatasetName="d",
          NextToken=altered)


@scenario
def an_identity_has_a_usage(hub: Any) -> None:
    """The sum of its datasets."""
    app = App(hub, GUESTS)
    empty = app.sync.describe_identity_usage(**app.path)["IdentityUsage"]
    equal((empty["DatasetCount"], empty["DataStorage"]), (0, 0), "before anything is written")
    app.write("d", a="1234")
    app.write("e", bb="12", cc="3")
    usage = app.sync.describe_identity_usage(**app.path)["IdentityUsage"]
    equal(usage["IdentityId"], app.identity, "IdentityId")
    equal(usage["IdentityPoolId"], GUESTS, "IdentityPoolId")
    equal(usage["DatasetCount"], 2, "DatasetCount")
    equal(usage["DataStorage"], 1 + 4 + 2 + 2 + 2 + 1, "DataStorage")
    is_recent(usage["LastModifiedDate"], "LastModifiedDate")


@scenario
def a_pool_has_a_usage(hub: Any) -> None:
    """For developers alone. Asked once: it may be a minute old."""
    apps = [App(hub, COUNTED) for _ in range(3)]
    for app in apps:
        app.write("d", key="1234567")
    developer = hub.developer()
    usage = developer.describe_identity_pool_usage(IdentityPoolId=COUNTED)["IdentityPoolUsage"]
    equal(usage["IdentityPoolId"], COUNTED, "IdentityPoolId")
    equal(usage["DataStorage"], 3 * 10, "DataStorage")
    holds(usage["SyncSessionsCount"] >= 3, "each of them had a session")
    listed = developer.list_identity_pool_usage()
    found = {one["IdentityPoolId"]: one for one in listed["IdentityPoolUsages"]}
    equal(listed["Count"], len(found), "Count")
    equal(found[COUNTED]["DataStorage"], 3 * 10, "DataStorage, as it is listed")
    holds(GUESTS in found, "other pools are listed")
    for call, arguments in ((apps[0].sync.list_identity_pool_usage, {}),
                            (apps[0].sync.describe_identity_pool_usage,
                             {"IdentityPoolId": COUNTED})):
        fails("NotAuthorizedException", 403, call, **arguments)
