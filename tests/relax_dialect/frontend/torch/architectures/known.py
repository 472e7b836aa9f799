"""The architectures that are not right, and why; `docs/reference/torch-architectures.md` lists them, too."""

from __future__ import annotations

from collections.abc import Mapping

NOT_RIGHT: Mapping[str, str] = {}
