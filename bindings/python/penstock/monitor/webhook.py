# SPDX-License-Identifier: Apache-2.0
"""Webhook posts alerts to a URL, from threads of its own."""
from __future__ import annotations

import contextlib
import functools
import json
import logging
import queue
import re
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from ..closing import ClosedAtEnd
from ..errors import SettingsError
from ..escapes import escaped
from ..hints import kind_of
from ..sealed import Sealed

if TYPE_CHECKING:
    import urllib.request

    from .alerts import Alert

__all__ = ["Webhook"]

MAX_ERROR = 300  # characters of a server's message that are logged
# The transfer sets these: it gives the body its length, and closes the connection. Other values would cut or hide the
# body.
_OWN_HEADERS = ("connection", "content-encoding", "content-length", "expect", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade")

log = logging.getLogger("penstock.monitor")


def _close_at_end(hook: Webhook) -> None:
    hook.close()


_running: ClosedAtEnd[Webhook] = ClosedAtEnd(_close_at_end)  # those whose thread waits for alerts


def _target(url: Any) -> SplitResult:
    """Check a URL and split it. Messages leave out its path, query and password, which may be secret."""
    if not isinstance(url, str):
        raise SettingsError(f"url: value is {kind_of(url)}; must be a str that begins with http:// or https://")
    odd = re.search(r"[^!-~]", url)
    if odd is not None:
        raise SettingsError(f"url: value has {odd[0]!r} as character {odd.start() + 1}; must be ASCII without spaces and "
                            "control characters (strip it, or write it as %20 is written)")
    if not url.lower().startswith(("http://", "https://")):
        scheme = re.match("[A-Za-z][A-Za-z0-9+.-]*:", url)
        found = f"begins with {scheme[0]!r}" if scheme else "has no scheme"
        raise SettingsError(f"url: value {found}; must begin with http:// or https://")
    wrong = SettingsError("url: value has no valid host and port; must be as https://host:8080/path or http://[::1]:8080/path")
    try:
        parts = urlsplit(url)
        name, port = parts.hostname, parts.port
        (name or "").encode("idna")  # as the request does: labels have 1 to 63 characters
    except ValueError:
        raise wrong from None
    if "@" in parts.netloc:
        raise SettingsError("url: value has a user before its host; must have none (give headers={'Authorization': 'Basic ...'})")
    if not name or port == 0:
        raise wrong
    return parts


def _checked(headers: Any) -> dict[str, str]:
    """Check the headers and return them. Messages leave out their values, which may be secret."""
    if headers is None:
        return {}
    if not isinstance(headers, Mapping):
        raise TypeError(f"headers: value is {kind_of(headers)}; must be a dict of names and values")
    for name, value in headers.items():
        if not isinstance(name, str) or not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
            raise SettingsError(f"headers: name is {name!r}; must be the name of a header, as 'Authorization'")
        if name.lower() in _OWN_HEADERS:
            raise SettingsError(f"headers: name is {name!r}; must be no header that the request sets by itself (leave it out)")
        if not isinstance(value, str):
            raise TypeError(f"headers: value of {name!r} is {kind_of(value)}; must be a str")
        if not re.fullmatch(r"[\t -~\xa0-\xff]*", value):
            raise SettingsError(f"headers: value of {name!r} has a control character, or one that is not Latin-1; must have "
                                "none (strip() removes a line feed at its end)")
    return dict(headers)


@functools.lru_cache(None)
def _opener() -> urllib.request.OpenerDirector:
    """Return the maker of requests. It follows no redirect: that would turn the POST into a GET without a body, and
    would send its headers to another host."""
    import urllib.request

    class NoRedirect(urllib.request.HTTPRedirectHandler):
        def http_error_302(self, *_: Any) -> None:
            return None  # the status then raises an error, as any other than 2xx does

        http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302  # type: ignore[assignment]
    return urllib.request.build_opener(NoRedirect)


def _moved(location: str) -> str:
    """Return the advice on a redirect. location: its header, of which only the host is printed."""
    try:
        name = urlsplit(location).hostname
    except ValueError:
        name = None
    return f": no redirect is followed; give Webhook the URL that it leads to{f', on {name}' if name else ''}"


def _is_ending(error: RuntimeError) -> bool:
    """Return whether a thread was refused because the interpreter ends, as CPython 3.12 and later do. Otherwise the
    system has no more threads."""
    return "shutdown" in str(error)


class Webhook(Sealed):
    """POST each alert as JSON to a URL, from a thread of its own. The JSON is Alert.to_dict(), with a sentence in
    "text".

    A request that takes longer than 2 s is given up and logged, also if the server answers byte by byte, or its name is
    still being looked up. An alert for which the system has no thread is dropped and logged. Any answer other than 2xx
    is a failure, and is logged; no redirect is followed. At most 16 alerts wait; more are dropped and logged. Logs have
    the URL's host, never its path.

    url: begins with http:// or https://.
    headers: additional headers, for example {"Authorization": "Bearer ..."}.

    Raises TypeError, and SettingsError if the URL has no host; if a character is not allowed in a URL or a header; or
    if the request sets a header by itself, such as Content-Length.
    """

    url: str
    TIMEOUT = 2.0
    MOST = 16
    MAX_GIVEN_UP = 4  # most requests that were given up and still run; above that, alerts are dropped

    def __init__(self, url: str, headers: dict[str, str] | None = None) -> None:
        parts = _target(url)
        self._fix(url=url)
        self._headers = {"Content-Type": "application/json", **_checked(headers)}
        self._where = f"{parts.scheme}://{parts.netloc}"  # without path and query, which may be secret
        self._path = parts._replace(scheme="", netloc="", fragment="").geturl().strip("/")
        self._waiting: queue.Queue[Alert | None] = queue.Queue(self.MOST)  # queue of the running thread, replaced together with _stop
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()  # held while an alert is handed over, a request started, or the thread stopped
        self._given_up: list[threading.Thread] = []
        self._here: Alert | None = None  # the alert that the thread itself is posting

    def __call__(self, alert: Alert) -> None:
        """Hand over an alert. It does not wait for the network, unless the interpreter ends and starts no more threads."""
        refusal = None
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                refusal = self._start()
            is_full = self._waiting.full()
            if refusal is None and not is_full:
                self._waiting.put_nowait(alert)
        if refusal is not None:
            self._without_thread(alert, refusal)
        elif is_full:
            self._drop(alert, "takes no alerts")

    def _start(self) -> RuntimeError | None:
        """Start the thread. Return the error if it cannot be started, else None."""
        self._waiting, self._stop = queue.Queue(self.MOST), threading.Event()
        self._thread = threading.Thread(target=self._run, args=(self._waiting, self._stop), name="penstock-webhook", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            self._thread = None
            return error
        _running.add(self)
        return None

    def _run(self, waiting: queue.Queue[Alert | None], stop: threading.Event) -> None:
        while True:
            alert = waiting.get()
            if alert is None:
                return
            self._given_up = [thread for thread in self._given_up if thread.is_alive()]
            if len(self._given_up) >= self.MAX_GIVEN_UP:
                self._drop(alert, "hangs")
                continue
            # A socket's time-out is that of each piece of an answer. The wait for a thread covers the whole request.
            errors: list[str] = []
            request = threading.Thread(target=self._post, args=(alert, errors), name="penstock-request", daemon=True)
            refusal = None
            with self._lock:
                is_closed = stop.is_set()
                if not is_closed:
                    try:
                        request.start()
                    except RuntimeError as error:
                        refusal = error
            if is_closed:
                self._drop(alert, "was closed")
                continue
            if refusal is not None:
                self._here = alert
                self._without_thread(alert, refusal)
                self._here = None
                continue
            request.join(self.TIMEOUT)
            if request.is_alive():
                self._given_up.append(request)
                self._warn("failed: no answer within %g s", self.TIMEOUT)
            self._warn_of(errors)

    def _without_thread(self, alert: Alert, refusal: RuntimeError) -> None:
        """Post an alert in this thread if the interpreter ends; otherwise drop it, because here nothing would limit the
        time."""
        if not _is_ending(refusal):
            self._drop(alert, f"got no thread ({refusal})")
            return
        errors: list[str] = []
        self._post(alert, errors)
        self._warn_of(errors)

    def _warn_of(self, errors: list[str]) -> None:
        for error in errors:
            self._warn("failed: %s", self._without_path(error)[:MAX_ERROR])

    def _post(self, alert: Alert, errors: list[str]) -> None:
        import urllib.error
        import urllib.request
        try:
            request = urllib.request.Request(self.url, json.dumps(alert.to_dict()).encode(), self._headers, method="POST")
            with _opener().open(request, timeout=self.TIMEOUT):
                pass
        except urllib.error.HTTPError as error:
            location = error.headers.get("Location")
            moved = _moved(location) if location and 300 <= error.code < 400 and error.code != 304 else ""  # 304 leads nowhere
            errors.append(f"HTTP {error.code} {error.reason}{moved}")
            error.close()
        except Exception as error:  # the next alert must still be posted
            errors.append(f"{type(error).__name__}: {error}")

    def _without_path(self, error: str) -> str:
        """Return the error without the URL's path, which a server or a proxy may quote."""
        return error.replace(self._path, "...") if self._path else error

    def _warn(self, what: str, *values: Any) -> None:
        log.warning("%s", escaped(f"penstock: the webhook {self._where} {what % values}"))

    def close(self) -> None:
        """Wait up to 2 s for the alerts in the queue; the others are dropped and logged. The next alert starts a new
        thread. It is also called at exit."""
        with self._lock:
            thread, waiting, stop = self._thread, self._waiting, self._stop
            self._thread = None
            _running.discard(self)
        if thread is None or not thread.is_alive():
            return
        end = time.monotonic() + self.TIMEOUT
        with contextlib.suppress(queue.Full):
            waiting.put(None, timeout=self.TIMEOUT)
            thread.join(max(0.0, end - time.monotonic()))
        here = self._here
        if here is not None and thread.is_alive():
            self._drop(here, "gave no answer in time")
        # CPython 3.11 crashes if a thread begins while the interpreter ends.
        with self._lock:
            stop.set()
        with contextlib.suppress(queue.Empty):
            while True:
                alert = waiting.get_nowait()
                if alert is not None:
                    self._drop(alert, "was closed")
        with contextlib.suppress(queue.Full):
            waiting.put_nowait(None)

    def _drop(self, alert: Alert, why: str) -> None:
        self._warn("%s; dropped: %s", why, alert.text)

    def __repr__(self) -> str:
        return f"Webhook({self._where!r})"
