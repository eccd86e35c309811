# SPDX-License-Identifier: Apache-2.0
"""The site that `make doc` builds of the repository's pages, headers and docstrings. scripts/doc runs it."""
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(pathlib.Path(__file__).parent), str(TOP / "bindings/python")]

project = "penstock"
version = release = re.search(r"version: '([^']+)'", (TOP / "meson.build").read_text())[1]
copyright = "the penstock authors, Apache-2.0"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "reference"]
root_doc = "docs/index"
include_patterns = ["docs/**", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md",
                    "CHANGELOG.md", "benchmarks/*.md", "include/penstock/*.h"]
exclude_patterns = ["build*", ".*", "src", "tests", "bindings", "demo", "docs/site"]
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
smartquotes = False  # docstrings and comments quote code
highlight_language = "none"  # for blocks that name no language: drawings
html_theme = "furo"
html_title = f"penstock {version}"
html_copy_source = False
html_show_sphinx = False
html_static_path = ["style"]
html_css_files = ["site.css"]
templates_path = ["templates"]
autosummary_generate_overwrite = True  # the pages of classes, in docs/reference/api
autosummary_context = {"shown_members": {"penstock.monitor.Prometheus": "begin, close", "penstock.monitor.TextFile": "close"}}
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "undoc-members": False}
toc_object_entries = False
python_use_unqualified_type_names = True
maximum_signature_line_length = 90
c_maximum_signature_line_length = 90
