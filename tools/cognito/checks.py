"""How scenarios say what they expect. All of it looks at contents: boto3 takes an answer of `{}`,
or of what is no JSON at all, for success."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError


# Of refusals whose errors have no status in their model, as those of Cognito Identity.
REFUSED = range(400, 500)
# What waits are multiplied by.
patience = 1.0


class Difference(AssertionError):
    """What came is not what had to come."""


def equal(actual: Any, expected: Any, what: str) -> None:
    """Fails unless both are the same."""
    if actual != expected or isinstance(actual, bool) != isinstance(expected, bool):
        raise Difference(f"{what}: {actual!r}, not {expected!r}")


def holds(condition: Any, what: str) -> None:
    """Fails unless the condition is true."""
    if not condition:
        raise Difference(f"not so: {what}")


def fails(
    name: str, status: int | range, call: Callable[..., Any], /, *words: str, **arguments: Any
) -> str:
    """Fails unless the call is refused by that name and status, with a message that holds the
    words. Looks at all places where clients look for the name: the message is returned."""
    try:
        answer = call(**arguments)
    except ClientError as error:
        response = error.response
        headers = {
            key.lower(): value
            for key, value in response["ResponseMetadata"]["HTTPHeaders"].items()
        }
        what = f"the refusal of {error.operation_name}"
        equal(response["Error"]["Code"], name, what)
        came = response["ResponseMetadata"]["HTTPStatusCode"]
        holds(came in (status if isinstance(status, range) else (status,)),
              f"{what} has the status {status}, not {came}")
        equal(headers.get("x-amzn-errortype", "").split(":")[0], name, f"{what}, its header")
        holds(headers.get("x-amzn-requestid"), f"{what} has a request id")
        message = response["Error"].get("Message") or ""
        holds(message, f"{what} has a message")
        for word in words:
            holds(word in message, f"{what} says {word!r}: {message!r}")
        return message
    except Exception as error:
        raise Difference(f"not refused as {name} but failed: {error!r}") from error
    answer.pop("ResponseMetadata", None)
    raise Difference(f"not refused as {name} but answered: {answer!r}")


def is_recent(date: datetime.datetime | None, what: str, seconds: float = 120) -> None:
    """Fails unless the date is of this time, by this machine's clock."""
    holds(isinstance(date, datetime.datetime), f"{what} is a date: {date!r}")
    age = abs(time.time() - date.timestamp())
    holds(age < seconds, f"{what} is of now, not {age:.0f} s away")


def eventually(condition: Callable[[], Any], what: str, seconds: float = 20) -> Any:
    """The first true value of the condition, asked again until the time is over."""
    end = time.monotonic() + seconds * patience
    while True:
        if value := condition():
            return value
        if time.monotonic() > end:
            raise Difference(f"not within {seconds} s: {what}")
        time.sleep(0.05)


def by_key(records: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Records by their keys, each of which may come only once."""
    found: dict[str, dict[str, Any]] = {}
    for record in records:
        holds(record["Key"] not in found, f"{record['Key']!r} comes once")
        found[record["Key"]] = record
    return found


def values(records: list[dict[str, Any]]) -> dict[str, str | None]:
    """Values by keys; None where a record was removed, which has no member for it."""
    return {key: record.get("Value") for key, record in by_key(records).items()}
