# SPDX-License-Identifier: Apache-2.0
"""scripts/declarations understands the C of public headers, refuses other C, and gives every enumerator a word,
which library, command and package share."""
import contextlib
import ctypes
import glob
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import penstock
from penstock import _c, dtypes

import sets

TOP = pathlib.Path(__file__).resolve().parents[2]
SCRIPT, HEADERS = TOP / "scripts/declarations", TOP / "include/penstock"
COMMAND = os.environ.get("PENSTOCK_COMMAND")
CC = next((cc for cc in (os.environ.get("CC", "").split()[:1] or [""]) + ["cc", "gcc", "clang"]
           if cc and shutil.which(cc)), None)

# Each construct once, and some in odd places.
EVERYTHING = r"""
#ifndef PENSTOCK_EVERYTHING_H
#define PENSTOCK_EVERYTHING_H
#include <stdint.h>
#include <stddef.h>
#if defined(__GNUC__)
#define PSTK_API __attribute__((visibility("default")))
#else
#define PSTK_API
#endif
#ifdef __cplusplus
extern "C" {
#endif
#define PSTK_N 3 /* a comment; with } and " */
#define PSTK_TWICE (PSTK_N * 2) // the other comment
#define PSTK_FLAG (1u << 4 | 0x01)
#define PSTK_MOST UINT64_MAX
#define PSTK_SHARES ((const float[2]){0.25f, 1.5f})
#define PSTK_COLOURS(X)                                                                            \
    X(PSTK_COLOUR_RED, 1, "a, b")                                                                  \
    X(PSTK_COLOUR_DARK_BLUE, -7, ")")
enum pstk_colour_kind {
    PSTK_COLOUR_NONE = 0,
#define X(name, value, text) name = value,
    PSTK_COLOURS(X)
#undef X
};
enum pstk_one { PSTK_ONE_A = PSTK_FLAG };
struct pstk_hidden; /* opaque */
struct foreign;
struct pstk_inner {
    char name[PSTK_N];
    uint8_t grid[2][PSTK_TWICE];
    double x, *more, rest[2];
};
struct pstk_later;
struct pstk_tree {
    const struct pstk_tree *children; /* its own kind */
    struct pstk_later *later;
    struct pstk_hidden *hidden;
    int (*compare)(const struct pstk_tree *, void *user);
    struct pstk_inner inner, inners[2];
    const char *const *texts;
    int8_t last;
};
typedef void (*pstk_visit_fn)(void *user, const struct pstk_later *later, size_t n);
union pstk_either {
    char bytes[11];
    struct pstk_inner inner;
    int16_t a, b[3];
};
struct pstk_later {
    union pstk_either either;
    const union pstk_either *other;
    pstk_visit_fn visit;
    int16_t small;
};
PSTK_API struct pstk_inner pstk_by_value(float x, pstk_visit_fn visit);
PSTK_API void pstk_nothing(void);
PSTK_API const char *pstk_text(struct pstk_later **out, struct foreign **other, const int64_t *ids,
                               int (*fn)(uint32_t));
#ifdef __cplusplus
}
#endif
#endif
"""

