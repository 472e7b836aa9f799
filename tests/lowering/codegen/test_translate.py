import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.dialects.llvm import LLVM
from xdsl.parser import Parser
from xdsl.utils.exceptions import PassFailedException

from lowering.codegen.loading.elf import object_symbols
from lowering.codegen.translate import translate
from tir_dialect.dialect import TIR
from tir_dialect.target import Target

TEXT = """
tir.prim_func @copy[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    %x = tir.load %X[%i]
    tir.store %x, %Y[%i]
  }
}
llvm.func @twice(%x: i64) -> i64 {
  %r = llvm.add %x, %x : i64
  llvm.return %r : i64
}"""


def parse(text: str) -> ModuleOp:
    context = Context()
    for dialect in (Builtin, Func, LLVM, TIR):
        context.load_dialect(dialect)
    return Parser(context, text).parse_module()


def test_all_forms_of_a_mixed_module():
    module = parse(TEXT)
    before = str(module)
    plain = translate(module, "llvmir", optimize=False)
    assert "define i32 @copy(i64" in plain
    assert "phi i64" in plain
    assert "call void @llvm.memcpy" in translate(module, "llvmir")
    assert "twice" in translate(module, "asm", Target.parse("neoverse-n1"))
    assert set(object_symbols(translate(module, "object")).defined) == {"copy", "twice"}
    assert str(module) == before


def test_other_ops_are_refused_all_at_once():
    module = parse(TEXT + "func.func @a() { func.return }\nfunc.func @b() { func.return }")
    with pytest.raises(PassFailedException) as caught:
        translate(module, "llvmir")
    assert str(caught.value).count("'func.func' op is neither a prim_func nor a part of the llvm dialect") == 2
