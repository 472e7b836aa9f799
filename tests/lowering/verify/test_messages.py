"""What the verifier says of common mistakes, as a whole."""

from __future__ import annotations

import pytest

from lowering.diagnostics import InvalidModule
from lowering.parsing import parse_module
from lowering.verify import verify_module

CASES = {
    "missing return": (
        "relax.func @main(%x: !relax.tensor<[4], f32>) {\n  %0 = relax.exp %x\n}",
        "<text>:2:3: error: 'relax.exp' op is the last op of @main, which has to end with 'relax.return': "
        "add `relax.return %value` (in @main)\n"
        "    relax.func @main(%x: !relax.tensor<[4], f32>) -> !relax.object {\n"
        "  >   %0 = relax.exp %x\n    }",
    ),
    "empty function": (
        "relax.func @main(%x: !relax.tensor<[4], f32>) {\n}",
        "<text>:1:1: error: 'relax.func' op has no ops, but @main has to end with 'relax.return': "
        "add `relax.return %value` (in @main)\n"
        "  > relax.func @main(%x: !relax.tensor<[4], f32>) -> !relax.object {\n    }",
    ),
    "symbol without a parameter": (
        "relax.func @main(%x: !relax.tensor<[n], f32>) {\n  relax.return %x\n}",
        "<text>:1:1: error: 'relax.func' op @main uses the unbound symbol n; bind it: @main[%n](...) (in @main)\n"
        "  > relax.func @main(%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {\n      relax.return %x\n    }",
    ),
    "symbol of another spelling": (
        "relax.func @main[%batch](%x: !relax.tensor<[batsh], f32>) {\n  relax.return %x\n}",
        "<text>:1:1: error: 'relax.func' op @main uses the unbound symbol batsh; did you mean batch? (in @main)\n"
        "  > relax.func @main[%batch](%x: !relax.tensor<[batsh], f32>) -> !relax.tensor<[batsh], f32> {\n"
        "      relax.return %x\n    }",
    ),
    "cast without the name of its symbol": (
        "relax.func @main(%x: !relax.tensor<*, f32>) -> !relax.object {\n"
        "  %0 = relax.match_cast %x : !relax.tensor<[n], f32>\n  relax.return %0\n}",
        "<text>:2:3: error: 'relax.match_cast' op type of result #0 uses symbol n, which nothing binds (in @main)\n"
        "    relax.func @main(%x: !relax.tensor<*, f32>) -> !relax.object {\n"
        "  >   %0 = relax.match_cast %x : !relax.tensor<[n], f32>\n      relax.return %0\n    }\n"
        "  hint: name it in the cast, whose last results are the values of symbols: `binds [n]`",
    ),
    "symbol of the result alone": (
        "relax.func @main(%x: !relax.object) -> !relax.tensor<[n], f32> {\n"
        '  %0 = relax.call_pure_packed "f"(%x) : !relax.tensor<[_], f32>\n  relax.return %0\n}',
        "<text>:1:1: error: 'relax.func' op @main uses the unbound symbol n; no parameter has it, so its value is "
        "not known where the result type is written: write _ for it (in @main)\n"
        "  > relax.func @main(%x: !relax.object) -> !relax.tensor<[n], f32> {\n"
        '      %0 = relax.call_pure_packed "f"(%x) : !relax.tensor<[_], f32>\n      relax.return %0',
    ),
    "property of another name": (
        'relax.func @main(%x: !relax.tensor<[4], f32>) {\n  %0 = "relax.sum"(%x) <{axis = 1}> : '
        "(!relax.tensor<[4], f32>) -> !relax.tensor<[], f32>\n  relax.return %0\n}",
        "<text>:2:3: error: 'relax.sum' op has no property 'axis'; did you mean 'axes'? (in @main)\n"
        "    relax.func @main(%x: !relax.tensor<[4], f32>) -> !relax.tensor<[], f32> {\n"
        "  >   %0 = relax.sum %x\n      relax.return %0\n    }",
    ),
    "tuple for operands": (
        "relax.func @main(%x: !relax.tensor<[4], f32>) {\n  %t = relax.tuple(%x, %x)\n"
        "  %0 = relax.concat %t\n  relax.return %0\n}",
        "<text>:3:3: error: 'relax.concat' op operand #0 expected a tensor, got !relax.tuple<!relax.tensor<[4], f32>, "
        "!relax.tensor<[4], f32>>; its elements are the operands: %x, %y (in @main)\n"
        "    relax.func @main(%x: !relax.tensor<[4], f32>) -> !relax.tensor<*, _> {\n"
        "      %t = relax.tuple(%x, %x)\n  >   %0 = relax.concat %t : !relax.tensor<*, _>\n"
        "      relax.return %0\n    }",
    ),
    "condition that is a float": (
        "tir.prim_func @f(%X: !tir.buffer<[4], f32>) {\n  %a = tir.load %X[0]\n  tir.if %a {\n"
        "    tir.store %a, %X[0]\n  }\n}",
        "<text>:3:3: error: 'tir.if' op operand #0 (condition) expected i1, got f32 (in @f)\n"
        "      %0 = arith.constant 0 : index\n      %a = tir.load %X[%0]\n  >   tir.if %a {\n"
        "        %1 = arith.constant 0 : index\n        tir.store %a, %X[%1]",
    ),
    "element type in quotes": (
        'relax.func @main(%x: !relax.tensor<[4], f32>) {\n  %0 = relax.astype %x dtype = "float16"\n'
        "  relax.return %0\n}",
        "<text>:2:3: error: 'relax.astype' op property dtype expected an element type, got \"float16\"; "
        "did you mean f16, without quotes? (in @main)\n"
        "    relax.func @main(%x: !relax.tensor<[4], f32>) -> !relax.tensor<*, _> {\n"
        '  >   %0 = relax.astype %x dtype = "float16" : !relax.tensor<*, _>\n      relax.return %0\n    }',
    ),
    "axes of another rank": (
        "relax.func @main(%x: !relax.tensor<[2, 4], f32>) {\n"
        "  %0 = relax.permute_dims %x axes = [1]\n  relax.return %0\n}",
        "<text>:2:3: error: 'relax.permute_dims' op expected 2 axes, got 1 (in @main)\n"
        "    relax.func @main(%x: !relax.tensor<[2, 4], f32>) -> !relax.tensor<*, _> {\n"
        "  >   %0 = relax.permute_dims %x axes = [1] : !relax.tensor<*, _>\n      relax.return %0\n    }",
    ),
    "reshape that does not fit": (
        "relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>) {\n  %s = relax.shape [5, 2]\n"
        "  %0 = relax.reshape %x, %s\n  relax.return %0\n}",
        "<text>:3:3: error: 'relax.reshape' op cannot reshape [n, 4] to [5, 2]: expected equally many elements, "
        "got 4 * n and 10 (in @main)\n"
        "    relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.tensor<*, _> {\n"
        "      %s = relax.shape [5, 2]\n"
        "  >   %0 = relax.reshape %x, %s : !relax.tensor<*, _>\n      relax.return %0\n    }",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_message(name: str):
    text, message = CASES[name]
    with pytest.raises(InvalidModule) as caught:
        verify_module(parse_module(text))
    assert str(caught.value) == message
