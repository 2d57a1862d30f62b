"""The documentation's site: `make docs` builds it without a network, and a warning is an error."""

from importlib.metadata import version as version_of

import latex2mathml.converter
from docutils.nodes import Element, SkipNode
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

project = "accord"
author = copyright = "The accord authors"
version = release = version_of("accord")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_click"]
exclude_patterns = ["_build"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

nb_execution_mode = "cache"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_merge_streams = True

default_role = "literal"
autodoc_member_order = "bysource"
autodoc_typehints = "description"

html_theme = "furo"
html_title = "accord"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False


def inline_math(writer: HTML5Translator, node: Element) -> None:
    """A formula in a line, as MathML, which browsers set themselves: no script, nothing that is fetched."""
    writer.body.append(latex2mathml.converter.convert(node.astext()))
    raise SkipNode


def displayed_math(writer: HTML5Translator, node: Element) -> None:
    """A formula on a line of its own."""
    writer.body.append(latex2mathml.converter.convert(node.astext(), display="block"))
    raise SkipNode


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (inline_math, None), (displayed_math, None))
