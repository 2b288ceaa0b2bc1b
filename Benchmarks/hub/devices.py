"""Many devices that are connected for push, in one process, and many questions at once."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return int(head.split(b" ", 2)[1]), await reader.readexactly(length)


async def ask_all(port: int, requests: list[bytes], connections: int = 16) -> list[dict]:
    """The documents that answer the requests, in their order. Fails if one is refused."""
    answers: list[dict] = [{} for _ in requests]

    async def worker(numbers: Iterable[int]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
        for number in numbers:
            writer.write(requests[number])
            status, content = await _answer(reader)
            if status != 200:
                raise RuntimeError(f"status {status}: {content[:300]!r}")
            answers[number] = json.loads(content)
        writer.close()

    await asyncio.gather(*(worker(range(first, len(requests), connections))
                           for first in range(min(connections, len(requests)))))
    return answers


class Connected:
    """Devices that wait for notices."""

    def __init__(self) -> None:
        # Dataset's name -> moments at which its notices came.
        self.heard: dict[str, float] = {}
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def connect(self, port: int, requests: list[bytes]) -> None:
        """Opens a connection for each request, a few at a time."""
        for first in range(0, len(requests), 50):
            await asyncio.gather(*(self._open(port, request)
                                   for request in requests[first:first + 50]))

    async def _open(self, port: int, request: bytes) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head.split(b"\r\n")[0]:
            raise RuntimeError(f"not connected: {head!r}")
        self._writers.append(writer)
        self._tasks.append(asyncio.create_task(self._read(reader)))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                if line.startswith(b"data:"):
                    event = json.loads(line[5:])
                    self.heard[f"{event['identityId']} {event['syncCount']}"] = time.monotonic()
        except (OSError, ValueError):
            return

    def close(self) -> None:
        """Hangs up."""
        for task in self._tasks:
            task.cancel()
        for writer in self._writers:
            writer.close()
