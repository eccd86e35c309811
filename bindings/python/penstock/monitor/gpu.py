# SPDX-License-Identifier: Apache-2.0
"""Read the state of one GPU from NVML: utilisation, memory, power, clocks, throttle reasons, PCIe traffic. A MIG
instance is read in the same way.

NVML comes through the package nvidia-ml-py, which is optional. Nothing that is missing raises an exception: a reading
has a `state`, and `missing` has the reason why a counter has no number.
"""
from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import SettingsError

__all__ = ["SLOWDOWNS", "THROTTLE_REASONS", "Gpu", "GpuReading", "which"]

# Bits of nvmlClocksEventReasons, by nvml.h. The first three have nothing to do with the board's health.
THROTTLE_REASONS = {0x1: "gpu_idle", 0x2: "applications_clocks_setting", 0x100: "display_clock_setting",
                    0x4: "sw_power_cap", 0x8: "hw_slowdown", 0x10: "sync_boost", 0x20: "sw_thermal_slowdown",
                    0x40: "hw_thermal_slowdown", 0x80: "hw_power_brake_slowdown", 0x200: "board_limit", 0x400: "reliability"}
# Reasons that need a person's attention. sw_power_cap is normal for a busy GPU.
SLOWDOWNS = frozenset(("hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"))

_LOST = ("NVMLError_GpuIsLost", "NVMLError_ResetRequired")
_WHY = {"NVMLError_NotSupported": "not supported", "NVMLError_NoPermission": "no permission",
        "NVMLError_FunctionNotFound": "the driver is too old", "NVMLError_Timeout": "timed out"}


@dataclass(frozen=True)
class GpuReading:
    """The state of a GPU. A value is None if the device has no such counter; `missing` then has the reason.

    state: "ok", or the reason why nothing was read: "no library: ...", "lost: ...".
    name, uuid: name and UUID by NVML.
    is_mig: whether it is a MIG instance. For one, memory is the instance's; power, clocks, throttle, PCIe and
        temperature are those of the whole device; NVML has no utilisation.
    utilisation: share of the last sample period, 0 to 1, in which a kernel ran.
    memory_utilisation: share of it in which memory was read or written.
    memory_used, memory_total: bytes.
    power_w, power_limit_w: watts.
    sm_clock, memory_clock, sm_clock_max: MHz.
    throttle: names of the active throttle reasons.
    pcie_rx, pcie_tx: bytes per second to and from the device.
    temperature: degrees Celsius.
    missing: by the name of a counter, why it has no number.
    """

    state: str
    name: str = ""
    uuid: str = ""
    is_mig: bool = False
    utilisation: float | None = None
    memory_utilisation: float | None = None
    memory_used: int | None = None
    memory_total: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    sm_clock: int | None = None
    memory_clock: int | None = None
    sm_clock_max: int | None = None
    throttle: tuple[str, ...] | None = None
    pcie_rx: int | None = None
    pcie_tx: int | None = None
    temperature: int | None = None
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def slowed(self) -> tuple[str, ...]:
        """The throttle reasons that need a person's attention."""
        return tuple(name for name in self.throttle or () if name in SLOWDOWNS)


def _names(mask: int) -> tuple[str, ...]:
    """Return the names of the bits that are set; "bit_N" for a bit that only a newer driver has."""
    return tuple(THROTTLE_REASONS.get(1 << bit, f"bit_{bit}") for bit in range(64) if mask >> bit & 1)


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _kind(error: BaseException) -> str:
    return type(error).__name__


