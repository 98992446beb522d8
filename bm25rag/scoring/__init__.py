"""The BM25 family as pure functions."""
