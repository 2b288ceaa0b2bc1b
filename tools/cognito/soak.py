"""Lets many clients write to one hub, apps over the Cognito API and replicas of Tidemark, while the
hub is ended by `kill -9` again and again.

Each client writes keys of its own and keeps what was acknowledged; all devices of an identity add
to one number by compare-and-set. Whenever a client reads it looks whether anything acknowledged is
missing, whether a count went back, and whether anything is there that another identity wrote. In
the end all trouble stops, and every device and replica of an identity must hold the same.

    python3 soak.py .build/debug/tidemark --seconds 600 --clients 50 --kill-every 20
"""

from __future__ import annotations

import argparse
import collections
import json
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from checks import Difference, equal, holds, values
from clients import App, patch
from hub import MEMBERS, PROVIDER, Hub

DATASETS = ("d0", "d1", "d2")
COUNTER = "counter"


class Trouble:
    """Ends the hub and starts it again until it is told to stop."""

    def __init__(self, hub: Hub, seconds: float, source: random.Random):
        self._hub = hub
        self._seconds = seconds
        self._random = source
        self._end = threading.Event()
        self.kills = 0
        self.slowest_start = 0.0
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._end.wait(self._seconds * self._random.uniform(0.8, 1.2)):
                self._hub.kill()
                self.kills += 1
                started = time.monotonic()
                self._hub.start()
                self.slowest_start = max(self.slowest_start, time.monotonic() - started)
        except BaseException as error:
            self.failure = error

    def stop(self) -> None:
        """The hub runs afterwards."""
        self._end.set()
        self._thread.join()
        if self.failure:
            raise self.failure


class Client(threading.Thread):
    """What apps and replicas have in common: keys of their own, and what was acknowledged."""

    def __init__(self, hub: Hub, subject: str, name: str, seed: int):
        super().__init__(daemon=True)
        self.hub = hub
        self.subject = subject
        self.name = name
        self.random = random.Random(seed)
        self.end = threading.Event()
        # Dataset and key -> values that may be there. One, unless a write was not answered.
        self.known: dict[tuple[str, str], list[str | None]] = {}
        self.successes: collections.Counter[str] = collections.Counter()
        self.last_success = time.monotonic()
        self.longest_wait = 0.0
        self.failure: str | None = None
        self.number = 0

    def text(self) -> str:
        """A value that nobody else writes, and that says whose it is."""
        self.number += 1
        return f"{self.subject}|{self.name}|{self.number}"

    def succeeded(self, what: str) -> None:
        """Notes that something went through."""
        now = time.monotonic()
        self.longest_wait = max(self.longest_wait, now - self.last_success)
        self.last_success = now
        self.successes[what] += 1

    def check(self, dataset: str, found: dict[str, str | None]) -> None:
        """Whether all of what is known is there, and nothing of others."""
        for key, value in found.items():
            if value is not None and key != COUNTER and not key.startswith("."):
                holds(value.startswith(self.subject + "|"),
                      f"{self.name} of {self.subject} sees {key}={value!r} in {dataset}")
        for (where, key), candidates in self.known.items():
            if where != dataset:
                continue
            value = found.get(key)
            if value not in candidates:
                raise Difference(f"{self.name} of {self.subject}: {dataset}/{key} is {value!r}, "
                                 f"not one of {candidates!r}")
            # Now it is sure what became of it: there was no request under way.
            self.known[where, key] = [value]

    def step(self) -> None:
        """One exchange."""
        raise NotImplementedError

    def run(self) -> None:
        while not self.end.is_set():
            try:
                self.step()
            except Difference as difference:
                self.failure = str(difference)
                return
            except Exception:
                self.failure = traceback.format_exc()
                return


