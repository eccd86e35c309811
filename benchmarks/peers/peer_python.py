# SPDX-License-Identifier: Apache-2.0
"""penstock through Python: the package of this source tree on the library of the build, PyTorch tensors."""
import os
import pathlib
import sys

import measure
import peer_penstock

TOP = pathlib.Path(__file__).resolve().parents[2]


def batches(task):
    os.environ["PENSTOCK_LIBRARY"] = str(pathlib.Path(task.binary).parents[1] / "libpenstock.so")
    sys.path.insert(0, str(TOP / "bindings/python"))
    import torch  # noqa: F401  # "auto" takes what is imported

    import penstock

    if task.files:
        outputs = {"image": penstock.image("jpg", [penstock.ops.RandomResizedCrop(measure.SIDE),
                                                   penstock.ops.RandomHorizontalFlip()])}
    else:
        outputs = {"record": penstock.tensor("bytes")}
    loader = penstock.Loader(task.folder / "data", batch_size=task.batch_size, outputs=outputs,
                             reading=penstock.Reading(io="buffered"),
                             n_threads=task.n_cores)
    name = next(iter(outputs))
    while True:
        for batch in loader:
            yield batch[name]


if __name__ == "__main__":
    measure.main(batches, peer_penstock.prepare, ["torch"])
