"""The engines by name: where each is written, and what it needs."""

from __future__ import annotations

OURS = "bm25rag"
ENGINES = {
    OURS: "benchmarks.engines.ours:Ours",
    "bm25s numba": "benchmarks.engines.bm25s:Numba",
    "bm25s numpy": "benchmarks.engines.bm25s:Plain",
    "tantivy": "benchmarks.engines.tantivy:Tantivy",
    "PISA": "benchmarks.engines.pisa:Pisa",
    "Lucene": "benchmarks.engines.lucene:Lucene",
    "rank_bm25": "benchmarks.engines.rank_bm25:RankBm25",
}
K1, B = 1.2, 0.75
