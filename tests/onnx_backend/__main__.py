"""Runs the backend tests of the onnx package: `python -m tests.onnx_backend [--dynamic] [--only REGEX] [--list]`.

Fails if a value is wrong, or something else than the import of a model raises. With `--list` models are only imported,
and the page of those that are not supported is written, `docs/reference/onnx-unsupported.md`.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter

from tests.onnx_backend.cases import Case, load_cases
from tests.onnx_backend.outcome import Outcome, outcome
from tests.onnx_backend.report import PAGE, report


def main() -> int:
    """The exit status: 0 if nothing is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.onnx_backend", description=__doc__)
    parser.add_argument("--dynamic", action="store_true", help="import with symbolic dimensions")
    parser.add_argument("--only", default="", metavar="REGEX", help="tests whose kind/name matches")
    parser.add_argument("--list", action="store_true", help=f"only import, and write {PAGE.name}")
    args = parser.parse_args()
    chosen = [case for case in load_cases() if re.search(args.only, f"{case.kind}/{case.name}")]
    found: list[tuple[Case, Outcome]] = []
    for number, case in enumerate(chosen, 1):
        found.append((case, outcome(case, dynamic=args.dynamic, import_only=args.list)))
        if found[-1][1].status == "wrong":
            print(f"{case.kind}/{case.name}: {found[-1][1].reason}")
        if number % 100 == 0:
            print(f"{number}/{len(chosen)}", flush=True)
    counts = Counter(each.status for _, each in found)
    print(", ".join(f"{count} {status}" for status, count in counts.most_common()))
    if args.list:
        PAGE.write_text(report(found), encoding="utf-8")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
