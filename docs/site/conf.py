"""How Sphinx builds the site; ``tools/build_site.py`` gathers the pages."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

# autodoc would import them as type checkers do, which LlamaIndex does not survive.
for page in Path(__file__).parent.glob("reference/*.md"):
    for name in re.findall(r"automodule:: (\S+)", page.read_text(encoding="utf-8")):
        importlib.import_module(name)

project = "bm25rag"
author = "The bm25rag authors"
html_show_copyright = False

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["built"]
html_theme = "furo"
html_title = "bm25rag"
html_favicon = html_logo = "docs/logo.svg"
html_copy_source = False
html_theme_options = {"sidebar_hide_name": False}

# Anchors as in the links of the pages, which GitHub makes.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
# The second build of tools/build_site.py finds what the first has run.
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_mime_priority_overrides = [("markdown", "text/plain", 0)]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_rtype = False
suppress_warnings = [
    "myst.header",  # the changelog's levels are those of Keep a Changelog
    "misc.highlighting_failure",  # a console shows what a program prints
]


def setup(app: Sphinx) -> None:
    """Let the Markdown twins show the signs of a signature, for which their builder has no rule."""

    def show(*_: object) -> None: ...

    app.add_node(nodes.abbreviation, override=True, markdown=(show, show))
