"""What runs beside the app: configuration, events, streams, and strategies of conflict."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from checks import by_key, equal, eventually, fails, holds, values
from clients import App, patch
from hub import POOLS
from scenarios import scenario

ROLE = "arn:aws:iam::123456789012:role/sync"
TOPIC = "arn:aws:sns:us-east-1:123456789012:app/GCM/notes"


def _stream(pool: str, status: str) -> dict[str, Any]:
    return {"IdentityPoolId": POOLS[pool], "CognitoStreams": {
        "StreamName": "changes", "RoleArn": ROLE, "StreamingStatus": status}}


@scenario
def a_configuration_is_kept_and_of_its_pool(hub: Any) -> None:
    """Each of its two parts by itself."""
    developer, pool = hub.developer(), POOLS["configured"]
    before = developer.get_identity_pool_configuration(IdentityPoolId=pool)
    equal(before["IdentityPoolId"], pool, "IdentityPoolId")
    push = {"ApplicationArns": [TOPIC], "RoleArn": ROLE}
    answer = developer.set_identity_pool_configuration(IdentityPoolId=pool, PushSync=push)
    equal((answer["IdentityPoolId"], answer["PushSync"]), (pool, push), "the answer")
    answer = developer.set_identity_pool_configuration(**_stream("configured", "DISABLED"))
    kept = developer.get_identity_pool_configuration(IdentityPoolId=pool)
    equal(kept["PushSync"], push, "PushSync")
    equal(kept["CognitoStreams"], _stream("configured", "DISABLED")["CognitoStreams"],
          "CognitoStreams")
    other = developer.get_identity_pool_configuration(IdentityPoolId=POOLS["counted"])
    holds("PushSync" not in other, "another pool has none")
    for wrong in ({"ApplicationArns": ["topic"], "RoleArn": ROLE},
                  {"ApplicationArns": [TOPIC], "RoleArn": "a role of no account"}):
        fails("InvalidParameterException", 400, developer.set_identity_pool_configuration,
              IdentityPoolId=pool, PushSync=wrong)
    equal(developer.get_identity_pool_configuration(IdentityPoolId=pool)["PushSync"], push,
          "PushSync after wrong ones")


@scenario
def configurations_that_race_do_not_mix(hub: Any) -> None:
    """Each call is taken as a whole, or told that somebody else was at it, too."""
    developer, pool = hub.developer(), POOLS["raced"]

    def configure(number: int) -> int | None:
        try:
            developer.set_identity_pool_configuration(
                IdentityPoolId=pool,
                PushSync={"ApplicationArns": [f"{TOPIC}{number}"], "RoleArn": ROLE},
                CognitoStreams={"StreamName": f"s{number}", "RoleArn": ROLE,
                                "StreamingStatus": "DISABLED"})
        except developer.exceptions.ConcurrentModificationException as error:
            equal(error.response["ResponseMetadata"]["HTTPStatusCode"], 400, "the status")
            return None
        return number

    with ThreadPoolExecutor(8) as threads:
        taken = {number for number in threads.map(configure, range(24)) if number is not None}
    kept = developer.get_identity_pool_configuration(IdentityPoolId=pool)
    number = int(kept["CognitoStreams"]["StreamName"].removeprefix("s"))
    holds(number in taken, "one of those that were taken is kept")
    equal(kept["PushSync"]["ApplicationArns"], [f"{TOPIC}{number}"], "and all of it")


@scenario
def a_trigger_sees_and_changes_updates(hub: Any) -> None:
    """In place of a Lambda function, with its contract: it changes, adds and removes."""
    developer, pool = hub.developer(), POOLS["triggered"]
    app = App(hub, pool)

    def answer(event: Any) -> tuple[int, Any]:
        records = event["datasetRecords"]
        for record in records.values():
            if record["op"] == "replace" and record["newValue"] != record["oldValue"]:
                record["newValue"] = record["newValue"].upper()
        if "stamp" not in records:
            records["added"] = {"oldValue": None, "newValue": "by the trigger", "op": "replace"}
        if event["identityId"] == app.identity and "refuse" in records:
            return 500, {}
        return 200, event

    hub.hooks.answer("trigger", answer)
    url = f"{hub.hooks.endpoint}/trigger"
    before = developer.get_cognito_events(IdentityPoolId=pool)
    equal(before["Events"], {}, "the events before")
    app.write("d", quiet="not yet")
    developer.set_cognito_events(IdentityPoolId=pool, Events={"SyncTrigger": url})
    equal(developer.get_cognito_events(IdentityPoolId=pool)["Events"], {"SyncTrigger": url},
          "the events")

    answered = app.write("d", loud="now")
    equal(values(answered), {"loud": "NOW", "added": "by the trigger"}, "the answer")
    equal(values(app.list("d")["Records"]),
          {"quiet": "not yet", "loud": "NOW", "added": "by the trigger"}, "the records")
    equal(app.list("d")["DatasetSyncCount"], 2, "DatasetSyncCount")
    event = hub.hooks.posts("trigger", app.identity)[0]
    equal({name: event[name] for name in ("version", "eventType", "identityPoolId", "identityId",
                                          "datasetName")},
          {"version": 2, "eventType": "SyncTrigger", "identityPoolId": pool,
           "identityId": app.identity, "datasetName": "d"}, "the event")
    records = event["datasetRecords"]
    equal(set(records), {"quiet", "loud"}, "the keys of the event")
    equal((records["quiet"]["oldValue"], records["loud"]["newValue"]), ("not yet", "now"),
          "the values of the event")

    fails("InvalidLambdaFunctionOutputException", 400, app.sync.update_records, **app.path,
          DatasetName="d", SyncSessionToken=app.list("d")["SyncSessionToken"],
          RecordPatches=[patch("refuse", "1")])
    holds("refuse" not in values(app.list("d")["Records"]), "what was refused is not there")
    count = len(hub.hooks.posts("trigger", app.identity))
    listing = developer.list_records(**app.path, DatasetName="d")
    developer.update_records(
        **app.path, DatasetName="d", SyncSessionToken=listing["SyncSessionToken"],
        RecordPatches=[patch("quiet", "by a developer", 1)])
    equal(values(app.list("d")["Records"])["quiet"], "by a developer", "without the trigger")
    equal(len(hub.hooks.posts("trigger", app.identity)), count, "calls of the trigger")
    developer.set_cognito_events(IdentityPoolId=pool, Events={"SyncTrigger": ""})
    equal(developer.get_cognito_events(IdentityPoolId=pool)["Events"], {}, "the events afterwards")
    fails("InvalidParameterException", 400, developer.set_cognito_events, IdentityPoolId=pool,
          Events={"OtherTrigger": url})


@scenario
def a_stream_has_every_update_in_order(hub: Any) -> None:
    """One document for each call, also when the receiver was down in between."""
    developer = hub.developer()
    app = App(hub, POOLS["streamed"])
    answer = developer.set_identity_pool_configuration(**_stream("streamed", "ENABLED"))
    equal(answer["CognitoStreams"]["StreamingStatus"], "ENABLED", "StreamingStatus")
    app.write("d", a="1", b="1")
    hub.hooks.wait("stream", app.identity, 1)
    refusals = [0]

    def down(document: Any) -> tuple[int, Any]:
        refusals[0] += 1
        return (503, {}) if refusals[0] < 3 else (200, {})

    hub.hooks.answer("stream", down)
    app.write("d", a="2")
    app.write("d", a=None, c="3")
    documents = hub.hooks.wait("stream", app.identity, 3)
    equal([document["syncCount"] for document in documents], [1, 2, 3], "the order")
    for document in documents:
        equal((document["identityPoolId"], document["identityId"], document["dataSetName"]),
              (app.pool, app.identity, "d"), "whose")
    contents = [{record["key"]: record.get("value") for record in document["kinesisSyncRecords"]}
                for document in documents]
    equal(contents, [{"a": "1", "b": "1"}, {"a": "2"}, {"a": None, "c": "3"}], "the records")
    dates = {record["lastModifiedDate"] for record in documents[0]["kinesisSyncRecords"]}
    holds(all(date > 1e12 for date in dates), "dates are in milliseconds there")
    equal(hub.hooks.wrong, [], "posts with a wrong signature")


@scenario
def all_records_are_published_once_a_day(hub: Any) -> None:
    """What was there before the stream was turned on."""
    developer, pool = hub.developer(), {"IdentityPoolId": POOLS["published"]}
    apps = [App(hub, POOLS["published"]) for _ in range(3)]
    for app in apps:
        app.write("d", key=app.identity)
    details = developer.get_bulk_publish_details(**pool)
    equal(details["BulkPublishStatus"], "NOT_STARTED", "BulkPublishStatus")
    developer.set_identity_pool_configuration(**_stream("published", "ENABLED"))
    equal(developer.bulk_publish(**pool)["IdentityPoolId"], POOLS["published"], "the answer")
    details = eventually(
        lambda: found if (found := developer.get_bulk_publish_details(**pool))[
            "BulkPublishStatus"] != "IN_PROGRESS" else None, "the end of publishing")
    equal(details["BulkPublishStatus"], "SUCCEEDED", "BulkPublishStatus")
    holds(details["BulkPublishStartTime"] <= details["BulkPublishCompleteTime"], "the times")
    expected = {(app.identity, app.identity) for app in apps}

    def published() -> bool:
        lines = (hub.directory / "published.jsonl").read_text().splitlines()
        documents = [json.loads(line) for line in lines if line.endswith("}")]
        return expected <= {(document["identityId"], record.get("value"))
                            for document in documents
                            for record in document["kinesisSyncRecords"]}

    eventually(published, "all records are published")
    fails("AlreadyStreamedException", 400, developer.bulk_publish, **pool)


def _concurrently(app: App, base: str, first: str, second: str) -> list[dict[str, Any]]:
    """Two devices change a record, the second one without having seen the first one's change."""
    app.write("d", key=base)
    app.write("d", key=first)
    return app.update("d", app.list("d")["SyncSessionToken"], [patch("key", second, 1)])


