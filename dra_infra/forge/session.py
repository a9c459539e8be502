"""Requests to one host within one time bound.

The token goes to that host only, and into no message.
"""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import requests
import requests.adapters
import requests.auth
import urllib3.exceptions

from dra_infra.client.deadline import Deadline, with_deadlines
from dra_infra.documents.json_texts import ForeignJsonError, read_foreign_json
from dra_infra.errors import DraInfraError, ForgeError
from dra_infra.forge import refusals
from dra_infra.forge.destinations import Destination
from dra_infra.forge.messages import Mask
from dra_infra.forge.refusals import FIRST_PAUSE, is_rate_limit, pause_before_next

TOTAL: Final = 300.0
"""Seconds that everything together may take, waiting included."""

MOST_TRIES: Final = 6
"""Tries of one request that is not held back by a rate limit: about half a minute of pauses."""

_CONNECT, _READ = 10.0, 30.0
_LARGEST: Final = 32 * 1024 * 1024
"""Bytes of one answer: a page of 100 comments of 65,536 characters of up to 4 bytes has 26 MB."""

_REDIRECTS: Final = frozenset({301, 302, 307, 308})
_MOST_REDIRECTS: Final = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """Answer of the forge; `status` is 0 when there was none, and `text` then says why."""

    status: int
    headers: Mapping[str, str]
    text: str


class OutcomeNotKnownError(DraInfraError):
    """A request may have been carried out or not.

    Args:
        pause: How long to wait before looking, in seconds.
        accepted: The forge said yes, and then nothing that can be read: asking again would do it twice.
    """

    def __init__(self, pause: float, *, accepted: bool = False) -> None:
        self.pause = pause
        self.accepted = accepted
        super().__init__("whether the request was carried out is not known")


