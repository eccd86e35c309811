# SPDX-License-Identifier: Apache-2.0
"""The public headers as reStructuredText of Sphinx's C domain: each declaration with the comment at it.

A comment belongs to the declaration below it, or to the member or enumerator whose line it is on. One that a blank
line follows stands for itself; `---- title ----` in it begins a section.
"""
import re

import prose

COMMENT = re.compile(r"/\*.*?\*/", re.S)
STATEMENT = re.compile(r"[ \t]*#(?:[^\n]*\\\n)*[^\n]*"      # a directive of the preprocessor
                       r"|(?:struct|union|enum)\s+\w+\s*\{[^}]*\}\s*;"
                       r"|[^\s;{}][^;{}]*;"
                       r"|[^\s;{}][^;{}\n]*\{|\}", re.S)  # extern "C"
SECTION = re.compile(r"\s*-{3,}\s*(.*?)\s*-{3,}")


class NotUnderstood(Exception):
    """A piece of a header that this program cannot read."""


def said(comment):
    """Return a comment's text without its frame."""
    lines = [re.sub(r"^[ \t]*\*? ?", "", line, count=0 if i == 0 else 1)
             for i, line in enumerate(comment[2:-2].split("\n"))]
    lines[0] = lines[0].strip()
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def spaced(code):
    return re.sub(r"\s+", " ", code).strip()


class Item:
    """One declaration, or text (kind "text", "section")."""

    def __init__(self, kind, name, code, text="", members=()):
        self.kind, self.name, self.code, self.text, self.members = kind, name, code, text, list(members)


def pieces(text):
    """Yield (is a comment, text, where it begins, where it ends)."""
    at = 0
    for match in COMMENT.finditer(text):
        if text[at:match.start()].strip():
            yield False, text[at:match.start()], at, match.start()
        yield True, match[0], match.start(), match.end()
        at = match.end()
    if text[at:].strip():
        yield False, text[at:], at, len(text)


def name_of_member(code):
    match = re.search(r"\(\s*\*\s*(\w+)\s*\)", code) or re.search(r"(\w+)\s*(?:\[[^]]*\]\s*)*(?:=.*)?$", code, re.S)
    return match[1]


def members_of(body, separator, kind):
    """Return the members of a struct or a union, or the enumerators: (items, what a comment before the first says of
    all)."""
    items, open_item, waiting, whole = [], None, "", ""
    for is_comment, text, begin, end in pieces(body):
        if not is_comment:
            parts = text.split(separator)
            for i, part in enumerate(parts):
                if part.strip():
                    if open_item is None:
                        open_item = Item(kind, "", "", waiting)
                        waiting = ""
                        items.append(open_item)
                    open_item.code += " " + part
                if i < len(parts) - 1:
                    open_item = None
            continue
        here = body.rfind("\n", 0, begin) + 1
        if body[here:begin].strip() and items:  # on the line of what it describes
            items[-1].text = (items[-1].text + "\n" + said(text)).strip("\n")
        elif not items and "\n" not in body[:begin]:
            whole = said(text)  # after the brace
        elif re.match(r"[ \t]*\n[ \t]*\n", body[end:]):
            items.append(Item("text", "", "", said(text)))
        else:
            waiting = (waiting + "\n" + said(text)).strip("\n")
    for item in items:
        item.code = spaced(item.code)
        item.name = name_of_member(item.code) if item.kind != "text" else ""
    return items, whole


def split_members(items):
    """Yield `uint32_t a, b` as two members."""
    for item in items:
        match = re.fullmatch(r"([\w ]+?)(\w+(?:, \w+)+)", item.code)
        if item.kind == "member" and match:
            for i, name in enumerate(match[2].split(", ")):
                yield Item("member", name, match[1] + name, item.text if i == 0 else "")
        else:
            yield item


