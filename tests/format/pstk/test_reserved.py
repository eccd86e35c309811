#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_reserved.py: what FORMAT.md reserves or refuses is refused by the library and by the second reader; what it
allows at the edge is read by both. TAP. Usage: test_reserved.py PENSTOCK

Each case is a data set whose every checksum is right (tests/attack/forge.py), with one thing changed. What is unknown,
and not damage, is refused by a message that says so.
"""
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "attack"))
import forge  # noqa: E402
import second_reader  # noqa: E402

PENSTOCK = os.environ.get("PENSTOCK_COMMAND") or sys.argv[1]


def tiny_images():
    with open(os.path.join(os.path.dirname(second_reader.__file__), "tiny_images.h"), encoding="utf-8") as f:
        arrays = re.findall(r"\{([^}]*)\}", f.read())
    return [bytes(int(x, 16) for x in re.findall(r"0x(\w\w)", a)) for a in arrays]


PNG = tiny_images()[1]
FIELDS = [forge.Field("image", "image"), forge.Field("raw", "bytes"), forge.Field("packed", "bytes", codec="zstd"),
          forge.Field("cls", "scalar", "i64"), forge.Field("text", "utf8")]


def records(**changes):
    """Return two records; changes: {name of a field: what its entry in the second one says instead}."""
    width, height = int.from_bytes(PNG[16:20], "big"), int.from_bytes(PNG[20:24], "big")
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[PNG[25]]
    image = forge.Value(PNG, encoding=2, channels=channels, bit_depth=PNG[24], width=width, height=height,
                        flags=second_reader.PALETTE if PNG[25] == 3 else 0)
    values = [image, forge.Value(b"raw bytes"), forge.Value(b"stored as it came"), forge.Value(bytes(8)),
              forge.Value("größe\0".encode())]
    changed = [value.copy(**changes.get(field.name, {})) for field, value in zip(FIELDS, values)]
    return [values, changed]


def edited(old, new):
    """Return the manifest's text with one place changed."""
    def edit(m):
        text = forge.json.dumps(m, ensure_ascii=False, separators=(",", ":"))
        assert text.count(old) >= 1, (old, text)
        return text.replace(old, new, 1)
    return edit


def forged(folder, made=None, manifest=None, header=None, head=None, fields=FIELDS):
    data = forge.Forge(second_reader.crc32c, fields, made or records())
    data.change_manifest = manifest
    data.change_header = header or {}
    data.change_head = {1: head} if head else {}
    return data.write(folder)


def reads(folder):
    """Return (message of the library or "", message of the second reader or "")"""
    verify = subprocess.run([PENSTOCK, "verify", folder], capture_output=True, encoding="utf-8", errors="replace")
    assert verify.returncode in (0, 1, 2), verify
    second = ""
    try:
        second_reader.Data(folder).verify()
    except (second_reader.Damaged, ValueError, KeyError, TypeError, IndexError, struct.error) as error:
        second = repr(error)
    return "" if verify.returncode == 0 else verify.stdout + verify.stderr or "?", second


def check_refused(directory, cases):
    """cases: [(words of the library's message, keywords of forged)]"""
    for i, (words, how) in enumerate(cases):
        library, second = reads(forged(os.path.join(directory, str(i)), **how))
        assert words in library, (i, words, library)
        assert second, (i, words, "the second reader reads it")


def check_read(directory, cases):
    for i, how in enumerate(cases):
        found = reads(forged(os.path.join(directory, str(i)), **how))
        assert found == ("", ""), (i, found)


def what_is_forged_without_a_change_is_read(directory):
    check_read(directory, [{}])


def reserved_features_are_refused_by_name(directory):
    names = "webp tiff bmp gif avif jxl video audio strip-checksums list-planes".split()
    check_refused(directory, [("requires the feature " + name, {"manifest": edited(
        '"requires":[]', f'"requires":["{name}"]')}) for name in names])
    check_read(directory + "/uses", [{"manifest": edited('"uses":[]', '"uses":["video"],"extra":{"video":[1.5,true]}')}])


def reserved_kinds_and_types_are_refused(directory):
    cases = [("fields[1].kind", edited('"kind":"bytes"', f'"kind":"{kind}"')) for kind in ("video", "audio", "struct")]
    cases += [("fields[3].dtype", edited('"i64"', f'"{dtype}"')) for dtype in
              ("bool", "f8", "f8e4m3", "i4", "i128", "u128", "c64", "complex64")]
    cases += [('"lz4", which this version does not know', edited('"codec":"none"', '"codec":"lz4"'))]
    check_refused(directory, [(words, {"manifest": manifest}) for words, manifest in cases])


