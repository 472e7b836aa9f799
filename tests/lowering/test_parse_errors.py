"""What is said of texts with common mistakes, as a whole."""

from __future__ import annotations

import pytest
from xdsl.utils.exceptions import ParseError

from lowering.diagnostics import InvalidModule
from lowering.parsing import parse_module
from lowering.verify.module import verify_module

HEAD = "relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>, %weight: !relax.tensor<[4, 4], f32>) {"

CASES = {
    "undefined value": (
        HEAD + "\n  %0 = relax.matmul %x, %wieght\n  relax.return %0\n}",
        "<text>:2:25\n  %0 = relax.matmul %x, %wieght\n                        ^^^^^^^\n"
        "                        value %wieght is not defined; did you mean %weight?\n",
    ),
    "undefined value without a near one": (
        HEAD + "\n  relax.return %result_of_all\n}",
        "<text>:2:16\n  relax.return %result_of_all\n               ^^^^^^^^^^^^^^\n"
        "               value %result_of_all is not defined\n",
    ),
    "value that is defined below": (
        HEAD + "\n  %0 = relax.exp %1\n  %1 = relax.exp %x\n  relax.return %0\n}",
        "<text>:2:18\n  %0 = relax.exp %1\n                 ^^\n"
        "                 value %1 is used before its definition in line 3\n",
    ),
    "local of a dataflow": (
        HEAD + "\n  %g = relax.dataflow {\n    %a = relax.exp %x\n    %b = relax.exp %a\n    relax.output %b\n  }\n"
        "  %c = relax.add %g, %a\n  relax.return %c\n}",
        "<text>:7:22\n  %c = relax.add %g, %a\n                     ^^\n"
        "                     value %a is local to the dataflow of line 2; add it to its relax.output\n",
    ),
    "value of another region": (
        "relax.func @f(%x: !relax.object) {\n  %a = relax.tuple(%x)\n  relax.return %x\n}\n"
        "relax.func @g(%x: !relax.object) {\n  relax.return %a\n}",
        "<text>:6:16\n  relax.return %a\n               ^^\n"
        "               value %a is defined in the region of line 1, and is not visible outside of it\n",
    ),
    "type of NumPy": (
        "relax.func @main(%x: !relax.tensor<[4], float32>) {\n  relax.return %x\n}",
        "<text>:1:41\nrelax.func @main(%x: !relax.tensor<[4], float32>) {\n"
        "                                        ^^^^^^^\n"
        "                                        unknown type 'float32'; did you mean f32?\n",
    ),
    "more than an operation": (
        HEAD + "\n  %0 = relax.concat [%x, %x]\n  relax.return %0\n}",
        "<text>:2:21\n  %0 = relax.concat [%x, %x]\n                    ^\n"
        "                    expected an operation or '}', got '['\n",
    ),
    "missing brace at the end": (
        HEAD + "\n  relax.return %x\n",
        "<text>:3:1\n\n^\nexpected '}' before the end of the text: the '{' of line 1 is not closed\n",
    ),
    "missing brace before a function": (
        HEAD + "\n  relax.return %x\n\nrelax.func @g(%x: !relax.object) {\n  relax.return %x\n}",
        "<text>:4:1\nrelax.func @g(%x: !relax.object) {\n^^^^^^^^^^\n"
        "expected '}' before the function: the '{' of line 1 is not closed\n",
    ),
    "comment of Python in the first line": (
        "# a program\n" + HEAD + "\n  relax.return %x\n}",
        "<text>:1:1\n# a program\n^\ncomments begin with //, not with #\n",
    ),
    "comment of Python": (
        HEAD + "\n  # the result\n  relax.return %x\n}",
        "<text>:2:3\n  # the result\n  ^\n  comments begin with //, not with #\n",
    ),
    "path": (
        "examples/mvp.mlir",
        "<text>:1:1\nexamples/mvp.mlir\n^^^^^^^^\n"
        "expected the text of a module, got a path: xdsl_relax.load reads the file\n",
    ),
    "parentheses around operands": (
        HEAD + "\n  %0 = relax.concat(%x, %x) axis = 0\n  relax.return %0\n}",
        "<text>:2:20\n  %0 = relax.concat(%x, %x) axis = 0\n                   ^\n"
        "                   'relax.concat' op expected operands without parentheses: relax.concat %x, ...\n",
    ),
    "too few operands": (
        HEAD + "\n  %0 = relax.matmul %x\n  relax.return %0\n}",
        "<text>:2:21\n  %0 = relax.matmul %x\n                    ^\n"
        "                    'relax.matmul' op expected 2 operands (x, y), got 1\n",
    ),
    "too many operands": (
        HEAD + "\n  %0 = relax.exp %x, %x\n  relax.return %0\n}",
        "<text>:2:18\n  %0 = relax.exp %x, %x\n                 ^\n"
        "                 'relax.exp' op expected 1 operand (x), got 2\n",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_message(name: str):
    text, message = CASES[name]
    with pytest.raises(ParseError) as caught:
        parse_module(text)
    assert str(caught.value) == message


def test_lines_are_those_of_the_file():
    from lowering.context import make_context
    from lowering.parsing import LocatedParser

    with pytest.raises(ParseError, match=r"the '{' of line 11 is not closed"):
        LocatedParser(make_context(), HEAD + "\n  relax.return %x\n", "f.mlir", 10).parse_module()


def test_braces_in_strings_and_comments_do_not_count():
    text = HEAD + '\n  // }\n  %0 = relax.call_packed "}"(%x) : !relax.object\n  relax.return %x\n'
    with pytest.raises(ParseError, match=r"the '{' of line 1 is not closed"):
        parse_module(text)


INVALID = {
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


@pytest.mark.parametrize("name", INVALID)
def test_message_of_the_verifier(name: str):
    text, message = INVALID[name]
    with pytest.raises(InvalidModule) as caught:
        verify_module(parse_module(text))
    assert str(caught.value) == message
