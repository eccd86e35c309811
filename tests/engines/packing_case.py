# SPDX-License-Identifier: Apache-2.0
"""The parts that the tests of packing on engines share: the right data set, and a driver that is killed."""
import os
import pathlib
import signal
import subprocess
import sys
import time

import bags
import penstock
from data_fixture import Case

HERE = pathlib.Path(__file__).resolve().parent


def children(pid):
    """Processes that a process started, and theirs."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            number, parent = int(stat.parent.name), int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            found += [number, *children(number)]
    return found


class PackingCase(Case):
    def flag(self):
        """Return a file outside the folder that is looked at."""
        path = self.folder + ".flag"
        self.addCleanup(lambda: pathlib.Path(path).unlink(missing_ok=True))
        return path

    def old(self):
        """A data set that stands there."""
        with penstock.Writer(self.path(), {"x": "int64"}) as writer:
            writer.add(x=-1)

    def check_old(self):
        self.assertEqual(list(penstock.Dataset(self.path())), [{"x": -1}])

    def check(self, data, in_order=True):
        """All records, once, and no left-overs."""
        found = list(data)
        self.assertEqual(found if in_order else sorted(found, key=lambda r: r["x"]), [bags.record(i) for i in range(bags.N)])
        self.assertEqual(self.left(), ["data"])

    def kill_driver(self, engine):
        """Kill a driver, and all that it started, while a task writes."""
        flag = self.flag()
        driver = subprocess.Popen([sys.executable, str(HERE / "bags.py"), engine, self.path(), flag],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 120
        while not os.path.exists(flag):
            self.assertIsNone(driver.poll())
            self.assertLess(time.monotonic(), until)
            time.sleep(0.05)
        started = children(driver.pid)
        driver.kill()
        driver.wait()
        for pid in started:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.check_old()
        self.assertEqual(len([name for name in self.left() if name.startswith(".data.parts-")]), 1)
