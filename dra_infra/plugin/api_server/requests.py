"""Requests to the API server, retried for a while where it is busy, and a record of whether it answers.

Pauses before a request is repeated are for an API server that did not answer, or has too much to do.

Readiness and liveness ask whether the API server answers the plugin, and since when it does not. The two differ in
what follows. A plugin that is not ready is left alone; one that is not alive is started anew. That is safe, for what
is prepared stays and is released without an API server, but where a server is away for all, it would be one more wave
of all nodes at once, and help nobody. So only a plugin that reaches a server and does not get along with it, by
certificate or credentials, ends for it: what it was started with may be what is wrong.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final, NamedTuple, TypeVar

from dra_infra.client.kubeconfig import Account
from dra_infra.client.objects import text
from dra_infra.client.refusals import too_large
from dra_infra.client.transport import BUSY, Transport, read_retry_after
from dra_infra.errors import ClusterError, PluginError
from dra_infra.kubernetes.api import mapping
from dra_infra.plugin.api_server.refusals import from_cluster_error

LOST: Final = 60.0
"""Seconds without an answer after which the server counts as lost: longer than one takes to start anew."""

HOPELESS: Final = (1800.0, 3600.0)
"""Bounds of the seconds of refusals after which a restart is tried. Each plugin draws a time of its own between them, for
certificates expire on all nodes in one moment. Half an hour is more than the ten minutes after which a kubelet resets its back-off."""


class Contact:
    """Keeps the time of the first failure behind the last answer; safe to use from several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._patience = random.uniform(*HOPELESS)  # noqa: S311
        self._lock = threading.Lock()
        self._since: float | None = None
        self._ours_since: float | None = None
        self._last = 0.0
        self._why = ""

    def answered(self) -> None:
        """Note that the server answered."""
        with self._lock:
            self._since = self._ours_since = None

    def failed(self, why: str, *, ours: bool) -> None:
        """Note that there was no answer.

        Args:
            why: For those who are told that the server is lost.
            ours: Whether a server is there, and what the plugin was started with may be wrong.
        """
        with self._lock:
            self._last = self._clock()
            self._why = why
            self._since = self._last if self._since is None else self._since
            if not ours:
                self._ours_since = None
            elif self._ours_since is None:
                self._ours_since = self._last

    def lost(self) -> str:
        """Why the server counts as lost; empty where it does not."""
        with self._lock:
            # From the first failure to the last one: nothing is known of a time in which nobody asked.
            return self._told(self._since, LOST)

    def hopeless(self) -> str:
        """Why a restart may help; empty where it would not."""
        with self._lock:
            return self._told(self._ours_since, self._patience)

    def _told(self, since: float | None, patience: float) -> str:
        if since is None or (seconds := self._last - since) < patience:
            return ""
        return f"no answer of the API server for {seconds:.0f} s: {self._why}"


_SHORTEST: Final = 0.1
_FIRST: Final = 0.5
_LONGEST: Final = 10.0
"""Seconds: bounds of the random part, the second of which doubles until it is the third."""

_LONGEST_RETRY_AFTER: Final = 60.0
"""Seconds that a server gets when it asks for more: the node's slices would be as they are for so long."""


def backoff(failures: int, retry_after: float = 0.0) -> float:
    """Seconds until the next try: any within a window that doubles with each failure, behind what the server asked for.

    Any, and not a fixed pause give or take a part of it: when an API server restarts, all nodes of a fleet lose their
    watches in the same moment. A thousand of them that wait a second each, more or less, come back as one wave, and again so
    after the next failure; spread over the whole window they come as evenly as can be. What a server asks for is the same
    number for all of them, so the random part comes on top.

    Args:
        failures: So many in a row; 0 where a watch ended as watches do, which is also how a restart looks from here.
        retry_after: Seconds that the server asked for, from `read_retry_after`.
    """
    window = min(_LONGEST, _FIRST * 2.0 ** min(failures, 10))
    return min(retry_after, _LONGEST_RETRY_AFTER) + random.uniform(_SHORTEST, window)  # noqa: S311


BUDGET: Final = 15.0
"""Seconds in which a request is made again: the kubelet waits for 45 s for all that it asked."""

_READ_TIMEOUT: Final = 10.0
"""Seconds of silence after which an answer is given up."""

_TOTAL_TIMEOUT: Final = 30.0
"""Seconds after which an answer has to be complete, for a server that sends a byte now and then is never silent: less than the 45 of
the kubelet, and enough for a page of the largest list over a slow network."""

LARGEST: Final = 4 * 1024 * 1024
"""Bytes of an answer that is read. API servers take no object of more than 3 MiB (MaxRequestBodyBytes of k8s.io/apiserver)."""

MOST_PARTS: Final = 100_000
"""Objects and lists of an answer that is parsed: one of three bytes takes more than a hundred in memory."""

_SMALL: Final = 64 * 1024
"""Bytes of an answer that any number of threads may have at a time; larger ones are read one after the other."""

_LONGEST_MESSAGE: Final = 16 * 1024
"""Characters of a refusal that are kept until they are shown."""

_REFUSED: Final = 400
_TOO_MANY: Final = 429
_FAILS: Final = 500


class Answer(NamedTuple):
    """Answer of the API server.

    Attributes:
        status: HTTP's.
        body: The object; for a status of 400 and more the server's words.
        reason: Kubernetes' word for a refusal, such as `AlreadyExists`.
        retry_after: Seconds for which the server wants to be left alone.
        failure: Why there is no answer, with the status 0; else what was wrong with it.
    """

    status: int
    body: Any
    reason: str = ""
    retry_after: float = 0.0
    failure: PluginError | None = None


