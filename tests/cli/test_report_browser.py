#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of `bench --report` and `penstock page` in headless Chromium: charts are drawn, nothing complains, nothing is
fetched, nothing is cut off. usage: test_report_browser.py PENSTOCK MAKE_IMAGES [WORD]; TAP, as test_command.py.

With PENSTOCK_SCREENSHOTS = a folder, pictures of the pages are left there, to be looked at.
"""
import os
import sys
import time

import browser
from test_command import Skip, expect, main, run, run_raw
from test_report_page import HOSTILE, line

TESTS = []
WIDTHS = (1280, 360)  # widths of a screen and of a phone, in pixels
# The colours that a canvas has, except those of its background: blank has none.
COLOURS = """[...document.querySelectorAll("canvas")].map(canvas => {
    const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data, found = new Set();
    for (let i = 0; i < data.length; i += 4)
        if (data[i + 3])
            found.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]);
    return [canvas.id, canvas.clientWidth, canvas.clientHeight, found.size];
})"""
# The lightness of the page and of its text, 0 to 255.
LIGHT = """["backgroundColor", "color"].map(what => {
    const parts = getComputedStyle(document.body)[what].match(/\\d+/g).map(Number);
    return (parts[0] + parts[1] + parts[2]) / 3;
})"""


def test(function):
    TESTS.append(function)
    return function


def opened():
    if not browser.find():
        raise Skip("missing: chromium")
    return browser.Browser()


def looked_at(page, path, name, wanted):
    """Load the page in each size and colour, and check what holds for all pages."""
    for width in WIDTHS:
        for dark in (False, True):
            page.open(path, width, dark=dark)
            which = (name, width, "dark" if dark else "light")
            expect(page.complaints(), [], which)
            expect(page.requests(), [], which)
            expect(page.run("document.documentElement.scrollWidth"), width, which)
            found = page.run(COLOURS)
            expect([one[0] for one in found], wanted, which)
            for canvas, wide, high, colours in found:
                assert 200 < wide <= width and high > 100 and colours > 10, (which, canvas, wide, high, colours)
            back, text = page.run(LIGHT)
            assert (back < 60 and text > 200) if dark else (back > 200 and text < 60), (which, back, text)
            if os.environ.get("PENSTOCK_SCREENSHOTS"):
                page.screenshot(os.path.join(os.environ["PENSTOCK_SCREENSHOTS"], "%s-%d-%s.png" % which))


@test
def the_page_of_bench_is_drawn(world):
    path = world.fresh("bench.html")
    run("bench", world.data, "--size", 16, "--batch-size", 4, "--seconds", 0.5, "--report", path)
    with opened() as page:
        looked_at(page, path, "bench", ["chart-throughput", "chart-waiting", "chart-stages", "chart-waits", "chart-ceilings",
                                        "chart-forecast"])


@test
def hostile_readings_are_drawn_and_run_nothing(world):
    path = world.fresh("hostile.html")
    text = "".join(line(i, name=HOSTILE, node=HOSTILE, rank=rank, waiting=float("nan") if i % 3 == 0 else 0.1,
                        gpu={"utilisation": 0.8} if rank == 1 else None)
                   for i in range(40) for rank in range(3))
    run_raw("page", "-", "-o", path, input=text.encode())
    with opened() as page:
        looked_at(page, path, "readings", ["chart-throughput", "chart-waiting", "chart-gpu"])
        expect(page.run("document.querySelectorAll('script').length"), 3)
        expect(page.run("document.querySelector('h1').textContent"), HOSTILE.replace("\n", "\\x0a").replace("\x1b", "\\x1b"))
        # The policy stops what a mistake in the page would let in.
        page.run("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.bad = 1\">')")
        page.run("{const one = document.createElement('script'); one.textContent = 'window.bad = 2'; document.body.append(one)}")
        expect(page.run("typeof window.bad"), "undefined")


@test
def a_change_of_the_scheme_draws_again(world):
    path = world.fresh("scheme.html")
    run_raw("page", "-", "-o", path, input=(line() + line(1)).encode())
    with opened() as page:
        page.open(path, 1280)
        before = page.run("document.querySelector('canvas').toDataURL()")
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        end = time.monotonic() + 30  # the page hears of it a moment later
        while page.run("document.querySelector('canvas').toDataURL()") == before:
            assert time.monotonic() < end, "the charts are as they were"
            time.sleep(0.05)
        expect(page.complaints(), [])


@test
def without_javascript_there_are_tables_and_no_empty_charts(world):
    path = world.fresh("plain.html")
    run("bench", world.data, "--size", 16, "--batch-size", 4, "--seconds", 0.4, "--no-ceilings", "--report", path)
    with opened() as page:
        page.open(path, 360, javascript=False)
        expect(page.complaints(), [])
        shown = page.call("Runtime.evaluate", returnByValue=True,
                          expression="[...document.querySelectorAll('figure')].map(one => one.clientHeight)")["result"].get("value")
        if shown is not None:  # some versions run nothing at all then
            expect(set(shown), {0})
        if os.environ.get("PENSTOCK_SCREENSHOTS"):
            page.screenshot(os.path.join(os.environ["PENSTOCK_SCREENSHOTS"], "without-javascript.png"))


if __name__ == "__main__":
    sys.exit(main(TESTS))
