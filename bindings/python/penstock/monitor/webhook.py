# SPDX-License-Identifier: Apache-2.0
"""A receiver of alerts that posts them to a URL, in threads of its own."""
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

MAX_ERROR = 300  # characters of what a server says that are logged
# They are of the transfer, which gives the body its length and closes the connection; others would cut or hide the body.
_OWN_HEADERS = ("connection", "content-encoding", "content-length", "expect", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade")

log = logging.getLogger("penstock.monitor")


def _close_at_end(hook: Webhook) -> None:
    hook.close()


_running: ClosedAtEnd[Webhook] = ClosedAtEnd(_close_at_end)  # those whose thread waits for alerts


def _target(url: Any) -> SplitResult:
    """The URL, checked and split. No message has its path, query or password, which may be secret."""
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
        (name or "").encode("idna")  # as the request would: labels have 1 to 63 characters
    except ValueError:
        raise wrong from None
    if "@" in parts.netloc:
        raise SettingsError("url: value has a user before its host; must have none (give headers={'Authorization': 'Basic ...'})")
    if not name or port == 0:
        raise wrong
    return parts


def _checked(headers: Any) -> dict[str, str]:
    """The headers, checked. No message has a value, which may be secret."""
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
    """What makes requests. It follows no redirect: that would make a GET without a body of the POST, and would send its
    headers to another host."""
    import urllib.request

    class NoRedirect(urllib.request.HTTPRedirectHandler):
        def http_error_302(self, *_: Any) -> None:
            return None  # an error then, as any status that is not 2xx

        http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302  # type: ignore[assignment]
    return urllib.request.build_opener(NoRedirect)


def _moved(location: str) -> str:
    """What to do about a redirect. location: its header, of which only the host is printed."""
    try:
        name = urlsplit(location).hostname
    except ValueError:
        name = None
    return f": no redirect is followed; give Webhook the URL that it leads to{f', on {name}' if name else ''}"


def _is_ending(error: RuntimeError) -> bool:
    """Whether a thread was refused because the interpreter ends, as CPython 3.12 and later do; else the system has no more."""
    return "shutdown" in str(error)


class Webhook(Sealed):
    """POST each alert as JSON (Alert.to_dict() with "text") to a URL, from a thread of its own.

    A request that is not done within 2 s is given up and logged, also where the server answers byte by byte or its name is
    still looked up. An alert for which the system has no thread is dropped and logged. Any answer but 2xx is a failure and logged; no redirect is followed. At most 16 alerts wait; more are
    dropped and logged. Logs have the URL's host, never its path. headers: more of them, for example
    {"Authorization": "Bearer ..."}. SettingsError: the URL has no host, or a character that no URL or header has; a header is
    one that the request sets by itself, as Content-Length.
    """

    url: str
    TIMEOUT = 2.0
    MOST = 16
    MAX_GIVEN_UP = 4  # requests that were given up and have not ended; alerts are dropped meanwhile

    def __init__(self, url: str, headers: dict[str, str] | None = None) -> None:
        parts = _target(url)
        self._fix(url=url)
        self._headers = {"Content-Type": "application/json", **_checked(headers)}
        self._where = f"{parts.scheme}://{parts.netloc}"  # without path and query, which may have a secret
        self._path = parts._replace(scheme="", netloc="", fragment="").geturl().strip("/")
        self._waiting: queue.Queue[Alert | None] = queue.Queue(self.MOST)  # of the thread that runs now, as _stop
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()  # held while an alert is handed over or a request started, and while the thread is stopped
        self._given_up: list[threading.Thread] = []
        self._here: Alert | None = None  # what the thread posts itself

    def __call__(self, alert: Alert) -> None:
        """Hand over an alert; never waits for the network, except where the interpreter ends and starts no thread any more."""
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
        """Start the thread. Return why that cannot be done."""
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
            # A socket's time-out is of each piece of an answer; a thread of its own is of all of them together.
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
        """Post an alert in this thread where the interpreter ends. Before that, nothing would bound it, and it is dropped."""
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
        except Exception as error:  # an alert must not end with the one before
            errors.append(f"{type(error).__name__}: {error}")

    def _without_path(self, error: str) -> str:
        """The error; a server's or a proxy's may quote the path."""
        return error.replace(self._path, "...") if self._path else error

    def _warn(self, what: str, *values: Any) -> None:
        log.warning("%s", escaped(f"penstock: the webhook {self._where} {what % values}"))

    def close(self) -> None:
        """Wait up to 2 s for the alerts that are on their way; those left are dropped and logged. The next alert starts a new
        thread. The interpreter's end closes it, too."""
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
