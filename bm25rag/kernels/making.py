"""Objects of Python of which a question needs many, made without a step of Python for each."""

from __future__ import annotations

import cython

from bm25rag.kernels.checks import require

if not cython.compiled:
    append = list.append
    set_attribute = object.__setattr__

    def new_object(kind: type) -> object:
        """Return an object whose attributes are not set."""
        return kind.__new__(kind)


def make_hits(kinds, answer, query, columns, counts):
    """Make the hits of some queries; see ``Backend.make_hits``."""
    made: list = []
    kind, listing, holding = kinds
    numbers, rows, ids, scores = columns
    # Lists which nothing that is called here changes.
    own_numbers: list = list(numbers)
    own_rows: list = list(rows)
    own_ids: list = list(ids)
    own_scores: list = list(scores)
    first: cython.Py_ssize_t = 0
    last: cython.Py_ssize_t
    count: cython.Py_ssize_t
    place: cython.Py_ssize_t
    number: cython.Py_ssize_t = query
    for own in (own_numbers, own_rows, own_scores):
        require(len(own) == len(own_ids), "hits differ in number")
    for count in counts:
        last = first + count
        require(first <= last <= len(own_ids), "queries have other hits than there are")
        contents = new_object(holding)
        contents._answer = answer
        contents._query = number
        contents._numbers = own_numbers[first:last]
        contents._rows = own_rows[first:last]
        contents._ids = own_ids[first:last]
        contents._scores = own_scores[first:last]
        contents._read = {}
        hits = new_object(listing)
        for place in range(first, last):
            hit = new_object(kind)
            hit.id = own_ids[place]
            hit.score = own_scores[place]
            hit._contents = contents
            hit._position = place - first
            append(hits, hit)
        made.append(hits)
        first = last
        number += 1
    return made


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
