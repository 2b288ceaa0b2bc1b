"""What somebody may do to a server of HTTP/2 who speaks it all too well: frames by hand, over TLS.

Each flood must cost its own connection, and nobody else anything.
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from checks import equal, holds
from hub import Hub

# RFC 9113, sections 3.4 and 6.
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADERS, RST_STREAM, SETTINGS, PING, CONTINUATION = 1, 3, 4, 6, 9
END_STREAM, END_HEADERS = 1, 4
SECONDS = 20


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _text(text: bytes) -> bytes:
    """RFC 7541, section 5.2, of fewer than 127 bytes and without Huffman's code."""
    return bytes([len(text)]) + text


# Of the static table: GET and https, then a path and an authority of their own.
HEAD = b"\x82\x87" + b"\x04" + _text(b"/health") + b"\x01" + _text(b"localhost")


def _resets() -> Iterator[bytes]:
    """Requests that are taken back at once: CVE-2023-44487."""
    for number in range(20_000):
        stream = 2 * number + 1
        yield (_frame(HEADERS, END_HEADERS | END_STREAM, stream, HEAD)
               + _frame(RST_STREAM, 0, stream, struct.pack(">I", 8)))


def _continuations() -> Iterator[bytes]:
    """A head that never ends: CVE-2024-27316."""
    yield _frame(HEADERS, END_STREAM, 1, HEAD)
    for _ in range(20_000):
        yield _frame(CONTINUATION, 0, 1, b"\x00" + _text(b"x") + _text(b"y" * 100))


def _packed_head() -> Iterator[bytes]:
    """One field of 4,000 bytes, and then 10,000 times one byte that stands for it."""
    length = 4_000 - 127
    number = b"\x7f" + bytes([length & 0x7F | 0x80, length >> 7])
    field = b"\x40" + _text(b"x") + number + b"y" * 4_000
    yield _frame(HEADERS, END_HEADERS | END_STREAM, 1, HEAD + field + b"\xbe" * 10_000)


def _pings() -> Iterator[bytes]:
    for number in range(100_000):
        yield _frame(PING, 0, 0, struct.pack(">Q", number))


def _settings() -> Iterator[bytes]:
    for _ in range(100_000):
        yield _frame(SETTINGS, 0, 0)


def _streams() -> Iterator[bytes]:
    """Requests with a body to come, far more at once than the hub takes."""
    head = b"\x83" + HEAD[1:]
    for number in range(5_000):
        yield _frame(HEADERS, END_HEADERS, 2 * number + 1, head)


def _junk() -> Iterator[bytes]:
    yield b"\xff" * 16_384


def check_idle(hub: Hub, certificate: Path, seconds: float) -> None:
    """Connections that are told to go, since nothing is asked on them any more, and neither go nor
    acknowledge it; and of those that never ask, too."""
    context = ssl.create_default_context(cafile=str(certificate))
    context.set_alpn_protocols(["h2"])
    opening = PREFACE + _frame(SETTINGS, 0, 0)
    request = _frame(HEADERS, END_HEADERS | END_STREAM, 1, HEAD)
    for name, sent in (("silent", opening), ("idle", opening + request)):
        with socket.create_connection(("127.0.0.1", hub.port), SECONDS) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as connection:
                connection.settimeout(seconds)
                connection.sendall(sent)
                holds(_ends(connection, ()), f"a {name} connection of HTTP/2 is closed")


FLOODS = (_resets, _continuations, _packed_head, _pings, _settings, _streams, _junk)


def _ends(connection: ssl.SSLSocket, frames: Iterable[bytes]) -> bool:
    """Whether the hub closes the connection by it."""
    try:
        for frame in frames:
            connection.sendall(frame)
        while connection.recv(65_536):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


def check_floods(hub: Hub, certificate: Path) -> None:
    """Each of them, on a connection of its own."""
    context = ssl.create_default_context(cafile=str(certificate))
    context.set_alpn_protocols(["h2"])
    for flood in FLOODS:
        name = flood.__name__.strip("_")
        with socket.create_connection(("127.0.0.1", hub.port), SECONDS) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as connection:
                equal(connection.selected_alpn_protocol(), "h2", "the protocol")
                connection.sendall(PREFACE + _frame(SETTINGS, 0, 0))
                holds(_ends(connection, flood()), f"{name} end their connection")
