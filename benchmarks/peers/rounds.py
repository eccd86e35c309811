# SPDX-License-Identifier: Apache-2.0
"""Prepare the rows, then measure them in turn, round after round, each in a process of its own."""
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys

import environments
import rows

HERE = pathlib.Path(__file__).resolve().parent
USAGE = 2            # penstock's status for an option it does not have
START_SECONDS = 300  # to import, compile and fill, at most
PREPARE_SECONDS = 3600


class Failure(Exception):
    """Why a row has no figure, in one line."""


def stop_group(process):
    """End what a peer left running: the group is its own session, so nothing else is in it."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def call(command, limit):
    """Run a peer; returns the last JSON object it printed."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        raise Failure(f"did not end within {limit:.0f} s") from None
    finally:
        stop_group(process)
    found = [line for line in out.splitlines() if line.startswith("{")]
    if process.returncode == USAGE and "penstock" in err:
        words = environments.last_line(err).removeprefix("penstock: ")
        raise Failure("not there yet: " + words.split(";")[0])
    if process.returncode or not found:
        raise Failure("failed: " + environments.last_line(err or out))
    return json.loads(found[-1])


class Bench:
    """One run: the sources, the settings, and what has been found so far."""

    def __init__(self, settings, files, records, tuned):
        self.settings, self.files, self.records = settings, files, records
        self.tuned = tuned  # row -> options that `run tune` found best
        self.prepared = {}  # folder -> what prepare said, or a Failure
        self.found = []     # one dict a row, as results.json has it

    def options(self, row):
        return {**row.options, **self.tuned.get(row.name, {})}

    def command(self, row, verb):
        s = self.settings
        is_records = row.table == "records"
        task = {"name": row.name,
                "options": {"record_size": rows.RECORD_SIZE, **self.options(row)},
                "folder": str(s.data / row.folder), "files": [] if is_records else self.files,
                "records": str(self.records) if is_records else None, "n_cores": s.cores,
                "seconds": s.seconds, "warm_seconds": s.warm,
                "batch_size": s.record_batch if is_records else s.image_batch,
                "binary": str(s.binary)}
        python = environments.python_of(s.dir, row.environment) if row.environment \
            else sys.executable
        task_file = s.data / f"{row.name}.json"  # a list of files may be longer than an argument
        task_file.write_text(json.dumps(task))
        return [str(python), str(HERE / f"peer_{row.script}.py"), verb, str(task_file)]

    def prepare(self, row):
        """Prepare the row's files, once for all rows that share them; return what the script answered."""
        if row.environment:
            reason = environments.why_missing(self.settings.dir, row.environment)
            if reason:
                raise Failure(reason)
        if row.folder not in self.prepared:
            try:
                self.prepared[row.folder] = call(self.command(row, "prepare"), PREPARE_SECONDS)
            except Failure as failure:
                self.prepared[row.folder] = failure
        if isinstance(self.prepared[row.folder], Failure):
            raise self.prepared[row.folder]
        return self.prepared[row.folder]

    def prepare_all(self, chosen):
        for row in chosen:
            entry = {"name": row.name, "options": self.options(row), "rates": [],
                     "why_not": None, "bytes": None, "versions": {}}
            try:
                entry.update(self.prepare(row))
                print(f"prepared  {row.name}", flush=True)
            except Failure as failure:
                entry["why_not"] = str(failure)
                print(f"left out  {row.name}: {failure}", flush=True)
            self.found.append(entry)

    def rate(self, row):
        """Return samples per second of one measurement."""
        limit = START_SECONDS + 20 * (self.settings.seconds + self.settings.warm)
        found = call(self.command(row, "measure"), limit)
        return found["samples"] / found["seconds"]

    def measure(self, row, entry):
        try:
            entry["rates"].append(self.rate(row))
            print(f"{entry['rates'][-1]:12.0f} {rows.TABLES[row.table].unit:9} {row.name}",
                  flush=True)
        except Failure as failure:
            entry["why_not"] = str(failure)
            print(f"   {row.name}: {failure}", flush=True)

    def round(self, chosen):
        """One measurement of every row that works, in the order of the table."""
        for row, entry in zip(chosen, self.found):
            if not entry["why_not"]:
                self.measure(row, entry)

    def tune(self, row):
        """Try the row's choices in turn, and keep the one with the best median."""
        rates = {choice: [] for choice in row.choices}
        for _ in range(self.settings.rounds):
            for choice in row.choices:
                self.tuned[row.name] = {"prefetch": choice}
                rates[choice].append(self.rate(row))
        best = max(row.choices, key=lambda choice: statistics.median(rates[choice]))
        self.tuned[row.name] = {"prefetch": best}
        tried = ", ".join(f"{choice}: {statistics.median(rates[choice]):.0f}"
                          for choice in row.choices)
        print(f"{row.name}: prefetch {best} ({tried})", flush=True)
