"""The eager scores as a sparse matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bm25rag.common.arrays import as_index
from bm25rag.common.optional import load
from bm25rag.common.strings import text_of
from bm25rag.search.snapshot import Snapshot

if TYPE_CHECKING:
    from scipy.sparse import csc_array


def score_matrix(snapshot: Snapshot) -> csc_array:
    """Return float32 (N, V): living documents by terms in code point order; needs SciPy."""
    sparse = load("scipy.sparse", "the score matrix needs SciPy", "scipy")
    terms, frequencies = snapshot.frequencies()
    column_of = {term: column for column, term in enumerate(terms)}
    idf = snapshot.idf(terms, frequencies)
    rows, columns, scores = [], [], []
    bases = snapshot.rows.bases[:-1]
    for view, base, table in zip(snapshot.views, bases, snapshot.tables, strict=True):
        postings = view.segment.postings
        term_columns = [column_of.get(text_of(term or b""), -1) for term in postings.terms.column]
        column = np.array(term_columns, np.int64).take(as_index(postings.term_numbers()))
        documents, codes = postings.all_documents().astype(np.int64), postings.codes
        if view.living is not None:
            kept = view.living[documents]
            column, documents, codes = column[kept], documents[kept], codes[kept]
        rows.append(view.rows.ranks(documents) + base)
        columns.append(column)
        scores.append(table.take(as_index(codes)) * idf[column])
    matrix: csc_array = sparse.csc_array((snapshot.count, len(terms)), dtype=np.float32)
    if rows:
        entries = (np.concatenate(rows), np.concatenate(columns))
        matrix = sparse.coo_array((np.concatenate(scores), entries), shape=matrix.shape).tocsc()
    return matrix