@scenario
def the_last_writer_wins_where_a_pool_wants_it(hub: Any) -> None:
    """A stale count is no error there."""
    app = App(hub, POOLS["latest"])
    (record,) = _concurrently(app, "base", "first", "second")
    equal((record["Value"], record["SyncCount"]), ("second", 3), "the answer")
    equal(values(app.list("d")["Records"]), {"key": "second"}, "the records")


@scenario
def json_is_merged_where_a_pool_wants_it(hub: Any) -> None:
    """Both changes are in the result, which the caller is told."""
    app = App(hub, POOLS["merging"])
    (record,) = _concurrently(
        app, '{"title":"a","done":false}', '{"title":"b","done":false}',
        '{"title":"a","done":false,"tags":["x"]}')
    merged = json.loads(record["Value"])
    equal(merged.get("tags"), ["x"], "what the second one added")
    holds(merged["title"] in ("a", "b"), "a title of the two")
    equal(json.loads(by_key(app.list("d")["Records"])["key"]["Value"]), merged, "the records")


@scenario
def an_endpoint_settles_conflicts_where_a_pool_wants_it(hub: Any) -> None:
    """With a value of its own, a refusal, or a removal."""
    app = App(hub, POOLS["resolved"])
    questions: list[Any] = []

    def answer(question: Any) -> tuple[int, Any]:
        questions.append(question)
        action = question["incoming"].upper()
        value = {"value": f"{question['existing']}+{question['incoming']}"}
        return 200, {"action": action, **(value if action == "RESOLVE" else {})}

    hub.hooks.answer("resolver", answer)
    (record,) = _concurrently(app, "base", "first", "resolve")
    equal((record["Value"], record["SyncCount"]), ("first+resolve", 3), "the answer")
    equal({name: questions[0][name] for name in
           ("identityPoolId", "identityId", "datasetName", "key", "existing")},
          {"identityPoolId": app.pool, "identityId": app.identity, "datasetName": "d",
           "key": "key", "existing": "first"}, "the question")
    token = app.list("d")["SyncSessionToken"]
    fails("ResourceConflictException", 409, app.sync.update_records, **app.path, DatasetName="d",
          SyncSessionToken=token, RecordPatches=[patch("key", "reject", 1)])
    equal(values(app.list("d")["Records"]), {"key": "first+resolve"}, "after the refusal")
    removed = app.update("d", token, [patch("key", "remove", 1)])
    equal(values(removed), {"key": None}, "after the removal")
