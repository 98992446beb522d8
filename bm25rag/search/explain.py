"""Why a document has its score, term by term."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bm25rag.common.checks import check_id
from bm25rag.errors import DocumentNotFoundError
from bm25rag.search.plain_terms import RestrictedTerms, Terms
from bm25rag.search.snapshot import Snapshot

if TYPE_CHECKING:
    from bm25rag.decay import DecayLike
    from bm25rag.filters import Filter
    from bm25rag.search.parts import PartExplanation


@dataclass(frozen=True, slots=True)
class TermExplanation:
    """One query term's share of a score.

    Parameters
    ----------
    term
        The term, analysed.
    count
        How often it occurs in the query; its weight, if the query has weights.
    document_frequency
        How many living documents contain it.
    idf
        Its inverse document frequency, as rounded to float32.
    tf
        How often the document contains it; with fields, the weighted sum over them.
    f
        The term frequency part, as rounded to float32: without f(0) if the shift contains
        that, 0 if the document does not contain the term.
    contribution
        ``count * idf * f``, with the product of idf and f in float32.
    fields
        How often each field contains it; ``None`` in an index without fields.
    analysis
        The number of the analysis that it is a term of, 0 for the first; ``None`` in an index with
        one.
    """

    term: str
    count: float
    document_frequency: int
    idf: float
    tf: float
    f: float
    contribution: float
    fields: dict[str, int] | None = None
    analysis: int | None = None


def labels_of(terms: Sequence[TermExplanation]) -> list[str]:
    """Return what to call terms; those of further analyses by a number."""
    return [f"{term.term} +{term.analysis}" if term.analysis else term.term for term in terms]


@dataclass(frozen=True, slots=True)
class Explanation:
    """A score and its parts: the contributions, in order, and the shift add up to it.

    Where the search had a ``decay``, it is what that left of the sum.

    Parameters
    ----------
    id
        The document.
    score
        Its score, bit for bit the one that a search returns.
    matched
        Whether it contains a query term, and passes all parts of a ``Query``; otherwise no search
        returns it.
    shift
        What absent terms add, summed over the whole query (BM25L, BM25+, TF_l∘δ∘p).
    terms
        The query's distinct terms in order of first occurrence, unknown ones with idf 0.
    multiplier
        What ``decay`` has multiplied the sum by, or divided a negative one by, to give the score.
    parts
        What a ``Query`` restricts matches to, part by part.
    """

    id: str
    score: float
    matched: bool
    shift: float
    terms: tuple[TermExplanation, ...]
    multiplier: float = 1.0
    parts: tuple[PartExplanation, ...] = ()

    def __str__(self) -> str:
        names = labels_of(self.terms)
        width = max([len("term"), *map(len, names)])
        lines = [
            self._caption,
            f"  {'term':{width}}  count      df      idf   tf         f  contribution",
        ]
        lines += [
            f"  {name:{width}}  {term.count:5.4g} {term.document_frequency:7d} "
            f"{term.idf:8.4f} {_tf(term)} {term.f:9.4f}  {term.contribution:12.6f}{_counts(term)}"
            for name, term in zip(names, self.terms, strict=True)
        ]
        if self.shift:
            lines.append(f"  {'shift':{width}}  {'':37}{self.shift:14.6f}")
        if self.multiplier != 1.0:
            lines.append(f"  {'decay':{width}}  {'':35}x {self.multiplier:13.6f}")
        lines += [f"  {part}" for part in self.parts]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from bm25rag.common.tables import table

        columns = ("term", "count", "df", "idf", "tf", "f", "contribution")
        rows: list[tuple[object, ...]] = [
            (one.term, one.count, one.document_frequency, one.idf, one.tf, one.f, one.contribution)
            for one in self.terms
        ]
        blank = ("",) * 5
        rows += [("shift", *blank, self.shift)] if self.shift else []
        rows += [("decay", *blank, self.multiplier)] if self.multiplier != 1.0 else []
        rows += [(str(part),) for part in self.parts]
        return table(self._caption, columns, rows, len(rows))

    @property
    def _caption(self) -> str:
        return f"{self.score:.6f} = score of {self.id!r}{'' if self.matched else ' (no match)'}"


def _tf(term: TermExplanation) -> str:
    return f"{term.tf:4d}" if isinstance(term.tf, int) else f"{term.tf:4.4g}"


def _counts(term: TermExplanation) -> str:
    counts = (term.fields or {}).items()
    return "".join([f"  {name}: {count}" for name, count in counts if count])


def explain(
    snapshot: Snapshot,
    terms: Terms,
    id: str | int,
    filter: Filter | None,
    decay: DecayLike | None = None,
) -> Explanation:
    """Explain the score of a document; ``DocumentNotFoundError`` if there is none that passes."""
    place = snapshot.find(check_id("id", id))
    if place is None or not snapshot.passes(*place, filter):
        passing = "" if filter is None else " that the filter passes"
        raise DocumentNotFoundError(f"there is no document with the id {id!r}{passing}")
    segment_index, number = place
    view = snapshot.views[segment_index]
    counts: Mapping[str, float] = terms if isinstance(terms, dict) else Counter(terms)
    cache, numbers = snapshot.term_numbers(counts)
    postings, fields = view.segment.postings, view.segment.postings.text_fields
    tfs = postings.weighted_tf(snapshot.parameters.field_weights)
    if fields is not None and fields.are_analyses:
        tfs, fields = tfs.astype("u4"), None
    nowhere = None if fields is None else dict.fromkeys(fields.names, 0)
    shares = []
    score, shift = 0.0, 0.0
    for (name, count), term in zip(counts.items(), numbers, strict=True):
        if term < 0:
            shares.append(TermExplanation(name, count, 0, 0.0, 0, 0.0, 0.0, nowhere))
            continue
        idf, starts = cache.idf[term], cache.starts[segment_index][term]
        tf, f, contribution, by_field = 0, 0.0, 0.0, nowhere
        position = postings.place_of(number, starts)
        if position is not None:
            code = postings.codes[position]
            weight = snapshot.tables[segment_index][code]
            tf, f = tfs[code].item(), float(weight)
            contribution = float(idf * weight) * count
            if fields is not None:
                row = fields.counts[postings.code_tf[code]].tolist()
                by_field = dict(zip(fields.names, row, strict=True))
        score += contribution
        shift += float(idf * snapshot.absent_weight) * count
        frequency = int(cache.frequencies[term])
        own = (name, count, frequency, float(idf), tf, f, contribution)
        shares.append(TermExplanation(*own, by_field))
    matched, multiplier, total = any(share.tf for share in shares), 1.0, score + shift
    if decay is not None:
        from bm25rag.decay import multiplied, multiplier_of

        multiplier = multiplier_of(decay, snapshot.document(*place).metadata)
        total = multiplied(total, multiplier)
    parts: tuple[PartExplanation, ...] = ()
    if isinstance(terms, RestrictedTerms):
        from bm25rag.search.parts import explain_parts

        parts = explain_parts(snapshot, terms.restriction, place)
        matched = all(part.passed for part in parts) and (matched or terms.restriction.demands)
    if snapshot.analyzer.also:
        from bm25rag.analysis.spaces import space_of  # few indexes have several

        spaces = [space_of(share.term) for share in shares]
        pairs = zip(shares, spaces, strict=True)
        shares = [replace(share, term=term, analysis=own) for share, (own, term) in pairs]
    document_id = view.segment.id_of(number)
    return Explanation(document_id, total, matched, shift, tuple(shares), multiplier, parts)
