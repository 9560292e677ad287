"""A headless Chromium, controlled through a pipe by its DevTools protocol, to test and picture pages.

    with Browser(find()) as browser:
        page = browser.open(Path("report.html"), width=1600, height=1500)
        page.value("document.title"); page.trouble; page.requests; page.picture()

Messages are JSON with a final zero byte: to the browser on its descriptor 3, from it on 4 (`--remote-debugging-pipe`).
No name resolves (`--host-resolver-rules`), so all network requests of a page fail.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
"""Names of the program."""

PATIENCE = 60.0
"""Timeout (s) of an answer."""

OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe"),
)


def find() -> str | None:
    """Return the path of the program, None if there is none."""
    return next((program for name in NAMES if (program := shutil.which(name))), None)


class Browser:
    """A running browser."""

    def __init__(self, program: str) -> None:
        """Start it with a temporary profile."""
        self._home = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        theirs_in, self._to = os.pipe()
        self._from, theirs_out = os.pipe()
        high = [os.dup(theirs_in), os.dup(theirs_out)]
        shell = f'exec "$0" "$@" 3<&{high[0]} 4>&{high[1]}'
        command = ["bash", "-c", shell, program, *OPTIONS, f"--user-data-dir={self._home.name}", "about:blank"]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(command, pass_fds=high, stdin=quiet, stdout=quiet, stderr=quiet)
        for end in (theirs_in, theirs_out, *high):
            os.close(end)
        self._rest, self._number = b"", 0
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        """Return the browser."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        try:
            self.call("Browser.close")
            self._process.wait(10.0)
        except (OSError, TimeoutError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        for end in (self._to, self._from):
            os.close(end)
        self._home.cleanup()

    def _next(self, until: float) -> dict[str, Any]:
        """Return the next message. Raise TimeoutError if there is none, OSError if the browser has ended."""
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._from], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser says nothing")
            part = os.read(self._from, 1 << 16)
            if not part:
                raise OSError("the browser has ended")
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        message_data: dict[str, Any] = json.loads(message)
        return message_data

    def call(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """Return the answer to a command; store earlier events. Raise RuntimeError for an error."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": parameters}
        command |= {"sessionId": session} if session else {}
        os.write(self._to, json.dumps(command).encode() + b"\0")
        until = time.monotonic() + PATIENCE
        while True:
            message = self._next(until)
            if message.get("id") != self._number:
                self.events.append(message)
                continue
            if "error" in message:
                raise RuntimeError(f"{method}: {message['error']}")
            answer: dict[str, Any] = message["result"]
            return answer

    def wait(self, method: str, session: str) -> None:
        """Wait for an event of a page."""
        until = time.monotonic() + PATIENCE
        while not any(e.get("method") == method and e.get("sessionId") == session for e in self.events):
            self.events.append(self._next(until))

    def open(self, file: Path, width: int, height: int, *, dark: bool = False) -> Page:
        """Return a loaded page of this size (pixels)."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{part}.enable", session)
        self.call(
            "Emulation.setDeviceMetricsOverride",
            session,
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        look = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", session, features=[look])
        self.events.clear()
        self.call("Page.navigate", session, url=file.resolve().as_uri())
        self.wait("Page.loadEventFired", session)
        return Page(self, session)


@dataclass
class Page:
    """A loaded page."""

    browser: Browser
    session: str
    _seen: list[dict[str, Any]] = field(default_factory=list)

    def _events(self) -> list[dict[str, Any]]:
        """Return all events of this page until now."""
        self.value("1")
        return [event for event in self.browser.events if event.get("sessionId") == self.session]

    def value(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        result = self.browser.call("Runtime.evaluate", self.session, expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"]))
        return result["result"].get("value")

    @property
    def trouble(self) -> list[str]:
        """The console and log messages and the exceptions."""
        kinds = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Network.loadingFailed")
        return [json.dumps(event["params"]) for event in self._events() if event["method"] in kinds]

    @property
    def requests(self) -> list[str]:
        """The requested addresses, without data in the page."""
        sent = [event for event in self._events() if event["method"] == "Network.requestWillBeSent"]
        urls = [str(event["params"]["request"]["url"]) for event in sent]
        return [url for url in urls if not url.startswith("data:")]

    def picture(self, scale: float = 1.0) -> bytes:
        """Return the visible page as PNG, magnified by `scale`."""
        width, height = self.value("[innerWidth, innerHeight]")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": scale}
        result = self.browser.call("Page.captureScreenshot", self.session, format="png", clip=clip)
        return base64.b64decode(result["data"])
