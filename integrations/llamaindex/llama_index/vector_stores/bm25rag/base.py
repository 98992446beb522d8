"""BM25VectorStore: LlamaIndex's BasePydanticVectorStore on a BM25Index."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Self, TypedDict, Unpack

from fsspec import AbstractFileSystem
from llama_index.core.bridge.pydantic import BaseModel, PrivateAttr, model_serializer
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
    NO_ANALYSIS,
    StemmerLike,
    choose_index,
    make_analyzer,
)
from llama_index.retrievers.bm25rag.changes import check_nodes, ids_to_delete, of_source, pick_added
from llama_index.retrievers.bm25rag.nodes import held_index_ids
from llama_index.retrievers.bm25rag.twins import add_twins, in_thread
from llama_index.vector_stores.bm25rag.dense import DenseStoreError, Vectors, check_options
from llama_index.vector_stores.bm25rag.encoding import SparseEncoderCallable
from llama_index.vector_stores.bm25rag.folders import (
    AS_SAVED,
    ENCODERS,
    FUSION,
    Folder,
    check_local,
    folder_of,
    settings_of,
    write_signpost,
)
from llama_index.vector_stores.bm25rag.searching import Retrieval

from bm25rag import BM25Index
from bm25rag.adapters import Plan, Tokenizer, VariantName, planned
from bm25rag.fusion import FusionMethod


class _Options(TypedDict, total=False):
    """Arguments of the constructor that a loaded store takes, too."""

    dense: BasePydanticVectorStore | None
    sparse_doc_fn: SparseEncoderCallable | None
    sparse_query_fn: SparseEncoderCallable | None
    alpha: float | None
    method: FusionMethod | None
    rank_constant: int | None
    fetch_k: int | None


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
    path
        A folder to keep the nodes in, made if it is missing, in place of ``existing_bm25``. Each
        write is committed before it returns, and locks the folder only until then; a query sees
        the last commit, whichever process made it. Settings are saved there.
    dense
        Any vector store of LlamaIndex. Nodes are added to both and deleted from both. If the index
        was saved with one, it must be given; ``None`` does without.
    sparse_doc_fn
        A function that returns the sparse vectors of a list of texts, which are stored with the
        nodes. It is called once with all texts of an ``add``, as they are indexed for BM25.
    sparse_query_fn
        The same for queries. Both are as LlamaIndex's ``QdrantVectorStore`` takes them, and return
        a tuple of lists of indices and lists of values; or else a vector for each text: a mapping
        from terms, or their numbers, to weights, something with ``indices`` and ``values``, or a
        mapping of these two. If the index was saved with them, they must be given; ``None`` does
        without.
    alpha
        The weight of the vectors in mode ``hybrid``, from 0 (BM25 alone) to 1 (vectors alone); a
        query may have another. If there are sparse and dense ones, it is that of the dense ones,
        and BM25 and the sparse ones have half of the rest each.
    method, rank_constant
        How the results are fused: by ``minmax`` or ``zscore`` of the scores, or reciprocal ranks,
        ``rrf``, as in ``bm25rag.fusion.fuse``.
    fetch_k
        How many nodes of each leg are fused, unless the query asks for more. ``None`` for
        ``alpha``, ``method``, ``rank_constant`` and ``fetch_k`` is what was saved with the index,
        or else 0.5, ``minmax``, 60 and 100.
    language, stemmer, skip_stemming, token_pattern, tokenizer, metadata_mode
        As in ``BM25Retriever``.
    k1, b, variant, fields
        As in ``BM25Retriever``. The index in the folder of ``path`` must have those that are given.
    timeout
        How many seconds a write to ``path`` waits while another process writes there.
    class_name
        Not used; LlamaIndex writes it in every dict.

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong, ``dense`` or a function is missing that the index was saved with,
        ``dense`` is empty and was not, or settings of the index are given with ``existing_bm25`` or
        differ from those in the folder.
    NotAnIndexError
        If the folder holds something else.
    """

    stores_text: bool = True

    _nodes: Retrieval = PrivateAttr()
    # What a dict or JSON cannot hold, and other arguments.
    _parts: dict[str, Any] = PrivateAttr()
    _given: dict[str, Any] = PrivateAttr()

    def __init__(
        self,
        existing_bm25: BM25Index | None = None,
        *,
        path: str | PathLike[str] | None = None,
        dense: BasePydanticVectorStore | None = AS_SAVED,
        sparse_doc_fn: SparseEncoderCallable | None = AS_SAVED,
        sparse_query_fn: SparseEncoderCallable | None = AS_SAVED,
        alpha: float | None = None,
        method: FusionMethod | None = None,
        rank_constant: int | None = None,
        fetch_k: int | None = None,
        language: str | None = DEFAULT_LANGUAGE,
        stemmer: StemmerLike | None = None,
        skip_stemming: bool = False,
        token_pattern: str = DEFAULT_PATTERN,
        tokenizer: Tokenizer | None = None,
        metadata_mode: MetadataMode | None = None,
        k1: float | None = None,
        b: float | None = None,
        variant: VariantName | None = None,
        fields: Mapping[str, float] | None = None,
        timeout: float = 60.0,
        class_name: str | None = None,
    ) -> None:
        parts: dict[str, Any] = {
            "dense": dense,
            "sparse_doc_fn": sparse_doc_fn,
            "sparse_query_fn": sparse_query_fn,
        }
        given = {name: None if part is AS_SAVED else part for name, part in parts.items()}
        vectors = None if dense is AS_SAVED or dense is None else Vectors(dense)
        super().__init__(stores_text=True, is_embedding_query=vectors is not None)
        fusion = dict(zip(FUSION, (alpha, method, rank_constant, fetch_k), strict=True))
        analysis = (language, stemmer, skip_stemming, token_pattern, tokenizer)
        parameters = {"variant": variant, "k1": k1, "b": b, "fields": fields}
        index: BM25Index | Folder
        if path is None:
            index = choose_index(existing_bm25, analysis, parameters)
        elif existing_bm25 is not None:
            raise ValueError("path names the folder of an index; leave existing_bm25 out")
        else:
            analyzer = None if analysis == NO_ANALYSIS else make_analyzer(*analysis)
            index = Folder(path, timeout, analyzer, parameters)
        self._nodes = nodes = Retrieval(
            index, metadata_mode, vectors, *(given[name] for name in ENCODERS)
        )
        nodes.settings = settings_of(self.bm25, nodes.metadata_mode, fusion, parts, vectors)
        nodes.ignores_vectors = sparse_query_fn is None
        if isinstance(index, Folder):
            index.remember(nodes.settings)
        if vectors is not None:
            vectors.dimension = nodes.settings.dimension
        self._parts = given
        self._given = {
            "language": language,
            "stemmer": stemmer,
            "skip_stemming": skip_stemming,
            "token_pattern": token_pattern,
            **parameters,
            "timeout": timeout,
        }

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        add_twins(cls)

    @classmethod
    def class_name(cls) -> str:
        """Return the name of the class, under which LlamaIndex serializes it."""
        return "BM25VectorStore"

    @property
    def bm25(self) -> BM25Index:
        """The index, which can be shared with a retriever, and has ``commit`` and ``refresh``."""
        return self._nodes.current()

    @property
    def client(self) -> BM25Index:
        """The index."""
        return self.bm25

    @property
    def dense(self) -> BasePydanticVectorStore | None:
        """The dense store."""
        vectors = self._nodes.vectors
        return None if vectors is None else vectors.store

    # --- writing: whatever fails, no node is lost, and no deleted one found ------------

    @planned
    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> Plan[list[str]]:
        """Add all nodes, or none if anything is wrong with them; return the id of each.

        A node replaces one with the same id. Nodes are added to the index first: if the dense store
        fails, BM25 finds them, and adding the same nodes again completes it. Nodes that are cut
        anew have new ids: delete the document first.

        Parameters
        ----------
        nodes
            The nodes; for a dense store, with embeddings of one dimension.
        **kwargs
            ``on_duplicate``, as in ``BM25Retriever.add_nodes``: ``"skip"`` keeps the nodes that are
            there, ``"error"`` refuses them. All others are for ``add`` of the dense store.

        Raises
        ------
        TypeError, DuplicateIdError, MetadataError
            As in ``BM25Retriever.add_nodes``.
        ValueError
            If a node has no embedding for the dense store, one of another dimension, or NaN in it;
            or nodes are searched by sparse vectors, and ``sparse_doc_fn`` is missing.
        SparseEncoderError, DenseStoreError
            If ``sparse_doc_fn`` fails, or returns anything but a finite vector for each text; if
            the dense store fails.
        """
        on_duplicate = kwargs.pop("on_duplicate", "replace")
        vectors = self._nodes.vectors
        check_options("add", kwargs, vectors)
        given = check_nodes(nodes)
        ids = [node.node_id for node in given]
        if vectors is None:
            self._nodes.add_nodes(given, on_duplicate)
            return ids
        dimension = vectors.check_nodes(given)
        before = self.bm25.snapshot()
        added = self._nodes.add_nodes(given, on_duplicate)
        wanted = pick_added([(node.node_id, node) for node in given], added, on_duplicate)
        again = (
            "BM25 finds the nodes; add these again, to replace them, for the dense store. If their "
            "document is cut anew, as an index does that inserts it, its nodes get new ids, and "
            "are there twice: delete it first"
        )
        yield from vectors.delete([id for id in wanted if id in before], again)
        if wanted:
            held = yield from vectors.ask("add", again, nodes=list(wanted.values()), **kwargs)
            vectors.dimension = dimension
            if not vectors.store.stores_text and list(held) != list(wanted):
                raise DenseStoreError(
                    f"the dense store ({type(vectors.store).__name__}) keeps no nodes, and gives "
                    "them ids of its own, so its results are unknown: give one that keeps theirs, "
                    "such as FaissMapVectorStore in place of FaissVectorStore"
                )
        return ids

    @planned
    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> Plan[None]:
        """Delete the nodes of a source document, and the document if it was added whole.

        ``delete_kwargs`` are for ``delete`` of the dense store: if it fails with a
        ``DenseStoreError``, the index still has the nodes. An index that was opened for reading
        raises ``ReadOnlyError``.
        """
        nodes = self._nodes
        check_options("delete", delete_kwargs, nodes.vectors)
        ids = ids_to_delete(self.bm25.snapshot(), None, of_source(ref_doc_id))
        # A pipeline without a splitter adds documents as they are, and deletes them like this.
        itself = nodes.get_nodes([ref_doc_id])
        whole = [node.node_id for node in itself if node.ref_doc_id is None]
        yield from self._delete_vectors("delete", ref_doc_id=ref_doc_id, **delete_kwargs)
        if nodes.vectors is not None:  # FaissMapVectorStore deletes by the ids of nodes alone
            after = "the BM25 index has not changed; call delete again"
            yield from nodes.vectors.delete([*ids, *whole], after)
        nodes.delete_ref_doc(ref_doc_id)
        nodes.delete_nodes(whole)

    @planned
    def delete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> Plan[None]:
        """Delete nodes as ``BM25Retriever.delete_nodes`` does, which also lists the exceptions.

        ``delete_kwargs`` are for ``delete_nodes`` of the dense store, which is given the ids of
        these nodes: if it fails with a ``DenseStoreError``, the index still has them.
        """
        check_options("delete_nodes", delete_kwargs, self._nodes.vectors)
        ids = ids_to_delete(self.bm25.snapshot(), node_ids, filters)
        if ids:  # without any, some stores delete everything
            yield from self._delete_vectors("delete_nodes", node_ids=list(ids), **delete_kwargs)
            self._nodes.delete_nodes(ids, filters)

    def update_metadata(
        self, node_ids: Iterable[str], metadata: Iterable[Mapping[str, Any] | None]
    ) -> list[str]:
        """Replace the metadata of nodes, as ``BM25Retriever.update_metadata`` does.

        Filters see the new metadata, and results have them. A dense store keeps what it knows of
        the old ones: what it returns is checked by the new ones, but ``add`` the nodes again if
        filters must choose by them there.
        """
        return self._nodes.update_metadata(node_ids, metadata)

    @planned
    def clear(self) -> Plan[None]:
        """Delete all nodes, from the dense store first: if it fails, the index still has them."""
        yield from self._delete_vectors("clear")
        self._nodes.clear()
        if self._nodes.vectors is not None:
            self._nodes.vectors.dimension = 0

    def _delete_vectors(self, method: str, **arguments: Any) -> Plan[None]:
        self._nodes.check_writable()
        if self._nodes.vectors is not None:
            after = f"the BM25 index has not changed, and {method} can be called again"
            yield from self._nodes.vectors.ask(method, after, **arguments)

    # --- reading ------------------------------------------------------------------

    def get_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """Return nodes by id, by filters, or all, as ``BM25Retriever.get_nodes`` does."""
        return self._nodes.get_nodes(node_ids, filters)

    @planned
    def query(self, query: VectorStoreQuery, **kwargs: Any) -> Plan[VectorStoreQueryResult]:
        """Find the best nodes of those that pass the filters, ``node_ids`` and ``doc_ids``.

        Empty ``doc_ids`` let no node pass, empty ``node_ids`` all, as LlamaIndex's retriever gives
        them. If there is neither a word nor an embedding to search by, but filters or ids, the
        result is the first nodes that pass, in the order of the index, with score 0; ``min_score``
        does not apply. Otherwise the best are first; scores of ``hybrid`` are fused ones.

        Parameters
        ----------
        query
            Its ``query_str`` may also be a list of terms, a mapping of terms to weights, or a
            ``bm25rag.Query``, whose parts hold for all that is found. Mode
            ``text_search`` returns the ``similarity_top_k`` best by BM25, ``sparse`` those by
            sparse vectors, or by BM25 if there are none and no ``sparse_query_fn``; both of them
            ``sparse_top_k``, if that is given. Mode ``hybrid`` fuses at least ``fetch_k`` of each
            leg, or ``sparse_top_k`` of BM25's and the sparse vectors' if that is given, and returns
            ``hybrid_top_k``, or else ``similarity_top_k``, nodes. All other modes ask the dense
            store; without one, ``default`` is BM25.
        **kwargs
            ``correct`` and ``expand``, as in ``BM25Retriever``, for the words of the query;
            ``min_score``, the least score of a node that is returned; ``offset``, how many of the
            best nodes to leave out; and ``spans_key``, ``parse_query``, ``group``, ``per_group``
            and ``decay``, as there, the last three in modes ``text_search`` and ``sparse``. All
            others are for ``query`` of the dense store. The retriever of an index passes them on:
            ``as_retriever(vector_store_kwargs={...})``.

        Raises
        ------
        TypeError, ValueError
            If an argument or a field of the query is wrong, the mode needs a dense store,
            ``sparse_query_fn``, ``query_str`` or ``query_embedding`` that is missing, or does not
            ask what an option is for, or the embedding has another dimension than those in the
            dense store.
        SparseEncoderError, DenseStoreError
            If ``sparse_query_fn`` fails, or returns anything but a finite vector; if the dense
            store fails.
        """
        return (yield from self._nodes.query(query, kwargs))

    async_add = in_thread(add)  # type: ignore[arg-type]
    adelete = in_thread(delete)  # type: ignore[arg-type]
    adelete_nodes = in_thread(delete_nodes)  # type: ignore[arg-type]
    aupdate_metadata = in_thread(update_metadata)
    aclear = in_thread(clear)  # type: ignore[arg-type]
    aget_nodes = in_thread(get_nodes)  # type: ignore[arg-type]
    aquery = in_thread(query)  # type: ignore[arg-type]

    # --- saving -------------------------------------------------------------------

    def persist(self, persist_path: str, fs: AbstractFileSystem | None = None) -> None:
        """Save index, analysis, nodes and settings in a folder.

        The dense store is asked to persist itself at the same path with ``.dense`` added, which
        stores that keep their data elsewhere ignore. Into the folder that it was loaded from or
        last saved in, only changes are written.

        Parameters
        ----------
        persist_path
            The folder; or a path ``NAME.json``, as ``StorageContext.persist`` gives it: the folder
            is ``NAME.bm25`` then, and the file says so to whoever reads it for another store's.
        fs
            ``None``, or a local file system.

        Raises
        ------
        ValueError, NotAnIndexError
            If ``fs`` is another one, the stemmer is an object that cannot be saved, or the folder
            holds something else.
        """
        check_local(fs)
        changed = {
            "object_ids": held_index_ids(self.bm25, self._nodes.object_map),
            "dimension": 0 if self._nodes.vectors is None else self._nodes.vectors.dimension,
        }
        settings = self._nodes.settings.changed(changed)
        place, own = folder_of(persist_path), self._nodes.folder
        if own is not None and own.is_at(place):
            own.remember(settings)
        else:
            persistence.save(self.bm25, place, settings)
        write_signpost(persist_path)
        if self.dense is not None:
            self.dense.persist(f"{persist_path}.dense", fs=fs)

    @classmethod
    def from_persist_path(
        cls,
        persist_path: str,
        fs: AbstractFileSystem | None = None,
        *,
        tokenizer: Tokenizer | None = None,
        **options: Unpack[_Options],
    ) -> Self:
        """Load what ``persist`` saved, of a store or a retriever; it can be changed in memory.

        Parameters
        ----------
        persist_path
            As it was given to ``persist``.
        fs
            ``None``, or a local file system.
        tokenizer
            The tokenizer that it was made with, if any.
        **options
            ``dense``, such as ``SimpleVectorStore.from_persist_path(path + ".dense")``,
            ``sparse_doc_fn`` and ``sparse_query_fn``, which are not saved: they must be given if
            there were such, and ``None`` does without. ``alpha``, ``method``, ``rank_constant`` and
            ``fetch_k``, in place of what was saved.

        Raises
        ------
        NotAnIndexError, CorruptIndexError, TokenizerRequiredError
            As in ``BM25Retriever.from_persist_dir``.
        ValueError
            If ``fs`` is not local, or as in the constructor.
        """
        check_local(fs)
        index, settings = persistence.load(folder_of(persist_path), tokenizer)
        given: dict[str, Any] = {"metadata_mode": settings.metadata_mode, **options}
        return cls(index, **given)  # which says so, if a mode is given and is another one

    @classmethod
    def from_persist_dir(
        cls,
        persist_dir: str = DEFAULT_PERSIST_DIR,
        namespace: str = DEFAULT_VECTOR_STORE,
        fs: AbstractFileSystem | None = None,
        **kwargs: Any,
    ) -> Self:
        """Load what ``StorageContext.persist`` saved of the store of that name, in a folder.

        All else is as in ``from_persist_path``, which also lists the exceptions.
        """
        name = f"{namespace}{NAMESPACE_SEP}{DEFAULT_PERSIST_FNAME}"
        return cls.from_persist_path(str(Path(persist_dir) / name), fs, **kwargs)

    # --- as a dict, JSON and a pickle ------------------------------------------------

    @model_serializer(mode="wrap")
    def custom_model_dump(self, handler: Any, info: Any) -> dict[str, Any]:
        """Return the arguments that make this store again from its folder, for ``from_dict``."""
        if self._nodes.folder is None:
            raise ValueError(
                "a BM25VectorStore in memory cannot be written as a dict or JSON, which do not "
                "hold its nodes: save it with persist(path) and load it with "
                "BM25VectorStore.from_persist_path(path), or make it with "
                "BM25VectorStore(path=...), of which a dict or JSON hold the settings"
            )
        plain = (str, int, float, bool, dict)
        fields: dict[str, Any] = handler(self)
        return {
            # Those that a subclass adds.
            **{name: fields[name] for name in fields if name not in BM25VectorStore.model_fields},
            "path": self._nodes.folder.path,
            **{name: value for name, value in self._given.items() if isinstance(value, plain)},
            "language": self._given["language"],
            **{name: getattr(self._nodes.settings, name) for name in FUSION},
            "metadata_mode": self._nodes.metadata_mode.value,
            # What is left out must be given to from_dict.
            **{name: None for name, value in self._parts.items() if value is None},
            "class_name": self.class_name(),
        }

    def __getstate__(self) -> dict[str, Any]:
        for name, value in self._parts.items():
            try:
                pickle.dumps(value)
            except Exception as error:
                raise TypeError(
                    f"{name} of the BM25VectorStore cannot be pickled ({error}): give a function "
                    "or store that can, or pickle the path of a saved store and load it there"
                ) from error
        return BaseModel.__getstate__(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        BaseModel.__setstate__(self, state)
