"""Pages of a fused ranking."""

from __future__ import annotations

from bm25rag import BM25Index


def test_pages_of_a_fusion_repeat_nothing_and_leave_nothing_out() -> None:
    """Though they go beyond the documents that are fused."""
    texts = [f"cats {'x ' * (n % 7)}" for n in range(60)]
    vectors = [{"1": 1.0 + n % 11} for n in range(60)]
    index = BM25Index.from_texts(texts, vectors=vectors)
    whole = index.search_hybrid("cats", {"1": 1.0}, k=20, fetch_k=20)
    pages = [
        index.search_hybrid("cats", {"1": 1.0}, k=5, fetch_k=20, offset=offset)
        for offset in range(0, 60, 5)
    ]
    found = [hit.id for page in pages for hit in page]
    assert found[:20] == [hit.id for hit in whole]
    assert len(set(found)) == len(found)
