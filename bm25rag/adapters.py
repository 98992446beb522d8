"""What adapters may import, besides ``bm25rag`` and seven of its modules.

These are ``agents``, ``errors``, ``filters``, ``following``, ``fusion``, ``hybrid``, ``vectors``.
Everything else in the package may move between two releases; these names may not. A test checks the
list, and that our own adapters import nothing else.

``Tokenizer``, ``VariantName``, ``DeltaOn``, ``OnDuplicate``, ``Mode``
    The types of arguments that an adapter passes on: closed sets are ``Literal`` types, so
    editors and type checkers see the choices.
``check_choice``, ``check_count``, ``check_flag``, ``check_real``, ``check_sequence``,
``check_strings``
    The core's checks of arguments, for values that an adapter stores and passes on later: it can
    report an error at once, in the core's words.
``is_url``, ``local_path``
    Tells the URL of a remote folder, which must stay a string, from a path; checks a path, and
    makes it the real one.
``encode_metadata``, ``decode_metadata``
    Metadata as the core stores them, for what an adapter keeps in a payload or compares.
``STOPWORD_LISTS``, ``load_stopwords``
    Words of many languages, from which the LlamaIndex adapter infers a stemmer's algorithm.
``DecayLike``, ``decay_dict``
    What ``decay=`` takes; and the same as a dict, checked, for a setting that is saved.
``Asking``, ``Question``, ``Expand``, ``is_blank``
    A question with all its options, checked, kept and answered.
``Options``, ``Page``, ``Fusing``
    These options, and those of fusion, as keywords.
``with_fields``
    Gives documents the fields of an index from their metadata.
``Plan``, ``Call``, ``Both``, ``Thread``, ``planned``, ``awaited``, ``run``, ``arun``, ``work``,
``naming``
    Methods that ask other objects, of one body for those who call them and those who await them.
``make_models``
    Makes Pydantic's models of what needs no check.
``columns``
    Reads what an adapter needs of all hits at once; one by one takes three times as long.
``spans_of``
    Says where the words are that match, in the form that all adapters put into metadata.
``sample_metadata``, ``Showing``
    Finds the few documents that tell which fields and values there are, without reading all.
``in_write_thread``, ``in_read_thread``, ``end_threads``
    Threads for awaited calls; writes would fill asyncio's own while they wait for one another.
"""

from __future__ import annotations

from bm25rag.analysis import STOPWORD_LISTS, Tokenizer, load_stopwords
from bm25rag.asking import Asking, Expand, Fusing, Options, Page, Question, is_blank, with_fields
from bm25rag.awaited_calls import end_threads, in_read_thread, in_write_thread
from bm25rag.common.checks import (
    check_choice,
    check_count,
    check_flag,
    check_real,
    check_sequence,
    check_strings,
)
from bm25rag.common.codec import decode_metadata, encode_metadata
from bm25rag.common.urls import is_url, local_path
from bm25rag.decay import DecayLike, decay_dict
from bm25rag.documents import columns, spans_of
from bm25rag.index import Mode, OnDuplicate
from bm25rag.kernels.models import make_models
from bm25rag.metadata_samples import Showing, sample_metadata
from bm25rag.plans import Both, Call, Plan, Thread, arun, awaited, naming, planned, run, work
from bm25rag.scoring.variants import DeltaOn, VariantName

__all__ = [
    "STOPWORD_LISTS",
    "Asking",
    "Both",
    "Call",
    "DecayLike",
    "DeltaOn",
    "Expand",
    "Fusing",
    "Mode",
    "OnDuplicate",
    "Options",
    "Page",
    "Plan",
    "Question",
    "Showing",
    "Thread",
    "Tokenizer",
    "VariantName",
    "arun",
    "awaited",
    "check_choice",
    "check_count",
    "check_flag",
    "check_real",
    "check_sequence",
    "check_strings",
    "columns",
    "decay_dict",
    "decode_metadata",
    "encode_metadata",
    "end_threads",
    "in_read_thread",
    "in_write_thread",
    "is_blank",
    "is_url",
    "load_stopwords",
    "local_path",
    "make_models",
    "naming",
    "planned",
    "run",
    "sample_metadata",
    "spans_of",
    "with_fields",
    "work",
]
