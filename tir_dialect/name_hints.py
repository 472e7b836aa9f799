"""Name hints of values from external names: texts, symbols, arguments of builders."""

from __future__ import annotations

import re

from xdsl.ir import SSAValue

_NUMBER = re.compile(r"(_\d+)+$")
"""What xDSL takes off a name, once each time that it is copied."""


def as_name_hint(name: str | None) -> str | None:
    """The name as the hint of a value, without numbers at its end; `None` if nothing is left, or it is no identifier of
    MLIR's, which is ASCII.

    xDSL makes an empty hint of `_1`, which it then refuses to copy.
    """
    if name is None or not name.isascii() or not SSAValue.is_valid_name(name):
        return None
    return _NUMBER.sub("", name) or None
