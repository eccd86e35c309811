# SPDX-License-Identifier: Apache-2.0
"""Each parameter of the package's public functions and classes gets values that nobody means. What it refuses, it refuses
by TypeError, ValueError or an error of penstock's, whose text names the parameter and what it must be."""
import inspect
import re
import unittest

import penstock
import sets

sets.need_numpy()
import numpy as np  # noqa: E402

from penstock import functional, monitor, ops  # noqa: E402
from penstock.monitor import alerts  # noqa: E402

ODD = [None, True, "x", "a\0b", "", b"x", float("nan"), float("inf"), -float("inf"), -1, 0, 2**64, 10**400, 0.5, 1j, [], {}, (), (1,), [None],
       ["x", "y"], [[1]], [1, 2, 3, 4, 5], {"x": 1}, object(), object, len, np.zeros(3), np.zeros((0, 2)), np.array(["x"]),
       np.float32(0.5), np.array(1), range(3), {1, 2}, [float("nan"), 1], [2**64, 2**64], [True, True]]
FORM = re.compile(r".+\b(must|takes|has no argument)\b", re.DOTALL)
IMAGE = np.arange(16 * 16 * 3, dtype=np.uint8).reshape(16, 16, 3)

# What the required parameters get where another one is odd.
GIVEN = {
    "img": IMAGE, "size": 8, "top": 1, "left": 1, "height": 4, "width": 4, "padding": 1, "angle": 3, "translate": (1, 1), "scale": 1.0, "shear": 1.0,
    "startpoints": ((0, 0), (15, 0), (15, 15), (0, 15)), "endpoints": ((1, 1), (15, 0), (15, 15), (0, 15)),
    "matrix": (1, 0, 0, 0, 1, 0), "kernel_size": 3, "radius": 1.0, "quality": 50, "brightness_factor": 1.5, "contrast_factor": 1.5,
    "saturation_factor": 1.5, "hue_factor": 0.1, "gamma": 1.5, "sharpness_factor": 1.5, "bits": 4, "threshold": 100, "addition": 10,
    "chains": [[functional.invert]], "weights": [0.5], "permutation": (2, 1, 0), "output_size": 8, "degrees": 10,
    "corner": "top_left", "p": 0.5, "kernels": "auto",
    "min_size": 8, "max_size": 12, "target_size": (8, 8), "transforms": [ops.RandomFlip()], "field": "x", "ops": [], "num_classes": 4,
}
OF = {("boxes", "form"): "xyxy", ("RandomBoxBlur", "radius"): (0.1, 2.0), ("RandomAffine", "scale"): (0.5, 1), ("RandomChoice", "ops"): [ops.RandomFlip()]}


def arguments(name, function):
    """{parameter: value} of those that must be given; None: a value is missing here."""
    found = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.default is parameter.empty:
            found[parameter.name] = OF.get((name, parameter.name), GIVEN.get(parameter.name, GIVEN))
    return found


class Odd(unittest.TestCase):
    def check(self, name, function, use=lambda made: None):
        given = arguments(name, function)
        self.assertNotIn(id(GIVEN), [id(value) for value in given.values()], f"{name}: {given.keys()}")
        use(function(**given))
        bad = []
        for parameter in inspect.signature(function).parameters:
            for odd in ODD:
                try:
                    use(function(**{**given, parameter: odd}))
                except (TypeError, ValueError, penstock.PenstockError) as error:
                    if not FORM.match(str(error)):
                        bad.append(f"{name}({parameter}={odd!r:.40}): {type(error).__name__}: {error}")
                except Exception as error:
                    bad.append(f"{name}({parameter}={odd!r:.40}): {type(error).__name__}: {error}")
        return bad

    def test_functions_on_arrays(self):
        bad = []
        for name in functional.__all__:
            if name != "call":
                bad += self.check(name, getattr(functional, name))
        self.assertEqual(bad, [], "\n".join(bad))

    def test_operations(self):
        bad = []
        for name in penstock.__all__:
            kind = getattr(penstock, name)
            if isinstance(kind, type) and issubclass(kind, ops.Op) and kind is not ops.Op and kind.__module__ != "penstock.ops_call":
                bad += self.check(name, kind, lambda made: penstock.image("x", [made]).to_c("x"))
        self.assertEqual(bad, [], "\n".join(bad))

    def test_outputs(self):
        bad = []
        for name in ("image", "scalar", "tensor", "ragged", "boxes", "keypoints", "mask", "per_box", "polygons"):
            bad += self.check(name, getattr(penstock, name))
        self.assertEqual(bad, [], "\n".join(bad))


if __name__ == "__main__":
    unittest.main()
