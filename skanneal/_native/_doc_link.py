"""Where the page of a public class is, for the link in scikit-learn's HTML representation."""

# SPDX-License-Identifier: BSD-3-Clause

DOCUMENTATION = "https://skanneal.readthedocs.io/en/latest"


class DocLink:
    """Base of what has parameters and a page of its own; stands before scikit-learn's."""

    _doc_link_module = "skanneal"
    _doc_link_template = DOCUMENTATION + "/generated/{estimator_module}.{estimator_name}.html"

    def _doc_link_url_param_generator(self):
        """The page's name: that of the public module, and the class."""
        module = type(self).__module__.split("._")[0].removesuffix(".estimators")
        return {"estimator_module": module, "estimator_name": type(self).__name__}