class Header:
    """head: the comment on top; items: what follows, in order."""

    def __init__(self, path):
        text = path.read_text(encoding="utf-8")
        self.name, self.items, self.macros = path.name, [], {}
        text = text.replace("/* SPDX-License-Identifier: Apache-2.0 */\n", "", 1)
        match = COMMENT.match(text.lstrip())
        self.head = said(match[0]) if match else ""
        self.text = text.lstrip()[match.end():] if match else text
        self.parse()

    def parse(self):
        text, at, waiting = self.text, 0, ""
        while True:
            blank = re.compile(r"\s*").match(text, at)
            if blank[0].count("\n") > 1 and waiting:
                self.words(waiting)
                waiting = ""
            at = blank.end()
            if at == len(text):
                break
            comment, statement = COMMENT.match(text, at), self.statement(text, at)
            if comment:
                trailing = "\n" not in blank[0] and self.items and at
                if trailing and self.items[-1].kind != "section":
                    self.items[-1].text = self.items[-1].text or said(comment[0])
                else:
                    waiting = (waiting + "\n" + said(comment[0])).strip("\n")
                at = comment.end()
            elif statement is not None:
                self.declaration(text[at:statement], waiting)
                waiting, at = "", statement
            else:
                raise NotUnderstood(f"{self.name}: {text[at:at + 60]!r}")
        if waiting:
            self.words(waiting)

    @staticmethod
    def statement(text, at):
        """Return the end of the statement that begins at `at`; braces in comments do not count."""
        blanked = COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text[at:])
        match = STATEMENT.match(blanked)
        return None if match is None else at + len(match[0].rstrip())

    def words(self, text):
        title = SECTION.match(text)
        if title:
            self.items.append(Item("section", "", title[1]))
            text = text[title.end():].strip("-\n ")
        if text:
            self.items.append(Item("text", "", "", text))

    def declaration(self, code, text):
        if code.lstrip().startswith("#"):
            self.macro(code, text)
            return
        match = re.match(r"(struct|union|enum)\s+(\w+)\s*\{(.*)\}\s*;$", code, re.S)
        if match:
            kind, name, body = match[1], match[2], match[3]
            members, whole = members_of(self.enumerators(body), *(",", "enumerator") if kind == "enum" else
                                        (";", "member"))
            text = "\n".join(part for part in (text, whole) if part)
            self.items.append(Item(kind, name, name, text, split_members(members)))
            return
        code = spaced(COMMENT.sub("", code)).rstrip(";")
        if code.startswith("PSTK_API "):
            code = code[len("PSTK_API "):]
            self.items.append(Item("function", re.search(r"(\w+)\s*\(", code)[1], code, text))
        elif code.startswith("typedef "):
            code = code[len("typedef "):]
            self.items.append(Item("type", name_of_member(code.split(")(")[0] + ")"), code, text))
        elif re.fullmatch(r"struct \w+", code):
            self.items.append(Item("opaque", code[7:], code[7:], text))
        elif text:
            raise NotUnderstood(f"{self.name}: {code!r} has a comment")

    def macro(self, code, text):
        match = re.match(r"\s*#\s*define\s+(\w+)(\([^)]*\))?[ \t]*(.*)", code, re.S)
        if not match or match[1].startswith("PENSTOCK_") or match[1] in ("PSTK_API", "X"):
            if text:
                self.words(text)
            return
        trailing = COMMENT.search(match[3])
        if trailing and not text:
            text = said(trailing[0])
        body = COMMENT.sub("", match[3]).strip()
        self.macros[match[1]] = body.replace("\\\n", "\n")
        if body:
            self.items.append(Item("macro", match[1], match[1] + (match[2] or ""), text, [body]))

    def enumerators(self, body):
        """Replace an X macro in an enum by the enumerators that it makes."""
        body = re.sub(r"^[ \t]*#.*\n", "", body, flags=re.M)
        for name, macro in self.macros.items():
            rows = re.findall(r'X\((\w+),\s*([^,]+),\s*"([^"]*)"\)', macro)
            body = re.sub(rf"\b{name}\(X\)", "\n".join(f"{n} = {v}, /* {t} */" for n, v, t in rows), body)
        return body


def symbols_of(headers):
    """Return the role of each name, in Sphinx's C domain."""
    roles, found = {"opaque": "struct", "function": "func"}, {}
    for header in headers:
        for item in header.items:
            if item.name:
                found[item.name] = roles.get(item.kind, item.kind)
            for member in item.members if item.kind in ("struct", "union", "enum") else ():
                if member.kind == "enumerator":
                    found[member.name] = "enumerator"
                elif member.kind == "member":
                    found[f"{item.name}.{member.name}"] = "member"
    return found


def indented(lines, by="   "):
    return [by + line if line else "" for line in lines]


def rst_of_item(item, symbols):
    if item.kind == "section":
        return [item.code[:1].upper() + item.code[1:], "-" * len(item.code), ""]
    text = prose.to_rst(item.text, symbols) if item.text else []
    if item.kind == "text":
        return text
    if item.kind == "macro":
        lines = [line.rstrip("\\ ").strip() for line in item.members[0].split("\n")]
        lines = [line for line in lines if line]
        value = ["::", "", *indented(lines), ""] if len(lines) > 1 else [f"Value: ``{spaced(lines[0])}``", ""]
        return [f".. c:macro:: {item.code}", "", *indented(text + value)]
    directive = {"opaque": "struct"}.get(item.kind, item.kind)
    out = [f".. c:{directive}:: {item.code}", "", *indented(text)]
    for member in item.members:
        if member.kind == "text":
            out += indented([".. rubric:: " + prose.inline(spaced(member.text)), ""])
            continue
        out += indented([f".. c:{member.kind}:: {member.code}", "",
                         *indented(prose.to_rst(member.text, symbols) if member.text else [])])
    return out


def place_of(opaque, headers):
    """Return the declaration of a struct to document: the whole one, else the first that has a comment."""
    found = [item for header in headers for item in header.items
             if item.name == opaque.name and (item.kind == "struct" or item.kind == "opaque" and item.text)]
    return min(found, key=lambda item: item.kind == "opaque", default=None)


def rst_of(header, headers):
    """Return the page of a header: lines of reStructuredText. Fails where a declaration is missing in it."""
    symbols = symbols_of(headers)
    out = ["::", "", *indented(header.head.split("\n")), ""] if header.head else []
    for item in header.items:
        if item.kind == "opaque" and item is not place_of(item, headers):
            continue
        out += rst_of_item(item, symbols)
    expected = set(re.findall(r"^PSTK_API [^;]*?(\w+)\(", COMMENT.sub("", header.text), re.M))
    missing = sorted(expected - {item.name for item in header.items if item.kind == "function"})
    if missing:
        raise NotUnderstood(f"{header.name}: not in the reference: {', '.join(missing)}")
    return out


def c_headers(folder):
    return [Header(path) for path in sorted(folder.glob("*.h"))]
