"""The BM25 family as pure functions: an idf part and a tf part each, with its paper.

The score of a document d for a query is the sum over the query's terms t of
``idf(t) * f(tf, |d|)``. With N the number of documents, df the number that
contain t, avgdl the mean of |d|, ``B = 1 - b + b * |d| / avgdl`` and
``c = tf / B``, every function here is written as its paper or its reference
implementation has it, in float64.

References
----------
.. [1] X. H. Lù. BM25S: Orders of magnitude faster lexical search via eager
   sparse scoring. 2024. arXiv:2407.03618.
.. [2] C. Kamphuis, A. P. de Vries, L. Boytsov, J. Lin. Which BM25 do you mean?
   A large-scale reproducibility study of scoring variants. ECIR 2020.
.. [3] S. E. Robertson, S. Walker, S. Jones, M. M. Hancock-Beaulieu, M. Gatford.
   Okapi at TREC-3. 1995.
.. [4] A. Trotman, A. Puurula, B. Burgess. Improvements to BM25 and language
   models examined. ADCS 2014.
.. [5] Y. Lv, C. Zhai. When documents are very long, BM25 fails! SIGIR 2011.
.. [6] Y. Lv, C. Zhai. Lower-bounding term frequency normalization. CIKM 2011.
.. [7] F. Rousseau, M. Vazirgiannis. Composition of TF normalizations: new
   insights on scoring functions for ad hoc IR. SIGIR 2013.
.. [8] C. D. Manning, P. Raghavan, H. Schütze. Introduction to Information
   Retrieval, section 6.2. 2008.
.. [9] S. Robertson, H. Zaragoza, M. Taylor. Simple BM25 extension to multiple
   weighted fields. CIKM 2004.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from struct import Struct
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from bm25rag.common.arrays import Float32, Float64
from bm25rag.common.checks import check_choice, check_real
from bm25rag.common.record import Record
from bm25rag.common.strings import TEXT

VariantName: TypeAlias = Literal["lucene", "robertson", "atire", "bm25l", "bm25+", "tfldp", "tfidf"]
"""The names in ``VARIANTS``."""
DeltaOn: TypeAlias = Literal["all", "matched"]
"""The query terms that the lower bound is summed over."""

# Products of larger values could overflow float32; no collection needs them.
LARGEST = 1e30

# Rounds a number to float32.
_FLOAT32 = Struct("f")

# Blocks of 2^14 documents, with a text for each field, are counted at once.
MOST_FIELDS = 64

Inverse = Callable[[float, Any], Any]
TermWeight = Callable[[Float64, Float64, Float64, float, float], Float64]


# What the idf is the natural logarithm of, for one df or an array.


def inverse_lucene(n: float, df: Any) -> Any:
    """``1 + (N - df + .5) / (df + .5)``: its logarithm is never negative [2]_."""
    return 1.0 + (n - df + 0.5) / (df + 0.5)


def inverse_robertson(n: float, df: Any) -> Any:
    """``(N - df + .5) / (df + .5)``: [3]_; at least 1, so that the idf is 0, as [1]_ has it."""
    return np.maximum(1.0, (n - df + 0.5) / (df + 0.5))


def inverse_atire(n: float, df: Any) -> Any:
    """``N / df`` [4]_."""
    return n / df


def inverse_bm25l(n: float, df: Any) -> Any:
    """``(N + 1) / (df + .5)`` [5]_."""
    return (n + 1.0) / (df + 0.5)


def inverse_plus(n: float, df: Any) -> Any:
    """``(N + 1) / df`` [6]_ [7]_."""
    return (n + 1.0) / df


# Arguments of the tf parts: tf, B, |d|, k1, delta.


def tf_lucene(tf: Float64, norm: Float64, length: Float64, k1: float, delta: float) -> Float64:
    """``tf / (tf + k1 B)``: [2]_'s "Lucene (accurate)" without the constant k1 + 1."""
    return tf / (tf + k1 * norm)


def tf_okapi(tf: Float64, norm: Float64, length: Float64, k1: float, delta: float) -> Float64:
    """``(k1 + 1) tf / (tf + k1 B)`` [4]_."""
    return (k1 + 1.0) * tf / (tf + k1 * norm)


def tf_bm25l(tf: Float64, norm: Float64, length: Float64, k1: float, delta: float) -> Float64:
    """``(k1 + 1)(c + delta) / (k1 + c + delta)`` [5]_."""
    c = tf / norm
    return (k1 + 1.0) * (c + delta) / (k1 + c + delta)


def tf_plus(tf: Float64, norm: Float64, length: Float64, k1: float, delta: float) -> Float64:
    """``(k1 + 1) tf / (tf + k1 B) + delta`` [6]_."""
    return (k1 + 1.0) * tf / (tf + k1 * norm) + delta


