"""`python -m benchmarks [name ...]`: all benchmarks, or those named."""

from __future__ import annotations

import sys
from importlib import import_module

BENCHMARKS = (
    "overhead",
    "pauses",
    "compile",
    "dims",
    "matmul",
    "gemv",
    "weights",
    "language_model",
    "language_peers",
    "convolution",
    "attention",
    "elementwise",
    "reductions",
    "normalization",
    "beyond",
    "models",
    "scheduled",
    "torch_compile",
    "collectives",
    "workers",
)


def main(chosen: list[str]) -> int:
    """Runs the benchmarks; 2 if there is none of a name."""
    unknown = [name for name in chosen if name not in BENCHMARKS]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}, there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    for name in chosen or BENCHMARKS:
        import_module(f"benchmarks.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
