# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium, driven by its DevTools protocol over two pipes: no package besides the browser, no port."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


class BrowserError(Exception):
    """The browser ended, did not answer, or refused."""


def find():
    """Return the path of Chromium or Chrome, or None."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    """One browser process with one page. Every request that leaves the file system fails."""

    def __init__(self, path=None, seconds=60):
        self.seconds, self._id, self._rest, self.events = seconds, 0, b"", []
        self._profile = tempfile.mkdtemp(prefix="penstock-browser-")
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        # The browser wants its ends as descriptors 3 and 4.
        line = ["sh", "-c", f'exec "$@" 3<&{to_read} 4>&{to_write}', "sh", path or find(), "--headless=new", "--no-sandbox",
                "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
                "--disable-background-networking",
                "--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe", f"--user-data-dir={self._profile}"]
        self._process = subprocess.Popen(line, pass_fds=(to_read, to_write), stdin=subprocess.DEVNULL,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self._session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)
        shutil.rmtree(self._profile, ignore_errors=True)

    def _message(self, end):
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], max(0, end - time.monotonic()))
            data = os.read(self._read, 1 << 16) if ready else b""
            if not data:
                raise BrowserError("the browser ended" if ready else "the browser did not answer")
            self._rest += data
        one, _, self._rest = self._rest.partition(b"\0")
        return json.loads(one)

    def call(self, method, **params):
        """Return the result of a method of the protocol. Events that come meanwhile are kept in `events`."""
        self._id += 1
        message = {"id": self._id, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data):]
        end = time.monotonic() + self.seconds
        while True:
            found = self._message(end)
            if found.get("id") == self._id:
                if "error" in found:
                    raise BrowserError(f"{method}: {found['error']}")
                return found["result"]
            self.events.append(found)

    def open(self, path, width, height=900, dark=False, javascript=True):
        """Load a file in a window of that size."""
        self.events.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Emulation.setScriptExecutionDisabled", value=not javascript)
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        end = time.monotonic() + self.seconds
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._message(end))

    def run(self, script):
        """Return the value of an expression of JavaScript."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise BrowserError(json.dumps(found["exceptionDetails"])[:2000])
        return found["result"].get("value")

    def complaints(self):
        """Return the errors and warnings that the page logged, and its exceptions, since open()."""
        self.run("1")  # events come before its answer
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(json.dumps(params["exceptionDetails"])[:500])
            elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
            elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                found.append(json.dumps(params["args"])[:500])
        return found

    def requests(self):
        """Return the addresses that the page asked for since open(), except its own file and data in itself."""
        urls = [event["params"]["request"]["url"] for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [url for url in urls if not url.startswith(("data:", "file:"))] + [
            url for url in urls if url.startswith("file:")][1:]

    def screenshot(self, path):
        """Write the whole page as a PNG file."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
