"""Limits, each with its own error, and nothing written beyond them."""

from __future__ import annotations

from typing import Any

from checks import equal, fails, holds, values
from clients import App, patch
from hub import GUESTS
from scenarios import scenario


@scenario
def twenty_datasets(hub: Any) -> None:
    """The 21st is refused; after a deletion there is room again."""
    app = App(hub, GUESTS)
    for number in range(20):
        app.write(f"d{number}", a="1")
    token = app.list("more")["SyncSessionToken"]
    arguments = {**app.path, "DatasetName": "more", "SyncSessionToken": token,
                 "RecordPatches": [patch("a", "1")]}
    fails("LimitExceededException", 400, app.sync.update_records, "20", **arguments)
    equal(app.list("more")["DatasetExists"], False, "the 21st")
    app.write("d0", a="2")
    app.sync.delete_dataset(**app.path, DatasetName="d1")
    app.write("more", a="1")
    equal(len(app.sync.list_datasets(**app.path)["Datasets"]), 20, "the datasets")


@scenario
def records_of_a_dataset(hub: Any) -> None:
    """1,024, removed ones not counted; one of them can always be changed."""
    app = App(hub, GUESTS)
    listing = app.list("d")
    app.update("d", listing["SyncSessionToken"], [
        patch(f"k{number}", "v") for number in range(1_024)])
    token = app.list("d", 1)["SyncSessionToken"]
    fails("LimitExceededException", 400, app.sync.update_records, **app.path, DatasetName="d",
          SyncSessionToken=token, RecordPatches=[patch("one more", "v")])
    app.update("d", token, [patch("k0", None, 1), patch("one more", "v")])
    equal(app.sync.describe_dataset(**app.path, DatasetName="d")["Dataset"]["NumRecords"], 1_024,
          "live records")
    app.update("d", app.list("d", 2)["SyncSessionToken"], [patch("k1", "changed", 1)])
    equal(values(app.list("d", 2)["Records"]), {"k1": "changed"}, "what is newer")


@scenario
def patches_of_a_call(hub: Any) -> None:
    """No more than a dataset may have records."""
    app = App(hub, GUESTS)
    token = app.list("d")["SyncSessionToken"]
    fails("LimitExceededException", 400, app.sync.update_records, **app.path, DatasetName="d",
          SyncSessionToken=token,
          RecordPatches=[patch(f"k{number}", "v") for number in range(1_025)])
    equal(app.list("d")["DatasetExists"], False, "DatasetExists")


@scenario
def bytes_of_a_dataset(hub: Any) -> None:
    """1 MiB of keys and values, to the byte."""
    app = App(hub, GUESTS)
    half = "x" * (524_288 - 1)
    app.write("d", a=half, b=half)
    equal(app.sync.describe_dataset(**app.path, DatasetName="d")["Dataset"]["DataStorage"],
          1_048_576, "DataStorage")
    token = app.list("d", 1)["SyncSessionToken"]
    fails("LimitExceededException", 400, app.sync.update_records, **app.path, DatasetName="d",
          SyncSessionToken=token, RecordPatches=[patch("a", half + "x", 1)])
    fails("LimitExceededException", 400, app.sync.update_records, **app.path, DatasetName="d",
          SyncSessionToken=token, RecordPatches=[patch("c", "")])
    app.update("d", token, [patch("a", "", 1), patch("c", half[1:])])
    sizes = {key: len(value) for key, value in values(app.list("d")["Records"]).items()}
    equal(sizes, {"a": 0, "b": 524_287, "c": 524_286}, "the values")


@scenario
def keys_and_values(hub: Any) -> None:
    """Of characters, not of bytes, by the model."""
    app = App(hub, GUESTS)
    key = "é" * 1_024
    app.write("d", **{key: "1"})
    equal(values(app.list("d")["Records"]), {key: "1"}, "the longest key")
    token = app.list("d")["SyncSessionToken"]
    for wrong in (patch("k" * 1_025, "1"), patch("k", "v" * 1_048_576)):
        fails("InvalidParameterException", 400, app.sync.update_records, **app.path,
              DatasetName="d", SyncSessionToken=token, RecordPatches=[wrong])
    equal(app.list("d")["DatasetSyncCount"], 1, "DatasetSyncCount")


@scenario
def names_out_of_shape(hub: Any) -> None:
    """Pools, identities and datasets whose names break the model's patterns."""
    app = App(hub, GUESTS)
    for name in ("ä", "a b", "a/b", "a%b", "n" * 129):
        fails("InvalidParameterException", 400, app.sync.list_records, **app.path,
              DatasetName=name)
    # What is out of shape names nobody, and what is in shape is not the caller's: both are refused.
    for member, name in (("IdentityPoolId", "no-colon"), ("IdentityId", "a:B"),
                         ("IdentityId", "a:" + "0" * 54)):
        refused = None
        try:
            app.sync.list_records(**{**app.path, member: name}, DatasetName="d")
        except app.sync.exceptions.ClientError as error:
            refused = error.response
        holds(refused, f"{member}={name!r} is refused")
        equal(refused["ResponseMetadata"]["HTTPStatusCode"] in (400, 403), True,
              f"the status for {member}={name!r}")
