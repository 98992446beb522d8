"""What users import: a sharded index built and served by a Ray cluster."""

from __future__ import annotations

from bm25rag.distributed.building import build
from bm25rag.distributed.client import RayIndex
from bm25rag.distributed.results import RayBatch
from bm25rag.distributed.serving import connect, serve, stop

__all__ = ["RayBatch", "RayIndex", "build", "connect", "serve", "stop"]
