"""A search service: several processes that read, one that writes, and none that is restarted.

    pip install . fastapi uvicorn
    bm25rag index docs --output docs.bm25
    BM25RAG_INDEX=docs.bm25 uvicorn service:app --app-dir examples --workers 4

Write to the folder from any one process, such as `bm25rag sync docs docs.bm25 --watch`: each
commit is in the next answer of every worker, and a writer that dies leaves its last commit.

    curl 'localhost:8000/search?q=installing&k=3'
"""

from __future__ import annotations

import os
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from bm25rag import BM25Index
from bm25rag.following import follow

app = FastAPI(title="Search")
folder = follow(os.environ["BM25RAG_INDEX"])  # memory-mapped: the workers share its pages
cached: dict[tuple[Any, ...], list[dict[str, Any]]] = {}


@app.get("/search")
def search(q: str, k: int = 10) -> dict[str, Any]:
    """Answer a query; FastAPI calls this in one of its threads, and searches release the GIL."""
    index = folder.current  # the last commit, in microseconds; all of the answer is of it
    return {"commit": index.commit_id, "hits": find(index, q, k)}


def find(index: BM25Index, q: str, k: int) -> list[dict[str, Any]]:
    key = (index.commit_id, q, k)  # never out of date
    found = cached.get(key)
    if found is None:
        hits = index.search(q, k=k)
        found = [{"id": hit.id, "score": hit.score, "text": hit.text} for hit in hits]
        if len(cached) >= 10_000:
            cached.clear()
        cached[key] = found
    return found


@app.get("/health")
def health() -> dict[str, Any]:
    index = folder.current
    return {"commit": index.commit_id, "documents": len(index)}


@app.exception_handler(ValueError)
def wrong_argument(request: Request, error: ValueError) -> JSONResponse:
    return JSONResponse({"error": str(error)}, status_code=422)