class Device(Client):
    """An app on a device, by boto3."""

    def __init__(self, hub: Hub, subject: str, name: str, seed: int):
        super().__init__(hub, subject, name, seed)
        self.app = App(hub, MEMBERS, logins={PROVIDER: hub.login(subject)}, device=name)
        self.counts: dict[str, int] = {}
        self.added: collections.Counter[str] = collections.Counter()
        self.unsure: collections.Counter[str] = collections.Counter()

    def list(self, dataset: str) -> dict[str, Any]:
        """All records, looked through."""
        listing = self.app.list(dataset)
        self.check(dataset, values(listing["Records"]))
        count = listing["DatasetSyncCount"]
        holds(count >= self.counts.get(dataset, 0), f"{dataset} counts {count}, and has counted "
              f"{self.counts.get(dataset)}")
        self.counts[dataset] = count
        return listing

    def _push(self, dataset: str, listing: dict[str, Any]) -> None:
        there = {record["Key"]: record for record in listing["Records"]}
        patches, wanted = [], {}
        for number in self.random.sample(range(6), self.random.randint(1, 3)):
            key = f"{self.name}-{number}"
            value = None if self.random.random() < 0.2 else self.text()
            wanted[key] = value
            patches.append(patch(key, value, there.get(key, {}).get("SyncCount", 0)))
        adds = self.random.random() < 0.3
        if adds:
            counter = there.get(COUNTER, {})
            patches.append(patch(COUNTER, str(int(counter.get("Value", "0")) + 1),
                                 counter.get("SyncCount", 0)))
        before = {key: self.known.get((dataset, key), [None]) for key in wanted}
        try:
            answer = values(self.app.update(dataset, listing["SyncSessionToken"], patches))
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] < 500:
                raise
            # As if there had been no answer.
            answer = None
        except BotoCoreError:
            answer = None
        if answer is None:
            for key, value in wanted.items():
                self.known[dataset, key] = [*before[key], value]
            self.unsure[dataset] += adds
            raise ConnectionError
        for key, value in wanted.items():
            equal(answer[key], value, f"the answer for {key}")
            self.known[dataset, key] = [value]
        self.added[dataset] += adds

    def step(self) -> None:
        dataset = self.random.choice(DATASETS)
        try:
            listing = self.list(dataset)
            if self.random.random() < 0.8:
                self._push(dataset, listing)
            self.succeeded("pushes")
        except ClientError as error:
            status = error.response["ResponseMetadata"]["HTTPStatusCode"]
            if status == 409:
                self.succeeded("conflicts")
            elif status not in (429, 500, 503):
                raise
            elif status == 500:
                raise Difference(f"the hub failed: {error.response}") from error
            time.sleep(0.02)
        except (BotoCoreError, ConnectionError):
            time.sleep(0.1)


class Replica(Client):
    """A store of its own, by the command line."""

    def __init__(self, hub: Hub, subject: str, name: str, seed: int, directory: Path):
        super().__init__(hub, subject, name, seed)
        self.store = directory / f"{subject}-{name}"
        self.token = directory / f"{subject}-{name}.token"
        self.token.write_text(hub.login(subject, seconds=86_400) + "\n")

    def _tidemark(self, *arguments: str) -> tuple[int, str, str]:
        done = subprocess.run([self.hub.binary, *arguments], capture_output=True, text=True,
                              timeout=120, check=False)
        return done.returncode, done.stdout, done.stderr

    def records(self, dataset: str) -> dict[str, str]:
        """Live records here."""
        status, output, errors = self._tidemark("scan", str(self.store), dataset, "--json")
        holds(status in (0, 1), f"scan: {errors}")
        return {record["key"]: record["value"] for record in map(json.loads, output.splitlines())}

    def sync(self) -> bool:
        """Whether it went through. A hub that is not there, or goes away, is no failure."""
        status, _, errors = self._tidemark(
            "sync", str(self.store), self.hub.endpoint, "--token-file", str(self.token))
        holds(status in (0, 69, 75), f"sync ended with {status}: {errors}")
        return status == 0

    def step(self) -> None:
        dataset = self.random.choice(DATASETS)
        key = f"{self.name}-{self.random.randrange(6)}"
        # The first write is a put: it makes the store, in which there is nothing to delete before.
        value = None if self.store.exists() and self.random.random() < 0.2 else self.text()
        if value is None:
            status, _, errors = self._tidemark("delete", str(self.store), dataset, key)
            holds(status in (0, 1), f"delete: {errors}")
        else:
            status, _, errors = self._tidemark("put", str(self.store), dataset, key, value)
            equal((status, errors), (0, ""), "put")
        # Sure as soon as it is stored here: whoever reads here must find it.
        self.known[dataset, key] = [value]
        if self.sync():
            self.succeeded("syncs")
        self.check(dataset, dict(self.records(dataset)))
        self.end.wait(self.random.uniform(0, 0.3))