class _Token(requests.auth.AuthBase):
    """Sets the header itself: without an `auth`, requests would put what a `.netrc` holds over it."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._token:
            request.headers["Authorization"] = f"Bearer {self._token}"
        return request


class _Adapter(requests.adapters.HTTPAdapter):
    """Connections that are cut when the time for everything is over: a server may send its headers byte by byte."""

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options)
        with_deadlines(self.poolmanager)

    def proxy_manager_for(self, *arguments: Any, **options: Any) -> Any:
        return with_deadlines(super().proxy_manager_for(*arguments, **options))


class Session:
    """Asks one forge.

    Args:
        destination: Whose API is asked, and with which token.
        mask: Takes secrets out of the forge's words.
        headers: Sent with every request.
        total: Seconds for everything together.
        sleep: Waits; tests pass a clock of their own.
        clock: Seconds that only grow.
        today: Seconds since 1970.
        jitter: A number between 0 and 1.
    """

    def __init__(
        self,
        destination: Destination,
        *,
        mask: Mask,
        headers: Mapping[str, str] | None = None,
        total: float = TOTAL,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        today: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.destination = destination
        self.mask = mask
        self._sleep = sleep
        self._clock = clock
        self._today = today
        self._jitter = jitter
        self._ends = clock() + total
        self._total = total
        self._http = requests.Session()
        for scheme in ("http://", "https://"):
            self._http.mount(scheme, _Adapter())
        self._http.auth = _Token(destination.token)
        # As it is, and not packed: what is read is what is counted against the limit.
        self._http.headers.update({"User-Agent": "dra-infra", "Accept-Encoding": "identity"})
        self._http.headers.update(headers or {})

    def request(
        self,
        method: str,
        path: str,
        *,
        doing: str,
        body: Mapping[str, str] | None = None,
        expected: Collection[int] = (),
        repeatable: bool = True,
        attempt: int = 1,
    ) -> tuple[int, Any, Mapping[str, str]]:
        """Status, decoded answer and headers; of an expected refusal, None instead of the answer.

        Args:
            method: HTTP's.
            path: Behind the address of the API, with its query.
            doing: What it is for, for messages: "the token may not *doing*".
            body: Sent as JSON.
            expected: Refusals that the caller wants to see.
            repeatable: Whether doing it twice does no harm. If not, only a refusal for too many requests is repeated.
            attempt: The number of this try, where the caller tries again.

        Raises:
            ForgeError: With codes `forge-unauthorized`, `forge-forbidden`, `forge-not-found`, `forge-refused`,
                `forge-rate-limited`, `forge-unavailable`, `forge-answer`.
            OutcomeNotKnownError: For what is not repeatable, after a failure on the way.
        """
        for number in itertools.count(attempt):
            answer = self._follow(method, path, body)
            if 200 <= answer.status < 300:
                return answer.status, self._decode(answer, repeatable=repeatable), answer.headers
            pause = pause_before_next(
                answer.status,
                answer.headers,
                answer.text,
                attempt=number,
                now=self._today(),
                jitter=self._jitter(),
            )
            if pause is None and answer.status in expected:
                return answer.status, None, answer.headers
            limited = is_rate_limit(answer.status, answer.headers, answer.text)
            if pause is None or (not limited and number >= MOST_TRIES):
                raise self._refusal(doing, answer)
            if pause > self.left:
                if limited:
                    raise refusals.rate_limited(self.destination, pause, self.left, self._words(answer))
                raise self._refusal(doing, answer)
            if not repeatable and not limited:
                raise OutcomeNotKnownError(pause)
            self.pause(pause)
        raise AssertionError  # pragma: no cover  (the loop has no end)

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self._ends - self._clock()

    def pause(self, seconds: float) -> None:
        """Wait."""
        self._sleep(seconds)

    def _follow(self, method: str, path: str, body: Mapping[str, str] | None) -> Answer:
        """One request, with redirects on the same host: a repository that was renamed answers with one."""
        address = self.destination.api + path
        for _ in range(_MOST_REDIRECTS):
            answer = self._once(method, address, body)
            if answer.status not in _REDIRECTS:
                return answer
            target = urljoin(address, answer.headers.get("location", ""))
            if _origin(target) != _origin(address):
                # Never followed: the other host would get the token, or learn what we ask for.
                host = self.mask.quote(_host(target))
                raise refusals.not_an_answer(self.destination, f"the API redirects to another host, {host!r}")
            address = target
        raise refusals.not_an_answer(self.destination, "the API redirects in a circle")

    def _once(self, method: str, address: str, body: Mapping[str, str] | None) -> Answer:
        if self.left <= 0:
            raise refusals.unreachable(self.destination, f"the work is not done after {self._total:g} s")
        try:
            with (
                Deadline(self.left) as deadline,
                self._http.request(
                    method,
                    address,
                    json=body,
                    stream=True,
                    allow_redirects=False,
                    timeout=(min(_CONNECT, self.left), min(_READ, self.left)),
                ) as response,
            ):
                text = self._read(response)
                if deadline.is_over:
                    # A connection that was cut looks like the end of an answer that does not tell its length.
                    return Answer(status=0, headers={}, text="no whole answer in time")
                return Answer(status=response.status_code, headers=response.headers, text=text)
        except requests.exceptions.SSLError:
            raise refusals.unreachable(
                self.destination, "the certificate of the server is not trusted"
            ) from None
        except (requests.exceptions.InvalidURL, requests.exceptions.InvalidProxyURL, ValueError):
            raise refusals.unreachable(
                self.destination, "the address of the API or proxy is malformed"
            ) from None
        except (requests.exceptions.Timeout, urllib3.exceptions.TimeoutError):
            return Answer(status=0, headers={}, text="no answer in time")
        except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError, OSError):
            # The library's text is not shown: it can hold the address of a proxy with its password.
            return Answer(status=0, headers={}, text="the server cannot be reached, or ends the connection")

    def _read(self, response: requests.Response) -> str:
        """The body. Part by part: a server that sends a byte a second must not hold us."""
        parts: list[bytes] = []
        size = 0
        while part := response.raw.read1(65_536, decode_content=True):
            parts.append(part)
            size += len(part)
            if size > _LARGEST:
                raise refusals.not_an_answer(self.destination, f"an answer has more than {_LARGEST:,} bytes")
            if self.left <= 0:
                raise refusals.unreachable(
                    self.destination, f"an answer is not complete after {self._total:g} s"
                )
        return b"".join(parts).decode("utf-8", "replace")

    def _decode(self, answer: Answer, *, repeatable: bool) -> Any:
        if not answer.text.strip():
            return None
        try:
            return read_foreign_json(answer.text)
        except ForeignJsonError:
            if not repeatable:
                raise OutcomeNotKnownError(FIRST_PAUSE, accepted=True) from None
            kind = "HTML" if answer.text.lstrip()[:1] == "<" else "text that is not JSON"
            raise refusals.not_an_answer(self.destination, f"an answer {answer.status} is {kind}") from None

    def _refusal(self, doing: str, answer: Answer) -> ForgeError:
        if answer.status == 0:
            return refusals.unreachable(self.destination, answer.text)
        if answer.status < 400:
            return refusals.not_an_answer(self.destination, f"the API answers {answer.status}")
        return refusals.refusal(self.destination, doing, answer.status, self._words(answer))

    def _words(self, answer: Answer) -> str:
        """The forge's own message; nothing of pages that are for people."""
        try:
            said = read_foreign_json(answer.text)
        except ForeignJsonError:
            return ""
        if not isinstance(said, dict):
            return ""
        words = [said.get(key) for key in ("message", "error_description", "error")]
        details = said.get("errors")
        words += (
            [each.get("message") for each in details if isinstance(each, dict)]
            if isinstance(details, list)
            else []
        )
        # GitLab's message may be an object of fields and their reproaches.
        texts = [
            each if isinstance(each, str) else json.dumps(each, sort_keys=True) for each in words if each
        ]
        return self.mask.quote("; ".join(texts))


def _origin(address: str) -> tuple[str, str, int | None]:
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return ("", "", None)
    return (parts.scheme, parts.hostname or "", port or {"https": 443, "http": 80}.get(parts.scheme))


def _host(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""
