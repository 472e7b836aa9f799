"""Names and signatures: of the native runtime, of the functions that native code exports, and of kernels,
`i32 f(i64 sizes..., pointers and scalars...)`.

Layouts are those of `tvm/ffi/c_api.h`; `runtime/abi.ll` lists them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from xdsl.dialects import llvm
from xdsl.dialects.builtin import Float64Type, IntegerType
from xdsl.ir import Attribute, Operation

from lowering.tir_to_llvm.arithmetic.scalars import llvm_type
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.types import BufferType

PTR = llvm.LLVMPointerType()
I1 = IntegerType(1)
I8 = IntegerType(8)
I16 = IntegerType(16)
I32 = IntegerType(32)
I64 = IntegerType(64)
F64 = Float64Type()
ANY = llvm.LLVMStructType.from_type_list([I32, I32, I64])
"""A `TVMFFIAny`: type index, length of a small string, payload."""

ANY_BYTES = 16
PAYLOAD = 8
"""Offset of the payload in a `TVMFFIAny`."""

NULL, INT, BOOL, FLOAT, DTYPE, SMALL_STRING, FUNCTION, TENSOR = 0, 1, 2, 3, 5, 11, 68, 70
"""Type indices."""

TENSOR_OFFSET = 24
"""Where the `DLTensor` stands in a tensor object."""

DATA, SHAPE, BYTE_OFFSET = 0, 24, 40
"""Offsets in a `DLTensor`."""

SHAPE_DATA = 24
"""Where the pointer to the sizes stands in a shape object."""

SHUTDOWN = "module.shutdown"
"""The function of every module that releases what it holds."""

PACKED = llvm.LLVMFunctionType([PTR, PTR, I32, PTR], I32)
"""`int f(void* self, const TVMFFIAny* args, int32_t n, TVMFFIAny* ret)`."""

PACKED_NAMES = ("self", "args", "count", "ret")
"""Its parameters."""


def _function(result: Attribute | None, *parameters: Attribute) -> llvm.LLVMFunctionType:
    return llvm.LLVMFunctionType(parameters, result)


RUNTIME: dict[str, llvm.LLVMFunctionType] = {
    "vmrt_raise": llvm.LLVMFunctionType([PTR, PTR], None, is_variadic=True),
    "vmrt_trace": _function(None, PTR),
    "vmrt_fail_division": _function(None),
    "vmrt_fail_overflow": _function(None),
    "vmrt_fail_kind": _function(None, PTR, PTR, PTR),
    "vmrt_bf16": _function(I16, F64),
    "vmrt_clear": _function(None, PTR),
    "vmrt_move": _function(None, PTR, PTR),
    "vmrt_assign": _function(I32, PTR, PTR),
    "vmrt_release": _function(None, PTR, I64),
    "vmrt_own_arguments": _function(PTR, PTR, I64, PTR),
    "vmrt_arguments": _function(PTR, PTR, I64, PTR),
    "vmrt_dltensor": _function(PTR, PTR),
    "vmrt_check_tensor": _function(PTR, PTR, I64, I32, PTR),
    "vmrt_check_shape": _function(I32, PTR, I64, PTR),
    "vmrt_check_kind": _function(I32, PTR, I32, PTR, PTR),
    "vmrt_check_tuple": _function(I32, PTR, I64, PTR, PTR),
    "vmrt_new_tensor": _function(PTR, PTR, I64, PTR, I32),
    "vmrt_place": _function(I32, I64, I64, I32, I64, I64, I64, I64),
    "vmrt_check_placement": _function(I32, I64, I64, I32, I64, PTR),
    "vmrt_view": _function(I32, PTR, PTR, I64, PTR),
    "vmrt_check_apart": _function(I32, PTR, I64, PTR, I64, PTR),
    "vmrt_element_count": _function(I64, PTR),
    "vmrt_check_count": _function(I32, I64, I64, PTR),
    "vmrt_arena_take": _function(PTR, PTR, I64),
    "vmrt_arena_give": _function(None, PTR, PTR),
    "vmrt_arena_free": _function(None, PTR, I64),
    "vmrt_make_shape": _function(I32, PTR, PTR, I64),
    "vmrt_shape_of": _function(I32, PTR, PTR),
    "vmrt_tensor_dim": _function(I32, PTR, PTR, I64),
    "vmrt_shape_dim": _function(I32, PTR, PTR, I64),
    "vmrt_read_int": _function(I32, PTR, PTR, I64),
    "vmrt_make_tuple": _function(I32, PTR, PTR, I32),
    "vmrt_tuple_get": _function(I32, PTR, PTR, I64),
    "vmrt_clock": _function(I64),
    "vmrt_lend": _function(I32, PTR, I64, PTR, I32, PTR),
    "vmrt_call": _function(I32, PTR, PTR, PTR, I32),
    "vmrt_make_closure": _function(I32, PTR, PTR, PTR, I64),
    "vmrt_defer": _function(I32, PTR, PTR, I64, PTR, I64),
    "vmrt_finish": _function(I32, I32, PTR),
    "vmrt_finish_entry": _function(I32, PTR, I32, PTR),
    "vmrt_stack_enter": _function(I32, PTR),
    "vmrt_stack_leave": _function(None),
    "vmrt_stack_init": _function(I32),
    "vmrt_ready": _function(I32),
    "vmrt_init": _function(I32),
    "vmrt_shutdown": _function(None),
    "vmrt_bind_packed": _function(I32, PTR, PTR, I32, I32, PTR, I64),
    "vmrt_bind_constant": _function(I32, PTR, PTR, I32, I32, PTR),
    "vmrt_load_string": _function(I32, PTR, PTR, I64),
    "vmrt_publish": _function(I32, PTR, PTR, I32, PTR, PTR),
}
"""Functions of the run-time support that generated code calls."""


@dataclass(frozen=True)
class Kernel:
    """One kernel."""

    symbol: str
    """Its name in the objects."""

    parameters: tuple[Attribute, ...]
    """Types: `i64` for sizes, `!llvm.ptr` for tensors, the element type for scalars."""

    @property
    def function_type(self) -> llvm.LLVMFunctionType:
        """As an LLVM function."""
        return llvm.LLVMFunctionType([llvm_type(parameter) for parameter in self.parameters], I32)


def known_kernels(ops: Iterable[Operation], symbols: Mapping[str, str]) -> dict[str, Kernel]:
    """The kernels that `ops` define or declare, as `tir.prim_func` or `llvm.func`, by name.

    `symbols` has the names in the objects of those that are called otherwise there.
    """
    kernels: dict[str, Kernel] = {}
    for op in ops:
        if isinstance(op, PrimFuncOp):
            parameters = [PTR if isinstance(param.type, BufferType) else param.type for param in op.params]
            name, types = op.sym_name.data, (*([I64] * len(op.symbols)), *parameters)
        elif isinstance(op, llvm.FuncOp):
            name, types = op.sym_name.data, op.function_type.inputs.data
        else:
            continue
        kernels[name] = Kernel(symbols.get(name, name), tuple(types))
    return kernels
