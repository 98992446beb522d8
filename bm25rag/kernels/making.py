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


def make_models(like, columns):
    """Make models of Pydantic; see ``Backend.make_models``."""
    models: list = []
    shared: dict = like.__dict__.copy()
    names: list = list(columns)
    each: list = [list(columns[name]) for name in names]
    given = frozenset(names)
    # What no two models may have in common.
    of_lists: list = [name for name in shared if type(shared[name]) is list and name not in given]
    of_dicts: list = [name for name in shared if type(shared[name]) is dict and name not in given]
    kind = type(like)
    count: cython.Py_ssize_t = len(each[0]) if each else 0
    position: cython.Py_ssize_t
    place: cython.Py_ssize_t
    for own in each:
        require(len(own) == count, "columns differ in length")
    for position in range(count):
        values: dict = shared.copy()
        for name in of_lists:
            values[name] = list(values[name])
        for name in of_dicts:
            values[name] = dict(values[name])
        for place in range(len(names)):
            column: list = each[place]
            values[names[place]] = column[position]
        model = new_object(kind)
        set_attribute(model, "__dict__", values)
        set_attribute(model, "__pydantic_fields_set__", set(given))
        set_attribute(model, "__pydantic_extra__", None)
        set_attribute(model, "__pydantic_private__", None)
        models.append(model)
    return models