def tf_ldp(tf: Float64, norm: Float64, length: Float64, k1: float, delta: float) -> Float64:
    """``1 + ln(1 + ln(tf / B + delta))``: the TF_l∘δ∘p of [7]_."""
    return 1.0 + np.log(1.0 + np.log(tf / norm + delta))


def tf_relative(tf: Float64, norm: Float64, length: Float64, k1: float, delta: float) -> Float64:
    """``tf / |d|``, the textbook weighting [8]_."""
    return tf / length


class Variant(NamedTuple):
    """One member of the family.

    ``delta`` is the default of the lower bound, ``None`` if the formula has none;
    ``delta_above`` is the value that it must exceed.
    """

    name: str
    inverse: Inverse
    tf: TermWeight
    delta: float | None = None
    delta_above: float | None = None


VARIANTS = {
    variant.name: variant
    for variant in (
        Variant("lucene", inverse_lucene, tf_lucene),
        Variant("robertson", inverse_robertson, tf_lucene),
        Variant("atire", inverse_atire, tf_okapi),
        Variant("bm25l", inverse_bm25l, tf_bm25l, delta=0.5),
        Variant("bm25+", inverse_plus, tf_plus, delta=1.0),
        Variant("tfldp", inverse_plus, tf_ldp, delta=1.0, delta_above=1.0 / math.e),
        Variant("tfidf", inverse_atire, tf_relative),
    )
}


def has_delta(variant: object) -> bool:
    """Whether there is a variant of this name, and it has a lower bound."""
    return isinstance(variant, str) and variant in VARIANTS and VARIANTS[variant].delta is not None


class _Unchanged:
    """Stands for an argument that is not given, where ``None`` is one."""

    def __repr__(self) -> str:
        return "<unchanged>"


UNCHANGED: Any = _Unchanged()


