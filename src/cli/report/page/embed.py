# SPDX-License-Identifier: Apache-2.0
"""Put the page together and write it as constants of C.

usage: embed.py PAGE.html PAGE.css PAGE.js LICENCE.txt OUT.c OUT.h [CHART.js]

The page has places for what the command fills in: @TITLE@, @BODY@ and @DATA@. They part it into the four pieces of
enum report_template_piece. Its policy permits only its own two scripts, by their hashes, and no network. Without
CHART.js all pieces are empty.
"""
import base64
import hashlib
import pathlib
import sys

PIECES = ("HEAD", "STYLE", "DATA", "SCRIPT")
HEADER = """/* Made by embed.py. */
#ifndef PSTK_CLI_REPORT_TEMPLATE_H
#define PSTK_CLI_REPORT_TEMPLATE_H

#include <stddef.h>

/* The page up to its title; up to its body; up to its data; the rest. */
enum report_template_piece {{ {pieces} }};

extern const unsigned char *const report_template[];
/* Return the bytes of a piece; 0: this build has no Chart.js. */
size_t report_template_size(enum report_template_piece piece);

#endif
"""
SOURCE = """/* Made by embed.py. */
#include "report_template.h"

{arrays}
const unsigned char *const report_template[] = {{ {names} }};

size_t report_template_size(enum report_template_piece piece)
{{
    static const size_t sizes[] = {{ {sizes} }};
    return sizes[piece];
}}
"""


def read(path):
    return pathlib.Path(path).read_text(encoding="utf-8")


def without_licence_line(text):
    """The file's own line about its licence is the source's, not the page's."""
    first, _, rest = text.partition("\n")
    assert "SPDX-License-Identifier" in first, first
    return rest


def policy_hash(script):
    return "'sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() + "'"


def pieces_of(page, style, script, licence, chart):
    assert "</script" not in chart.lower() and "</script" not in script.lower()
    chart = "/*!\n" + licence.strip() + "\n*/\n" + chart.rsplit("//# sourceMappingURL", 1)[0].strip()
    fixed = {"STYLE": style, "CHART": chart, "SCRIPT": script,
             "SCRIPTS": policy_hash(chart) + " " + policy_hash(script)}
    parts = page.split("@")
    # Names between two @ are replaced; the three that the command fills in part the page.
    pieces, now = [], parts[0]
    for name, text in zip(parts[1::2], parts[2::2]):
        if name in fixed:
            now += fixed[name] + text
        else:
            assert name == ("TITLE", "BODY", "DATA")[len(pieces)], name
            pieces.append(now)
            now = text
    return [*pieces, now]


def array(name, data):
    numbers = [str(byte) for byte in data] + ["0"]
    lines = [",".join(numbers[i:i + 40]) for i in range(0, len(numbers), 40)]
    return f"static const unsigned char {name.lower()}[] = {{\n" + ",\n".join(lines) + "};\n"


def main():
    page, style, script, licence, source, header = sys.argv[1:7]
    chart = sys.argv[7] if sys.argv[7:] else ""
    found = [""] * len(PIECES)
    if chart:
        found = pieces_of(*(without_licence_line(read(path)) for path in (page, style, script, licence)), read(chart))
    data = [text.encode() for text in found]
    names = ", ".join(name.lower() for name in PIECES)
    pathlib.Path(header).write_text(HEADER.format(pieces=", ".join(f"REPORT_TEMPLATE_{name}" for name in PIECES)))
    pathlib.Path(source).write_text(SOURCE.format(
        arrays="\n".join(map(array, PIECES, data)), names=names, sizes=", ".join(str(len(one)) for one in data)))


if __name__ == "__main__":
    main()
