"""tantivy: BM25 with k1 = 1.2, b = 0.75 and lengths rounded to a byte, times k1 + 1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import tantivy
from tantivy import Occur, Query

from benchmarks.corpora import Queries
from benchmarks.engines import K1
from benchmarks.engines.base import Found, RawBuilder, padded

_MEMORY = 1_000_000_000  # so that a thread makes one segment, which is searched fastest


class Tantivy(RawBuilder):
    """An index in memory."""

    scale = 1 / (K1 + 1)

    def build(self, lines: Iterable[str]) -> None:
        self._fill(lines, "whitespace", 1)
        self._searcher = self._index.searcher()

    def build_raw(self, texts: list[str], threads: int) -> None:
        self._fill(texts, "en_stem", threads)
        self._searcher = self._index.searcher()

    def _fill(self, texts: Iterable[str], tokenizer: str, threads: int) -> None:
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("text", tokenizer_name=tokenizer, index_option="freq")
        builder.add_integer_field("row", fast=True)
        self._schema = builder.build()
        self._index = tantivy.Index(self._schema)
        words = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()
        self._index.register_tokenizer("whitespace", words)
        self._writer = self._index.writer(_MEMORY * threads, threads)
        for row, text in enumerate(texts):
            self._writer.add_document(tantivy.Document(text=text, row=row))
        self._writer.commit()
        self._index.reload()

    def prepare(self, queries: Queries) -> list[Query]:
        return [self._query(Counter(terms)) for terms in queries]

    def _query(self, counted: Counter[str]) -> Query:
        parts = []
        for term, count in counted.items():
            part = Query.term_query(self._schema, "text", term, "freq")
            part = part if count == 1 else Query.boost_query(part, float(count))
            parts.append((Occur.Should, part))
        return Query.boolean_query(parts)

    def answer(self, queries: list[Query], k: int, threads: int) -> list[Any]:
        search = self._searcher.search
        return [search(query, k, count=False).hits for query in queries]

    def results(self, queries: list[Query], k: int) -> Found:
        found = []
        for hits in self.answer(queries, k, 1):
            rows = self._searcher.fast_field_values("row", [address for _, address in hits])
            found.append((rows, [score for score, _ in hits]))
        return padded(found, k)
