"""How Sphinx builds these pages: ``make docs``. Neither the build nor a reader's browser loads anything from the network."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]

import fairopt as fo  # noqa: E402

warnings_only = logging.StreamHandler()  # otherwise a package of the theme has everybody print what they do
warnings_only.setLevel(logging.WARNING)
logging.getLogger().addHandler(warnings_only)

project = "fairopt"
author = copyright = "the authors of fairopt"
version = release = fo.__version__

extensions = [
    "myst_nb",  # Markdown by myst_parser, and notebooks
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    # Our own, in docs/_ext.
    "commands",
    "docstrings",
    "file_schema",
    "import_fields",
    "mathml",
    "pictures",
    "registries",
    "result_schema",
]
exclude_patterns = ["_build", "_ext"]
default_role = "py:obj"
nitpicky = True
nitpick_ignore_regex = [("py:class", ".*")]  # types in docstrings are prose: "array (users, servers)"

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

# Notebooks are kept without outputs, and run here: from scratch, because fairopt may have changed since.
nb_execution_mode = "force"
nb_execution_timeout = 600  # seconds for a cell
nb_execution_raise_on_error = True
nb_execution_show_tb = True

autodoc_member_order = "bysource"
autosummary_generate = False  # the page of each class is a file of its own, which may say more
autodoc_typehints = "signature"
autodoc_type_aliases = {"npt.ArrayLike": "ArrayLike", **{name: name for name in ("FloatArray", "IntArray", "BoolArray", "Sharing")}}
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
add_module_names = False

html_theme = "furo"
html_title = f"fairopt {version}"
html_static_path = ["_static"]
html_css_files = ["fairopt.css"]
html_copy_source = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
