"""Cognito Identity, as far as sync clients need it: guests, users, linking and merging."""

from __future__ import annotations

from typing import Any

from checks import REFUSED, by_key, equal, fails, holds, is_recent, values
from clients import App, client
from hub import DEVELOPER, GUESTS, MEMBERS, PROVIDER
from scenarios import scenario


def _user(hub: Any, name: str) -> dict[str, Any]:
    """The identity of a user of the app's own service, and a token for it."""
    return hub.directory_client().get_open_id_token_for_developer_identity(
        IdentityPoolId=MEMBERS, Logins={DEVELOPER: name})


@scenario
def guests_get_identities_of_their_own(hub: Any) -> None:
    """With credentials that end."""
    app, other = App(hub, GUESTS), App(hub, GUESTS)
    holds(app.identity != other.identity, "two guests are two")
    holds(app.key[0].startswith("ASIA"), "the key is a temporary one")
    holds(app.key != other.key, "no two have the same credentials")
    is_recent(app.expiration, "the end of the credentials", 3_700)
    fails("NotAuthorizedException", REFUSED, app.directory.get_id, IdentityPoolId=MEMBERS)


@scenario
def a_login_is_the_same_identity_everywhere(hub: Any) -> None:
    """Whoever signs in with the same account is the same."""
    login = {PROVIDER: hub.login("anna")}
    phone, tablet = App(hub, MEMBERS, logins=login), App(hub, MEMBERS, logins=login)
    equal(tablet.identity, phone.identity, "the identity")
    phone.write("d", a="1")
    equal(values(tablet.list("d")["Records"]), {"a": "1"}, "what the other device sees")
    other = App(hub, MEMBERS, logins={PROVIDER: hub.login("berta")})
    holds(other.identity != phone.identity, "another account is another identity")


@scenario
def false_logins_are_refused(hub: Any) -> None:
    """Signed by somebody else, expired, for another audience, of another issuer, or not at all."""
    directory = client("cognito-identity", hub.endpoint)
    holds(App(hub, MEMBERS, logins={PROVIDER: hub.login("carla")}).identity, "a true one is good")
    wrong = {
        "another key": hub.login("carla", secret=b"x" * 32),
        "expired": hub.login("carla", seconds=-600),
        "another audience": hub.login("carla", audience="another app"),
        "another issuer": hub.login("carla", issuer="https://elsewhere.example"),
        "no algorithm": hub.login("carla", algorithm="none"),
        "not yet": hub.login("carla", nbf=4_000_000_000),
        "no token": "token",
    }
    for what, token in wrong.items():
        try:
            fails("NotAuthorizedException", REFUSED, directory.get_id, IdentityPoolId=MEMBERS,
                  Logins={PROVIDER: token})
        except AssertionError as error:
            raise AssertionError(f"{what}: {error}") from error


@scenario
def a_guest_who_signs_in_keeps_the_records(hub: Any) -> None:
    """The login is added to the identity that the guest has."""
    guest = App(hub, GUESTS)
    guest.write("d", a="1")
    before = guest.identity
    old = guest.sync
    guest.sign_in({PROVIDER: hub.login("dora")})
    equal(guest.identity, before, "the identity")
    equal(values(guest.list("d")["Records"]), {"a": "1"}, "the records")
    again = App(hub, GUESTS, logins={PROVIDER: hub.login("dora")})
    equal(again.identity, before, "the identity of that login")
    # Whoever else knew the id, and what was given to it, is not that identity.
    fails("ExpiredTokenException", REFUSED, old.list_records, **guest.path, DatasetName="d")
    fails("NotAuthorizedException", REFUSED, guest.directory.get_credentials_for_identity,
          IdentityId=before)