# Declarations that are refused: (text, part of the message).
REFUSED = (
    ("struct pstk_a { uint32_t bits : 3; };", "':'"),
    ("struct pstk_a { uint32_t a; } __attribute__((packed));", "'__attribute__'"),
    ("struct pstk_a { };", "no members"),
    ("struct pstk_a { void nothing; };", "nothing has no size"),
    ("struct pstk_a { unsigned n; };", "the type 'unsigned'"),
    ("struct pstk_a { long n; };", "the type 'long'"),
    ("struct pstk_a { enum pstk_b b; };", "the type 'enum'"),
    ("struct pstk_a { union { int i; float f; } u; };", "a name is expected, not '{'"),
    ("union pstk_a { };", "union pstk_a has no members"),
    ("struct pstk_a { struct pstk_b { int i; } b; };", "a name is expected, not '{'"),
    ("struct pstk_a { char tail[]; };", "a number is expected"),
    ("struct pstk_a { char text[sizeof(int)]; };", "the value 'sizeof ( int )'"),
    ("struct pstk_a { _Alignas(64) int i; };", "the type '_Alignas'"),
    ("struct pstk_a { volatile int i; };", "the type 'volatile'"),
    ("union { int i; };", "begins with 'union'"),
    ("enum { PSTK_A = 1 };", "begins with 'enum'"),
    ("enum pstk_a { PSTK_A };", "PSTK_A has no value"),
    ("enum pstk_a { PSTK_A = 'a' };", "the value"),
    ("enum pstk_a { PSTK_A = PSTK_B };", "the value 'PSTK_B'"),
    ("enum pstk_a { PSTK_A = 1 + };", "the value '1 +'"),
    ("typedef uint32_t pstk_id;", "typedef pstk_id"),
    ("extern int pstk_counter;", "begins with 'extern'"),
    ("static inline int pstk_f(void) { return 0; }", "begins with 'static'"),
    ("int pstk_f(void);", "begins with 'int'"),
    ("PSTK_API int pstk_counter;", "only before functions"),
    ("PSTK_API int pstk_f();", "a name is expected, not ')'"),
    ("PSTK_API int pstk_print(const char *format, ...);", "not '...'"),
    ("PSTK_API int pstk_sum(const int numbers[4]);", "the argument numbers"),
    ("PSTK_API int pstk_f(void)", "';' is expected"),
    ("#if PSTK_N > 3\n#endif", "#if PSTK_N > 3"),
    ("#ifdef PSTK_N", "without #endif"),
    ("#pragma pack(1)", "#pragma"),
    ("#error no", "#error no"),
    ("#define PSTK_NAME(x) #x", "# in the macro PSTK_NAME"),
    ("#define OTHERS 3", "the macro OTHERS"),
    ('#define PSTK_TEXT "text"', "the value"),
    ("#define PSTK_SHARES ((const float[3]){0.25f, 1.5f})", "has 2 numbers, not 3"),
    ("#define PSTK_LIST(X) X(1)\nenum pstk_a { PSTK_LIST };", "PSTK_LIST without arguments"),
)
# Declarations that are refused when the Python module is written; the message names no line.
REFUSED_NAMES = (
    ("struct other { int i; };", "other: "),
    ("struct pstk_b;\nstruct pstk_a { struct pstk_b b; };", "struct pstk_b: it is opaque"),
    ("enum pstk_a { OTHER_B = 1 };", "OTHER_B: "),
    ("enum pstk_a { PSTK_B = 1, PSTK_C = 1 };", "two of its enumerators have one value"),
    ("enum pstk_a { PSTK_B = 1 };\nenum pstk_c { PSTK_B = 1 };", "B: this name is taken"),
    ("PSTK_API int other_f(void);", "other_f: "),
)


def load_script():
    loader = importlib.machinery.SourceFileLoader("declarations", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("declarations", loader))
    with mock.patch.object(sys, "dont_write_bytecode", True):
        loader.exec_module(module)
    return module


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def enums_of_headers():
    """Return {tag: [enumerator]} by another reading of the headers than the script's, without pstk_result."""
    found = {}
    for path in sorted(HEADERS.glob("*.h")):
        for tag, body in re.findall(r"\benum (pstk_\w+) \{(.*?)\}", without_comments(path.read_text()), re.S):
            if "#" not in body:
                found[tag] = re.findall(r"\b(PSTK_\w+) =", body)
    return found


