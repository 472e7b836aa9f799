"""The data of a shared library, as assembler text: the bytes of constants are copied by the assembler, not by us.

The symbol `TABLE` is the address of an array of pairs, a name and a `DLManagedTensorVersioned` (dlpack.h) that nobody
frees, which a null name ends. Native code finds its constants there when nobody hands them over. The symbol
`SIGNATURES` is a C string, for `vm_dialect.load_library`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import tvm_ffi

from vm_dialect.executable.constants import Constant
from vm_dialect.tensors import ALIGNMENT, tensor_element, to_numpy

TABLE = "relax_library_constants"
"""Name of the symbol."""


SIGNATURES = "relax_library_signatures"
"""Name of the symbol of the text that says how functions are called."""


def library_name(name: str) -> str:
    """The name of a constant as a C string, which ends at a zero byte: other names have other strings."""
    return name.replace("\\", "\\\\").replace("\0", "\\0")


def write_constants(constants: Iterable[Constant], folder: Path) -> Path | None:
    """Writes an assembler file, and beside it the data that it includes, for the named tensors among `constants`.

    `None` if there are none.
    """
    tensors = {each.name: each.value for each in constants if each.name and isinstance(each.value, tvm_ffi.Tensor)}
    if not tensors:
        return None
    lines = [".data"]
    for index, tensor in enumerate(tensors.values()):
        data = folder / f"constant{index}.bin"
        to_numpy(tensor).tofile(data)
        lines += _tensor(index, tensor, data)
    lines += [f".globl {TABLE}", ".balign 8", f"{TABLE}: .quad relax_constant_table", "relax_constant_table:"]
    lines += [f".quad relax_name{index}, relax_tensor{index}" for index in range(len(tensors))]
    lines += [".quad 0, 0"]
    lines += [f"relax_name{index}: .byte {_bytes(library_name(name).encode())}" for index, name in enumerate(tensors)]
    return _written(folder / "constants.s", lines)


def write_text(symbol: str, text: str, folder: Path) -> Path:
    """Writes an assembler file with a C string that has a name."""
    return _written(folder / f"{symbol}.s", [".data", f".globl {symbol}", f"{symbol}: .byte {_bytes(text.encode())}"])


def _written(path: Path, lines: Iterable[str]) -> Path:
    path.write_text("\n".join([*lines, '.section .note.GNU-stack,"",%progbits', ""]))
    return path


def _tensor(index: int, tensor: tvm_ffi.Tensor, data: Path) -> Iterator[str]:
    """Data, shape and strides, and the DLPack record of version 1.3."""
    element = tensor_element(tensor)
    rank = len(tensor.shape)
    yield f".balign {ALIGNMENT}"
    yield f'relax_data{index}: .incbin "{_escaped(str(data))}"'
    yield ".balign 8"
    yield f"relax_shape{index}: .quad {', '.join(map(str, (*tensor.shape, *tensor.strides, 0)))}"
    yield f"relax_tensor{index}: .long 1, 3"
    yield ".quad 0, 0, 0"
    yield f".quad relax_data{index}"
    yield f".long 1, 0, {rank}"
    yield f".byte {element.code}, {element.bits}, 1, 0"
    yield f".quad relax_shape{index}, relax_shape{index} + {8 * rank}, 0"


def _bytes(text: bytes) -> str:
    return ", ".join(map(str, text + b"\0"))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