class Gpu:
    """One GPU or MIG instance, by NVML. Thread: the Monitor's, never the loop's.

    device: index of NVML, UUID ("GPU-...", "MIG-..."), or PCI bus id ("00000000:65:00.0"); None: no GPU.
    why_none: the state without a GPU.
    """

    def __init__(self, device: int | str | None, why_none: str = "no GPU was asked for") -> None:
        self.device, self.state = device, why_none
        self._nvml: Any = None
        self._handle: Any = None  # handle of the device, or of the MIG instance
        self._board: Any = None  # handle of the whole device
        self._name = self._uuid = ""
        self._is_mig = False
        if device is not None:
            self._open(device)

    def _open(self, device: int | str) -> None:
        try:
            import pynvml
        except ImportError as error:
            self.state = f"no library: {error} (pip install nvidia-ml-py)"
            return
        except Exception as error:  # raised by another package of that name
            self.state = f"no library: {_kind(error)}: {error}"
            return
        try:
            pynvml.nvmlInit()
        except Exception as error:
            self.state = f"no library: {error}"
            return
        self._nvml = pynvml
        try:
            self._find(device)
            self.state = "ok"
        except Exception as error:
            self.state = f"no such device: {device!r}: {error}"

    def _find(self, device: int | str) -> None:
        nvml = self._nvml
        if isinstance(device, int):
            handle = nvml.nvmlDeviceGetHandleByIndex(device)
        elif device.startswith(("GPU-", "MIG-")):
            handle = nvml.nvmlDeviceGetHandleByUUID(device)
        else:
            handle = nvml.nvmlDeviceGetHandleByPciBusId(device)
        self._handle = self._board = handle
        with contextlib.suppress(Exception):  # raised by older drivers, and for devices without MIG
            self._is_mig = bool(nvml.nvmlDeviceIsMigDeviceHandle(handle))
        if self._is_mig:
            self._board = nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)
        with contextlib.suppress(Exception):
            self._name = _text(nvml.nvmlDeviceGetName(handle))
        with contextlib.suppress(Exception):
            self._uuid = _text(nvml.nvmlDeviceGetUUID(handle))

    def close(self) -> None:
        """Shut NVML down. It may be called again."""
        nvml, self._nvml, self._handle = self._nvml, None, None
        if nvml is not None:
            self.state = "closed"
            with contextlib.suppress(Exception):
                nvml.nvmlShutdown()

    def read(self) -> GpuReading:
        """Return a reading of every counter. Never raises."""
        if self._handle is None or self.state != "ok":
            return GpuReading(self.state, self._name, self._uuid, self._is_mig)
        missing: dict[str, str] = {}
        values: dict[str, Any] = {}
        for names, ask in self._counters().items():
            try:
                values.update(zip(names, ask()))
            except Exception as error:
                if _kind(error) in _LOST:
                    self.state = f"lost: {error} (nvidia-smi, and the kernel's log, have more)"
                    return GpuReading(self.state, self._name, self._uuid, self._is_mig)
                missing.update(dict.fromkeys(names, _WHY.get(_kind(error), f"{_kind(error)}: {error}")))
        return GpuReading("ok", self._name, self._uuid, self._is_mig, missing=missing, **values)

    def _counters(self) -> dict[tuple[str, ...], Callable[[], tuple[Any, ...]]]:
        """Return the functions that ask NVML, by the names of the counters that each returns."""
        nvml, handle, board = self._nvml, self._handle, self._board

        def utilisation() -> tuple[float, float]:
            rates = nvml.nvmlDeviceGetUtilizationRates(handle)
            return rates.gpu / 100, rates.memory / 100

        def memory() -> tuple[int, int]:
            found = nvml.nvmlDeviceGetMemoryInfo(handle)
            return int(found.used), int(found.total)

        def throttle() -> tuple[tuple[str, ...]]:
            ask = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
            if ask is None:  # older packages have another name for it
                ask = nvml.nvmlDeviceGetCurrentClocksThrottleReasons
            return (_names(int(ask(board))),)

        return {
            ("utilisation", "memory_utilisation"): utilisation, ("memory_used", "memory_total"): memory,
            ("power_w",): lambda: (nvml.nvmlDeviceGetPowerUsage(board) / 1000,),
            ("power_limit_w",): lambda: (nvml.nvmlDeviceGetEnforcedPowerLimit(board) / 1000,),
            ("sm_clock",): lambda: (int(nvml.nvmlDeviceGetClockInfo(board, nvml.NVML_CLOCK_SM)),),
            ("memory_clock",): lambda: (int(nvml.nvmlDeviceGetClockInfo(board, nvml.NVML_CLOCK_MEM)),),
            ("sm_clock_max",): lambda: (int(nvml.nvmlDeviceGetMaxClockInfo(board, nvml.NVML_CLOCK_SM)),),
            ("throttle",): throttle,
            ("pcie_rx",): lambda: (1024 * nvml.nvmlDeviceGetPcieThroughput(board, nvml.NVML_PCIE_UTIL_RX_BYTES),),
            ("pcie_tx",): lambda: (1024 * nvml.nvmlDeviceGetPcieThroughput(board, nvml.NVML_PCIE_UTIL_TX_BYTES),),
            ("temperature",): lambda: (int(nvml.nvmlDeviceGetTemperature(board, nvml.NVML_TEMPERATURE_GPU)),),
        }


# ---- the GPU of this process --------------------------------------------------------------------------------


def _visible(env: Mapping[str, str], index: int) -> int | str | None:
    """Return the entry of CUDA_VISIBLE_DEVICES at an index; None: there is none, or the variable is not set."""
    entries = [entry.strip() for entry in env.get("CUDA_VISIBLE_DEVICES", "").split(",") if entry.strip()]
    if index >= len(entries):
        return None
    return int(entries[index]) if entries[index].isdigit() else entries[index]


def _of_torch(index: int) -> str | None:
    """Return the UUID of PyTorch's device; None if PyTorch does not use CUDA."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    with contextlib.suppress(Exception):
        return f"GPU-{torch.cuda.get_device_properties(index).uuid}"
    return None


def which(bus_id: str | None, local_rank: int, env: Mapping[str, str] = os.environ) -> tuple[int | str | None, str]:
    """Return the GPU on which this process trains, or None, and the reason if there is none. The thread that trains
    must call it, because the current device belongs to a thread. bus_id: PCI bus id of the loader's device; None: the
    loader's batches are on the host."""
    visible = _visible(env, 0)
    if isinstance(visible, str) and visible.startswith("MIG-"):
        return visible, ""
    if bus_id:
        return bus_id, ""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        index = int(torch.cuda.current_device())
        found = _of_torch(index)
        return (found if found is not None else _visible(env, index)), "PyTorch names no device"
    if visible is not None:
        by_rank = _visible(env, local_rank)
        return (visible if by_rank is None else by_rank), ""
    return None, "this process uses no GPU so far (give gpu=0, or start the Monitor after CUDA)"


# "auto"; the UUID of a GPU or MIG instance (an older one has slashes); a PCI bus id, perhaps without the domain.
_GPU_NAME = re.compile(r"auto|(GPU|MIG)-[0-9A-Za-z/-]+|([0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]")


def checked(gpu: Any) -> int | str | None:
    """Check the setting gpu= and return it. Raises SettingsError."""
    if gpu is None or isinstance(gpu, str) and _GPU_NAME.fullmatch(gpu):
        return gpu
    if isinstance(gpu, int) and not isinstance(gpu, bool) and gpu >= 0:
        return gpu
    raise SettingsError(f"gpu: value is {gpu!r}; must be 'auto', None, an index, a UUID or a PCI bus id (nvidia-smi -L lists "
                        "them)")
