"""Test collections: documents, queries and judgements, from BEIR folders and ir_datasets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from bm25rag.common.optional import load
from bm25rag.common.urls import from_home
from bm25rag.documents import Document
from bm25rag.evaluation.beir import BEIR
from bm25rag.evaluation.files import read_qrels
from bm25rag.readers import find_beir_corpus, read_jsonl, read_queries
from bm25rag.readers.lines import find_packed


@dataclass(frozen=True)
class Collection:
    """Documents, texts of queries, and judgements: grades by query id and document id.

    Each call of ``read`` reads the documents again.
    """

    name: str
    read: Callable[[], Iterable[Document]]
    queries: dict[str, str]
    qrels: dict[str, dict[str, int]]


def load_beir(folder: str | PathLike[str], split: str = "test") -> Collection:
    """Load a folder in BEIR's layout, with the queries that are judged in a split.

    It has ``corpus.jsonl``, ``queries.jsonl`` (either may be packed) and ``qrels/SPLIT.tsv``.
    Titles and texts are joined by a space.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    ValueError
        If a line does not fit the format, or judged queries have no text.
    """
    path = Path(from_home(folder))
    corpus = find_beir_corpus(path)
    if corpus is None:
        raise FileNotFoundError(f"{path}: not a BEIR folder, there is no corpus.jsonl in it")
    judged = read_qrels(_find_qrels(path, split))
    queries_file = find_packed(path / "queries.jsonl")
    if queries_file is None:
        raise FileNotFoundError(f"{path}: not a BEIR folder, there is no queries.jsonl in it")
    texts = {query.id: query.text for query in read_queries(queries_file)}
    bare = [id for id in judged if id not in texts]
    if bare:
        raise ValueError(f"{path}: {len(bare)} judged queries have no text ({bare[0]!r} ...)")
    queries = {id: texts[id] for id in judged}
    return Collection(path.resolve().name, lambda: read_jsonl(corpus), queries, judged)


def _find_qrels(path: Path, split: str) -> Path:
    file = path / "qrels" / f"{split}.tsv"
    if not file.is_file():
        splits = sorted(path.stem for path in (path / "qrels").glob("*.tsv"))
        raise FileNotFoundError(f"{file}: no such split; those in this folder are {splits}")
    return file


def load_ir_dataset(name: str) -> Collection:
    """Load a dataset by its ``ir_datasets`` name, such as ``"beir/scifact/test"``.

    ir_datasets downloads what is not on this machine. Queries are those that are judged.

    Raises
    ------
    ValueError
        If the dataset does not exist, or lacks documents, queries or judgements.
    """
    ir_datasets = load("ir_datasets", "evaluation needs ir_datasets", "eval")
    try:
        dataset = ir_datasets.load(name)
    except KeyError as cause:
        raise ValueError(
            f"ir_datasets has no dataset {name!r}; names are listed at https://ir-datasets.com"
        ) from cause
    lacking = [
        kind for kind in ("docs", "queries", "qrels") if not getattr(dataset, f"has_{kind}")()
    ]
    if lacking:
        raise ValueError(f"the dataset {name!r} has no {' and no '.join(lacking)}")
    qrels: dict[str, dict[str, int]] = {}
    for judgement in dataset.qrels_iter():
        qrels.setdefault(judgement.query_id, {})[judgement.doc_id] = judgement.relevance
    texts = {query.query_id: query.default_text() for query in dataset.queries_iter()}
    queries = {id: texts[id] for id in qrels if id in texts}

    def read() -> Iterator[Document]:
        return (Document(one.doc_id, one.default_text()) for one in dataset.docs_iter())

    return Collection(name, read, queries, qrels)


def load_collection(name: str, split: str = "test") -> Collection:
    """Load a BEIR folder or, if there is no such folder, a dataset of ir_datasets."""
    folder = Path(from_home(name))
    if folder.is_dir():
        return load_beir(name, split)
    try:
        return load_ir_dataset(name)
    except ValueError as error:
        if folder.name not in BEIR:
            raise
        get = f"bm25rag download {folder.name} {folder.parent}"
        raise FileNotFoundError(f"{name}: no such folder; '{get}' makes it") from error
