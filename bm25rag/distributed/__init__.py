"""A sharded index built and served by a cluster, whose engine is Ray.

Design. (1) ``bm25rag.distributed.ray`` is what users import. Only ``engine`` imports Ray, when a
function needs it. (2) ``sources`` and ``steps`` are a build, ``operations`` and ``host`` what a
server answers: plain functions, without Ray. ``building`` and ``serving`` run them as tasks and
actors, and ``client`` asks the actors. (3) Placement, restarts and retries of tasks are Ray's.
Ours are the receipts, by which a build goes on, and, in the client, the deadline of a question,
which replica to ask next, and that all answers are of one commit.
"""
