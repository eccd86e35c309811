# SPDX-License-Identifier: Apache-2.0
"""A module that stands for pynvml (nvidia-ml-py) in tests: every counter, and each way in which one can be missing."""
import contextlib
import sys
import types


class NVMLError(Exception):
    pass


ERRORS = {name: type("NVMLError_" + name, (NVMLError,), {}) for name in (
    "NotSupported", "NoPermission", "GpuIsLost", "LibraryNotFound", "NotFound", "Unknown")}
VALUES = {"GetPowerUsage": 612_000, "GetEnforcedPowerLimit": 700_000, "GetTemperature": 64}


class FakeNVML(types.ModuleType):
    """fails: {function without nvmlDevice: name of an error}. mig: handles whose UUID begins with MIG- are instances."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM = 1, 2
    NVML_PCIE_UTIL_TX_BYTES, NVML_PCIE_UTIL_RX_BYTES = 0, 1
    NVML_TEMPERATURE_GPU = 0

    def __init__(self, name="NVIDIA H200", mask=0x4, utilisation=87, **fails):
        super().__init__("pynvml")
        self.name_of_device, self.mask, self.utilisation, self.fails = name, mask, utilisation, fails
        self.n_open, self.asked = 0, []

    def _ask(self, function, value):
        self.asked.append(function)
        if function in self.fails:
            raise ERRORS[self.fails[function]](self.fails[function])
        return value

    def nvmlInit(self):
        self._ask("Init", None)
        self.n_open += 1

    def nvmlShutdown(self):
        self.n_open -= 1

    def nvmlDeviceGetHandleByIndex(self, index):
        return self._ask("GetHandleByIndex", f"GPU-{index}")

    def nvmlDeviceGetHandleByUUID(self, uuid):
        return self._ask("GetHandleByUUID", uuid)

    def nvmlDeviceGetHandleByPciBusId(self, bus_id):
        return self._ask("GetHandleByPciBusId", "GPU-at-" + bus_id)

    def nvmlDeviceIsMigDeviceHandle(self, handle):
        return handle.startswith("MIG-")

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, handle):
        return "GPU-of-" + handle

    def nvmlDeviceGetName(self, handle):
        return (self.name_of_device + " MIG 1g.18gb" * handle.startswith("MIG-")).encode()

    def nvmlDeviceGetUUID(self, handle):
        return handle

    def nvmlDeviceGetUtilizationRates(self, handle):
        if handle.startswith("MIG-"):
            raise ERRORS["NotSupported"]("Not Supported")
        return self._ask("GetUtilizationRates", types.SimpleNamespace(gpu=self.utilisation, memory=41))

    def nvmlDeviceGetMemoryInfo(self, handle):
        total = 18 if handle.startswith("MIG-") else 141
        return self._ask("GetMemoryInfo", types.SimpleNamespace(used=9 * 10**9, total=total * 10**9))

    def nvmlDeviceGetClockInfo(self, handle, kind):
        return self._ask("GetClockInfo", {1: 1755, 2: 3201}[kind])

    def nvmlDeviceGetMaxClockInfo(self, handle, kind):
        return self._ask("GetMaxClockInfo", {1: 1980}[kind])

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle):
        return self._ask("GetCurrentClocksEventReasons", self.mask)

    def nvmlDeviceGetPcieThroughput(self, handle, kind):
        return self._ask("GetPcieThroughput", {0: 100, 1: 2000}[kind])

    def __getattr__(self, name):
        function = name[len("nvmlDevice"):]
        if not name.startswith("nvmlDevice") or function not in VALUES:
            raise AttributeError(name)
        return lambda handle, *_: self._ask(function, VALUES[function])


@contextlib.contextmanager
def instead_of_pynvml(module):
    """Within it, `import pynvml` gives this module; None: it cannot be imported."""
    before = sys.modules.get("pynvml", instead_of_pynvml)
    sys.modules["pynvml"] = module
    try:
        yield module
    finally:
        del sys.modules["pynvml"]
        if before is not instead_of_pynvml:
            sys.modules["pynvml"] = before
