from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import pytest
import tvm_ffi

from lowering.context import make_context
from lowering.llvm.compiler import compile_object
from lowering.llvm.llvm_text import llvm_text
from lowering.parsing import parse_module
from lowering.runtime.loading import LoadedCode, load_objects
from lowering.verify import verify_module
from lowering.vm_to_llvm.convert_vm_to_llvm import ConvertVmToLLVMPass
from lowering.vm_to_llvm.loading import load_functions
from lowering.vm_to_llvm.objects import function_options, runtime_object
from lowering.vm_to_llvm.runtime_builder import PARTS
from tir_dialect.target import Target

KERNELS = """
define i32 @add_one(i64 %n, ptr %x, ptr %y) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %done
body:
  %from = getelementptr float, ptr %x, i64 %i
  %a = load float, ptr %from
  %b = fadd float %a, 1.0
  %to = getelementptr float, ptr %y, i64 %i
  store float %b, ptr %to
  %next = add i64 %i, 1
  br label %head
done:
  ret i32 0
}

define i32 @is_positive(ptr %x, ptr %y) {
  %a = load float, ptr %x
  %c = fcmp ogt float %a, 0.0
  %byte = zext i1 %c to i8
  store i8 %byte, ptr %y
  ret i32 0
}

define i32 @place(ptr %x, ptr %y) {
  %address = ptrtoint ptr %x to i64
  store i64 %address, ptr %y
  ret i32 0
}

define i32 @fill(i64 %n, ptr %y, i64 %a, i1 %b, double %c) {
  %d = sitofp i64 %a to double
  %e = uitofp i1 %b to double
  %f = fadd double %d, %e
  %g = fadd double %f, %c
  store double %g, ptr %y
  ret i32 0
}

declare void @TVMFFIErrorSetRaisedFromCStr(ptr, ptr)
@kind = private constant [11 x i8] c"ValueError\\00"
@text = private constant [12 x i8] c"kernel says\\00"
define i32 @refuse(ptr %x) {
  call void @TVMFFIErrorSetRaisedFromCStr(ptr @kind, ptr @text)
  ret i32 -1
}
"""

Functions = dict[str, tvm_ffi.Function]


@cache
def _support() -> list[bytes]:
    target = Target.host()
    return [*(runtime_object(target, None, part) for part in PARTS), compile_object(KERNELS, target)]


def compile_text(text: str, kernels: Sequence[str] = ()) -> LoadedCode:
    """The code of a module of the vm dialect, optimised as programs are."""
    context = make_context()
    module = parse_module(text, ctx=context)
    verify_module(module)
    functions = module.clone()
    ConvertVmToLLVMPass().apply(context, module)
    verify_module(module)
    options = function_options(functions, llvm_text(module))
    objects = [compile_object(source, Target.host(), options) for source in (module, *kernels)]
    return load_objects([*objects, *_support()])


def load_text(text: str, constants: Mapping[str, Any] | None = None, kernels: Sequence[str] = ()) -> Functions:
    """The public functions of a module of the vm dialect, in machine code."""
    return load_functions(compile_text(text, kernels), constants or {})


@pytest.fixture(scope="session")
def compiled() -> Callable[..., LoadedCode]:
    return compile_text


@pytest.fixture(scope="session")
def native() -> Callable[..., Functions]:
    return load_text
