"""Measures a hub beside a route of Hummingbird that returns a constant, on the same machine in the
same run, and beside what else does a part of its work.

    python3 hub_bench.py --tidemark PATH --driver PATH --json hub.json [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "cognito"))

# Behind the line above, which is what finds them.
import devices  # noqa: E402
import load  # noqa: E402
from clients import App, patch  # noqa: E402
from hub import GUESTS, POOLS, Hub  # noqa: E402

ROLE = "arn:aws:iam::123456789012:role/push"
TOPIC = "arn:aws:sns:us-east-1:123456789012:app/GCM/notes"


@dataclass
class Bench:
    """What all measurements share, and the rows that they make."""

    tidemark: Path
    driver: Path
    quick: bool
    directory: Path
    rows: list[dict[str, Any]] = field(default_factory=list)
    bare_rate: float = 0

    @property
    def seconds(self) -> float:
        """Of a load."""
        return 1 if self.quick else 8

    def add(self, workload: str, engine: str = "tidemark", *, result: load.Load | None = None,
            value: float | None = None, unit: str | None = None, what: str = "",
            **more: float) -> None:
        """A row of the form of Benchmarks/Sources/BenchmarkRows."""
        ratio = result.rate / self.bare_rate if result and self.bare_rate else None
        if ratio is not None:
            more["ratio_to_bare"] = ratio
        self.rows.append({
            "engine": engine, "config": "default", "workload": workload, "durability": None,
            "value_bytes": None, "n": None, "threads": 64 if result else None,
            "ops_per_s": result.rate if result else None,
            "p50_us": result.p50_us if result else None,
            "p99_us": result.p99_us if result else None, "p999_us": None,
            "max_us": result.max_us if result else None,
            "extra": {"value": value, "unit": unit, "what": what, "more": more or None}})
        text = f"{workload:<26} {engine:<12}"
        if result:
            text += f"{result.rate:>10,.0f}/s  p99 {result.p99_us / 1e3:>7.2f} ms"
        if value is not None:
            text += f"{value:>10,.2f} {unit}"
        print(text + (f"  {ratio:.2f}x bare" if ratio else ""), flush=True)


def _resident(process: int) -> int:
    text = Path(f"/proc/{process}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", text)[1]) << 10


def _wait_for(port: int) -> None:
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"nothing listens on port {port}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _settings() -> dict[str, Any]:
    return {"protection.connectionsMax": 100_000, "protection.connectionsPerAddressMax": 100_000}


def _path(app: App, dataset: str, rest: str = "") -> str:
    return (f"/identitypools/{load.segment(app.pool)}/identities/{load.segment(app.identity)}"
            f"/datasets/{dataset}{rest}")


# The floor of all of it.


def bare(bench: Bench) -> None:
    """A route of Hummingbird that returns a constant."""
    port = _free_port()
    process = subprocess.Popen([bench.driver, "bare", "--port", str(port)])
    try:
        _wait_for(port)
        url = f"http://127.0.0.1:{port}"
        request = load.plain("GET", "/health", f"127.0.0.1:{port}")
        load.run(url, [request], 1)
        result = load.run(url, [request], bench.seconds)
        bench.bare_rate = result.rate
        bench.add("hub-bare-route", "hummingbird", result=result)
    finally:
        process.kill()
        process.wait()


# Requests.


def requests(bench: Bench) -> None:
    """Health, and the two operations that sync is made of."""
    hub = Hub(bench.tidemark, bench.directory / "requests", settings=_settings()).start()
    try:
        host = f"127.0.0.1:{hub.port}"
        health = load.plain("GET", "/health", host)
        load.run(hub.endpoint, [health], 1)
        bench.add("hub-health", result=load.run(hub.endpoint, [health], bench.seconds))
        _listing(bench, hub, host)
        _updating(bench, hub, host)
        hub.stop()
    finally:
        hub.kill()


def _listing(bench: Bench, hub: Hub, host: str) -> None:
    unchanged, hundred = [], []
    for _ in range(4 if bench.quick else 64):
        app = App(hub, GUESTS)
        token = app.list("d")["SyncSessionToken"]
        app.update("d", token, [patch(f"key {number:03}", "v" * 100) for number in range(100)])
        signer = load.Signer(app.key, host)
        path = _path(app, "d", "/records")
        unchanged.append(signer.request("GET", path, "lastSyncCount=1"))
        hundred.append(signer.request("GET", path))
    (first, all_records) = asyncio.run(
        devices.ask_all(hub.port, [unchanged[0], hundred[0]], connections=1))
    if first["Records"] or len(all_records["Records"]) != 100:
        raise RuntimeError("the listings are not what is to be measured")
    for name, some in (("hub-list-unchanged", unchanged), ("hub-list-100-records", hundred)):
        load.run(hub.endpoint, some, 1)
        bench.add(name, result=load.run(hub.endpoint, some, bench.seconds))


def _guests(hub: Hub, host: str, count: int) -> list[tuple[str, load.Signer]]:
    """Ids of new identities, each with what signs by its credentials."""
    def ask(operation: str, members: dict[str, str]) -> bytes:
        return load.plain("POST", "/", host, json.dumps(members).encode(),
                          content_type="application/x-amz-json-1.1",
                          x_amz_target=f"AWSCognitoIdentityService.{operation}")

    ids = [answer["IdentityId"] for answer in asyncio.run(devices.ask_all(
        hub.port, [ask("GetId", {"IdentityPoolId": GUESTS})] * count))]
    given = [answer["Credentials"] for answer in asyncio.run(devices.ask_all(
        hub.port, [ask("GetCredentialsForIdentity", {"IdentityId": id_}) for id_ in ids]))]
    return [(id_, load.Signer((one["AccessKeyId"], one["SecretKey"], one["SessionToken"]), host))
            for id_, one in zip(ids, given)]


def _updating(bench: Bench, hub: Hub, host: str) -> None:
    """Each update is of a dataset of its own, whose session token it has: a token is good for one
    update. The tokens are asked for beforehand."""
    # More than are updated in the time of a load: what is left is not counted.
    guests = _guests(hub, host, 50 if bench.quick else 4_000)
    places = [(guest, f"/identitypools/{load.segment(GUESTS)}/identities/{load.segment(guest[0])}"
               f"/datasets/u{number}") for number in range(20) for guest in guests]
    listings = asyncio.run(devices.ask_all(hub.port, [
        signer.request("GET", path + "/records") for (_, signer), path in places]))
    updates = [
        signer.request("POST", path, body=json.dumps({
            "SyncSessionToken": listing["SyncSessionToken"],
            "RecordPatches": [patch("key", "v" * 100)]}).encode())
        for ((_, signer), path), listing in zip(places, listings)]
    result = load.run(hub.endpoint, updates, bench.seconds, once=True)
    (_, signer), path = places[len(places) // 50]
    (listing,) = asyncio.run(devices.ask_all(hub.port, [signer.request("GET", path + "/records")]))
    if [record["Value"] for record in listing["Records"]] != ["v" * 100]:
        raise RuntimeError("the updates are not what was to be measured")
    bench.add("hub-update-1-record", result=result, what="durable on the disk")


# Push.


def push(bench: Bench) -> None:
    """From an update to its notice, and what a connection that waits takes."""
    hub = Hub(bench.tidemark, bench.directory / "push", settings=_settings()).start()
    try:
        hub.developer().set_identity_pool_configuration(
            IdentityPoolId=POOLS["pushed"],
            PushSync={"ApplicationArns": [TOPIC], "RoleArn": ROLE})
        asyncio.run(_notices(bench, hub))
        asyncio.run(_idle(bench, hub))
        hub.stop()
    finally:
        hub.kill()


def _registered(hub: Hub, host: str, count: int) -> tuple[list[App], list[bytes]]:
    """Apps with up to 50 devices each, and the requests that connect them."""
    apps, connects = [], []
    while len(connects) < count:
        app = App(hub, POOLS["pushed"])
        app.write("d", a="1")
        apps.append(app)
        signer = load.Signer(app.key, host)
        for number in range(min(50, count - len(connects))):
            device = app.sync.register_device(
                **app.path, Platform="GCM", Token=f"token {number}")["DeviceId"]
            app.sync.subscribe_to_dataset(**app.path, DatasetName="d", DeviceId=device)
            connects.append(signer.request(
                "GET", "/v1/push", f"device={load.segment(device)}"))
    return apps, connects


async def _notices(bench: Bench, hub: Hub) -> None:
    apps, connects = _registered(hub, f"127.0.0.1:{hub.port}", 40 if bench.quick else 1_000)
    connected = devices.Connected()
    await connected.connect(hub.port, connects)
    waits = []
    for number in range(20 if bench.quick else 500):
        app = apps[number % len(apps)]
        began: list[float] = []

        def update(app: App = app, began: list[float] = began) -> int:
            listing = app.list("d")
            began.append(time.monotonic())
            records = app.update("d", listing["SyncSessionToken"], [
                patch("a", f"{number}", listing["Records"][0]["SyncCount"])])
            return records[0]["SyncCount"]

        count = await asyncio.to_thread(update)
        name = f"{app.identity} {count}"
        for _ in range(2_000):
            if name in connected.heard:
                break
            await asyncio.sleep(0.001)
        # The last one of the devices that were told.
        await asyncio.sleep(0.01)
        waits.append(connected.heard[name] - began[0])
    connected.close()
    waits.sort()
    bench.add("hub-push-notice", value=waits[int(len(waits) * 0.99)] * 1e3, unit="ms",
              what=f"p99 of {len(waits)} updates, {len(connects)} devices connected",
              p50_ms=statistics.median(waits) * 1e3)


async def _idle(bench: Bench, hub: Hub) -> None:
    count = 100 if bench.quick else 2_000
    _, connects = _registered(hub, f"127.0.0.1:{hub.port}", count)
    await asyncio.sleep(1)
    before = _resident(hub.process)
    connected = devices.Connected()
    await connected.connect(hub.port, connects)
    await asyncio.sleep(2)
    bench.add("hub-push-idle", value=(_resident(hub.process) - before) / count / 1_024,
              unit="KiB", what=f"resident for each of {count} connections")
    connected.close()


# Size.


def population(bench: Bench) -> None:
    """Identities with three datasets of ten records each: until it listens, and its memory."""
    count = 1_000 if bench.quick else 100_000
    hub = Hub(bench.tidemark, bench.directory / "population")
    subprocess.run([bench.driver, "population", hub.store, "--identities", str(count), "--pool",
                    GUESTS], check=True)
    # Once, so that what was in the log when it ended is sealed.
    hub.start()
    hub.stop()
    began = time.monotonic()
    hub.start()
    try:
        bench.add("hub-start", value=time.monotonic() - began, unit="s",
                  what=f"{count} identities, until it listens")
        developer = load.Signer(hub.key, f"127.0.0.1:{hub.port}")
        step = max(1, count // 2_000)
        listings = asyncio.run(devices.ask_all(hub.port, [
            developer.request(
                "GET", f"/identitypools/{load.segment(GUESTS)}/identities/"
                f"{load.segment(f'us-east-1:00000000-0000-4000-8000-{number:012x}')}"
                "/datasets/d1/records") for number in range(0, count, step)]))
        if any(len(listing["Records"]) != 10 for listing in listings):
            raise RuntimeError("the population is not there")
        bench.add("hub-memory", value=_resident(hub.process) / 2**20, unit="MiB",
                  what=f"{count} identities, {len(listings)} of them asked for")
        hub.stop()
    finally:
        hub.kill()


# Others.


def emulator(bench: Bench) -> None:
    """moto, which offers a part of Cognito Identity: an identity for a guest."""
    server = Path(sys.executable).with_name("moto_server")
    if not server.exists():
        print("hub-get-id                 moto        not installed: left out")
        return
    port = _free_port()
    body = json.dumps({"IdentityPoolId": GUESTS}).encode()

    def measure(url: str) -> load.Load:
        request = load.plain(
            "POST", "/", url.removeprefix("http://"), body, content_type=(
                "application/x-amz-json-1.1"), x_amz_target="AWSCognitoIdentityService.GetId",
            # By which moto tells services apart.
            authorization="AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/cognito-identity/"
            "aws4_request, SignedHeaders=host, Signature=0")
        load.run(url, [request], 1, connections=16)
        return load.run(url, [request], bench.seconds, connections=16)

    process = subprocess.Popen([server, "-p", str(port)], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        _wait_for(port)
        bench.add("hub-get-id", "moto", result=measure(f"http://127.0.0.1:{port}"))
    finally:
        process.kill()
        process.wait()
    hub = Hub(bench.tidemark, bench.directory / "emulator", settings=_settings()).start()
    try:
        bench.add("hub-get-id", result=measure(hub.endpoint))
        hub.stop()
    finally:
        hub.kill()


def postgres(bench: Bench) -> None:
    """PostgreSQL's UPDATE ... RETURNING of one record of 100 bytes, by pgbench, durable."""
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not binaries or bench.quick:
        print("hub-update-1-record        postgres    not installed, or --quick: left out")
        return
    home = Path(tempfile.mkdtemp(dir=bench.directory, prefix="postgres"))
    home.chmod(0o777)
    bench.directory.chmod(0o755)
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []

    def run(name: str, *words: str) -> str:
        return subprocess.run([*as_user, binaries[-1] / name, *words], check=True, cwd=home,
                              capture_output=True, text=True, timeout=300).stdout

    data, port = str(home / "data"), str(_free_port())
    script = home / "update.sql"
    script.write_text("\\set id random(1, 100000)\nUPDATE records SET value = repeat('v', 100), "
                      "count = count + 1 WHERE id = :id RETURNING count;\n")
    run("initdb", "-D", data, "-A", "trust")
    run("pg_ctl", "-D", data, "-w", "-l", str(home / "log"), "-o",
        f"-p {port} -k {home} -c max_connections=100 -c shared_buffers=256MB", "start")
    try:
        options = ("-h", str(home), "-p", port)
        run("psql", *options, "-d", "postgres", "-c",
            "CREATE TABLE records (id int PRIMARY KEY, value text, count bigint); "
            "INSERT INTO records SELECT id, repeat('v', 100), 1 FROM generate_series(1, 100000) id")
        output = run("pgbench", *options, "-n", "-M", "prepared", "-c", "64", "-j", "2", "-T",
                     str(int(bench.seconds)), "-f", str(script), "postgres")
    finally:
        run("pg_ctl", "-D", data, "-m", "fast", "stop")
    rate = float(re.search(r"tps = ([\d.]+)", output)[1])
    latency = float(re.search(r"latency average = ([\d.]+) ms", output)[1]) * 1e3
    bench.add("hub-update-1-record", "postgres", result=load.Load(
        int(rate * bench.seconds), bench.seconds, latency, latency, latency),
        what="latencies are means")


MEASUREMENTS = (bare, requests, push, population, emulator, postgres)


def main() -> int:
    """Prints the rows as they come, and writes all of them in the end."""
    parser = argparse.ArgumentParser(description="Speed of a hub.")
    parser.add_argument("--tidemark", type=Path, required=True, help="the command, in release")
    parser.add_argument("--driver", type=Path, required=True, help="the command sync-bench")
    parser.add_argument("--json", type=Path, required=True, help="where the rows go")
    parser.add_argument("--only", default="", help="only measurements whose name holds this")
    parser.add_argument("--quick", action="store_true", help="small: shows that everything runs")
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="hub-bench-"))
    bench = Bench(options.tidemark, options.driver, options.quick, directory)
    try:
        for measurement in MEASUREMENTS:
            if options.only in measurement.__name__ or measurement is bare:
                measurement(bench)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(
        "[\n" + ",\n".join(json.dumps(row, sort_keys=True) for row in bench.rows) + "\n]\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
