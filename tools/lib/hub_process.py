"""`tidemark serve` in a process of its own, for what proves a hub from outside."""

from __future__ import annotations

import queue
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any


class HubProcess:
    """A hub over a store, as its settings say. It is not started yet."""

    def __init__(
        self, binary: Path, store: Path, log: Path, settings: Path, *options: str,
    ):
        self.binary = binary
        self.store = store
        self.log = log
        # Any free one; it stays the same over restarts.
        self.port = 0
        self._arguments = ["--config", settings, *options]
        self._process: subprocess.Popen[str] | None = None

    @property
    def process(self) -> int:
        """The id of its process."""
        assert self._process
        return self._process.pid

    def start(self) -> Any:
        """Returns it once it takes requests."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [self.binary, "serve", self.store, "--listen", f"127.0.0.1:{self.port}",
                 *self._arguments],
                stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL, text=True)
        lines: queue.Queue[str] = queue.Queue()
        output = self._process.stdout

        def read() -> None:
            # To the end, so that the pipe never fills.
            for line in output:
                lines.put(line)
            lines.put("")

        threading.Thread(target=read, daemon=True).start()
        line = ""
        end = time.monotonic() + 60
        while not line.startswith("listening on "):
            try:
                line = lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                line = ""
            if not line:
                self.kill()
                raise RuntimeError(f"the hub does not start; its log ends so:\n{self.log_end()}")
        self.port = int(line.rsplit(":", 1)[1])
        return self

    def log_end(self) -> str:
        """The last lines of its log."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(lines[-15:])

    def stop(self, seconds: float = 40) -> None:
        """Ends it as a service manager does, and fails unless it ends well."""
        if not self._process:
            return
        self._process.send_signal(signal.SIGTERM)
        status = self._process.wait(seconds)
        self._process = None
        if status != 0:
            raise RuntimeError(f"the hub ended with {status}:\n{self.log_end()}")

    def kill(self) -> None:
        """Ends it by `kill -9`, if it runs."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None
