"""Measures bm25rag beside other engines: ``python -m benchmarks``, or ``make bench``."""