_Taken = TypeVar("_Taken")


class LargeAnswers:
    """Lets one thread at a time have an answer that takes much memory, until it has taken from it what it needs.

    A wide text takes ten times its bytes: four for each letter, before and after it is parsed. Sixteen claims are read
    at the same time.
    """

    def __init__(self) -> None:
        # The thread that has the turn may ask for something else, such as the server's version.
        self._lock = threading.RLock()

    @contextmanager
    def turn(self) -> Iterator[Callable[[int], None]]:
        """Yields what to call with the size of an answer, as it grows; it waits for the turn once that is large."""
        with ExitStack() as held:
            waits = True

            def grew(size: int) -> None:
                nonlocal waits
                if waits and size > _SMALL:
                    held.enter_context(self._lock)
                    waits = False

            yield grew


def count_parts(content: bytes) -> int:
    """Number of objects and lists of JSON; texts with brackets count as more."""
    return content.count(b"{") + content.count(b"[")


class RequestSender:
    """Sends requests as one account; safe to use from several threads.

    Args:
        account: Where, and as whom.
        environment: May name proxies.
        clock: Seconds.
        wait: Waits for some seconds, and returns whether nobody waits for an answer any more; tests pass one of their own.
    """

    def __init__(
        self,
        account: Account,
        environment: Mapping[str, str],
        *,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], bool] | None = None,
    ) -> None:
        try:
            self.transport = Transport(account, environment, largest=LARGEST, agent="dra-infra-plugin")
        except ClusterError as error:
            raise from_cluster_error(f"connect to {account.server}", error) from error
        self.contact = Contact(clock)
        self.large_answers = LargeAnswers()
        self._closed = threading.Event()
        self._clock = clock
        self._wait = wait or self._closed.wait

    def close(self) -> None:
        """Stop waiting for a busy server, in all threads."""
        self._closed.set()

    def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        *,
        request: str,
        take: Callable[[Answer], _Taken],
        content_type: str = "application/json",
        once: bool = False,
    ) -> _Taken:
        """Send a request, and again while the server is busy, for as long as `BUDGET`.

        Args:
            method: GET, or one that changes something.
            path: Below the server's address.
            query: What comes behind the `?`.
            body: What is sent.
            request: What is asked, as messages name it: `get ResourceClaim ml/trainer`.
            take: Returns what is needed of the answer; whatever else is in it is dropped before another thread gets a large one.
            content_type: Form of what is sent.
            once: Whether a busy server is left alone.

        Raises:
            ApiError: `api-unreachable`, `api-untrusted`, `api-unauthorized` or `api-no-credentials`: there is no answer.
        """
        content = json.dumps(body).encode() if body is not None else None
        until = self._clock() + BUDGET
        number = 0
        while True:
            with self.large_answers.turn() as grew:
                answer = self._ask(method, path, query or {}, content, content_type, request, grew, take)
            if 0 < answer.status < _REFUSED:
                if answer.failure is not None:
                    raise answer.failure
                taken: _Taken = answer.body
                return taken
            # What was written may be there though the answer says that the server failed: who wrote looks first.
            if method == "GET":
                again = answer.status in BUSY or answer.failure is not None
            else:
                again = answer.status == _TOO_MANY
            if again and not once:
                wanted = backoff(number, answer.retry_after)
                again = self._clock() + wanted <= until and not self._wait(wanted)
            if once or not again:
                if answer.failure is not None:
                    raise answer.failure
                return take(answer)
            number += 1

    def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        content: bytes | None,
        content_type: str,
        request: str,
        on_size: Callable[[int], None],
        take: Callable[[Answer], Any],
    ) -> Answer:
        """Send a request once.

        Returns:
            What *take* returned as the body, or an answer of 400 and more. A failure that is worth another try, and what *take*
            raised, is in the answer; any other is raised.
        """
        said = b""
        try:
            with self.transport.request(
                method,
                path,
                query,
                read_timeout=_READ_TIMEOUT,
                total_timeout=_TOTAL_TIMEOUT,
                body=content,
                content_type=content_type,
            ) as response:
                status = response.status
                pause = read_retry_after(response.headers.get("Retry-After"))
                said = self.transport.body(response, path, on_size=on_size)
                if count_parts(said) > MOST_PARTS:
                    why = f"more than {MOST_PARTS} objects and lists"
                    raise too_large(self.transport.account.server, path, why)
        except ClusterError as error:
            # The traceback has this frame.
            said = b""
            failure = from_cluster_error(request, error)
            self.contact.failed(failure.problems[0].message, ours=failure.may_be_ours)
            if method != "GET" or failure.status or failure.too_large:
                raise failure from error
            return Answer(0, None, failure=failure)
        if status == _TOO_MANY or status < _FAILS:
            self.contact.answered()
        else:
            # Or a proxy in front of it.
            self.contact.failed(f"the API server fails: {status}", ours=False)
        answer = Answer(status, *_read(said, status), retry_after=pause)
        if status >= _REFUSED:
            return answer
        try:
            return answer._replace(body=take(answer))
        except PluginError as error:
            # Without its traceback, whose frames have the whole answer for as long as the error is kept.
            return Answer(status, None, failure=error.with_traceback(None))


def _read(said: bytes, status: int) -> tuple[Any, str]:
    try:
        body = json.loads(said)
    except (ValueError, RecursionError):
        return said[:200].decode("utf-8", "replace"), ""
    if status < _REFUSED:
        return body, ""
    message = text(mapping(body).get("message"))[:_LONGEST_MESSAGE]
    return message or str(body)[:200], text(mapping(body).get("reason"))[:_LONGEST_MESSAGE]
