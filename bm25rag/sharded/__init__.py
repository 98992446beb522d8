"""An index divided into shards, each an ordinary index folder, that scores as one.

Design. (1) A score needs its posting's tf and |d|, which a shard has, and N, avgdl and df of
all documents: ``Statistics``, merged once, stored beside the shards, and given to a
``Snapshot``, which otherwise counts its own. So shards are not written twice, ``tune`` works
on them, and one shard gives the scores, to the bit, that the whole index gives.
(2) Document order, which breaks ties, is the order of the shards: each holds consecutive
documents. New ones go to the last shard and, when it is full, to a new one behind it; so no
positions are stored, and merging answers is a stable merge by score.
(3) Within a process no answers are merged: a ``BM25Index`` has the segments of all shards, one
after another. ``bm25rag.open_shard`` opens one shard, and merges answers, for a cluster.
(4) df is summed by partitions of the terms' CRC-32, in whose order term tables are; terms are
equal if their bytes are. A digest of the result is the id that every shard must carry.
(5) A build gathers parts, writes shards, merges statistics, stamps the shards and, last,
replaces the manifest. What each step has written tells that it need not be done again.
(6) A commit is a new folder, into which files that stay are linked: readers see one or the other.
"""
