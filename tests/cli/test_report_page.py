#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`bench --report` and `penstock page`: one HTML page, whatever names, figures and disks are like.
usage: test_report_page.py PENSTOCK MAKE_IMAGES [WORD]; TAP, as test_command.py."""
import base64
import hashlib
import html.parser
import json
import os
import re
import subprocess
import sys

from test_command import PENSTOCK, Skip, expect, main, run, run_raw

TESTS = []
HOSTILE = "</script><script>alert(1)</script><b>\"q\" 'a' &amp; \n\x1b\u2028 \u00e4 @TITLE@"
SHORT = "--size", "16", "--batch-size", "4", "--seconds", "0.3", "--no-ceilings"


def test(function):
    def checked(world):
        done = subprocess.run([PENSTOCK, "page", os.devnull], stderr=subprocess.PIPE, text=True)
        if "no Chart.js" in done.stderr:
            raise Skip("missing: libjs-chart.js when this was built")
        function(world)
    checked.__name__ = function.__name__
    TESTS.append(checked)
    return checked


class Page(html.parser.HTMLParser):
    """The page as a browser reads it: its text, its tags, its scripts, and its tables by the id of their section."""

    def __init__(self, path):
        super().__init__()
        with open(path, "rb") as file:
            self.bytes = file.read()
        self.tags, self.scripts, self.tables, self.texts, self.title, self.heading = [], [], {}, {}, "", ""
        self._inside, self._section, self._cell = "", "", None
        self.feed(self.bytes.decode())  # it is UTF-8
        self.document = json.loads(next(text for kind, text in self.scripts if kind == "application/json"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tags.append(tag)
        if tag == "script":
            self.scripts.append((given.get("type", ""), ""))
        elif tag == "section":
            self._section = given["id"]
        elif tag == "tr":
            self.tables.setdefault(self._section, []).append([])
        elif tag in ("td", "th"):
            self.tables[self._section][-1].append("")
        elif tag == "meta" and given.get("http-equiv"):
            self.policy = given["content"]
        self._inside = tag

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts[-1] = self.scripts[-1][0], self.scripts[-1][1] + data
        elif self._inside in ("td", "th"):
            self.tables[self._section][-1][-1] += data
        elif self._inside == "title":
            self.title += data
        elif self._inside == "h1":
            self.heading += data
        self.texts[self._section] = self.texts.get(self._section, "") + data

    def rows(self, section):
        """Return the rows below the head, by their first cell."""
        return {row[0]: row[1:] for row in self.tables[section]}


def line(i=0, **more):
    """Return a reading as JSONLines writes it."""
    reading = {"time": 1.7e9 + 5 * (i + 1), "seconds": 5.0, "name": "train", "node": "n1", "rank": 0, "world": 1, "n_samples": 5000,
               "n_batches": 50, "n_replacements": 0, "samples_per_s": 1000.0, "read_bytes_per_s": 2e6, "verdict": "decode",
               "waiting": 0.25, "cpu_cores": 1.5, "rss": 3 << 20, "gpu": None}
    return json.dumps({**reading, **more}) + "\n"


def drawn(world, text, *, said="", status=0):
    """Return the page of these readings."""
    path = world.fresh("drawn.html")
    _, err = run_raw("page", "-", "-o", path, input=text if isinstance(text, bytes) else text.encode(), status=status)
    expect(err, said)
    return Page(path) if status == 0 else None


def is_sound(page):
    """It is small, asks for nothing, and has only its own scripts, which its policy permits by their hashes."""
    assert len(page.bytes) < 1e6, len(page.bytes)
    expect([kind for kind, _ in page.scripts], ["application/json", "", ""])
    for _, text in page.scripts[1:]:
        assert "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'" in page.policy
    assert page.policy.startswith("default-src 'none';"), page.policy
    assert not {"iframe", "img", "b", "base", "object", "embed"} & set(page.tags), set(page.tags)
    expect(page.tags.count("link"), 1)
    assert b"Permission is hereby granted" in page.bytes and b"Chart.js Contributors" in page.bytes
    expect((page.document["schema"], page.document["version"]), ("penstock report", 1))


@test
def bench_draws_what_it_prints(world):
    path = world.fresh("bench.html")
    told = json.loads(run("bench", world.data, *SHORT, "--report", path, "--json")[0])
    page = Page(path)
    is_sound(page)
    found = page.document
    expect((found["producer"], found["name"]), ("bench", world.data))
    told["rss_peak_bytes"] = found["run"]["rss_peak_bytes"]  # the page has figures of 7 digits
    for key in ("samples", "batches", "bytes_read", "stages", "memory", "reader", "bottleneck", "advice", "threads"):
        expect(found["run"][key], told[key], key)
    series, = found["series"]
    assert all(len(values) == len(series["begin"]) for key, values in series.items() if key != "label"), series
    samples = sum(rate * seconds for rate, seconds in zip(series["samples_per_second"], series["seconds"]))
    assert abs(samples / told["samples"] - 1) < 1e-4 and len(series["begin"]) >= 2, (samples, told)
    expect(sum(bucket["n"] for bucket in found["wait_buckets"]), told["batches"])
    expect(found["times"]["wait"]["n"], told["batches"])
    expect((found["settings"]["batch_size"], found["settings"]["threads"]), (4, told["threads"]))
    assert found["machine"]["cores"] >= 1 and found["machine"]["memory_bytes"] > 1 << 20


@test
def a_page_is_complete_without_its_script(world):
    path = world.fresh("tables.html")
    out, _ = run("bench", world.data, "--size", 16, "--batch-size", 4, "--seconds", 0.4, "--report", path)
    page = Page(path)
    found = page.document["run"]
    expect(len(page.rows("over-time")), 1 + len(page.document["series"][0]["begin"]))
    expect(sorted(page.rows("stages")), ["consumer", "reader", "stage", "workers"])
    expect(page.rows("stages")["workers"][0], str(found["threads"]))
    assert page.rows("waits")["wait for a batch"][0] == "{:,}".format(found["batches"]), page.rows("waits")
    cached = ", from the page cache" if found["ceilings"]["storage_from_page_cache"] else ""
    storage = page.rows("ceilings")["storage, raw reads of records" + cached]
    assert storage[0] in out and storage[1] in out, (storage, out)
    for one in page.tables["forecast"][2:]:
        assert one[2].startswith("prediction") and one[3], one
    expect(page.tables["forecast"][1][2], "measured")
    expect(page.rows("settings")["batch size"], ["4"])
    assert found["advice"] in page.texts[""], page.texts[""]


@test
def a_hostile_name_is_text(world):
    # A path cannot have a slash in a name, but "</script>" can lie across two.
    folder = os.fsencode(world.path("a<"))
    os.makedirs(folder, exist_ok=True)
    data = os.path.join(folder, b"script><script>alert(1)\n\"'&lt;\xff")
    if not os.path.lexists(data):
        os.symlink(world.data, data)
    path = world.fresh("hostile.html")
    done = subprocess.run([PENSTOCK, "bench", data, *SHORT, "--report", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    expect((done.returncode, done.stderr), (0, b""))
    page = Page(path)
    is_sound(page)
    assert page.document["name"].endswith("/a</script><script>alert(1)\n\"'&lt;?"), page.document["name"]
    assert "</script><script>alert(1)\\x0a\"'&lt;?" in page.title, page.title


@test
def hostile_readings_are_text(world):
    verdict = "</td><img src=x onerror=alert(1)>"
    page = drawn(world, line(name=HOSTILE, node=HOSTILE, verdict=verdict) + line(1, name=HOSTILE, rank=1))
    is_sound(page)
    expect(page.document["name"], HOSTILE)
    expect(page.heading, HOSTILE.replace("\n", "\\x0a").replace("\x1b", "\\x1b"))
    expect([one["label"] for one in page.document["series"]], ["rank 0", "rank 1"])
    header = {"schema": "penstock report", "version": 1, "name": HOSTILE, "settings": {HOSTILE: HOSTILE, "odd": [1], "none": None},
              "run": {"advice": HOSTILE, "bottleneck": HOSTILE, "stages": HOSTILE, "ceilings": [], "ratios": 7,
                      "forecast": {"measured": "x", "cases": [{"what": HOSTILE, "change": HOSTILE}, 3]}},
              "times": {"wait": {"n": -1, "p50_ns": 1e300}}, "machine": [1, 2], "wait_buckets": {"a": 1}}
    page = drawn(world, json.dumps(header) + "\n" + line(verdict=verdict))
    is_sound(page)
    expect(page.document["settings"][HOSTILE], HOSTILE)


@test
def what_python_writes_and_json_lacks_is_read(world):
    # Surrogates are bytes of file names that are not UTF-8, and NaN a figure that there is none of.
    text = line(name="tr\udcff\ud800ain\U0001f600", waiting=float("nan"), cpu_cores=float("-inf"), samples_per_s=float("inf"))
    page = drawn(world, text + line(1, name="tr??ain\U0001f600", rss=None, read_bytes_per_s="NaN", gpu={"utilisation": 0.5}))
    is_sound(page)
    series, = page.document["series"]
    expect(page.document["name"], "tr??ain\U0001f600")
    expect((series["samples_per_second"], series["waiting"], series["gpu_utilisation"]), ([None, 1000], [None, 0.25], [None, 0.5]))
    expect((series["read_bytes_per_second"], series["rss_bytes"]), ([2e6, None], [3 << 20, None]))
    expect(page.tables["over-time"][1][2:], ["\u2013", "2.00 MB/s", "\u2013", "\u2013", "3.15 MB", "\u2013"])
    text = line(name="caf\u00e9 BYTES").encode().replace(b"BYTES", b"\xff\xc3\xa9\xed\xa0\x80")
    expect(drawn(world, text).document["name"], "caf\u00e9 ?\u00e9???")


@test
def absent_figures_are_never_zero(world):
    page = drawn(world, json.dumps({"time": 100.0, "seconds": 2.0}) + "\n")
    is_sound(page)
    for section in ("stages", "waits", "machine", "settings", "memory"):
        assert "Not recorded" in page.texts[section], page.texts[section]
    assert "Not measured" in page.texts["ceilings"] and "No prediction" in page.texts["forecast"]
    expect(page.tables["over-time"][1], ["0.00 s", "2 s"] + 6 * ["\u2013"])
    expect([key for key in page.document["series"][0]], ["label", "begin", "seconds"])
    assert page.texts[""].count("\u2013") == 5, page.texts[""]  # all tiles but the time


@test
def long_runs_and_many_ranks_stay_small(world):
    text = "".join(line(i, rank=rank, samples_per_s=1000.0 + rank) for i in range(1500) for rank in (*range(16), 16, 80, 81, 200))
    page = drawn(world, text)
    is_sound(page)
    series = page.document["series"]
    expect((len(series), page.document["n_not_drawn"]), (16, 4))
    assert 800 < sum(len(one["begin"]) for one in series) <= 1920, [len(one["begin"]) for one in series]
    for one in series:
        assert abs(sum(one["seconds"]) - 7500) < 1e-3 and one["samples_per_second"][0] == 1000 + series.index(one), one
    page = drawn(world, "".join(line(i, samples_per_s=float(i)) for i in range(241)))
    series, = page.document["series"]
    expect((len(series["begin"]), series["samples_per_second"][:2], series["samples_per_second"][-1]), (121, [0.5, 2.5], 240))
    expect(page.document["run"]["samples"], 241 * 5000)


@test
def lines_that_are_no_reading_are_left_out_and_counted(world):
    odd = "penstock: standard input: left out 4 lines that are no reading; the first is line 2\n"
    text = line() + "{\"time\": 1\n" + "[]\n\n" + json.dumps({"schema": "other"}) + "\n" + '{"a": "' + "x" * 300000 + '"}\n' + line(1)
    expect(len(drawn(world, text, said=odd).document["series"][0]["begin"]), 2)
    for text in ("", "\n", "no json\n", "null\n"):
        drawn(world, text, status=2, said="penstock: standard input has no reading of a Monitor; give a file that "
              "penstock.monitor.JSONLines wrote\n")
    newer = json.dumps({"schema": "penstock report", "version": 2}) + "\n"
    drawn(world, line() + newer, status=2, said="penstock: standard input: line 2 is a document of version 2; must be 1 (use "
          "command and package of one version)\n")
    _, err = run("page", world.path("nothing"), status=2)
    assert "cannot read" in err and "No such file" in err, err
    _, err = run("page", world.root, status=(1, 2))
    assert "cannot read" in err and "directory" in err, err


@test
def a_disk_that_takes_no_page_does_not_take_the_result(world):
    folder = world.fresh("missing")
    for path, why in (("/dev/full", "No space left on device"), (folder + "/x.html", "No such file"), (world.root, "it is a folder"),
                      ("/proc/x.html", "/proc/")):
        out, err = run("bench", world.data, *SHORT, "--report", path, status=(1, 2))
        assert "samples/s" in out and "bottleneck" in out, out
        assert "cannot write " + path in err and why in err and err.count("\n") == 1, err
        run_raw("page", "-", "-o", path, input=line().encode(), status=(1, 2))
    out, _ = run("bench", world.data, *SHORT, "--report", "/dev/full", "--json", status=1)
    assert json.loads(out)["samples"] > 0
    _, err = run("bench", world.data, "--report", "-", status=2)
    assert "--report: value is '-'; must be a file" in err, err


@test
def an_older_page_stays_until_the_new_one_is_whole(world):
    path = world.path("old.html")
    with open(path, "w") as file:
        file.write("older")
    run_raw("page", "-", "-o", path, input=b"no reading\n", status=2)
    with open(path) as file:
        expect(file.read(), "older")
    out, _ = run_raw("page", "-", "-o", "-", input=line().encode())
    assert out.startswith(b"<!doctype html>") and out.endswith(b"</html>\n"), out[:80]
    expect(len(re.findall(b"<title>", out)), 1)


if __name__ == "__main__":
    sys.exit(main(TESTS))