def _settle(devices: list[Device], replicas: list[Replica]) -> None:
    """All that belong to an identity must hold the same in the end, and what each of them knows."""
    for _ in range(2):
        for replica in replicas:
            holds(replica.sync(), f"{replica.name} of {replica.subject} can synchronise")
    for dataset in DATASETS:
        found = [{key: value for key, value in values(device.list(dataset)["Records"]).items()
                  if value is not None} for device in devices]
        found += [replica.records(dataset) for replica in replicas]
        for client, records in zip([*devices, *replicas], found):
            equal(records, found[0], f"{dataset} of {client.subject} as {client.name} sees it")
            for one in (*devices, *replicas):
                one.check(dataset, dict(records))
        added = sum(device.added[dataset] for device in devices)
        unsure = sum(device.unsure[dataset] for device in devices)
        total = int(found[0].get(COUNTER, "0"))
        holds(added <= total <= added + unsure,
              f"{dataset} of {devices[0].subject}: {total} is not {added}...{added + unsure}")


def _watch(clients: list[Client], trouble: Trouble, options: argparse.Namespace) -> None:
    end = time.monotonic() + options.seconds
    stuck = max(30.0, 3 * options.kill_every)
    while time.monotonic() < end and not trouble.failure:
        time.sleep(0.2)
        for client in clients:
            if client.failure:
                raise Difference(client.failure)
            waited = time.monotonic() - client.last_success
            holds(waited < stuck, f"{client.name} of {client.subject} is not stuck for "
                  f"{waited:.0f} s")


def soak(hub: Hub, directory: Path, options: argparse.Namespace) -> None:
    """Runs it all; prints what was done."""
    source = random.Random(options.seed)
    native = max(1, options.clients // 5)
    subjects = [f"user{number}" for number in range(native)]
    replicas = [Replica(hub, subject, "replica", source.getrandbits(32), directory)
                for subject in subjects]
    devices = [Device(hub, subjects[number % native], f"device{number}", source.getrandbits(32))
               for number in range(options.clients - native)]
    clients: list[Client] = [*devices, *replicas]
    for client in clients:
        client.last_success = time.monotonic()
        client.start()
    trouble = Trouble(hub, options.kill_every, source)
    try:
        _watch(clients, trouble, options)
    finally:
        for client in clients:
            client.end.set()
        for client in clients:
            client.join(180)
        trouble.stop()
    for client in clients:
        if client.failure:
            raise Difference(client.failure)
        holds(not client.is_alive(), f"{client.name} of {client.subject} has ended")
        holds(client.successes, f"{client.name} of {client.subject} has done something")
    for subject in subjects:
        _settle([one for one in devices if one.subject == subject],
                [one for one in replicas if one.subject == subject])
    total = sum((client.successes for client in clients), collections.Counter())
    holds(total["pushes"] > 0 and total["syncs"] > 0, "both kinds have come through")
    print(f"{len(devices)} apps and {len(replicas)} replicas: {total['pushes']} pushes, "
          f"{total['conflicts']} conflicts, {total['syncs']} syncs, {trouble.kills} kills, "
          f"longest wait {max(client.longest_wait for client in clients):.1f} s, "
          f"slowest start {trouble.slowest_start:.2f} s: nothing lost")


def main() -> int:
    """The status is 1 at a difference; store and log are kept then."""
    parser = argparse.ArgumentParser(description="Many clients of a hub that is killed.")
    parser.add_argument("binary", type=Path, help="the command tidemark")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--kill-every", type=float, default=20, metavar="SECONDS")
    parser.add_argument("--seed", type=lambda text: int(text, 0),
                        default=random.SystemRandom().getrandbits(32))
    options = parser.parse_args()
    if options.clients < 2:
        parser.error("--clients must be 2 or more")
    print(f"seed {options.seed:#x}", flush=True)
    directory = Path(tempfile.mkdtemp(prefix="hub-soak-"))
    hub = Hub(options.binary, directory / "hub").start()
    try:
        soak(hub, directory, options)
        hub.stop()
    except BaseException:
        print(f"kept in {directory}; the hub's log ends so:\n{hub.log_end()}", file=sys.stderr)
        raise
    finally:
        hub.kill()
    shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
