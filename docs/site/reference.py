# SPDX-License-Identifier: Apache-2.0
"""Sphinx extension: public headers as pages of their own, the command's help, docstrings, and the README."""
import os
import pathlib
import re
import subprocess

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.parsers import RSTParser
from sphinx.util.nodes import nested_parse_with_titles

import headers
import prose

TOP = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = TOP / "include/penstock"


class HeaderParser(RSTParser):
    """The reference of one public header."""

    supported = ("header",)

    def parse(self, inputstring, document):
        every = headers.c_headers(INCLUDE)
        name = pathlib.Path(document.settings.env.docname).name + ".h"
        header = next(one for one in every if one.name == name)
        title = f"<penstock/{name}>"
        super().parse("\n".join([title, "=" * len(title), "", *headers.rst_of(header, every), ""]), document)


def help_of(*words):
    command = os.environ["PENSTOCK_COMMAND"]
    done = subprocess.run([command, *words, "--help"], stdout=subprocess.PIPE, check=True, text=True)
    return ["::", "", *headers.indented(done.stdout.rstrip().split("\n")), ""]


class CommandsDirective(Directive):
    """A section for each command, with what `penstock --help` and `penstock COMMAND --help` print."""

    def run(self):
        lines = help_of()
        commands = re.search(r"commands:\n(.*?)\n\n", "\n".join(line[3:] for line in lines), re.S)[1]
        for name in re.findall(r"^  (\w+) ", commands, re.M):
            title = f"penstock {name}"
            lines += [title, "-" * len(title), "", *help_of(name)]
        node = nodes.section()
        node.document = self.state.document
        nested_parse_with_titles(self.state, StringList(lines, "penstock --help"), node)
        return node.children


def put_readme(app, docname, source):
    """Put the README, up to its own list of pages, at the top of the first page. Links lead from there."""
    if docname == app.config.root_doc:
        text = (TOP / "README.md").read_text(encoding="utf-8").partition("## Where to read on")[0]
        folder = os.path.dirname(docname)
        text = re.sub(r"\]\((?!\w+:)([^)#]+)", lambda link: "](" + os.path.relpath(link[1], folder), text)
        source[0] = text + source[0]


def docstring(app, what, name, thing, options, lines):
    """A docstring as reStructuredText."""
    lines[:] = prose.to_rst("\n".join(lines), lists=True)


def setup(app):
    app.add_source_suffix(".h", "header")
    app.add_source_parser(HeaderParser)
    app.add_directive("commands", CommandsDirective)
    app.connect("source-read", put_readme)
    app.connect("autodoc-process-docstring", docstring)
    return {"parallel_read_safe": True}
