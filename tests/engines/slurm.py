# SPDX-License-Identifier: Apache-2.0
"""A SLURM of one machine for tests: munged, slurmctld and slurmd of its own, in a folder, on ports that are free."""
import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import time

TOOLS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "sinfo")
CONFIGURATION = """
ClusterName=penstock
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={controller}
SlurmdPort={node}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/{task}
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
SchedulerParameters=sched_min_interval=100000,batch_sched_delay=0
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} State=UNKNOWN
PartitionName=test Nodes={host} Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
"""


def _free_ports(n):
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(socket.socket()) for _ in range(n)]
        for one in found:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in found]


def missing():
    """Return why SLURM cannot run here, or ""."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    lacking = [tool for tool in TOOLS if not shutil.which(tool, path=path)]
    if lacking:
        return f"{', '.join(lacking)} (apt-get install slurmctld slurmd slurm-client munge)"
    return "" if os.geteuid() == 0 else "root, as which slurmd starts tasks"


class Slurm:
    """Starts it, and stops it at the end of `with`. Its environment is `environment`."""

    def __init__(self, folder, environment=os.environ, n_cpus=8, task="none"):
        self.folder = pathlib.Path(folder)
        self.host = socket.gethostname().split(".")[0]
        self.environment = {**environment, "SLURM_CONF": str(self.folder / "slurm.conf"),
                            "PATH": environment["PATH"] + ":/usr/sbin:/sbin"}
        controller, node = _free_ports(2)
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(
            host=self.host, controller=controller, node=node, folder=self.folder, task=task, cores=n_cpus))
        self.daemons = []

    def _start(self, *command):
        log = open(self.folder / (os.path.basename(command[0]) + ".out"), "w")
        self.daemons.append(subprocess.Popen(command, env=self.environment, stdout=log, stderr=log,
                                             stdin=subprocess.DEVNULL, start_new_session=True))

    def __enter__(self):
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        os.chmod(self.folder, 0o755)
        self._start("munged", "--foreground", "--force", "--key-file", str(key), "--socket", f"{self.folder}/munge.socket",
                    "--pid-file", f"{self.folder}/munge.pid", "--log-file", f"{self.folder}/munge.log",
                    "--seed-file", f"{self.folder}/munge.seed", "--num-threads", "2")
        self._wait(lambda: (self.folder / "munge.socket").exists(), "munged")
        self._start("slurmctld", "-D", "-f", str(self.folder / "slurm.conf"))
        self._start("slurmd", "-D", "-f", str(self.folder / "slurm.conf"), "-N", self.host)
        self._wait(lambda: "idle" in self._sinfo(), "slurmd")
        return self

    def _sinfo(self):
        return subprocess.run(["sinfo", "-h", "-o", "%T"], env=self.environment, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL).stdout

    def _wait(self, ready, name):
        end = time.monotonic() + 60
        while not ready():
            if time.monotonic() > end:
                self.__exit__()
                logs = "".join(f"{path.name}: {path.read_text()[-1500:]}\n" for path in sorted(self.folder.glob("*.[lo]*")))
                raise AssertionError(f"{name} did not start within 60 s\n{logs}")
            time.sleep(0.1)

    def run(self, *command, timeout=200, **keywords):
        """Run a command in its environment; returns what it printed. Raises AssertionError if it failed."""
        environment = {**self.environment, **keywords.pop("env", {})}
        done = subprocess.run(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, timeout=timeout, **keywords)
        assert done.returncode == 0, f"{command}: status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    def __exit__(self, *_exception):
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
