# SPDX-License-Identifier: Apache-2.0
"""torchrun: DistributedDataParallel on 1 to 4 processes, and a job that goes on after a machine is lost."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import unittest

import sets
import template
from data_fixture import needs
from engine import EPOCH, HERE, EngineCase, environment, run

needs("torch")
TORCHRUN = ["-m", "torch.distributed.run"]


class Epoch(EngineCase):
    def start(self, world, *words):
        run([template.python(*template.TRAINING), *TORCHRUN, "--standalone", f"--nproc-per-node={world}", EPOCH,
             sets.scalars(), self.out, *words])

    def check(self, world):
        self.start(world, "gloo")
        for rank, one in enumerate(self.check_epoch(world, "torch.distributed", "gloo")):
            self.assertEqual((one["ranks"]["local_rank"], one["ranks"]["local_world"]), (rank, world))

    def test_one_process(self):
        self.check(1)

    def test_two_processes(self):
        self.check(2)

    def test_three_processes(self):
        self.check(3)

    def test_four_processes(self):
        self.check(4)

    def test_without_a_group(self):
        self.start(2)
        self.check_epoch(2, "torchrun")


class Elastic(EngineCase):
    def agent(self, port, is_host):
        """Return a machine: an agent of torchrun with one process, in a group of its own."""
        log = open(os.path.join(self.out, f"agent-{int(is_host)}.log"), "w")
        self.addCleanup(log.close)
        configuration = f"is_host={str(is_host).lower()},keep_alive_interval=1,keep_alive_max_attempt=3,last_call_timeout=2"
        found = subprocess.Popen(
            [sys.executable, *TORCHRUN, "--nnodes=1:2", "--nproc-per-node=1", "--max-restarts=5", "--monitor-interval=0.3",
             "--rdzv-id=penstock", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}",
             f"--rdzv-conf={configuration}", "--local-addr=127.0.0.1", str(HERE / "elastic.py"), sets.scalars(), self.out],
            env=environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self.addCleanup(self.kill, found)
        return found

    def kill(self, agent):
        """Kill an agent and its processes at once, as a machine goes."""
        children = pathlib.Path(f"/proc/{agent.pid}/task/{agent.pid}/children")
        processes = [agent.pid, *map(int, children.read_text().split())] if agent.poll() is None else []
        for process in processes:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        agent.wait()

    def steps(self):
        try:
            return json.loads(pathlib.Path(self.out, "committed.json").read_text())["steps"]
        except FileNotFoundError:
            return []

    def logs(self):
        return "".join(path.read_text()[-3000:] for path in pathlib.Path(self.out).glob("*.log"))

    def test_a_lost_machine(self):
        start = time.monotonic()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        host, other = self.agent(port, True), self.agent(port, False)
        while sum(step["world"] == 2 for step in self.steps()) < 5:
            self.assertLess(time.monotonic() - start, 90, self.logs())
            self.assertIsNone(host.poll(), self.logs())
            time.sleep(0.05)
        self.kill(other)
        self.assertEqual(host.wait(timeout=150), 0, self.logs())
        steps = self.steps()
        worlds = [step["world"] for step in steps]
        self.assertEqual((worlds[-1], 2 in worlds), (1, True))
        self.assertEqual([len(step["ids"]) for step in steps], [20] * 100)
        self.assertEqual(sorted(sum((step["ids"] for step in steps), [])), list(range(2000)))
        self.assertLess(time.monotonic() - start, 180)


if __name__ == "__main__":
    unittest.main()
