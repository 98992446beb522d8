"""Objects of Python of which a question needs many, made without a step of Python for each."""

from __future__ import annotations

import cython

from bm25rag.kernels.checks import require

if not cython.compiled:
    set_attribute = object.__setattr__

    def set_dict(instance: object, values: dict[str, object], context: None) -> None:
        """Set what holds the attributes that are no slots."""
        set_attribute(instance, "__dict__", values)

    def check_kind(kind: type) -> None:
        """Raise if objects of a class cannot be made, which interpreted code learns by making."""

    def new_object(kind: type) -> object:
        """Return an object whose attributes are not set."""
        return kind.__new__(kind)

    def replace(items: list, start: int, stop: int, others: list) -> None:
        """Put other items in the place of some."""
        items[start:stop] = others

    def slot_of(kind: type, name: str) -> int:
        """Return where a slot is, which interpreted code does not know."""
        return 0

    def set_slot(instance: object, slot: int, name: str, value: object) -> None:
        """Set a slot, or an attribute."""
        set_attribute(instance, name, value)


@cython.boundscheck(True)  # who is called here might change the lists
def make_hits(kinds, answer, ids: list, scores: list, counts):
    """Make the hits of some queries; see ``Backend.make_hits``."""
    made: list = []
    kind, listing, holding = kinds
    for made_of in kinds:
        check_kind(made_of)
    first: cython.Py_ssize_t = 0
    last: cython.Py_ssize_t
    count: cython.Py_ssize_t
    place: cython.Py_ssize_t
    number: cython.Py_ssize_t
    id_slot: cython.Py_ssize_t = slot_of(kind, "id")
    score_slot: cython.Py_ssize_t = slot_of(kind, "score")
    contents_slot: cython.Py_ssize_t = slot_of(kind, "_contents")
    position_slot: cython.Py_ssize_t = slot_of(kind, "_position")
    answer_slot: cython.Py_ssize_t = slot_of(holding, "_answer")
    query_slot: cython.Py_ssize_t = slot_of(holding, "_query")
    first_slot: cython.Py_ssize_t = slot_of(holding, "_first")
    last_slot: cython.Py_ssize_t = slot_of(holding, "_last")
    read_slot: cython.Py_ssize_t = slot_of(holding, "_read")
    if len(scores) != len(ids):
        require(False, "hits differ in number")
    for number, count in enumerate(counts):
        last = first + count
        if not first <= last <= len(ids):
            require(False, "queries have other hits than there are")
        contents = new_object(holding)
        set_slot(contents, answer_slot, "_answer", answer)
        set_slot(contents, query_slot, "_query", number)
        set_slot(contents, first_slot, "_first", first)
        set_slot(contents, last_slot, "_last", last)
        set_slot(contents, read_slot, "_read", {})
        own_hits: list = [None] * count  # a list that grows is moved several times
        for place in range(first, last):
            hit = new_object(kind)
            set_slot(hit, id_slot, "id", ids[place])
            set_slot(hit, score_slot, "score", scores[place])
            set_slot(hit, contents_slot, "_contents", contents)
            set_slot(hit, position_slot, "_position", place - first)
            own_hits[place - first] = hit
        hits = new_object(listing)
        replace(hits, 0, 0, own_hits)
        made.append(hits)
        first = last
    return made


def make_models(like, columns):
    """Make models of Pydantic; see ``Backend.make_models``."""
    shared: dict = like.__dict__.copy()
    names: list = list(columns)
    each: list = [list(columns[name]) for name in names]
    given = frozenset(names)
    # What no two models may have in common.
    of_lists: list = [name for name in shared if type(shared[name]) is list and name not in given]
    of_dicts: list = [name for name in shared if type(shared[name]) is dict and name not in given]
    kind = type(like)
    check_kind(kind)
    given_slot: cython.Py_ssize_t = slot_of(kind, "__pydantic_fields_set__")
    extra_slot: cython.Py_ssize_t = slot_of(kind, "__pydantic_extra__")
    private_slot: cython.Py_ssize_t = slot_of(kind, "__pydantic_private__")
    count: cython.Py_ssize_t = len(each[0]) if each else 0
    position: cython.Py_ssize_t
    place: cython.Py_ssize_t
    models: list = [None] * count
    for own in each:
        if len(own) != count:
            require(False, "columns differ in length")
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
        set_dict(model, values, cython.NULL if cython.compiled else None)
        set_slot(model, given_slot, "__pydantic_fields_set__", set(given))
        set_slot(model, extra_slot, "__pydantic_extra__", None)
        set_slot(model, private_slot, "__pydantic_private__", None)
        models[position] = model
    return models
