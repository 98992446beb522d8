"""What an entry of the fold table holds: ``analysis`` writes it, and the scanner reads it.

An entry has 64 bits for a code point. From the lowest: at 0 its lower case in UTF-8, the first
byte lowest; at ``SIZE`` of how many bytes that is; at ``KIND`` which part the code point plays
in a word; at ``SIGN`` which sign it is, or 0; then the flags.
"""

from __future__ import annotations

# Kinds. CLUSTER begins a cluster of a Southeast Asian script; a SYMBOL, as emoji are, is a word.
OTHER, WORD, CJK, MARK, CLUSTER, SYMBOL = 0, 1, 2, 3, 4, 5
# Signs that may be inside a word.
APOSTROPHE, STOP, COMMA, PLUS, HASH = 1, 2, 3, 4, 5
# Where size, kind and sign are.
SIZE, KIND, SIGN = 32, 40, 48
# Where flags are: a letter; a digit; a character that is a word of its own where a run of CJK
# ends, in a document and in a question; and what needs more than the table, so that the analyzer
# folds it: a joiner behind a mark; two that meet, side by side, of two bits; one that is peculiar.
LETTER, DIGIT, SINGLE, ASKED_SINGLE, JOINER, MEETING, PECULIAR = 56, 57, 58, 59, 60, 61, 63
# Characters that meet others; a FIRST before a SECOND is in order.
FIRST, SECOND, ANY = 1, 2, 3