@scenario
def two_identities_of_one_user_are_merged(hub: Any) -> None:
    """The second's datasets are kept beside the first's, and told of with them."""
    ours, theirs = _user(hub, "emil at home"), _user(hub, "emil at work")
    holds(ours["IdentityId"] != theirs["IdentityId"], "two users are two")
    home = App(hub, MEMBERS, identity=ours["IdentityId"],
               logins={"cognito-identity.amazonaws.com": ours["Token"]})
    work = App(hub, MEMBERS, identity=theirs["IdentityId"],
               logins={"cognito-identity.amazonaws.com": theirs["Token"]})
    home.write("shared", a="home")
    work.write("shared", a="work", b="work")
    work.write("only", c="work")
    merged = hub.directory_client().merge_developer_identities(
        SourceUserIdentifier="emil at work", DestinationUserIdentifier="emil at home",
        DeveloperProviderName=DEVELOPER, IdentityPoolId=MEMBERS)
    equal(merged["IdentityId"], home.identity, "the identity that stays")

    listing = home.list("shared")
    equal(values(listing["Records"]), {"a": "home"}, "what was there before")
    (name,) = listing["MergedDatasetNames"]
    equal(name, f"shared.{work.identity}", "the other's dataset")
    equal(values(home.list(name)["Records"]), {"a": "work", "b": "work"}, "its records")
    equal(values(home.list("only")["Records"]), {"c": "work"}, "what only the other had")
    home.sync.delete_dataset(**home.path, DatasetName=name)
    equal(home.list("shared")["MergedDatasetNames"], [], "once it is deleted")
    for name in ("emil at work", "emil at home"):
        equal(_user(hub, name)["IdentityId"], home.identity, f"whose {name!r} is now")
    fails("NotAuthorizedException", 403, work.sync.list_records, **work.path,
          DatasetName="shared")


@scenario
def developers_look_up_and_unlink(hub: Any) -> None:
    """The operations on users that the app's own service knows."""
    directory = hub.directory_client()
    identity = _user(hub, "frida")["IdentityId"]
    found = directory.lookup_developer_identity(
        IdentityPoolId=MEMBERS, DeveloperUserIdentifier="frida")
    equal(found["IdentityId"], identity, "by the name")
    found = directory.lookup_developer_identity(IdentityPoolId=MEMBERS, IdentityId=identity)
    equal(found["DeveloperUserIdentifierList"], ["frida"], "by the identity")
    described = directory.describe_identity(IdentityId=identity)
    equal(described["IdentityId"], identity, "IdentityId")
    equal(described["Logins"], [DEVELOPER], "the providers of its logins")
    is_recent(described["CreationDate"], "CreationDate")
    fails("ResourceNotFoundException", REFUSED, directory.lookup_developer_identity,
          IdentityPoolId=MEMBERS, DeveloperUserIdentifier="nobody")


@scenario
def identities_are_listed_and_deleted(hub: Any) -> None:
    """By pages; what is deleted takes its records and credentials with it."""
    apps = [App(hub, GUESTS) for _ in range(3)]
    for app in apps:
        app.write("d", a="1")
    directory = hub.directory_client()
    found: list[str] = []
    arguments: dict[str, Any] = {}
    while True:
        page = directory.list_identities(IdentityPoolId=GUESTS, MaxResults=2, **arguments)
        equal(page["IdentityPoolId"], GUESTS, "IdentityPoolId")
        holds(len(page["Identities"]) <= 2, "a page has no more than were asked for")
        found += [one["IdentityId"] for one in page["Identities"]]
        if not page.get("NextToken"):
            break
        arguments = {"NextToken": page["NextToken"]}
    equal(len(found), len(set(found)), "each comes once")
    holds({app.identity for app in apps} <= set(found), "all of them are listed")
    answer = directory.delete_identities(IdentityIdsToDelete=[apps[0].identity])
    equal(answer["UnprocessedIdentityIds"], [], "those left over")
    fails("NotAuthorizedException", 403, apps[0].sync.list_records, **apps[0].path,
          DatasetName="d")
    fails("NotAuthorizedException", 403, hub.developer().list_records, **apps[0].path,
          DatasetName="d")
    equal(by_key(apps[1].list("d")["Records"])["a"]["Value"], "1", "another one's records")
