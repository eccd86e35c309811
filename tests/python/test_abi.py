# SPDX-License-Identifier: Apache-2.0
"""_c.py is the C library as its headers have it: sizes, offsets, enumerators, functions, by the compiler."""
import ctypes
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from penstock import _c, ops

INCLUDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "include")
HEADERS = tuple(sorted(name for name in os.listdir(os.path.join(INCLUDE, "penstock")) if name.endswith(".h"))) if os.path.isdir(INCLUDE) else ()
CC = next((cc for cc in (os.environ.get("CC", "").split()[:1] or [""]) + ["cc", "gcc", "clang"]
           if cc and shutil.which(cc)), None)
FUNCTION = re.compile(r"\bPSTK_API\b[^;{]*?\b(pstk_\w+)\s*\(", re.S)


def header(name):
    with open(os.path.join(INCLUDE, "penstock", name), encoding="utf-8") as file:
        return file.read()


AGGREGATES = (ctypes.Structure, ctypes.Union)


def c_name(cls):
    return "pstk_" + re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()


def structs():
    """Return the structures of the package, with its unions: {name in C: class}."""
    return {c_name(cls): cls for cls in vars(_c).values()
            if isinstance(cls, type) and issubclass(cls, AGGREGATES) and cls not in AGGREGATES}


def c_type(name):
    return ("union " if issubclass(structs()[name], ctypes.Union) else "struct ") + name


def macros():
    """Return the macros of the headers that are integers and fit an int."""
    return {name for file in HEADERS for name in re.findall(r"^#define (PSTK_\w+)[ \\\n]+(?:\d+\b|\(PSTK_)", header(file), re.M)}


def constants():
    return {"PSTK_" + name: value for name, value in vars(_c).items()
            if name.isupper() and isinstance(value, int) and name not in ("NONE", "NO_FIELD")}


def ask(lines):
    """Return the numbers that a C program prints: {name: number}."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "ask.c"), os.path.join(folder, "ask")
        with open(source, "w", encoding="utf-8") as file:
            headers = [f"#include <penstock/{name}>" for name in sorted(os.listdir(os.path.join(INCLUDE, "penstock")))
                       if name.endswith(".h")]
            file.write("%s\n#include <stdio.h>\nint main(void)\n{\n%s\nreturn 0;\n}\n" % ("\n".join(headers), "\n".join(lines)))
        subprocess.run([CC, "-std=c11", "-I" + INCLUDE, source, "-o", program], check=True)
        told = subprocess.run([program], check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout
    return {name: int(value) for name, value in (line.split() for line in told.splitlines())}


@unittest.skipUnless(CC, "there is no C compiler")
@unittest.skipUnless(os.path.isdir(INCLUDE), "the headers are not beside the tests")
class Abi(unittest.TestCase):
    maxDiff = None

    def test_structs_have_the_sizes_and_offsets_of_c(self):
        lines, wanted = [], {}

        def expect(name, value, expression):
            wanted[name] = value
            lines.append('printf("%s %%zu\\n", %s);' % (name, expression))

        for name, cls in structs().items():
            expect(name, ctypes.sizeof(cls), "sizeof(%s)" % c_type(name))
            for member, *_ in cls._fields_:
                place = getattr(cls, member)
                expect(name + "." + member, place.offset, "offsetof(%s, %s)" % (c_type(name), member))
                expect(name + "." + member + ".size", place.size,
                       "sizeof(((%s *)0)->%s)" % (c_type(name), member))
        self.assertGreater(len(structs()), 20)
        self.assertEqual(ask(lines), wanted)

    def test_every_struct_of_the_headers_is_mirrored(self):
        found = set()
        for name in HEADERS:
            found |= set(re.findall(r"^(?:struct|union) (pstk_\w+) \{", header(name), re.M))
        self.assertEqual(found, set(structs()))

    def test_parameters_of_operations_are_doubles(self):
        """op.params.values sees each of them, by position."""
        for name, kind in _c.OpParams._fields_[1:]:
            members = [getattr(member, "_type_", None) if issubclass(member, ctypes.Array) else member
                       for _, member in kind._fields_]
            self.assertEqual(set(members), {ctypes.c_double}, name)
        self.assertEqual(_c.OpParams._fields_[0], ("values", ctypes.c_double * _c.MAX_OP_PARAMS))

    def test_parameters_of_operations_are_named_by_kinds(self):
        op, drawn = set(_c.NAMES["op_kind"].values()), set(_c.NAMES["drawn_kind"].values())
        self.assertFalse(op & drawn, "one number space")
        self.assertLessEqual({name for name, _ in _c.OpParams._fields_[1:]}, set(_c.NAMES["op_kind"]) | set(_c.NAMES["drawn_kind"]))

    def test_enumerators_have_the_values_of_c(self):
        wanted = constants()
        self.assertEqual(ask(['printf("%s %%d\\n", %s);' % (name, name) for name in wanted]), wanted)

    def test_every_enumerator_and_number_is_mirrored(self):
        found = set(re.findall(r"X\((PSTK_\w+),", header("types.h"))) | {"PSTK_OK"}
        for name in HEADERS:
            bare = re.sub(r"/\*.*?\*/", "", header(name), flags=re.S)
            for body in re.findall(r"enum pstk_\w+ \{(.*?)\}", bare, re.S):
                found |= set(re.findall(r"\b(PSTK_\w+) =", body))
        self.assertGreater(len(macros()), 5)
        self.assertEqual(found | macros(), set(constants()))

    def test_numbers_that_are_no_enumerators(self):
        told = ask(['printf("none %d\\n", PSTK_NONE == UINT64_MAX);',
                    'printf("no_field %d\\n", PSTK_NO_FIELD == UINT32_MAX);',
                    'printf("order %d\\n", PSTK_ORDER_VERSION);'])
        self.assertEqual((told["none"], _c.NONE), (1, 2**64 - 1))
        self.assertEqual((told["no_field"], _c.NO_FIELD), (1, 2**32 - 1))
        self.assertEqual(told["order"], _c.ORDER_VERSION)
        text = header("ops.h")
        for name, values in (("MEAN", ops.IMAGENET_MEAN), ("STD", ops.IMAGENET_STD)):
            told = re.search(r"PSTK_IMAGENET_%s \(\(const float\[3\]\)\{(.*?)\}" % name, text)[1]
            self.assertEqual(tuple(float(v.rstrip("f")) for v in told.split(", ")), values)

    def test_every_function_is_declared_and_exported(self):
        found = set()
        for name in HEADERS:
            found |= set(FUNCTION.findall(re.sub(r"/\*.*?\*/", "", header(name), flags=re.S)))
        self.assertEqual(found, set(_c.FUNCTIONS))
        for name in found:
            self.assertTrue(hasattr(_c.lib, name), name)

    def test_functions_take_as_many_arguments_as_in_c(self):
        text = "".join(re.sub(r"/\*.*?\*/", "", header(name), flags=re.S) for name in HEADERS)
        for name, (_, arguments) in _c.FUNCTIONS.items():
            declared = re.search(r"\b%s\s*\(([^;]*)\);" % name, text)[1]
            n = 0 if declared.strip() == "void" else declared.count(",") + 1
            self.assertEqual(len(arguments), n, name)


if __name__ == "__main__":
    unittest.main()
