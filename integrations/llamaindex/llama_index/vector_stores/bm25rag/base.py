"""BM25VectorStore: LlamaIndex's BasePydanticVectorStore on a BM25Index."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from fsspec import AbstractFileSystem
from fsspec.implementations.local import LocalFileSystem
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.constants import DEFAULT_SIMILARITY_TOP_K
from llama_index.core.schema import BaseNode, MetadataMode
from llama_index.core.vector_stores.simple import DEFAULT_VECTOR_STORE, NAMESPACE_SEP
from llama_index.core.vector_stores.types import (
    DEFAULT_PERSIST_DIR,
    DEFAULT_PERSIST_FNAME,
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)
from llama_index.retrievers.bm25rag import persistence
from llama_index.retrievers.bm25rag.analysis import (
    DEFAULT_LANGUAGE,
    DEFAULT_PATTERN,
    StemmerLike,
)
from llama_index.retrievers.bm25rag.existing import choose_index
from llama_index.retrievers.bm25rag.lookup import held_index_ids
from llama_index.vector_stores.bm25rag.calls import Calls, arun, run
from llama_index.vector_stores.bm25rag.encoding import SparseEncoderCallable
from llama_index.vector_stores.bm25rag.legs import Legs
from llama_index.vector_stores.bm25rag.searching import Searching
from llama_index.vector_stores.bm25rag.vectors import Vectors
from llama_index.vector_stores.bm25rag.writing import Writing

from bm25rag import BM25Index
from bm25rag.adapters import Tokenizer, VariantName, in_write_thread
from bm25rag.fusion import FusionMethod

_T = TypeVar("_T")


class BM25VectorStore(BasePydanticVectorStore):
    r"""Finds nodes by BM25, by learned sparse vectors, by a dense store, and by all of these.

    Query mode ``text_search`` asks BM25 and needs no embedding. Neither does ``sparse``, which
    searches by sparse vectors, or by BM25 if there are none, nor ``default``, which is BM25, unless
    there is a dense store, which answers it then. ``hybrid`` asks all and fuses what they find.
    Nodes come back as they were added, without their embeddings.

    Parameters
    ----------
    existing_bm25
        A core index to use, with its own analyzer and parameters, such as that of a folder,
        ``BM25Index.open(path, mode="w")``: ``store.bm25.commit()`` saves changes then.
    dense
        Any vector store of LlamaIndex. Nodes are added to both and deleted from both.
    sparse_doc_fn
        A function that returns the sparse vectors of a list of texts, which are stored with the
        nodes. It is called once with all texts of an ``add``, as they are indexed for BM25.
    sparse_query_fn
        The same for queries. Both are as LlamaIndex's ``QdrantVectorStore`` takes them, and return
        a tuple of lists of indices and lists of values; or else a vector for each text: a mapping
        from terms, or their numbers, to weights, something with ``indices`` and ``values``, or a
        mapping of these two.
    alpha
        The weight of the vectors in mode ``hybrid``, from 0 (BM25 alone) to 1 (vectors alone); a
        query may have another. If there are sparse and dense ones, it is that of the dense ones,
        and BM25 and the sparse ones have half of the rest each.
    method, rank_constant
        How the results are fused: by ``minmax`` or ``zscore`` of the scores, or reciprocal ranks,
        ``rrf``, as in ``bm25rag.fusion.fuse``.
    fetch_k
        How many nodes of each leg are fused, unless the query asks for more.
    language, stemmer, skip_stemming, token_pattern, tokenizer, metadata_mode
        As in ``BM25Retriever``.
    k1, b, variant
        As in ``BM25Retriever``.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If a value is wrong, or settings of the index are given with ``existing_bm25``.
    """

    stores_text: bool = True

    _nodes: Legs = PrivateAttr()
    _vectors: Vectors | None = PrivateAttr()
    _writing: Writing = PrivateAttr()
    _searching: Searching = PrivateAttr()

    def __init__(
        self,
        existing_bm25: BM25Index | None = None,
        *,
        dense: BasePydanticVectorStore | None = None,
        sparse_doc_fn: SparseEncoderCallable | None = None,
        sparse_query_fn: SparseEncoderCallable | None = None,
        alpha: float = 0.5,
        method: FusionMethod = "minmax",
        rank_constant: int = 60,
        fetch_k: int = 100,
        language: str | None = DEFAULT_LANGUAGE,
        stemmer: StemmerLike | None = None,
        skip_stemming: bool = False,
        token_pattern: str = DEFAULT_PATTERN,
        tokenizer: Tokenizer | None = None,
        metadata_mode: MetadataMode | None = None,
        k1: float | None = None,
        b: float | None = None,
        variant: VariantName | None = None,
    ) -> None:
        super().__init__(stores_text=True, is_embedding_query=dense is not None)
        index = choose_index(
            existing_bm25,
            (language, stemmer, skip_stemming, token_pattern, tokenizer),
            {"variant": variant, "k1": k1, "b": b},
        )
        self._nodes = Legs(index, metadata_mode, sparse_doc_fn, sparse_query_fn)
        self._vectors = None if dense is None else Vectors(dense)
        self._writing = Writing(self._nodes, self._vectors)
        self._searching = Searching(
            self._nodes, self._vectors, alpha, method, rank_constant, fetch_k
        )

    @classmethod
    def class_name(cls) -> str:
        """Return the name of the class, under which LlamaIndex serializes it."""
        return "BM25VectorStore"

    @property
    def bm25(self) -> BM25Index:
        """The index, which can be shared with a retriever, and has ``commit`` and ``refresh``."""
        return self._nodes.bm25

    @property
    def client(self) -> BM25Index:
        """The index."""
        return self.bm25

    @property
    def dense(self) -> BasePydanticVectorStore | None:
        """The dense store."""
        return None if self._vectors is None else self._vectors.store

    # --- writing ------------------------------------------------------------------

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Add all nodes, or none if anything is wrong with them; return the id of each.

        A node replaces one with the same id. Nodes are added to the index first: if the dense store
        fails, BM25 finds them, and adding them again completes it.

        Parameters
        ----------
        nodes
            The nodes; for a dense store, with embeddings of one dimension.
        **kwargs
            For ``add`` of the dense store.

        Raises
        ------
        TypeError
            If an element is not a node.
        ValueError
            If a node has no embedding for the dense store, one of another dimension, or NaN in it;
            or nodes are searched by sparse vectors, and ``sparse_doc_fn`` is missing.
        SparseEncoderError
            If ``sparse_doc_fn`` fails, or returns anything but a finite vector for each text.
        MetadataError
            If the metadata of a node cannot be stored; the message names node and key.
        DenseStoreError
            If the dense store fails.
        """
        return run(self._writing.add(nodes, kwargs), self.dense)

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Run ``add`` in a thread, and the dense store's ``async_add``."""
        return await self._awrite(self._writing.add(nodes, kwargs))

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete the nodes of a source document, and the document if it was added whole.

        Nodes are deleted from the dense store first: if it fails, the index still has them.

        Parameters
        ----------
        ref_doc_id
            The id of the document.
        **delete_kwargs
            For ``delete`` of the dense store.

        Raises
        ------
        DenseStoreError
            If the dense store fails.
        ReadOnlyError
            If the index was opened for reading.
        """
        run(self._writing.delete(ref_doc_id, delete_kwargs), self.dense)

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Run ``delete`` in a thread, and the dense store's ``adelete``."""
        await self._awrite(self._writing.delete(ref_doc_id, delete_kwargs))

    def delete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        """Delete nodes by id, by filters, or those of the ids that pass the filters.

        Parameters
        ----------
        node_ids
            The ids; unknown ids are ignored.
        filters
            The filters that the nodes pass.
        **delete_kwargs
            For ``delete_nodes`` of the dense store, which is given the ids of these nodes.

        Raises
        ------
        TypeError, ValueError
            As in ``BM25Retriever.delete_nodes``.
        DenseStoreError
            If the dense store fails; the index still has the nodes.
        """
        run(self._writing.delete_nodes(node_ids, filters, delete_kwargs), self.dense)

    async def adelete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        """Run ``delete_nodes`` in a thread, and the dense store's ``adelete_nodes``."""
        await self._awrite(self._writing.delete_nodes(node_ids, filters, delete_kwargs))

    def clear(self) -> None:
        """Delete all nodes, from the dense store first.

        Raises
        ------
        DenseStoreError
            If the dense store fails; the index still has its nodes.
        """
        run(self._writing.clear(), self.dense)

    async def aclear(self) -> None:
        """Run ``clear`` in a thread, and the dense store's ``aclear``."""
        await self._awrite(self._writing.clear())

    async def _awrite(self, calls: Calls[_T]) -> _T:
        return await arun(calls, self.dense, partial(in_write_thread, self.bm25))

    # --- reading ------------------------------------------------------------------

    def get_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """Return nodes by id, in the given order, or those that pass filters, or all.

        Parameters
        ----------
        node_ids, filters
            As in ``BM25Retriever.get_nodes``, which also lists the exceptions.
        """
        return self._nodes.get_nodes(node_ids, filters)

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """Run ``get_nodes`` in a thread."""
        return await self._nodes.aget_nodes(node_ids, filters)

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Find the best nodes of those that pass the filters, ``node_ids`` and ``doc_ids``.

        Empty lists of ids let all nodes pass, as LlamaIndex's retriever gives them.

        Parameters
        ----------
        query
            Mode ``text_search`` returns the ``similarity_top_k`` best by BM25, ``sparse`` those by
            sparse vectors, or by BM25 if there are none and no ``sparse_query_fn``; both of them
            ``sparse_top_k``, if that is given. Mode ``hybrid`` fuses at least ``fetch_k`` of each
            leg, or ``sparse_top_k`` of BM25's and the sparse vectors' if that is given, and returns
            ``hybrid_top_k``, or else ``similarity_top_k``, nodes. All other modes ask the dense
            store; without one, ``default`` is BM25.
        **kwargs
            For ``query`` of the dense store.

        Returns
        -------
        result
            Nodes, ids and scores, best first; scores of ``hybrid`` are fused ones.

        Raises
        ------
        TypeError
            If an argument or a field of the query has the wrong type.
        ValueError
            If the mode needs a dense store, ``sparse_query_fn``, ``query_str`` or
            ``query_embedding`` that is missing, the embedding has another dimension than those in
            the dense store, or a number is out of range.
        SparseEncoderError
            If ``sparse_query_fn`` fails, or returns anything but a finite vector.
        DenseStoreError
            If the dense store fails.
        """
        return run(self._searching.query(query, kwargs), self.dense)

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Run ``query`` in a thread, and the dense store's ``aquery``."""
        return await arun(self._searching.query(query, kwargs), self.dense, asyncio.to_thread)

    # --- saving -------------------------------------------------------------------

    def persist(self, persist_path: str, fs: AbstractFileSystem | None = None) -> None:
        """Save index, analysis and nodes in a folder, ``persist_path``.

        The dense store is asked to persist itself at the same path with ``.dense`` added, which
        stores that keep their data elsewhere ignore. Into the folder that it was loaded from or
        last saved in, only changes are written.

        Parameters
        ----------
        persist_path
            The folder; ``StorageContext.persist`` gives one of a name that ends with ``.json``.
        fs
            ``None``, or a local file system.

        Raises
        ------
        ValueError
            If ``fs`` is another one, or the stemmer is an object that cannot be saved.
        NotAnIndexError
            If the folder holds something else.
        """
        _check_local(fs)
        mode = self._nodes.metadata_mode
        settings = persistence.saved_settings(self.bm25) or persistence.Settings(
            similarity_top_k=DEFAULT_SIMILARITY_TOP_K,
            filters=None,
            metadata_mode=mode,
            verbose=False,
            object_ids=[],
        )
        changed = {
            "metadata_mode": mode,
            "object_ids": held_index_ids(self.bm25, self._nodes.object_map),
            "dimension": 0 if self._vectors is None else self._vectors.dimension,
        }
        persistence.save(self.bm25, persist_path, settings.model_copy(update=changed))
        if self.dense is not None:
            self.dense.persist(f"{persist_path}.dense", fs=fs)

    @classmethod
    def from_persist_path(
        cls,
        persist_path: str,
        fs: AbstractFileSystem | None = None,
        *,
        dense: BasePydanticVectorStore | None = None,
        sparse_doc_fn: SparseEncoderCallable | None = None,
        sparse_query_fn: SparseEncoderCallable | None = None,
        alpha: float = 0.5,
        method: FusionMethod = "minmax",
        rank_constant: int = 60,
        fetch_k: int = 100,
        tokenizer: Tokenizer | None = None,
    ) -> Self:
        """Load what ``persist`` saved, of a store or a retriever; it can be changed in memory.

        Parameters
        ----------
        persist_path
            The folder.
        fs
            ``None``, or a local file system.
        dense
            The dense store: ``SimpleVectorStore.from_persist_path(f"{persist_path}.dense")``.
        sparse_doc_fn, sparse_query_fn, alpha, method, rank_constant, fetch_k, tokenizer
            As in the constructor; they are not saved, but sparse vectors are.

        Raises
        ------
        NotAnIndexError
            If the folder holds nothing that ``persist`` saved.
        CorruptIndexError
            If a file is damaged.
        TokenizerRequiredError
            If it was made with a tokenizer and ``tokenizer`` is missing.
        ValueError
            If ``fs`` is not local.
        """
        _check_local(fs)
        index, settings = persistence.load(persist_path, tokenizer)
        store = cls(
            index,
            dense=dense,
            sparse_doc_fn=sparse_doc_fn,
            sparse_query_fn=sparse_query_fn,
            alpha=alpha,
            method=method,
            rank_constant=rank_constant,
            fetch_k=fetch_k,
            metadata_mode=settings.metadata_mode,
        )
        if store._vectors is not None:
            store._vectors.dimension = settings.dimension
        return store

    @classmethod
    def from_persist_dir(
        cls,
        persist_dir: str = DEFAULT_PERSIST_DIR,
        namespace: str = DEFAULT_VECTOR_STORE,
        fs: AbstractFileSystem | None = None,
        **kwargs: Any,
    ) -> Self:
        """Load what ``StorageContext.persist`` saved in a folder.

        Parameters
        ----------
        persist_dir
            The folder.
        namespace
            The name of the store in the storage context.
        fs, **kwargs
            As in ``from_persist_path``, which also lists the exceptions.
        """
        name = f"{namespace}{NAMESPACE_SEP}{DEFAULT_PERSIST_FNAME}"
        return cls.from_persist_path(str(Path(persist_dir) / name), fs, **kwargs)


def _check_local(fs: AbstractFileSystem | None) -> None:
    if fs is not None and not isinstance(fs, LocalFileSystem):
        raise ValueError(
            f"fs must be a local file system or None, got {type(fs).__name__}: the files of an "
            "index are mapped into memory"
        )
