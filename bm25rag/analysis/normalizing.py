"""The first step of analysis: one form for texts that readers take for the same."""

from __future__ import annotations

import unicodedata

from bm25rag.analysis import scripts
from bm25rag.analysis.settings import NormalForm


class Normalizer:
    """Normalises and lower-cases texts, and unifies apostrophes and widths.

    Parameters
    ----------
    form
        A Unicode normal form, or ``None``.
    turkish
        Whether to lower-case as Turkish does.
    folds_widths
        Whether to make full-width ASCII and half-width katakana what they usually are.
    cleans
        Whether to unify apostrophes, and drop characters that are not part of words.
    """

    def __init__(
        self, form: NormalForm | None, *, turkish: bool, folds_widths: bool, cleans: bool
    ) -> None:
        self._form = form
        self._turkish = turkish
        self._folds_widths = folds_widths
        self._cleans = cleans

    def normalize(self, text: str, lowercase: bool) -> str:
        """Return a text normalised."""
        if text.isascii():
            return scripts.lower(text, self._turkish) if lowercase else text
        if self._cleans:
            text = scripts.drop_ignored(text)
        if self._folds_widths:
            text = scripts.fold_widths(text)
        if lowercase:
            text = scripts.lower(text, self._turkish)
        # After lower-casing, because the lower case of a normal form need not be in that form.
        text = self._to_form(text, lowercase)
        return scripts.APOSTROPHES.sub("'", text) if self._cleans else text

    def _to_form(self, text: str, lowercase: bool) -> str:
        if self._form is None or (self._form == "NFC" and scripts.is_surely_nfc(text)):
            return text
        text = unicodedata.normalize(self._form, text)
        if lowercase and self._form[2] == "K":  # it turns some symbols into capitals
            text = scripts.lower(text, self._turkish)
            text = unicodedata.normalize(self._form, text)
        return text
