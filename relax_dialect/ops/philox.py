"""Random numbers by position: Philox 4x32 with ten rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2,
3", SC 2011).

What a position gives depends on nothing but its number and the seed, so that all positions can be computed in any
order, by any number of threads, with one result. The same text computes on arrays of NumPy and on tensor expressions:
both are unsigned integers of 64 bits here, of which 32 are used.
"""

from __future__ import annotations

from typing import Any

ROUNDS = 10
_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_WEYL = 0x9E3779B9, 0xBB67AE85
_LOW = 0xFFFFFFFF


def philox(counter: tuple[Any, Any, Any, Any], key: tuple[Any, Any]) -> tuple[Any, Any, Any, Any]:
    """Four words of 32 bits for a counter and a key of such words."""
    a, b, c, d = counter
    left, right = key
    for _ in range(ROUNDS):
        first, second = a * _MULTIPLIERS[0], c * _MULTIPLIERS[1]
        a, b, c, d = (second >> 32) ^ b ^ left, second & _LOW, (first >> 32) ^ d ^ right, first & _LOW
        left, right = (left + _WEYL[0]) & _LOW, (right + _WEYL[1]) & _LOW
    return a, b, c, d


def words(seed: Any, stream: int, position: Any) -> tuple[Any, Any, Any, Any]:
    """Four words of 32 bits for a position in a stream of a seed, of 64 bits each."""
    none = position & 0
    counter = position & _LOW, position >> 32, none + (stream & _LOW), none + (stream >> 32)
    return philox(counter, (seed & _LOW, seed >> 32))


def fraction(high: Any, low: Any) -> Any:
    """An integer of 53 bits from two words; over `2 ** 53` it is in [0, 1)."""
    return ((high >> 5) << 26) | (low >> 6)
