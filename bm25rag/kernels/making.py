"""Objects of Python of which a question needs many, made without a step of Python for each."""

from __future__ import annotations

import cython

from bm25rag.kernels.checks import require

if not cython.compiled:
    set_attribute = object.__setattr__

    def new_object(kind: type) -> object:
        """Return an object whose attributes are not set."""
        return kind.__new__(kind)


def make_unread(kind, ids, scores, contents):
    """Make hits; see ``Backend.make_unread``."""
    hits: list = []
    own_ids: list = list(ids)  # which nothing that is called here changes
    own_scores: list = list(scores)
    position: cython.Py_ssize_t
    require(len(own_ids) == len(own_scores), "ids and scores differ in length")
    for position in range(len(own_ids)):
        hit = new_object(kind)
        hit.id = own_ids[position]
        hit.score = own_scores[position]
        hit._contents = contents
        hit._position = position
        hits.append(hit)
    return hits


def make_models(kind, each, given):
    """Make models of Pydantic; see ``Backend.make_models``."""
    models: list = []
    for values in each:
        model = new_object(kind)
        set_attribute(model, "__dict__", values)
        set_attribute(model, "__pydantic_fields_set__", set(given))
        set_attribute(model, "__pydantic_extra__", None)
        set_attribute(model, "__pydantic_private__", None)
        models.append(model)
    return models
