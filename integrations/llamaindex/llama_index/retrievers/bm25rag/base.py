"""BM25Retriever: LlamaIndex's BaseRetriever on a BM25Index."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any, Self, TypedDict, Unpack

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.constants import DEFAULT_SIMILARITY_TOP_K
from llama_index.core.indices.base import BaseIndex
from llama_index.core.schema import (
    BaseNode,
    IndexNode,
    MetadataMode,
    NodeWithScore,
    QueryBundle,
    QueryType,
    TextNode,
)
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.vector_stores.types import MetadataFilters
from llama_index.retrievers.bm25rag import persistence
from llama_index.retrievers.bm25rag.analysis import (
    DEFAULT_LANGUAGE,
    DEFAULT_PATTERN,
    StemmerLike,
    Stemming,
    choose_index,
)
from llama_index.retrievers.bm25rag.changes import NodeStore
from llama_index.retrievers.bm25rag.filters import check_asking, check_filters, path_of, translate
from llama_index.retrievers.bm25rag.nodes import held_index_ids
from llama_index.retrievers.bm25rag.syncing import check_docstore, docstore_of
from llama_index.retrievers.bm25rag.twins import add_twins, in_thread

from bm25rag import Analyzer, BM25Index
from bm25rag.adapters import (
    Asking,
    DecayLike,
    Expand,
    Question,
    Tokenizer,
    VariantName,
    check_count,
)


class Asked(TypedDict, total=False):
    """How questions are answered; ``None`` for what a retriever has or was saved with."""

    similarity_top_k: int | None
    filters: MetadataFilters | None
    correct: bool | None
    expand: Expand | None
    min_score: float | None
    group: str | None
    per_group: int | None
    decay: DecayLike | None
    spans_key: str | None
    parse_query: bool | None


class Options(TypedDict, total=False):
    """The arguments of a retriever except its nodes."""

    stemmer: StemmerLike | None
    language: str | None
    existing_bm25: BM25Index | None
    similarity_top_k: int
    callback_manager: CallbackManager | None
    objects: list[IndexNode] | None
    object_map: dict[str, Any] | None
    verbose: bool
    skip_stemming: bool
    token_pattern: str
    filters: MetadataFilters | None
    tokenizer: Tokenizer | None
    metadata_mode: MetadataMode | None
    k1: float | None
    b: float | None
    variant: VariantName | None
    fields: Mapping[str, float] | None
    correct: bool
    expand: Expand
    min_score: float | None
    group: str | None
    per_group: int
    decay: DecayLike | None
    spans_key: str | None
    parse_query: bool


class BM25Retriever(NodeStore, BaseRetriever):
    r"""Retrieves nodes by BM25: exact, filtered before ranking, updatable, durable.

    It returns fresh copies of nodes, and only of nodes that contain a term of the query.

    Parameters
    ----------
    nodes
        The nodes to index; a node replaces one with the same id.
    stemmer, skip_stemming
        A ``Stemmer.Stemmer``, the name of its algorithm, or a callable from word to stem;
        ``None`` for the language's. Whether to leave words unstemmed.
    language
        A name or ISO code that selects stop words and stemmer; ``None`` for neither.
    existing_bm25
        A core index to use, with its own analyzer and parameters; ``nodes`` are added to it.
        If it was opened with ``mode="w"``, ``retriever.bm25.commit()`` saves changes to its folder.
    similarity_top_k, filters
        How many nodes to return at most, and which may be returned.
    callback_manager, verbose
        LlamaIndex's callback manager, and whether to show progress.
    objects, object_map
        Index nodes with objects for recursive retrieval; the same objects, by index id.
    token_pattern
        A regular expression for words. ``"auto"`` is ``(?u)\b\w\w+\b`` where that works, and
        splits Chinese, Japanese and Korean into bigrams.
    tokenizer
        A callable from text to terms that replaces all analysis.
    metadata_mode
        Which text is indexed: the content with the metadata for embedding (``EMBED``), with
        the metadata for the LLM (``LLM``), with all metadata (``ALL``) or alone (``NONE``).
        ``None`` for the mode of the nodes in ``existing_bm25``, or ``EMBED``; of an index with
        fields, which are metadata, ``NONE``.
    k1, b, variant, fields
        The parameters of BM25, the member of its family and the weights of fields, as in
        ``bm25rag.BM25Index``; ``None`` for its defaults. The fields of a node are its metadata by
        their names.
    correct, min_score, group, per_group, decay
        As in ``BM25Index.search``; ``group`` and ``decay`` name keys of the metadata, such as
        ``"ref_doc_id"``. ``min_score`` does not apply to a question without a word, whose nodes
        have no score.
    expand
        Whether to expand a question (RM3), as ``BM25Index.expand`` does; or a mapping of its
        ``fb_docs``, ``fb_terms`` and ``original_query_weight``.
    spans_key
        The metadata key for the words of a node that match, each a dict of ``start`` and ``end``
        in its content, and ``term``; ``None`` for none. Models do not get to see it.
    parse_query
        Whether to read quotes and signs in questions, as ``bm25rag.Query.parse`` does.

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong, neither nodes nor an index are given, or ``metadata_mode`` differs
        from that of the nodes in ``existing_bm25``.
    MetadataError
        If the metadata of a node cannot be stored; the message names node and key.
    """

    def __init__(
        self,
        nodes: Iterable[BaseNode] | None = None,
        *,
        stemmer: StemmerLike | None = None,
        language: str | None = DEFAULT_LANGUAGE,
        existing_bm25: BM25Index | None = None,
        similarity_top_k: int = DEFAULT_SIMILARITY_TOP_K,
        callback_manager: CallbackManager | None = None,
        objects: list[IndexNode] | None = None,
        object_map: dict[str, Any] | None = None,
        verbose: bool = False,
        skip_stemming: bool = False,
        token_pattern: str = DEFAULT_PATTERN,
        filters: MetadataFilters | None = None,
        tokenizer: Tokenizer | None = None,
        metadata_mode: MetadataMode | None = None,
        k1: float | None = None,
        b: float | None = None,
        variant: VariantName | None = None,
        fields: Mapping[str, float] | None = None,
        correct: bool = False,
        expand: Expand = False,
        min_score: float | None = None,
        group: str | None = None,
        per_group: int = 1,
        decay: DecayLike | None = None,
        spans_key: str | None = None,
        parse_query: bool = False,
    ) -> None:
        if existing_bm25 is None and nodes is None:
            raise ValueError("nodes or existing_bm25 must be given; nodes=[] starts empty")
        known = dict(object_map or {}) | {node.index_id: node.obj for node in objects or ()}
        BaseRetriever.__init__(self, callback_manager, known, None, verbose)
        self.similarity_top_k = similarity_top_k
        self.filters = filters
        asking = Asking(min_score, correct, expand, 0, parse_query, group, per_group, decay)
        self._asking, self._spans_key = check_asking(asking, spans_key), spans_key
        index = choose_index(
            existing_bm25,
            (language, stemmer, skip_stemming, token_pattern, tokenizer),
            {"variant": variant, "k1": k1, "b": b, "fields": fields},
        )
        NodeStore.__init__(self, index, metadata_mode, known, verbose)
        if nodes is not None:
            self.add_nodes(nodes)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        add_twins(cls)

    @classmethod
    def from_defaults(
        cls,
        index: BaseIndex[Any] | None = None,
        nodes: Iterable[BaseNode] | None = None,
        docstore: BaseDocumentStore | None = None,
        **options: Unpack[Options],
    ) -> Self:
        """Make a retriever from nodes, from a docstore, or from the docstore of an index.

        Parameters
        ----------
        index
            A LlamaIndex index with its nodes in its docstore. This retriever resolves index
            nodes to the same objects as the index's own retriever.
        nodes
            The nodes. Give exactly one of ``index``, ``nodes`` and ``docstore``, or, with
            ``existing_bm25``, at most one.
        docstore
            A document store of nodes.
        **options
            Other arguments of the constructor.
        """
        sources = sum(source is not None for source in (index, nodes, docstore))
        if sources != 1 and (options.get("existing_bm25") is None or sources):
            raise ValueError(
                "exactly one of index, nodes and docstore must be given, or existing_bm25"
            )
        if index is not None:
            docstore = docstore_of(index)
            known = getattr(index, "_object_map", {})
            options["object_map"] = known | (options.get("object_map") or {})
        if docstore is not None:
            nodes = check_docstore(docstore).docs.values()
        return cls(nodes, **options)

    def __repr__(self) -> str:
        settings = f"similarity_top_k={self._similarity_top_k}, bm25={self.bm25!r}"
        count = f"{len(self)} node{'s' * (len(self) != 1)}"
        return f"{type(self).__name__}({count}, {settings})"

    # --- settings -----------------------------------------------------------------

    @property
    def similarity_top_k(self) -> int:
        """The maximum number of nodes to return."""
        return self._similarity_top_k

    @similarity_top_k.setter
    def similarity_top_k(self, value: int) -> None:
        self._similarity_top_k = check_count("similarity_top_k", value)

    @property
    def filters(self) -> MetadataFilters | None:
        """Which nodes may be returned."""
        return self._filters

    @filters.setter
    def filters(self, value: MetadataFilters | None) -> None:
        self._filters = check_filters(value)

    # --- analysis, which belongs to the index -----------------------------------------

    @property
    def language(self) -> str | None:
        """The name of the language of stop words and stemmer."""
        return self._analyzer.language

    @property
    def stemmer(self) -> str | StemmerLike | None:
        """The name of the stemmer's algorithm, or the user's own stemmer if it matches none."""
        tokenizer = self.bm25.analyzer.tokenizer
        return tokenizer.stemmer if isinstance(tokenizer, Stemming) else self._analyzer.stemmer

    @property
    def skip_stemming(self) -> bool:
        """Whether words are left unstemmed."""
        return self.stemmer is None

    @property
    def token_pattern(self) -> str:
        """The regular expression for words; ``"auto"`` for the core's choice by script."""
        return self._analyzer.token_pattern

    @property
    def _analyzer(self) -> Analyzer:
        tokenizer = self.bm25.analyzer.tokenizer
        return tokenizer.analyzer if isinstance(tokenizer, Stemming) else self.bm25.analyzer

    # --- retrieving ---------------------------------------------------------------

    def search(
        self, query: QueryBundle | Question, *, offset: int = 0, **asked: Unpack[Asked]
    ) -> list[NodeWithScore]:
        """Retrieve with different settings, for this query only.

        Parameters
        ----------
        query
            A text, a query bundle, a list of terms, a mapping of terms to weights, or a
            ``bm25rag.Query``. Without any word, all nodes that pass the filters are found, in the
            order of the index, with score 0, whatever ``min_score`` is; without filters, none.
        offset
            How many of the best nodes to leave out, as on a second page.
        **asked
            ``similarity_top_k``, ``filters``, ``correct``, ``expand``, ``min_score``, ``group``,
            ``per_group``, ``decay``, ``spans_key`` and ``parse_query`` as in the constructor;
            ``None`` for the retriever's. ``MetadataFilters(filters=[])`` lets every node pass.
        """
        return self._changed(offset, **asked).retrieve(_bundle(query))

    async def asearch(
        self, query: QueryBundle | Question, *, offset: int = 0, **asked: Unpack[Asked]
    ) -> list[NodeWithScore]:
        """Search as ``search`` does, in a thread, and await the objects of index nodes."""
        return await self._changed(offset, **asked).aretrieve(_bundle(query))

    def _changed(self, offset: int, **asked: Any) -> Self:
        changed = copy.copy(self)  # the same index, callbacks and objects
        given = {name: value for name, value in asked.items() if value is not None}
        for name in given.keys() & {"similarity_top_k", "filters"}:
            setattr(changed, name, given.pop(name))
        changed._spans_key = given.pop("spans_key", self._spans_key)
        self._asking.check_names(given, "similarity_top_k", "filters", "spans_key")
        asking = self._asking._replace(offset=offset, **given)
        changed._asking = check_asking(asking, changed._spans_key)
        return changed

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        # Filters are translated for the very state that is searched, whatever is written meanwhile.
        whole = self._filters is None and not self._asking.expand
        index = self.bm25 if whole else self.bm25.snapshot()
        filter = translate(self._filters, index)
        question: Question = query_bundle.query_str
        asking = self._asking.with_paths(path_of)
        hits = asking.find(index, question, self._similarity_top_k, filter)
        return self._with_scores(hits, self._spans_key)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)

    def _handle_recursive_retrieval(
        self, query_bundle: QueryBundle, nodes: list[NodeWithScore]
    ) -> list[NodeWithScore]:
        return _with_text(super()._handle_recursive_retrieval(query_bundle, nodes))

    async def _ahandle_recursive_retrieval(
        self, query_bundle: QueryBundle, nodes: list[NodeWithScore]
    ) -> list[NodeWithScore]:
        return _with_text(await super()._ahandle_recursive_retrieval(query_bundle, nodes))

    # --- saving -------------------------------------------------------------------

    def persist(self, path: str | PathLike[str]) -> None:
        """Save the retriever in a folder or to a URL: index, analysis, nodes and settings.

        Into the folder that it was loaded from or last saved in, only changes are written.
        Objects of index nodes that are not nodes cannot be saved; ``from_persist_dir`` asks
        for them.

        Raises
        ------
        ValueError, NotAnIndexError
            If the stemmer is an object that matches none of PyStemmer's algorithms, or the folder
            holds something else.
        """
        mode = self._metadata_mode
        saved = persistence.saved_settings(self.bm25) or persistence.Settings(metadata_mode=mode)
        changed = {
            "metadata_mode": mode,
            "similarity_top_k": self._similarity_top_k,
            "filters": self._filters,
            "verbose": self._verbose,
            "object_ids": held_index_ids(self.bm25, self.object_map),
            "spans_key": self._spans_key,
            **self._asking._asdict(),
        }
        persistence.save(self.bm25, path, saved.changed(changed))

    apersist = in_thread(persist)

    @classmethod
    def from_persist_dir(
        cls,
        path: str | PathLike[str],
        *,
        tokenizer: Tokenizer | None = None,
        callback_manager: CallbackManager | None = None,
        objects: list[IndexNode] | None = None,
        object_map: dict[str, Any] | None = None,
        verbose: bool | None = None,
        **asked: Unpack[Asked],
    ) -> Self:
        """Load a retriever that ``persist`` saved; it can be changed in memory.

        Parameters
        ----------
        path
            The folder, or its URL.
        tokenizer
            The tokenizer that it was made with, if any.
        callback_manager, objects, object_map
            As in the constructor.
        verbose, **asked
            As in the constructor and ``search``, in place of what was saved.

        Raises
        ------
        NotAnIndexError, CorruptIndexError
            If the folder was written by llama-index-retrievers-bm25, holds no retriever, or if a
            file is damaged.
        TokenizerRequiredError, ValueError
            If it was made with a tokenizer and ``tokenizer`` is missing, or if an object is.
        """
        index, settings = persistence.load(path, tokenizer)
        names = (*Asked.__annotations__, "verbose", "metadata_mode")
        chosen: dict[str, Any] = {name: getattr(settings, name) for name in names}
        given = {**asked, "verbose": verbose}
        chosen |= {name: value for name, value in given.items() if value is not None}
        parts: dict[str, Any] = {"objects": objects, "object_map": object_map}
        retriever = cls(existing_bm25=index, callback_manager=callback_manager, **parts, **chosen)
        missing = held_index_ids(index, set(settings.object_ids) - retriever.object_map.keys())
        if missing:
            raise ValueError(
                f"the objects of the index nodes {missing} were not saved; "
                "give them again as objects= or object_map="
            )
        return retriever


def _bundle(query: QueryBundle | Question) -> QueryType:
    """Return a question as LlamaIndex passes it on; what is no text is left to the core."""
    if isinstance(query, str | QueryBundle):
        return query
    return QueryBundle(query)  # type: ignore[arg-type]  # LlamaIndex checks nothing


class NodeWithScoreAndText(NodeWithScore):
    """A node other than a ``TextNode``, such as a ``Document``, with its score.

    LlamaIndex's own class raises a ``ValueError`` when asked for the text of such a node.
    """

    @property
    def text(self) -> str:
        """The content of the node."""
        return self.node.get_content()

    def get_text(self) -> str:
        """Return the content of the node."""
        return self.node.get_content()


def _with_text(nodes: Iterable[NodeWithScore]) -> list[NodeWithScore]:
    return [
        scored
        if isinstance(scored.node, TextNode)
        else NodeWithScoreAndText(node=scored.node, score=scored.score)
        for scored in nodes
    ]
