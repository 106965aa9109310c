"""Permissions of topics as words: rw, r, w."""

from __future__ import annotations

from typing import Final

_WORDS: Final = {0: "", 2: "w", 4: "r", 6: "rw"}
_BITS: Final = {"w": 2, "r": 4, "rw": 6}


def word_of(perm: int) -> str:
    return _WORDS[perm & 6]


def bits_of(word: str) -> int:
    return _BITS[word]
