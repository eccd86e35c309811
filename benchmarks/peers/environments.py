# SPDX-License-Identifier: Apache-2.0
"""The virtual environments of the peers: one for each group that can share one."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

STAMP = "installed.json"  # lists what was asked for; written when all of it is there
FAILED = "failed.txt"     # one line: why it is not

# steps: pip's arguments, one call after another; debian: packages that those need.
ENVIRONMENTS = {
    "torch": {"steps": [["torch", "torchvision", "numpy", "pillow", "webdataset", "litdata",
                         "mosaicml-streaming"]]},
    "dali": {"steps": [["nvidia-dali-cuda130", "numpy"]]},
    "tf": {"steps": [["tensorflow-cpu", "numpy"]]},
    "spdl": {"steps": [["spdl", "spdl-io", "numpy"]], "debian": ["ffmpeg"]},
    "simplejpeg": {"steps": [["simplejpeg", "numpy", "pillow"]]},
    "array_record": {"steps": [["array-record", "grain", "numpy"]]},
    # FFCV's last release is of 2023. Its metadata asks for more than the loader imports, and for
    # an OpenCV that wants NumPy 2.
    "ffcv": {"steps": [["numpy<2", "setuptools==65.5.1", "wheel", "torch", "numba",
                        "opencv-python-headless<4.12", "tqdm", "pillow"],
                       ["--no-deps", "--no-build-isolation", "ffcv"]],
             "debian": ["g++", "pkg-config", "libopencv-dev", "libturbojpeg0-dev"]},
}


def folder_of(top, name):
    return pathlib.Path(top) / "venvs" / name


def python_of(top, name):
    return folder_of(top, name) / "bin/python"


def why_missing(top, name):
    """Return why an environment cannot be used, in one line, or None."""
    folder = folder_of(top, name)
    if (folder / STAMP).exists():
        return None
    failed = folder / FAILED
    return failed.read_text().strip() if failed.exists() else "not installed"


def last_line(text):
    """Return the line that is most likely the cause."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or ["no output"])[-1][:200]


def run_step(command):
    """Return None, or why the command failed in one line."""
    done = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, "DEBIAN_FRONTEND": "noninteractive",
                               "PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    return last_line(done.stdout) if done.returncode else None


def has_debian(package):
    done = subprocess.run(["dpkg-query", "-W", "-f=${Status}", package], capture_output=True,
                          text=True)
    return "install ok installed" in done.stdout


def install_debian(packages):
    """Return None, or why these packages are not there in one line."""
    if not shutil.which("dpkg-query"):
        return None  # another system: the build reports what it lacks
    missing = [package for package in packages if not has_debian(package)]
    if not missing:
        return None
    print("installing with apt-get:", *missing, flush=True)
    sudo = [] if os.geteuid() == 0 else ["sudo"]
    return (run_step([*sudo, "apt-get", "update", "-qq"])
            or run_step([*sudo, "apt-get", "install", "-y", "-qq", "--no-install-recommends",
                         *missing]))


def build(folder, wanted):
    """Return None, or why the environment could not be made in one line."""
    reason = install_debian(wanted.get("debian", []))
    if not reason:
        shutil.rmtree(folder, ignore_errors=True)
        reason = run_step([sys.executable, "-m", "venv", folder])
    for arguments in wanted["steps"]:
        reason = reason or run_step([folder / "bin/pip", "install", "-q", *arguments])
    return reason


def install(top, name):
    """Make one environment, unless it is there as wanted; returns None or why not, in one line."""
    folder, wanted = folder_of(top, name), ENVIRONMENTS[name]
    stamp = folder / STAMP
    if stamp.exists() and json.loads(stamp.read_text()) == wanted:
        return None
    reason = build(folder, wanted)
    folder.mkdir(parents=True, exist_ok=True)
    if reason:
        (folder / FAILED).write_text(f"could not be installed: {reason}\n")
        return reason
    stamp.write_text(json.dumps(wanted))
    return None
