# SPDX-License-Identifier: Apache-2.0
"""Plain text of comments and docstrings as reStructuredText: paragraphs, lists of names, indented blocks."""
import re

ENTRY = re.compile(r"[A-Za-z_]\w*(, [A-Za-z_]\w*)*: ")  # "rank, world: this process, of how many"


def inline(text, symbols=None):
    """Return one paragraph's text. symbols: the role of each name that the reference has."""
    pieces = re.split(r"(`[^`]+`|\b(?:pstk_\w+(?:\.\w+)?|PSTK_\w+)\b(?!\*))", text)
    done = []
    for i, piece in enumerate(pieces):
        if i % 2 == 0:
            done.append(re.sub(r"([\\*`|_])", r"\\\1", piece))
            continue
        name = piece.strip("`")
        role = (symbols or {}).get(name)
        done.append(rf"\ :c:{role}:`{name}`\ " if role else rf"\ ``{name.strip()}``\ ")
    return "".join(done).strip().removesuffix("\\").strip()


def paragraphs(text):
    """Yield (indentation, lines) of each run of lines between blank ones."""
    for part in re.split(r"\n[ \t]*\n", text.strip("\n")):
        lines = [line.rstrip() for line in part.split("\n")]
        yield min(len(line) - len(line.lstrip()) for line in lines), lines


def flowing(lines, symbols, lists):
    """Return a paragraph, or a list where its lines begin with names: lines of reStructuredText."""
    groups = [[]]
    for line in lines:
        if lists and ENTRY.match(line):
            groups.append([])
        groups[-1].append(line)
    head, entries = groups[0], groups[1:]
    out = [inline(" ".join(line.strip() for line in head), symbols), ""] if head else []
    for entry in entries:
        names, _, rest = " ".join(line.strip() for line in entry).partition(": ")
        out += [f"- **{inline(names)}**: {inline(rest, symbols)}", ""]
    return out


def to_rst(text, symbols=None, lists=False):
    """Return lines of reStructuredText. lists: lines that begin with `name:` are items, as in docstrings."""
    out = []
    for indent, lines in paragraphs(text):
        at = next((i for i, line in enumerate(lines) if not line.startswith(" ")), len(lines))
        table = [i for i, line in enumerate(lines) if line.startswith("  ")]
        entries = lists and any(ENTRY.match(line) for line in lines)
        if indent >= 2 or at:
            out += ["::", "", *("   " + line for line in lines), ""]
        elif table and not entries:  # a sentence, then an indented table
            out += flowing(lines[:table[0]], symbols, lists)
            block = lines[table[0]:]
            last = max(i for i, line in enumerate(block) if line.startswith("  ")) + 1
            out += ["::", "", *("   " + line for line in block[:last]), ""]
            out += flowing(block[last:], symbols, lists) if block[last:] else []
        else:
            out += flowing(lines, symbols, lists)
    return out
