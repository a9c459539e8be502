"""Chromium without a window, driven over its DevTools protocol through a pipe.

The pipe (`--remote-debugging-pipe`: messages of JSON that end in a zero byte, in on descriptor 3 and out on 4) needs nothing
but the standard library: no WebSocket client, no driver program, no port that somebody else could take. Chromium is
Debian's package `chromium`, for the browsers that test tools bring along come from servers that are not to be had.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

NAMES = ("chromium", "chromium-browser", "google-chrome")

_TIMEOUT = 60.0


class PageError(Exception):
    """The browser, or a script in the page, gave an error."""


def find_chromium() -> str | None:
    """The program, `$CHROMIUM` first."""
    named = os.environ.get("CHROMIUM")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One browser with one page.

    Args:
        program: Chromium.
        folder: An empty folder for its profile.
    """

    def __init__(self, program: str, folder: Path) -> None:
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        arguments = [
            *(program, "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={folder}"),
            *("--no-first-run", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"),
            *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
            # As root, in a container of CI, its sandbox cannot be had; it opens our own page only.
            *(("--no-sandbox",) if os.geteuid() == 0 else ()),
            "about:blank",
        ]
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "chromium", *arguments],
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._numbers = itertools.count(1)
        self._rest = b""
        self._session = ""
        self.events: list[Mapping[str, Any]] = []

    def __enter__(self) -> Self:
        try:
            self._attach()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _attach(self) -> None:
        targets = self._send("Target.getTargets")["targetInfos"]
        page = next(each["targetId"] for each in targets if each["type"] == "page")
        self._session = self._send("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._send(f"{domain}.enable")
        self._send("Page.setLifecycleEventsEnabled", enabled=True)

    def _stop(self) -> None:
        os.close(self._out)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)

    def show(
        self,
        file: Path,
        *,
        width: int = 1280,
        height: int = 900,
        scheme: Literal["light", "dark"] = "light",
        scripts: bool = True,
        fragment: str = "",
    ) -> None:
        """Open *file* in a window of *width* and wait until it has loaded."""
        self._resize(width, height)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self._send("Emulation.setEmulatedMedia", features=[feature])
        self._send("Emulation.setScriptExecutionDisabled", value=not scripts)
        # From an empty page: to another fragment of the same one nothing would be loaded.
        self._navigate("about:blank")
        self.events.clear()
        self._navigate(f"{file.resolve().as_uri()}{fragment}")

    def run(self, expression: str) -> Any:
        """The value of *expression* in the page; a promise is waited for.

        Raises:
            PageError: When it throws.
        """
        answer = self._send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise PageError(answer["exceptionDetails"].get("exception", {}).get("description", "unknown"))
        return answer["result"].get("value")

    def accessible(self, role: str) -> list[str]:
        """The names of all that a screen reader is told to be of *role*."""
        nodes = self._send("Accessibility.getFullAXTree")["nodes"]
        return [
            str(each.get("name", {}).get("value", ""))
            for each in nodes
            if not each["ignored"]
            and each.get("role", {}).get("value") in (role, "image" if role == "img" else role)
        ]

    def press(self, key: str, *, shift: bool = False) -> None:
        """One key as a person presses it: `Tab`, `Enter`, `Escape`, or a character."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32}
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        held = {
            "key": key,
            "modifiers": 8 if shift else 0,
            "windowsVirtualKeyCode": codes.get(key, ord(key[0])),
        }
        self._send("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **held)
        self._send("Input.dispatchKeyEvent", type="keyUp", **held)

    def write(self, text: str) -> None:
        """Type *text* into what has the focus."""
        for character in text:
            self.press(character)

    def emulate_print(self, *, on: bool) -> None:
        """Lay the page out as for paper, or as for a screen again."""
        self._send("Emulation.setEmulatedMedia", media="print" if on else "")

    def picture(self, file: Path, *, whole: bool = True) -> None:
        """Write what shows, or the *whole* page, as PNG."""
        if whole:
            # What is far from the window is not drawn (`content-visibility`), so the window has to be as high as the page.
            width, *heights = self.run("[innerWidth, innerHeight, document.documentElement.scrollHeight]")
            self._resize(width, max(heights))
            self.settle()
            self._resize(width, self.run("Math.max(innerHeight, document.documentElement.scrollHeight)"))
            self.settle()
        shot = self._send("Page.captureScreenshot", format="png")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(shot["data"]))

    def settle(self) -> None:
        """Wait until what was changed is on the screen: the second frame after now begins when the first is drawn."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def count_thread_time(self) -> None:
        """Let `thread_seconds` count, from the next page on."""
        self._send("Performance.enable", timeDomain="threadTicks")

    def thread_seconds(self) -> float:
        """Seconds that the page's main thread ran since the page was opened, waiting for a processor left out."""
        metrics = self._send("Performance.getMetrics")["metrics"]
        return next(float(each["value"]) for each in metrics if each["name"] == "TaskDuration")

    @property
    def requests(self) -> list[str]:
        """What the page asked for since it was opened."""
        sent = (each["params"] for each in self.events if each["method"] == "Network.requestWillBeSent")
        return [each["request"]["url"] for each in sent]

    @property
    def complaints(self) -> list[str]:
        """What the page wrote to the console, or the browser about it: errors, blocked scripts and styles."""
        logged = [each["params"] for each in self.events if each["method"] == "Log.entryAdded"]
        thrown = [each["params"] for each in self.events if each["method"] == "Runtime.exceptionThrown"]
        return [each["entry"]["text"] for each in logged] + [
            each["exceptionDetails"]["text"] for each in thrown
        ]

    def _resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._send("Emulation.setDeviceMetricsOverride", **size)

    def _send(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        try:
            while data:
                data = data[os.write(self._out, data) :]
        except BrokenPipeError:
            raise PageError(f"the browser ended before {method}") from None
        limit = time.monotonic() + _TIMEOUT
        while True:
            answer = self._read(limit, method)
            if answer.get("id") == number:
                if "error" in answer:
                    raise PageError(f"{method}: {answer['error']['message']}")
                result: dict[str, Any] = answer["result"]
                return result
            if "method" in answer:
                self.events.append(answer)

    def _navigate(self, url: str) -> None:
        loader = self._send("Page.navigate", url=url)["loaderId"]
        limit = time.monotonic() + _TIMEOUT
        while not any(_is_loaded(each, loader) for each in self.events):
            self.events.append(self._read(limit, url))

    def _read(self, limit: float, awaited: str) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not select.select([self._in], [], [], max(0.0, limit - time.monotonic()))[0]:
                raise PageError(f"no answer to {awaited} in {_TIMEOUT:.0f} s")
            chunk = os.read(self._in, 1 << 20)
            if not chunk:
                raise PageError(f"the browser ended before it answered {awaited}")
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message


def _is_loaded(event: Mapping[str, Any], loader: str) -> bool:
    params = event["params"]
    return event["method"] == "Page.lifecycleEvent" and (params["name"], params["loaderId"]) == (
        "load",
        loader,
    )
