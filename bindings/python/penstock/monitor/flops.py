# SPDX-License-Identifier: Apache-2.0
"""The most floating-point operations that a GPU can do in a second, for the utilisation of a model's FLOPs.

The figures are those of NVIDIA's data sheets, dense: where a sheet gives the figure with 2:4 sparsity only, here is half
of it. Of tensor cores, except "float32" and "float64"; sums are of float32 where the sheet distinguishes. A GPU that runs
below its boost clock, for example at its power limit, cannot reach them.
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ..errors import SettingsError

__all__ = ["DTYPES", "PEAKS", "Peak", "peak_flops"]

DTYPES = ("float64", "float32", "tf32", "float16", "bfloat16", "fp8")
_SPELLED = {"fp64": "float64", "fp32": "float32", "float": "float32", "fp16": "float16", "half": "float16", "bf16": "bfloat16",
            "float8": "fp8", "float8_e4m3fn": "fp8", "float8_e5m2": "fp8"}


class Peak(NamedTuple):
    """device: a name for people. pattern: what NVML's name of the device matches, whole words. tflops: by dtype.
    source: the document."""

    device: str
    pattern: str
    tflops: Mapping[str, float]
    source: str


def _tflops(float32: float, tf32: float | None = None, half: float | None = None, bfloat: float | None = None,
            fp8: float | None = None, float64: float | None = None) -> Mapping[str, float]:
    found = {"float64": float64, "float32": float32, "tf32": tf32, "float16": half, "bfloat16": bfloat, "fp8": fp8}
    return {name: value for name, value in found.items() if value is not None}


# The first that matches counts: particular ones come first.
PEAKS: tuple[Peak, ...] = (
    Peak("GB200", "GB200", _tflops(80, 1250, 2500, 2500, 5000, 40), "NVIDIA GB200 NVL72 data sheet, with sparsity, halved"),
    Peak("B200", "B200", _tflops(75, 1100, 2250, 2250, 4500, 37), "NVIDIA HGX B200 data sheet, with sparsity, halved"),
    Peak("H200 SXM", "H200(?! NVL)", _tflops(67, 494.5, 989.5, 989.5, 1979, 34), "NVIDIA H200 data sheet, with sparsity, halved"),
    Peak("H100 SXM", "H100( 80GB HBM3| SXM.*)", _tflops(67, 494.5, 989.5, 989.5, 1979, 34),
         "NVIDIA H100 data sheet, with sparsity, halved"),
    Peak("A100", "A100", _tflops(19.5, 156, 312, 312, float64=9.7), "NVIDIA A100 data sheet"),
    Peak("L40S", "L40S", _tflops(91.6, 183, 362.05, 362.05, 733), "NVIDIA L40S data sheet"),
    Peak("L4", "L4", _tflops(30.3, 60, 121, 121, 242.5), "NVIDIA L4 data sheet, with sparsity, halved"),
    Peak("T4", "T4", _tflops(8.1, half=65), "NVIDIA T4 data sheet"),
    Peak("V100 PCIe", "V100-PCIE|V100 PCIe", _tflops(14, half=112, float64=7), "NVIDIA V100 data sheet"),
    Peak("V100 SXM2", "V100-SXM2|V100 SXM2", _tflops(15.7, half=125, float64=7.8), "NVIDIA V100 data sheet"),
    Peak("RTX 4090", "RTX 4090", _tflops(82.6, 82.6, 165.2, 165.2, 330.3), "NVIDIA Ada GPU architecture white paper, appendix A"),
)


def spelled(dtype: object) -> str:
    """The name of a dtype as DTYPES has it; others as they are. Takes torch.bfloat16 as well."""
    name = str(dtype).rpartition(".")[2].lower()
    return _SPELLED.get(name, name)


def checked(dtype: object) -> str:
    """The name of a dtype of DTYPES. Raises SettingsError."""
    name = spelled(dtype)
    if name not in DTYPES:
        raise SettingsError(f"dtype: value is {dtype!r}; must be one of {', '.join(DTYPES)}")
    return name


def found(device: str) -> Peak | None:
    """The entry of a device, by the name that NVML, PyTorch and nvidia-smi give it; None: it has none, or it is a part of
    a device (MIG)."""
    if "MIG" in device:
        return None
    for peak in PEAKS:
        # Word by word: an L40 is no L4, an A10G no A10, a GH200 no H200. Cards of other figures (NVL) are not in the table.
        if re.search(rf"(?<![A-Za-z0-9])(?:{peak.pattern})(?![A-Za-z0-9])", device) and not re.search(
                r"Laptop|Max-Q|4090 D\b", device):
            return peak
    return None


def peak_flops(device: str, dtype: object = "bfloat16") -> float | None:
    """Return the FLOPs of a second that the device can do at most, dense; None: unknown device, or it cannot compute in
    this dtype on tensor cores (float32 and float64: on its other cores). SettingsError: the dtype is none of float64, float32, tf32 and the others of DTYPES."""
    if not isinstance(device, str):
        raise TypeError(f"device: value is {device!r}; must be the name of a GPU, as torch.cuda.get_device_name() gives it")
    name, entry = checked(dtype), found(device)
    tflops = None if entry is None else entry.tflops.get(name)
    return None if tflops is None else 1e12 * tflops
