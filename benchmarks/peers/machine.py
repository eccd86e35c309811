# SPDX-License-Identifier: Apache-2.0
"""The machine as the table describes it, and which cores the peers get."""
import datetime
import os
import platform
import re


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def cpu_model():
    found = re.search(r"^model name\s*:\s*(.*)$", read("/proc/cpuinfo"), re.M)
    return found[1] if found else platform.machine()


def vector_sets():
    """Return the sets of vector instructions that matter here."""
    flags = set(read("/proc/cpuinfo").split())
    names = {"avx2": "AVX2", "avx512bw": "AVX-512", "avx512_vbmi2": "VBMI2"}
    return [name for flag, name in names.items() if flag in flags]


def memory_gib():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def system_name():
    found = re.search(r'^PRETTY_NAME="?([^"\n]*)', read("/etc/os-release"), re.M)
    return found[1] if found else platform.system()


def describe(n_cores):
    return {"cpu": cpu_model(), "vectors": vector_sets(), "cores": n_cores,
            "cores_there": os.cpu_count(), "memory_gib": round(memory_gib(), 1),
            "kernel": platform.release(), "system": system_name(),
            "python": platform.python_version(), "load": round(os.getloadavg()[0], 2),
            "date": datetime.date.today().isoformat()}


def pin(n_cores):
    """Keep this process and all that it starts on its first n cores; returns how many those are."""
    allowed = sorted(os.sched_getaffinity(0))
    chosen = allowed[:n_cores or len(allowed)]
    os.sched_setaffinity(0, chosen)
    return len(chosen)
