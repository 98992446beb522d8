"""An index made anew from the texts that another one stores."""

from __future__ import annotations

from bm25rag.additions import NewRecords
from bm25rag.analysis import Analyzer
from bm25rag.documents import all_fields
from bm25rag.errors import ReadOnlyError
from bm25rag.live.index import LiveIndex, new_state
from bm25rag.search.stored_vectors import read_vectors
from bm25rag.storage.attachment import MEMORY, Unattached


def reanalyzed(index: LiveIndex, analyzer: Analyzer | None) -> LiveIndex:
    """Return an index in memory of the same documents; raise as ``BM25Index.reanalyze``."""
    if index.attachment.manifest.shard_count and not isinstance(index.attachment, Unattached):
        raise ReadOnlyError(
            "a sharded index cannot be re-analysed in memory: pass its documents and the new "
            "analyzer to BM25Index.build(shards=...), with another folder"
        )
    state = index.state
    snapshot = state.snapshot
    chosen = snapshot.analyzer if analyzer is None else analyzer
    empty = new_state(chosen, **snapshot.parameters.to_dict())
    documents = snapshot.documents_at([*snapshot.passing(None)])
    bare = [doc.id for doc in documents if doc.text is None and all_fields(doc) is None]
    if bare:
        raise ValueError(
            f"the texts of {len(bare)} of {len(documents)} documents are not stored "
            f"({bare[0]!r} ...): index them again from their source"
        )
    vectors = read_vectors(snapshot.by_vectors, [document.id for document in documents])
    for document, vector in zip(documents, vectors, strict=True):
        document.vector = vector or None
    made = LiveIndex(empty, MEMORY)
    made.add(NewRecords(documents, True, False, snapshot.parameters.names), "error", None)
    made.state = made.state._replace(next_id=state.next_id)
    return made
