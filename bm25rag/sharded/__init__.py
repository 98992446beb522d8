"""x"""

from bm25rag.sharded.building import build
from bm25rag.sharded.index import OpenShard, ShardedIndex, open_shard
from bm25rag.sharded.merge import Ranking, merge_hits, merge_rankings

__all__ = [
    "OpenShard",
    "Ranking",
    "ShardedIndex",
    "build",
    "merge_hits",
    "merge_rankings",
    "open_shard",
]
