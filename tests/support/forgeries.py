"""Ways to forge a folder: each changes what it means and keeps its checksums valid."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

from support.forging import (
    Arrays,
    Folder,
    change_string,
    empty,
    put_ids,
    put_strings,
    put_terms,
    repeat_string,
    size,
    strings,
)

Forge = Callable[[Folder, Random], None]


WRONG_METADATA = [
    b"[]", b"1", b'"x"', b"null", b"{", b"", b"\xff", b'{"n":1,"n":2}', b'{"$a":1,"a":2}',
    b'{"$date":"2024-01-01"}', b'{"n":{"$date":5}}', b'{"n":{"$date":"no"}}',
    b'{"n":{"\\u0024date":"2024-01-01"}}', b'{"\\u0024a":1}', b'{"n":"\\\\u0024"}',
    b'{"n":{"$datetime":"2024-13-01"}}', b'{"n":{"$datetime":"2024-01-01","m":1}}',
    b'{"n":' + b"[" * 150 + b"]" * 150 + b"}", b'{"n":' * 200 + b"1" + b"}" * 200,
    b"[" * 100_000, b'{"n":NaN}', b'{"n":1e999}', b'{"n":1' + b"0" * 400 + b"}",
    b'{"n":1' + b"0" * 5000 + b"}", b'{"n": 1 }', b'{"n":[1', b'2]},{"n":1}', b"{},{}",
    b'{"":{"$$":1}}', b'{"$$$a":{"$$":[]}}', b'{"n":"\\ud800"}', b'{"n":[{"n":[1,{}]}]}',
]  # fmt: skip


WRONG_SETTINGS = [
    None, True, 5, 1.5, "", "x", [], ["cat"], [1], {}, "(", "(" * 5000, "a{99999999999999}", "os",
]  # fmt: skip


WRONG_WEIGHTS = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e31, 1e-45, 1.0]


WRONG_TEXTS = [b"\xff", b"\xc3", b"\xa9x", b"\xed\xa0\x80", b"", b"\x00", None]


def any_segment(folder: Folder, random: Random) -> Arrays:
    return random.choice(folder.pieces).segment


def any_element(folder: Folder, random: Random) -> None:
    """Change one element of any array, mostly to the value of another place."""
    piece = random.choice(folder.pieces)
    arrays = random.choice([piece.segment, *piece.changes])
    name = random.choice([name for name in arrays if len(arrays[name])])
    values = arrays[name].copy()
    place, other = random.randrange(len(values)), random.randrange(len(values))
    limit = 2 if values.dtype == np.bool_ else int(np.iinfo(values.dtype).max) + 1
    match random.randrange(6):
        case 0:
            values[place] = values[other]
        case 1:
            values[[place, other]] = values[[other, place]]
        case 2:
            values[place] = (int(values[place]) + 1) % limit
        case 3:
            values[place] = (int(values[place]) - 1) % limit
        case 4:
            values[place] = random.randrange(limit)
        case _:
            values = np.insert(np.delete(values, place), other, values[place])
    arrays[name] = values


def any_length(folder: Folder, random: Random) -> None:
    """Make an array longer or shorter, or reverse it."""
    piece = random.choice(folder.pieces)
    arrays = random.choice([piece.segment, *piece.changes])
    name = random.choice(list(arrays))
    values = arrays[name]
    ways = [values[:0], values[:-1], np.append(values, values[-1:]), values[::-1].copy()]
    arrays[name] = random.choice(ways)


def terms(folder: Folder, random: Random) -> None:
    """Duplicate terms, put them out of order, under wrong keys, or make them invalid text."""
    arrays = any_segment(folder, random)
    name = random.choice([name[:-5] for name in arrays if name.endswith("terms.keys")])
    values = [value or b"" for value in strings(arrays, name, size(arrays, name))]
    if not values:
        return
    place, other = random.randrange(len(values)), random.randrange(len(values))
    keys = arrays[f"{name}.keys"].copy()
    match random.randrange(7):
        case 0 | 1:
            values[place] = values[other]
            put_terms(arrays, values, name=name)
        case 2:
            put_terms(arrays, sorted(values), ordered=False, name=name)
        case 3:
            keys[[place, other]] = keys[[other, place]]
            arrays[f"{name}.keys"] = keys
        case 4:
            arrays[f"{name}.keys"] = np.full_like(keys, random.choice(keys))
        case 5:
            arrays[f"{name}.keys"] = np.sort(keys + np.uint32(random.choice((0, 1))))
            put_strings(arrays, name, random.sample(values, len(values)))
        case _:
            values[place] = random.choice(WRONG_TEXTS) or b""
            put_terms(arrays, values, name=name)


def ids(folder: Folder, random: Random) -> None:
    """Duplicate ids, within a segment or across two, or put them under wrong keys."""
    arrays = any_segment(folder, random)
    values = [value or b"" for value in strings(arrays, "ids", size(arrays, "ids"))]
    place, order = random.randrange(len(values)), arrays["ids.order"].copy()
    others = any_segment(folder, random)
    match random.randrange(5):
        case 0:
            values[place] = random.choice(values)
            put_ids(arrays, values)
        case 1:
            values[place] = random.choice(strings(others, "ids", size(others, "ids"))) or b""
            put_ids(arrays, values)
        case 2:
            arrays["ids.order"] = np.array(random.sample(order.tolist(), len(order)), np.uint32)
        case 3:
            order[place] = random.choice(order)
            arrays["ids.order"] = order
        case _:
            values[place] = random.choice(WRONG_TEXTS) or b""
            put_ids(arrays, values)


def columns(folder: Folder, random: Random) -> None:
    """Change strings, and which of them are missing."""
    arrays = any_segment(folder, random)
    name = random.choice(["texts", "metadata", "payloads", "fields.strings", "fields.paths"])
    if f"{name}.offsets" not in arrays:
        return
    offsets, null = arrays[f"{name}.offsets"].copy(), arrays[f"{name}.null"].view(np.uint8).copy()
    match random.randrange(7):
        case 0:
            repeat_string(arrays, name, random)
        case 1:
            new = WRONG_METADATA if name == "metadata" else WRONG_TEXTS
            change_string(arrays, name, random, random.choice(new))
        case 2 if len(offsets) > 2:
            offsets[random.randrange(1, len(offsets) - 1)] += np.uint64(1)
            arrays[f"{name}.offsets"] = offsets
        case 3 if len(offsets):
            offsets[random.choice((0, -1))] = len(arrays[f"{name}.data"]) // 2
            arrays[f"{name}.offsets"] = offsets
        case 4:
            arrays[f"{name}.data"] = np.append(arrays[f"{name}.data"], np.uint8(65))
        case 5 if len(null):
            null[random.randrange(len(null))] = random.choice((0, 1, 2, 255))
            arrays[f"{name}.null"] = null.view(np.bool_)
        case _:
            arrays[f"{name}.null"] = np.zeros(size(arrays, name), np.bool_)


def metadata(folder: Folder, random: Random) -> None:
    """Replace metadata with invalid values, in segments or in changes."""
    piece = random.choice(folder.pieces)
    wrong = random.choice(WRONG_METADATA)
    if piece.changes and random.random() < 0.5:
        arrays = random.choice(piece.changes)
        count = len(arrays["changed"])
    else:
        arrays, count = piece.segment, len(piece.segment["lengths"])
        if random.random() < 0.5:
            for name in [name for name in arrays if name.startswith("fields.")]:
                del arrays[name]
    values = strings(arrays, "metadata", count)
    if values:
        place = random.randrange(len(values))
        values[place] = wrong
        if wrong == b'{"n":[1' and place + 1 < count:
            values[place + 1] = b'2]},{"n":1}'
        put_strings(arrays, "metadata", values)


def postings(folder: Folder, random: Random) -> None:
    """Change postings so that each number stays in its range."""
    piece = random.choice(folder.pieces)
    arrays = piece.segment
    indptr = arrays["indptr"].astype(np.int64)
    if len(indptr) < 2:
        return
    term = random.randrange(len(indptr) - 1)
    own = slice(indptr[term], indptr[term + 1])
    documents, codes = arrays["documents"].copy(), arrays["codes"].copy()
    lengths = arrays["lengths"].copy()
    match random.randrange(8):
        case 0:
            documents[own] = documents[own][::-1]
        case 1:
            documents[own] = documents[random.randrange(len(documents))]
        case 2:
            codes[own] = random.randrange(len(arrays["code_tf"]))
        case 3:
            codes[:] = random.sample(codes.tolist(), len(codes))
        case 4:
            lengths[:] = random.sample(lengths.tolist(), len(lengths))
        case 5:
            lengths[random.randrange(len(lengths))] += np.uint32(1)
            piece.add_tokens(1)
        case 6:
            name = random.choice(("code_tf", "code_length"))
            values = arrays[name].copy()
            values[random.randrange(len(values))] += np.uint32(1)
            arrays[name] = values
        case _:
            bounds = arrays["indptr"].copy()
            bounds[random.randrange(len(bounds))] = random.choice(bounds)
            arrays["indptr"] = bounds
    arrays["documents"], arrays["codes"], arrays["lengths"] = documents, codes, lengths


def vectors(folder: Folder, random: Random) -> None:
    """Change postings and weights of vectors, or remove arrays of them."""
    piece = random.choice(folder.pieces)
    arrays = piece.segment
    if "vectors.indptr" not in arrays:
        return
    indptr = arrays["vectors.indptr"].astype(np.int64)
    term = random.randrange(len(indptr) - 1)
    own = slice(indptr[term], indptr[term + 1])
    documents, codes = arrays["vectors.documents"].copy(), arrays["vectors.codes"].copy()
    bits = arrays["vectors.code_weight"].copy()
    weights, bounds = bits.view(np.float32), arrays["vectors.bounds"].view(np.float32).copy()
    match random.randrange(10):
        case 0:
            documents[own] = documents[own][::-1]
        case 1:
            documents[own] = documents[random.randrange(len(documents))]
        case 2:
            codes[own] = random.randrange(len(bits))
        case 8 | 9 if "vectors.strips.terms" in arrays:
            name = random.choice(["levels", "levels", "offsets", "terms"])
            values = arrays[f"vectors.strips.{name}"].copy()
            values[random.randrange(len(values))] = random.choice([0, 1, 2, 7, 200, 255])
            arrays[f"vectors.strips.{name}"] = values
        case 3:
            codes[:] = random.sample(codes.tolist(), len(codes))
        case 4:
            weights[random.randrange(len(bits))] = random.choice(WRONG_WEIGHTS)
        case 5:
            bounds[random.randrange(2)] = random.choice([*WRONG_WEIGHTS, 0.5, 1e29, -1e29])
        case 6:
            weights[:] = random.sample(weights.tolist(), len(bits))
        case _:
            own_names = [name for name in arrays if name.startswith("vectors.")]
            for name in random.choice((own_names, [random.choice(own_names)])):
                del arrays[name]
            return
    arrays["vectors.documents"], arrays["vectors.codes"] = documents, codes
    arrays["vectors.code_weight"], arrays["vectors.bounds"] = bits, bounds.view(np.uint32)


def text_fields(folder: Folder, random: Random) -> None:
    """Change the rows that codes of fields stand for, or their names."""
    arrays = any_segment(folder, random)
    if "text_fields.counts" not in arrays:
        return
    name = f"text_fields.{random.choice(('counts', 'lengths'))}"
    rows = arrays[name].copy().reshape(-1, 2)
    match random.randrange(6):
        case 0:
            rows[random.randrange(len(rows))] += np.uint32(1)
        case 1:
            rows = rows[:, ::-1]
        case 2:
            rows = rows[random.sample(range(len(rows)), len(rows))]
        case 3:
            rows = np.repeat(rows, random.choice(([1] * (len(rows) - 1) + [2], 2)), axis=0)
        case 4:
            rows = rows[: random.randrange(len(rows))]
        case _:
            put_strings(
                arrays,
                "text_fields.names",
                random.choice(
                    ([b"text", b"title"], [b"title"], [b"title", b"title"], [b"\xff", b"text"], [])
                ),
            )
    arrays[name] = rows.ravel().copy()


def fields(folder: Folder, random: Random) -> None:
    """Make fields contradict the metadata."""
    arrays = any_segment(folder, random)
    names = [name for name in arrays if name.startswith("fields.") and len(arrays[name])]
    if not names:
        return
    match random.randrange(4):
        case 0:
            name = random.choice(names)
            values = arrays[name].tolist()
            arrays[name] = np.array(random.sample(values, len(values)), arrays[name].dtype)
        case 1:
            flags = np.array([random.choice((0, 2, 255))], np.uint8)
            arrays["fields.complete"] = flags.view(np.bool_)
        case 2:
            counts = arrays["fields.counts"].copy()
            place, other = random.randrange(len(counts)), random.randrange(len(counts))
            if counts[place]:
                counts[place] -= np.uint32(1)
                counts[other] += np.uint32(1)
            arrays["fields.counts"] = counts
        case _:
            name = random.choice(["fields.strings", "fields.paths"])
            values = strings(arrays, name, size(arrays, name))
            put_strings(arrays, name, random.sample(values, len(values)))


def changes(folder: Folder, random: Random) -> None:
    """Make the changes to a segment impossible."""
    piece = random.choice(folder.pieces)
    count = len(piece.segment["lengths"])
    every = np.arange(count, dtype=np.uint32)
    some = np.array(sorted(random.sample(range(count), random.randrange(count))), np.uint32)
    new: Arrays = {"deleted": some, "changed": every[:0]}
    match random.randrange(6):
        case 0:
            new["deleted"] = every
        case 1:
            new["deleted"] = some[::-1].copy()
        case 2:
            new["deleted"] = np.append(some, np.uint32(count))
        case 3:
            new |= {"deleted": every[:0], "changed": some}
        case 4:
            piece.changes = []
        case _:
            piece.changes = list(random.choice(folder.pieces).changes)
    put_strings(new, "metadata", [b'{"n":%d}' % number for number in new["changed"]])
    piece.changes.append(new)


def manifest(folder: Folder, random: Random) -> None:
    """Change what the manifest says, or which pieces there are."""
    deep: Any = 1
    for _ in range(random.choice((50, 300, 900))):
        deep = {"n": deep}
    settings, piece = folder.settings, random.choice(folder.pieces)
    match random.randrange(11):
        case 0:
            piece.add_tokens(random.choice((-1, 1, 10**6)))
        case 1:
            settings["next_id"] = random.choice(((1 << 62) - 1, (1 << 62) - 2, 0, -1, 1 << 62))
        case 2:
            folder.commit = random.choice(((1 << 62) - 1, (1 << 62) - 2, 0, "1"))
        case 3:
            settings["extra"] = random.choice(({"n": float("nan")}, [], deep, {"n": deep}))
        case 4:
            settings["parameters"] |= random.choice(
                (
                    {"b": 5},
                    {"k1": float("inf")},
                    {"variant": "x"},
                    {"x": 1},
                    {"k1": 1e30},
                    {"fields": {"title": 2.0}},
                    {"fields": {"text": 1.0, "title": 2.0}},
                    {"fields": {"title": 0.0, "text": 1.0}},
                    {"fields": {}},
                    {"fields": {"title": -1}},
                )
            )
        case 5:
            random.shuffle(folder.pieces)
        case 6:
            folder.pieces.remove(piece)
        case 7:
            folder.pieces.append(piece)  # a second copy, under another name
        case 9:
            name = random.choice(list(settings["analyzer"]))
            settings["analyzer"][name] = random.choice(WRONG_SETTINGS)
        case 8:
            settings["probe"] = random.choice(([], {"cats": 1}, {}, {"cats": "cat"}))
        case _:
            empty(piece)


WAYS: tuple[Forge, ...] = (
    any_element, any_element, any_length, terms, ids, columns, metadata, postings, postings,
    vectors, vectors, fields, changes, manifest, text_fields,
)  # fmt: skip


def forge(folder: Folder, random: Random) -> str:
    """Forge a folder in one way or several; return which."""
    ways = random.choices(WAYS, k=random.choice((1, 1, 1, 2)))
    for way in ways:
        way(folder, random)
    return ", ".join(way.__name__ for way in ways)
