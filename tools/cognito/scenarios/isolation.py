"""No identity reaches what is another's, whatever it names."""

from __future__ import annotations

from typing import Any

from checks import equal, fails, values
from clients import App, client, patch
from hub import GUESTS, MEMBERS
from scenarios import scenario


@scenario
def another_identity_is_out_of_reach(hub: Any) -> None:
    """For every operation that names an identity."""
    owner, stranger = App(hub, GUESTS), App(hub, GUESTS)
    owner.write("d", secret="1")
    token = stranger.list("d")["SyncSessionToken"]
    path, sync = owner.path, stranger.sync
    calls: list[tuple[Any, dict[str, Any]]] = [
        (sync.list_records, {"DatasetName": "d"}),
        (sync.describe_dataset, {"DatasetName": "d"}),
        (sync.delete_dataset, {"DatasetName": "d"}),
        (sync.list_datasets, {}),
        (sync.describe_identity_usage, {}),
        (sync.register_device, {"Platform": "GCM", "Token": "token"}),
        (sync.subscribe_to_dataset, {"DatasetName": "d", "DeviceId": "x"}),
        (sync.unsubscribe_from_dataset, {"DatasetName": "d", "DeviceId": "x"}),
        (sync.update_records, {"DatasetName": "d", "SyncSessionToken": token,
                               "RecordPatches": [patch("secret", "2", 1)]}),
    ]
    for call, arguments in calls:
        fails("NotAuthorizedException", 403, call, **path, **arguments)
        fails("NotAuthorizedException", 403, call,
              **{**stranger.path, "IdentityPoolId": MEMBERS}, **arguments)
    equal(values(owner.list("d")["Records"]), {"secret": "1"}, "the owner's records")


@scenario
def operations_of_developers_take_no_identity(hub: Any) -> None:
    """And those of devices no developer."""
    app = App(hub, GUESTS)
    app.write("d", a="1")
    pool = {"IdentityPoolId": GUESTS}
    role = "arn:aws:iam::123456789012:role/none"
    for call, arguments in (
        (app.sync.list_identity_pool_usage, {}),
        (app.sync.describe_identity_pool_usage, pool),
        (app.sync.get_identity_pool_configuration, pool),
        (app.sync.set_identity_pool_configuration, {
            **pool, "CognitoStreams": {"StreamName": "s", "RoleArn": role,
                                       "StreamingStatus": "DISABLED"}}),
        (app.sync.get_cognito_events, pool),
        (app.sync.set_cognito_events, {**pool, "Events": {}}),
        (app.sync.bulk_publish, pool),
        (app.sync.get_bulk_publish_details, pool),
    ):
        fails("NotAuthorizedException", 403, call, **arguments)
    developer = hub.developer()
    for call, arguments in (
        (developer.register_device, {"Platform": "GCM", "Token": "token"}),
        (developer.subscribe_to_dataset, {"DatasetName": "d", "DeviceId": "x"}),
        (developer.unsubscribe_from_dataset, {"DatasetName": "d", "DeviceId": "x"}),
    ):
        fails("NotAuthorizedException", 403, call, **app.path, **arguments)
    equal(values(developer.list_records(**app.path, DatasetName="d")["Records"]), {"a": "1"},
          "what a developer reads")


@scenario
def a_developer_of_one_pool_has_no_other(hub: Any) -> None:
    """A key may be good for some pools only."""
    app = App(hub, GUESTS)
    app.write("d", a="1")
    limited = client("cognito-sync", hub.endpoint, hub.limited_key)
    fails("NotAuthorizedException", 403, limited.list_records, **app.path, DatasetName="d")
    fails("NotAuthorizedException", 403, limited.describe_identity_pool_usage,
          IdentityPoolId=GUESTS)
    usage = limited.describe_identity_pool_usage(IdentityPoolId=MEMBERS)["IdentityPoolUsage"]
    equal(usage["IdentityPoolId"], MEMBERS, "its own pool")


@scenario
def unknown_identities_and_pools(hub: Any) -> None:
    """Developers are told what does not exist, by the errors that the model has."""
    developer = hub.developer()
    unknown = {"IdentityPoolId": GUESTS,
               "IdentityId": "us-east-1:ffffffff-ffff-4fff-8fff-ffffffffffff"}
    fails("NotAuthorizedException", 403, developer.list_records, **unknown, DatasetName="d")
    fails("NotAuthorizedException", 403, developer.list_datasets, **unknown)
    fails("ResourceNotFoundException", 404, developer.describe_dataset, **unknown, DatasetName="d")
    fails("ResourceNotFoundException", 404, developer.describe_identity_usage, **unknown)
    pool = "us-east-1:ffffffff-ffff-4fff-8fff-eeeeeeeeeeee"
    fails("ResourceNotFoundException", 404, developer.describe_identity_pool_usage,
          IdentityPoolId=pool)
    fails("ResourceNotFoundException", 404, developer.get_identity_pool_configuration,
          IdentityPoolId=pool)
