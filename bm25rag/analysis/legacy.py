"""Analyzers of version 0.1: their settings, read and written as that version did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# What "auto" was in version 0.1: the paper's pattern, with combining marks inside words.
AUTO_0_1 = "auto-0.1"

# Settings that version 0.1 did not have, with the values that describe what it did.
_ADDED: dict[str, Any] = {
    "query_stopwords": [],
    "fold_accents": False,
    "cjk_characters": False,
    "southeast_asian": False,
    "identifiers": False,
}


def upgrade(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings by their present names; those of version 0.1 keep their meaning.

    Parameters
    ----------
    settings
        Settings, as this version or version 0.1 saved them.
    """
    if settings.keys() & _ADDED.keys():
        return dict(settings)
    upgraded = {**settings, **_ADDED}
    if upgraded.get("token_pattern") == "auto":
        upgraded["token_pattern"] = AUTO_0_1
    return upgraded


def downgrade(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as version 0.1 wrote them, or unchanged if it had no such analyzer.

    Parameters
    ----------
    settings
        Settings of this version.
    """
    is_new = settings["token_pattern"] == "auto" and settings["tokenizer"] is None
    if is_new or any(settings[name] != value for name, value in _ADDED.items()):
        return dict(settings)
    written = {name: value for name, value in settings.items() if name not in _ADDED}
    if written["token_pattern"] == AUTO_0_1:
        written["token_pattern"] = "auto"
    return written