class Parameters(Record):
    """What a score depends on besides the corpus, as for ``BM25Index``; checked on construction.

    tf and |d| are the sums over ``fields``, in this order, each times its weight, which is 0 or
    from 1e-30 to 1e30 [9]_; ``None``: texts are whole.
    """

    __slots__ = __match_args__ = ("variant", "k1", "b", "delta", "delta_on", "fields")

    def __init__(
        self,
        variant: str = "lucene",
        k1: float = 1.2,
        b: float = 0.75,
        delta: float | None = None,
        delta_on: str = "all",
        fields: Mapping[str, float] | None = None,
    ) -> None:
        self.variant: Final = check_choice("variant", variant, VARIANTS)
        self.delta_on: Final = check_choice("delta_on", delta_on, ("all", "matched"))
        self.k1: Final = check_real("k1", k1, 0.0, LARGEST)
        self.b: Final = check_real("b", b, 0.0, 1.0)
        self.delta: Final = None if delta is None else self._check_delta(delta)
        self.fields: Final = None if fields is None else _check_fields(fields)

    def _check_delta(self, given: float) -> float:
        delta = check_real("delta", given, 0.0, LARGEST)
        variant = VARIANTS[self.variant]
        if variant.delta is None:
            raise ValueError(
                f"variant {self.variant!r} has no delta, got delta={delta!r}; leave it out"
            )
        if variant.delta_above is not None and delta <= variant.delta_above:
            raise ValueError(
                f"delta of {self.variant!r} must be greater than 1/e = {variant.delta_above:.6f}, "
                f"got {delta!r}"
            )
        return delta

    @property
    def effective_delta(self) -> float | None:
        """The delta in use, ``None`` if the variant has none."""
        return VARIANTS[self.variant].delta if self.delta is None else self.delta

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the fields."""
        return None if self.fields is None else tuple([name for name, _ in self.fields])

    @property
    def field_weights(self) -> tuple[float, ...]:
        """The weights of the fields; without fields, that of the text."""
        return (1.0,) if self.fields is None else tuple([weight for _, weight in self.fields])

    @property
    def matched_fields(self) -> tuple[bool, ...]:
        """Whether the words of each field match; those of a field of weight 0 do not."""
        return tuple([weight > 0.0 for weight in self.field_weights])

    def to_dict(self) -> dict[str, Any]:
        """Return the arguments that make these parameters, ``fields`` only if there are any."""
        values = dict(zip(self.__match_args__, self._values(), strict=True))
        fields = values.pop("fields")
        return values if fields is None else values | {"fields": dict(fields)}

    def __reduce__(self) -> tuple[Callable[..., Parameters], tuple[Any, ...]]:
        return partial(Parameters, **self.to_dict()), ()

    def changed(self, given: dict[str, Any]) -> Parameters:
        """Return these parameters with some changed; a variant without a delta drops it.

        What is ``UNCHANGED`` is not given. Fields that are not given keep their weights; there can
        be no others.
        """
        given = {name: value for name, value in given.items() if value is not UNCHANGED}
        changed = {**self.to_dict(), **given}
        if "fields" in given:
            changed["fields"] = self._changed_fields(given["fields"])
        if "delta" not in given and not has_delta(changed["variant"]):
            changed["delta"] = None
        return Parameters(**changed)

    def _changed_fields(self, given: Mapping[str, float]) -> dict[str, float]:
        if self.fields is None:
            raise ValueError(
                f"fields is {given!r:.100}, but the documents of this index have no fields: make "
                "an index with fields, and add them again"
            )
        fields = dict(self.fields)
        for name in _check_mapping(given):
            if name not in fields:
                raise ValueError(f"there is no field {name!r:.100}, but {', '.join(fields)}")
        return {**fields, **given}

    def idf(self, documents: int, frequencies: Float64) -> Float32:
        """Inverse document frequencies among N living ``documents``, rounded once to float32.

        ``frequencies`` are those of documents, float64, all >= 1.
        """
        inverse: Float64 = VARIANTS[self.variant].inverse(float(documents), frequencies)
        return np.log(inverse).astype(np.float32)

    def idf_of(self, documents: int, frequency: int) -> float:
        """Return the same for one frequency: NumPy takes 1.7 times as long for a number."""
        inverse = VARIANTS[self.variant].inverse(float(documents), float(frequency))
        rounded: float = _FLOAT32.unpack(_FLOAT32.pack(math.log(inverse)))[0]
        return rounded

    def weights(self, tf: Float64, lengths: Float64, average: float | Float64) -> Float32:
        """``f(tf, |d|)``, minus f(0) if the shift adds that; rounded once to float32.

        Term frequencies and lengths are float64 of one shape, all > 0; the mean length is one, or
        one for each.
        """
        norm = 1.0 - self.b + self.b * lengths / average
        parts = self._tf(tf, norm, lengths)
        if self.delta_on == "all":
            parts = parts - self._absent
        return parts.astype(np.float32)

    @property
    def absent_weight(self) -> np.float32:
        """What a query term that a document lacks adds per idf: f(0), or 0 if it adds nothing."""
        return np.float32(self._absent if self.delta_on == "all" else 0.0)

    @property
    def _absent(self) -> float:
        one = np.ones(1)
        with np.errstate(invalid="ignore"):
            absent = float(self._tf(np.zeros(1), one, one)[0])
        return 0.0 if math.isnan(absent) else absent  # 0/0, which k1 = 0 gives, counts as 0

    def _tf(self, tf: Float64, norm: Float64, lengths: Float64) -> Float64:
        delta = self.effective_delta
        return VARIANTS[self.variant].tf(
            tf, norm, lengths, self.k1, 0.0 if delta is None else delta
        )


def _check_mapping(fields: object) -> Mapping[Any, Any]:
    if not isinstance(fields, Mapping):
        raise TypeError(
            f"fields must be a dict of names and weights, such as {{'title': 3.0}}, got "
            f"{fields!r:.100}"
        )
    return fields


def _check_fields(fields: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    """Check fields; ``text``, which a plain text is, has the weight 1 unless one is given."""
    weights = dict(_check_mapping(fields))
    if not weights:
        raise ValueError("fields must have at least one name, got an empty dict; leave it out")
    for name in weights:
        if not isinstance(name, str) or not name:
            raise TypeError(f"fields must have names that are str and not empty, got {name!r:.100}")
    weights.setdefault(TEXT, 1.0)
    if len(weights) > MOST_FIELDS:
        raise ValueError(f"fields must have at most {MOST_FIELDS} names, got {len(weights)}")
    checked = []
    for name, given in weights.items():
        weight = check_real(f"fields[{name!r:.100}]", given, 0.0, LARGEST) + 0.0
        if 0.0 < weight < 1.0 / LARGEST:
            raise ValueError(f"fields[{name!r:.100}] must be 0 or at least 1e-30, got {weight!r}")
        checked.append((name, weight))
    if not any(weight for _, weight in checked):
        raise ValueError("fields must have a weight that is not 0")
    return tuple(checked)


class DotProduct(Parameters):
    """What stands for parameters where vectors are multiplied: their weights count as they are."""

    __slots__ = ()

    def idf(self, documents: int, frequencies: Float64) -> Float32:
        """Return 1 for each term."""
        return np.ones(len(frequencies), np.float32)

    def idf_of(self, documents: int, frequency: int) -> float:
        """Return 1."""
        return 1.0