def compiled(source, *arguments):
    """Return the output of a C program."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ask.c")
        pathlib.Path(path).write_text(source)
        subprocess.run([CC, "-std=c11", path, "-o", path[:-2], *map(str, arguments)], check=True)
        return subprocess.run([path[:-2]], check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout


@unittest.skipUnless(SCRIPT.exists() and HEADERS.is_dir(), "the sources are not here")
class Script(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.script = load_script()

    def read(self, text):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "given.h").write_text(text)
            return self.script.read(pathlib.Path(folder))

    def module(self, text):
        """Return the Python module of a header, run."""
        made = {"_library": mock.Mock()}
        exec(self.script.Python(self.read(text)).text().replace("from . import _library\n", ""), made)
        return made

    def test_it_reads_each_construct(self):
        made = self.module(EVERYTHING)
        for name, value in (("N", 3), ("TWICE", 6), ("FLAG", 17), ("MOST", 2**64 - 1), ("SHARES", (0.25, 1.5)),
                            ("COLOUR_RED", 1), ("COLOUR_DARK_BLUE", -7), ("ONE_A", 17)):
            self.assertEqual(made[name], value, name)
        self.assertEqual(made["NAMES"], {"colour_kind": {"none": 0, "red": 1, "dark_blue": -7}, "one": {"a": 17}})
        functions, pointer = made["FUNCTIONS"], ctypes.POINTER
        self.assertEqual(functions["pstk_by_value"], (made["Inner"], [ctypes.c_float, made["VisitFn"]]))
        self.assertEqual(functions["pstk_nothing"], (None, []))
        result, arguments = functions["pstk_text"]
        self.assertEqual((result, arguments[:3]), (ctypes.c_char_p, [
            pointer(pointer(made["Later"])), pointer(ctypes.c_void_p), pointer(ctypes.c_int64)]))
        self.assertEqual((arguments[3]._restype_, arguments[3]._argtypes_), (ctypes.c_int, (ctypes.c_uint32,)))
        members = dict(made["Tree"]._fields_)
        self.assertEqual(members["children"], pointer(made["Tree"]))
        self.assertEqual(members["hidden"], ctypes.c_void_p)
        self.assertEqual(members["texts"], pointer(ctypes.c_char_p))
        grid = dict(made["Inner"]._fields_)["grid"]
        self.assertEqual((grid._length_, grid._type_._length_, grid._type_._type_), (2, 6, ctypes.c_uint8))
        self.assertEqual(made["VisitFn"]._argtypes_, (ctypes.c_void_p, pointer(made["Later"]), ctypes.c_size_t))

    @unittest.skipUnless(CC, "there is no C compiler")
    def test_its_structs_lie_as_those_of_c(self):
        made, lines, wanted = self.module(EVERYTHING), [], []
        for word, tag in (("struct", "inner"), ("struct", "tree"), ("union", "either"), ("struct", "later")):
            cls = made[tag.capitalize()]
            lines.append('printf("%%zu\\n", sizeof(%s pstk_%s));' % (word, tag))
            wanted.append(ctypes.sizeof(cls))
            for member, _ in cls._fields_:
                lines.append('printf("%%zu\\n", offsetof(%s pstk_%s, %s));' % (word, tag, member))
                wanted.append(getattr(cls, member).offset)
        self.assertEqual(len(wanted), 4 + 5 + 8 + 4 + 4)
        printed = compiled(EVERYTHING + "#include <stdio.h>\nint main(void)\n{\n" + "\n".join(lines) + "\n}\n")
        self.assertEqual([int(n) for n in printed.split()], wanted)

    def test_its_table_of_structs_is_that_of_the_package(self):
        for declarations, classes in ((self.read(EVERYTHING), self.module(EVERYTHING)), (self.script.read(HEADERS), vars(_c))):
            table = self.script.table_of(self.script.layout(declarations))
            self.assertEqual(len(table), sum(isinstance(d, self.script.StructBody) for d in declarations))
            for tag, (size, members) in table.items():
                cls = classes[self.script.class_name(tag)]
                self.assertEqual((size, members), (ctypes.sizeof(cls), [
                    f"{getattr(cls, name).offset} {getattr(cls, name).size} {name}" for name, *_ in cls._fields_]), tag)

    def test_structs_may_grow_at_their_ends_only(self):
        def wrong(new, old="struct pstk_a { uint32_t size; uint32_t kind; uint64_t reserved[2]; };"):
            return list(self.script.moved(*(self.script.layout(self.read("#include <stdint.h>\n" + text)) for text in (old, new))))

        for fine in ("struct pstk_a { uint32_t size; uint32_t kind; uint64_t reserved[2]; };",
                     "struct pstk_a { uint32_t size; uint32_t kind; uint64_t reserved[2]; void *more; };",
                     "struct pstk_a { uint32_t size; uint32_t kind; uint64_t n; uint64_t reserved[1]; };"
                     "struct pstk_b { uint8_t new; };"):
            self.assertEqual(wrong(fine), [], fine)
        for text, says in (("struct pstk_b { uint32_t size; };", ["struct pstk_a is gone"]),
                           ("struct pstk_a { uint32_t kind; uint32_t size; uint64_t reserved[2]; };",
                            ["struct pstk_a: size is not at 0 with 4 bytes as before", "struct pstk_a: kind is not at 4 with 4 bytes as before"]),
                           ("struct pstk_a { uint32_t size; uint64_t kind; uint64_t reserved[1]; };",
                            ["struct pstk_a: kind is not at 4 with 4 bytes as before"]),
                           ("struct pstk_a { uint32_t size; uint32_t kind; uint64_t reserved[1]; };",
                            ["struct pstk_a has 16 bytes; must have 24 or more"])):
            self.assertEqual(wrong(text), says, text)

    def test_it_refuses_what_it_does_not_understand(self):
        for text, what in REFUSED:
            with self.subTest(text), self.assertRaises(self.script.NotUnderstood) as caught:
                self.read("\n\n" + text + "\n")
            self.assertIn(what, str(caught.exception))
            if "without #endif" not in what:
                self.assertRegex(str(caught.exception), r"^given\.h:[34]: ")

    def test_it_refuses_names_that_it_cannot_write(self):
        for text, what in REFUSED_NAMES:
            with self.subTest(text), self.assertRaises(self.script.NotUnderstood) as caught:
                self.module(text)
            self.assertIn(what, str(caught.exception))
        with self.assertRaisesRegex(self.script.NotUnderstood, "must begin with PSTK_"):
            self.script.command(self.read("enum pstk_a { OTHER_B = 1 };"), [])

    def test_it_ends_with_an_error_and_prints_no_module(self):
        with tempfile.TemporaryDirectory() as folder, \
                mock.patch.object(self.script, "INCLUDE", pathlib.Path(folder)), \
                contextlib.redirect_stderr(io.StringIO()) as stderr, \
                contextlib.redirect_stdout(io.StringIO()) as stdout:
            statuses = [self.script.main(["python"])]
            (pathlib.Path(folder) / "given.h").write_text("union { int i; };")
            statuses += [self.script.main(["python"]), self.script.main(["names", "/nowhere/a", "/nowhere/b"])]
        self.assertEqual((statuses, stdout.getvalue()), ([1, 1, 1], ""))
        self.assertIn("there are no headers", stderr.getvalue())
        self.assertIn("scripts/declarations: given.h:1: a declaration that begins with 'union'", stderr.getvalue())

    def test_a_word_is_what_its_enum_does_not_share(self):
        for text, words in (
                ("enum pstk_a_b { PSTK_A_B_C = 1, PSTK_A_B_D = 2 };", ["c", "d"]),
                ("enum pstk_a_b { PSTK_A_B_C = 1, PSTK_A_D = 2 };", ["b_c", "d"]),
                ("enum pstk_a_b { PSTK_A_B_C = 1, PSTK_U8 = 2 };", ["a_b_c", "u8"]),
                ("enum pstk_a { PSTK_A_NO_B = 1, PSTK_A_NO_C = 2 };", ["no_b", "no_c"]),
                ("enum pstk_a { PSTK_A = 1 };", ["a"])):
            (enum,) = self.read(text)
            self.assertEqual([word for word, _ in self.script.words(enum)], words)

    @unittest.skipUnless(CC, "there is no C compiler")
    def test_the_commands_tables_have_every_word(self):
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "names.c")
            subprocess.run([SCRIPT, "names", source, source[:-1] + "h"], check=True)
            lines = ["for (c = names_%s; c->name; c++) printf(\"%s %%s %%u\\n\", c->name, c->value);" % (e, e)
                     for e in _c.NAMES if e != "result"]
            printed = compiled('#include "names.h"\n#include <stdio.h>\nint main(void)\n{\nconst struct choice *c;\n'
                               + "\n".join(lines) + "\n}\n", source, "-I" + folder, f"-I{HEADERS.parent}",
                               f"-I{TOP / 'src/cli'}")
        wanted = [(enum, word, str(value)) for enum, words in _c.NAMES.items() if enum != "result"
                  for word, value in words.items()]
        self.assertEqual([tuple(line.split()) for line in printed.splitlines()], wanted)


class Words(unittest.TestCase):
    @unittest.skipUnless(HEADERS.is_dir(), "the headers are not here")
    def test_every_enumerator_has_a_word_of_its_own_and_it_comes_back(self):
        enums = enums_of_headers()
        self.assertGreater(len(enums), 15)
        self.assertEqual({"pstk_" + enum for enum in _c.NAMES}, {*enums, "pstk_result"})
        for tag, enumerators in enums.items():
            words = _c.NAMES[tag[5:]]
            back = {value: word for word, value in words.items()}
            self.assertEqual(len(back), len(words))
            self.assertEqual([getattr(_c, name[5:]) for name in enumerators], list(words.values()))
            for name in enumerators:
                word = back[getattr(_c, name[5:])]
                self.assertTrue(name.lower().endswith("_" + word), (name, word))
                self.assertEqual(words[word], getattr(_c, name[5:]))

    def test_results_are_the_librarys(self):
        for word, code in _c.NAMES["result"].items():
            self.assertEqual(_c.lib.pstk_error_name(code).decode(), "PSTK_" + word.upper())

    def test_dtypes_are_the_librarys_and_all_in_the_package(self):
        for word, code in _c.NAMES["dtype"].items():
            self.assertEqual(_c.lib.pstk_dtype_name(code).decode(), word)
            self.assertEqual(_c.lib.pstk_dtype_parse(word.encode()), code)
        self.assertEqual([dtype.code for dtype in dtypes.DTYPES.values()], list(_c.NAMES["dtype"].values()))

    def test_kinds_codecs_and_encodings_are_those_of_manifests(self):
        sets.need_numpy()
        jpeg = glob.glob(os.path.join(sets.photos().replace("photos-", "files-"), "**", "*.jp*g"), recursive=True)
        path = os.path.join(sets.ROOT, "words")
        with penstock.Writer(path, {"image": "image", "blob": penstock.Field("bytes", codec="zstd"), "text": "utf8",
                                    "i": "int64", "x": ("float32", (2,))}) as writer:
            for image in (pathlib.Path(jpeg[0]).read_bytes(), sets.png(0), sets.pixels(1)):
                writer.add(image=image, blob=b"", text="", i=0, x=[0, 1])
        manifest = json.loads(pathlib.Path(path, "manifest.json").read_text())
        fields = manifest["fields"]
        self.assertLess({field["kind"] for field in fields}, set(_c.NAMES["field_kind"]))
        self.assertEqual({field.get("codec", "none") for field in fields}, set(_c.NAMES["codec"]))
        text = json.dumps(manifest)
        for word, code in _c.NAMES["encoding"].items():
            self.assertEqual('"%s": 1' % word in text, code != _c.ENCODING_NONE, word)

    @unittest.skipUnless(os.environ.get("PENSTOCK_WRITE_SAMPLE"), "missing: PENSTOCK_WRITE_SAMPLE")
    def test_kinds_and_attributes_are_those_of_manifests(self):
        path = os.path.join(sets.ROOT, "kinds")
        subprocess.run([os.environ["PENSTOCK_WRITE_SAMPLE"], path, "3"], check=True)
        fields = json.loads(pathlib.Path(path, "manifest.json").read_text())["fields"]
        self.assertEqual({field["kind"] for field in fields}, set(_c.NAMES["field_kind"]))
        for key, enum in (("form", "box_format"), ("coordinates", "coordinates")):
            self.assertLess({field[key] for field in fields if key in field}, set(_c.NAMES[enum]))

    @unittest.skipUnless(COMMAND, "PENSTOCK_COMMAND names no program")
    def test_the_command_takes_them(self):
        for option, enum in (("layout", "layout"), ("order", "order"), ("last", "last_batch"), ("reader", "reader_kind"),
                             ("io", "io"), ("device", "device_kind"), ("kernels", "kernels"),
                             ("on-bad", "bad_sample")):
            done = subprocess.run([COMMAND, "bench", "x", f"--{option}", "?"], stderr=subprocess.PIPE,
                                  universal_newlines=True)
            self.assertEqual(done.stderr, "penstock: --%s: value is '?'; must be one of %s\n" % (
                option, ", ".join(_c.NAMES[enum])))


if __name__ == "__main__":
    unittest.main()
