"""What adapters may import, besides ``bm25rag`` and six of its modules.

These are ``errors``, ``filters``, ``following``, ``fusion``, ``hybrid`` and ``vectors``. Everything
else in the package may move between two releases; these names may not. A test checks the list, and
that our own adapters import nothing else.

``Tokenizer``, ``VariantName``, ``DeltaOn``, ``OnDuplicate``, ``Mode``
    The types of arguments that an adapter passes on: closed sets are ``Literal`` types, so
    editors and type checkers see the choices.
``check_count``, ``check_flag``, ``check_real``, ``check_sequence``
    The core's checks of arguments, for values that an adapter stores and passes on later: it can
    report an error at once, in the core's words.
``is_url``
    Tells the URL of a remote folder, which must stay a string, from a path.
``encode_metadata``, ``decode_metadata``
    Metadata as the core stores them, for what an adapter keeps in a payload or compares.
``STOPWORD_LISTS``, ``load_stopwords``
    Words of many languages, from which the LlamaIndex adapter infers a stemmer's algorithm.
``read_hits``
    Reads what an adapter needs of all hits at once; one by one takes three times as long.
``in_fields``
    The fields of a document, in the adapters and on the command line: metadata of their names.
``spans_of``
    Says where the words are that match, in the form that all adapters put into metadata.
``sample_metadata``, ``Showing``
    Finds the few documents that tell which fields and values there are, without reading all.
``in_write_thread``, ``in_read_thread``, ``end_threads``
    Threads for awaited calls; writes would fill asyncio's own while they wait for one another.
"""

from __future__ import annotations

from bm25rag.analysis import STOPWORD_LISTS, Tokenizer, load_stopwords
from bm25rag.awaited_calls import end_threads, in_read_thread, in_write_thread
from bm25rag.common.checks import check_count, check_flag, check_real, check_sequence
from bm25rag.common.codec import decode_metadata, encode_metadata
from bm25rag.common.urls import is_url
from bm25rag.documents import in_fields, read_hits, spans_of
from bm25rag.index import Mode, OnDuplicate
from bm25rag.metadata_samples import Showing, sample_metadata
from bm25rag.scoring.variants import DeltaOn, VariantName

__all__ = [
    "STOPWORD_LISTS",
    "DeltaOn",
    "Mode",
    "OnDuplicate",
    "Showing",
    "Tokenizer",
    "VariantName",
    "check_count",
    "check_flag",
    "check_real",
    "check_sequence",
    "decode_metadata",
    "encode_metadata",
    "end_threads",
    "in_fields",
    "in_read_thread",
    "in_write_thread",
    "is_url",
    "load_stopwords",
    "read_hits",
    "sample_metadata",
    "spans_of",
]
