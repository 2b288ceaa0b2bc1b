"""What clients see below the API: TLS by openssl and curl, HTTP/2 by curl and by hand, health,
metrics.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from checks import Difference, equal, eventually, holds
from clients import client
from floods import check_floods, check_idle
from hub import GUESTS, Hub


def _run(*words: str, is_fine: bool = True, text: str = "") -> str:
    done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=30,
                          check=False)
    if (done.returncode == 0) != is_fine:
        raise Difference(f"{' '.join(words)} ended with {done.returncode}: "
                         f"{done.stdout[-500:]}{done.stderr[-500:]}")
    return done.stdout + done.stderr


def _certificate(directory: Path, name: str, suffix: str = "") -> tuple[Path, Path]:
    """One that signs itself, under a name of its own."""
    certificate, key = directory / f"hub.pem{suffix}", directory / f"hub.key{suffix}"
    _run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "2", "-keyout", str(key), "-out", str(certificate), "-subj",
         f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost")
    return certificate, key


def _served(hub: Hub) -> str:
    return _run("openssl", "s_client", "-connect", f"127.0.0.1:{hub.port}", "-servername",
                "localhost", "-showcerts")


def _check_tls(hub: Hub, certificate: Path) -> None:
    address = f"127.0.0.1:{hub.port}"
    for version in ("-tls1_2", "-tls1_3"):
        output = _run("openssl", "s_client", "-connect", address, version, "-CAfile",
                      str(certificate), "-verify_return_error")
        holds("Verify return code: 0 (ok)" in output, f"{version} is verified")
    # Level 0, so that it is the hub that refuses and not openssl's own policy.
    for version in ("-tls1", "-tls1_1"):
        output = _run("openssl", "s_client", "-connect", address, version, "-cipher",
                      "ALL:@SECLEVEL=0", is_fine=False)
        # Without a certificate there is none to find fault with, so the return code says nothing.
        holds("Cipher is (NONE)" in output, f"{version} is refused")
    output = _run("openssl", "s_client", "-connect", address, "-alpn", "h2,http/1.1")
    holds("ALPN protocol: h2" in output, "HTTP/2 is offered")


def _check_http2(hub: Hub, certificate: Path) -> None:
    for version, number in (("--http2", "2"), ("--http1.1", "1.1")):
        output = _run("curl", "-sS", version, "--cacert", str(certificate), "-o", "/dev/null",
                      "-w", "%{http_version} %{http_code}", f"{hub.endpoint}/health")
        equal(output, f"{number} 200", f"curl {version}")
    for path, status in (("/ready", "200"), ("/nowhere", "404"), ("/metrics", "401")):
        output = _run("curl", "-sS", "--http2", "--cacert", str(certificate), "-o", "/dev/null",
                      "-w", "%{http_code}", hub.endpoint + path)
        equal(output, status, path)
    output = _run("curl", "-sS", "--http2", "--cacert", str(certificate), "-i", "-X", "GET",
                  f"{hub.endpoint}/identitypools")
    lines = [line.strip().lower() for line in output.splitlines()]
    holds(lines[0].startswith("http/2 403"), f"a refusal over HTTP/2: {output}")
    holds("x-amzn-errortype: missingauthenticationtokenexception" in lines,
          f"a refusal has its name: {output}")
    output = _run("curl", "-sS", "--cacert", str(certificate), "-H",
                  f"Authorization: Bearer {hub.admin_token}", f"{hub.endpoint}/metrics")
    holds("tidemark_hub_requests_total{" in output, "metrics in the form of Prometheus")
    holds(hub.admin_token not in output, "no secret among the metrics")


def _check_boto3(hub: Hub, certificate: Path) -> None:
    directory = client("cognito-identity", hub.endpoint, verify=str(certificate))
    identity = directory.get_id(IdentityPoolId=GUESTS)["IdentityId"]
    given = directory.get_credentials_for_identity(IdentityId=identity)["Credentials"]
    sync = client("cognito-sync", hub.endpoint, verify=str(certificate), key=(
        given["AccessKeyId"], given["SecretKey"], given["SessionToken"]))
    path = {"IdentityPoolId": GUESTS, "IdentityId": identity, "DatasetName": "d"}
    token = sync.list_records(**path)["SyncSessionToken"]
    sync.update_records(**path, SyncSessionToken=token, RecordPatches=[
        {"Op": "replace", "Key": "key", "Value": "over TLS", "SyncCount": 0}])
    equal(sync.list_records(**path)["Records"][0]["Value"], "over TLS", "what boto3 reads")


def _check_reload(hub: Hub, directory: Path) -> None:
    holds("CN = first" in _served(hub) or "CN=first" in _served(hub), "the first certificate")
    new = _certificate(directory, "second", ".new")
    # The key first: until both have come they do not fit, and the old ones stay.
    new[1].rename(directory / "hub.key")
    new[0].rename(directory / "hub.pem")
    eventually(lambda: "CN = second" in (output := _served(hub)) or "CN=second" in output,
               "the second certificate")


def main() -> int:
    """The status is 1 if anything is not as it must be."""
    parser = argparse.ArgumentParser(description="TLS and HTTP/2 of a hub.")
    parser.add_argument("binary", type=Path, help="the command tidemark")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        certificate, key = _certificate(directory, "first")
        hub = Hub(options.binary, directory / "hub", tls=(certificate, key)).start()
        try:
            _check_tls(hub, certificate)
            _check_http2(hub, certificate)
            check_floods(hub, certificate)
            # Nobody else has noticed.
            _check_boto3(hub, certificate)
            _check_reload(hub, directory)
            hub.stop()
            # Of the others none is closed for being idle: that must not pass for a limit.
            hub = Hub(
                options.binary, directory / "impatient", tls=(certificate, key),
                settings={"protection.headSeconds": 3, "protection.idleSeconds": 2}).start()
            check_idle(hub, certificate, 60)
            hub.stop()
        except BaseException:
            print(f"the hub's log ends so:\n{hub.log_end()}", file=sys.stderr)
            raise
        finally:
            hub.kill()
    print("TLS 1.2 and 1.3 alone, HTTP/2, floods of it and idle connections, and certificates that"
          " are changed while it runs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
