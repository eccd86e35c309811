# SPDX-License-Identifier: Apache-2.0
"""The peak FLOPs per second of GPUs, for the model FLOPs utilisation.

The figures are from NVIDIA's data sheets, for dense matrices. If a sheet has only the figure with 2:4 sparsity, the
table has half of it. They are figures of tensor cores, except for "float32" and "float64", and of sums in float32 where
the sheet distinguishes. A GPU that runs below its boost clock, for example at its power limit, cannot reach them.
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
    """The peak rates of one kind of GPU.

    device: its name for people.
    pattern: a regular expression that matches whole words of NVML's name of the device.
    tflops: 10**12 floating-point operations in a second, by dtype.
    source: the document.
    """

    device: str
    pattern: str
    tflops: Mapping[str, float]
    source: str


def _tflops(float32: float, tf32: float | None = None, half: float | None = None, bfloat: float | None = None,
            fp8: float | None = None, float64: float | None = None) -> Mapping[str, float]:
    found = {"float64": float64, "float32": float32, "tf32": tf32, "float16": half, "bfloat16": bfloat, "fp8": fp8}
    return {name: value for name, value in found.items() if value is not None}


# The first entry that matches counts, so the more specific ones come first.
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
    """Return the name that DTYPES has for a dtype, also for torch.bfloat16; other values give their text."""
    name = str(dtype).rpartition(".")[2].lower()
    return _SPELLED.get(name, name)


def checked(dtype: object) -> str:
    """Return the name in DTYPES of a dtype. Raises SettingsError."""
    name = spelled(dtype)
    if name not in DTYPES:
        raise SettingsError(f"dtype: value is {dtype!r}; must be one of {', '.join(DTYPES)}")
    return name


def found(device: str) -> Peak | None:
    """Return the entry of a device, by the name that NVML, PyTorch and nvidia-smi give it. None: there is none, or the
    device is a part of one (MIG)."""
    if "MIG" in device:
        return None
    for peak in PEAKS:
        # Whole words: an L40 is not an L4, an A10G not an A10, a GH200 not an H200. Cards with other figures (NVL) are
        # not in the table.
        if re.search(rf"(?<![A-Za-z0-9])(?:{peak.pattern})(?![A-Za-z0-9])", device) and not re.search(
                r"Laptop|Max-Q|4090 D\b", device):
            return peak
    return None


def peak_flops(device: str, dtype: object = "bfloat16") -> float | None:
    """Return the peak FLOPs per second of a device, for dense matrices. None: the device is unknown, or the table has
    no figure for this dtype. float32 and float64 are not computed on tensor cores.

    device: name of the GPU, as torch.cuda.get_device_name() returns it.
    dtype: "float64", "float32", "tf32", "float16", "bfloat16", "fp8", or a dtype of PyTorch.

    Raises TypeError, and SettingsError for another dtype.
    """
    if not isinstance(device, str):
        raise TypeError(f"device: value is {device!r}; must be the name of a GPU, as torch.cuda.get_device_name() gives it")
    name, entry = checked(dtype), found(device)
    tflops = None if entry is None else entry.tflops.get(name)
    return None if tflops is None else 1e12 * tflops