def reserved_encodings_are_refused(directory):
    cases = []
    for code, name in enumerate("webp tiff bmp gif avif jxl".split(), 4):
        cases.append((f"encoding {code}", {"made": records(image={"encoding": code, "flags": 0})}))
        cases.append((f'"{name}", which this version does not know',
                      {"manifest": edited('"encodings":{"png":2}', f'"encodings":{{"png":1,"{name}":1}}')}))
    cases += [(f"encoding {code}", {"made": records(image={"encoding": code, "flags": 0})}) for code in (10, 128, 255)]
    check_refused(directory, cases)


def codecs_without_a_meaning_are_refused(directory):
    cases = [("does not know its codec", {"made": records(raw={"codec": codec})}) for codec in (3, 4, 255)]
    cases += [("stored with zstd, but its field is not", {"made": records(raw={"codec": 1})}),
              ("stored as planes, but its field is not", {"made": records(packed={"codec": 2})}),
              ("must be none for a scalar", {"manifest": edited('"dtype":"i64","codec":"none"',
                                                                '"dtype":"i64","codec":"zstd"')}),
              ("fields[1].equivalent", {"manifest": edited(
                  '"kind":"bytes","codec":"none"', '"kind":"bytes","codec":"planes"')})]
    check_refused(directory, cases)


def flags_without_a_meaning_are_refused(directory):
    flags = [bit for bit in range(3, 16)]
    cases = [("flags that its codec or encoding does not have", {"made": records(image={"flags": 1 << bit})})
             for bit in flags]
    cases += [("flags that its codec or encoding does not have", {"made": records(raw={"flags": 1 << bit})})
              for bit in range(16)]
    cases += [("must be zero", {"made": records(raw={"zero": 1 << bit})}) for bit in (0, 15)]
    cases += [(f"has flags 0x{1 << bit:x} that this version does not know", {"header": {"flags": 1 << bit}})
              for bit in range(32)]
    check_refused(directory, cases)


def other_versions_orders_and_places_are_refused(directory):
    def end_of_head(head):
        head[-1] = 1
    check_refused(directory, [
        ("its version is 3", {"header": {"version": 3}}),
        ("is of version 1", {"header": {"version": 1}}),
        ("not PSTKSHRD", {"header": {"magic": b"DRHSKTSP"}}),
        ("must be zero", {"header": {"zero": 1}}),
        ("must be zero", {"head": end_of_head}),
        ("is not a file name that a shard may have", {"manifest": edited("shard-000000.pstk", "../0/shard-000000.pstk")}),
        ("is not a file name that a shard may have", {"manifest": edited("shard-000000.pstk", "/shard")}),
    ])


def keys_of_other_subjects_are_refused(directory):
    keys = "deleted tombstones parent shards2 encryption signature generation".split()
    cases = [(f"the key {key} is unknown", edited('"note":', f'"{key}":[],"note":')) for key in keys]
    cases += [("must be a whole number", edited('"n_samples":2', f'"n_samples":{number}'))
              for number in ("2.0", "2e0", "true", "null")]
    cases += [("n_samples is 1099511627777; must be from 0 to 1099511627776",
               edited('"n_samples":2', '"n_samples":1099511627777')),
              ("line", edited('"note":"forged"', '"note":"a\\u0000b"')),
              ("line", edited('"n_samples":2', '"n_samples":9223372036854775808')),
              ("must be from -131072 to 22", edited('"level":0', '"level":23'))]
    check_refused(directory, [(words, {"manifest": manifest}) for words, manifest in cases])


def what_the_text_allows_at_its_edges_is_read(directory):
    def stamp(m):
        m["extra"] = {"note": {"of": [1.5, None, True, "a\u00e9"]}}
    empty = {"stored": b""}
    check_read(directory, [
        {"made": records(raw=empty, packed=empty, text=empty)},
        {"made": records(text={"stored": "\0\U0010ffff\ufeff".encode()})},
        {"manifest": stamp},
        {"manifest": edited('"level":0', '"level":-131072')},
    ])
    check_refused(directory + "/no", [("UTF-8", {"made": records(text={"stored": text})}) for text in
                                      (b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xff", b"\xe2\x82")])


CASES = [what_is_forged_without_a_change_is_read, reserved_features_are_refused_by_name,
         reserved_kinds_and_types_are_refused, reserved_encodings_are_refused, codecs_without_a_meaning_are_refused,
         flags_without_a_meaning_are_refused, other_versions_orders_and_places_are_refused,
         keys_of_other_subjects_are_refused, what_the_text_allows_at_its_edges_is_read]


def main():
    failed = 0
    print("1..%d" % len(CASES))
    for i, case in enumerate(CASES):
        with tempfile.TemporaryDirectory() as directory:
            try:
                case(directory)
                print("ok %d - %s" % (i + 1, case.__name__.replace("_", " ")), flush=True)
            except Exception as e:
                failed += 1
                print("# %s: %s" % (type(e).__name__, e))
                print("not ok %d - %s" % (i + 1, case.__name__.replace("_", " ")), flush=True)
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
