"""What is said of texts with common mistakes, as a whole."""

from __future__ import annotations

import pytest
from xdsl.utils.exceptions import ParseError

from lowering.diagnostics import InvalidModule
from lowering.parsing import parse_module
from lowering.verify import verify_module

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
    "unsigned type of Rust": (
        "relax.func @main(%x: !relax.tensor<[4], u8>) {\n  relax.return %x\n}",
        "<text>:1:41\nrelax.func @main(%x: !relax.tensor<[4], u8>) {\n"
        "                                        ^^\n"
        "                                        unknown type 'u8'; did you mean ui8?\n",
    ),
    "word where a type begins": (
        "tir.prim_func @f(%a: vector<8xi32>) {\n  %v = tir.dot saturated ui8 %a, i8 %a, %a : vector<8xi32>\n}",
        "<text>:2:16\n  %v = tir.dot saturated ui8 %a, i8 %a, %a : vector<8xi32>\n"
        "               ^^^^^^^^^\n"
        "               'tir.dot' op expected a type, got 'saturated'; it is written "
        "%s = tir.dot ui8 %a, i8 %b, %sum : vector<16xi32>\n",
    ),
    "more than an operation": (
        HEAD + "\n  %0 = relax.exp %x )\n  relax.return %0\n}",
        "<text>:2:21\n  %0 = relax.exp %x )\n                    ^\n"
        "                    expected an operation or '}', got ')'\n",
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
    "brackets around operands": (
        HEAD + "\n  %0 = relax.concat [%x, %x]\n  relax.return %0\n}",
        "<text>:2:21\n  %0 = relax.concat [%x, %x]\n                    ^\n"
        "                    'relax.concat' op expected operands without brackets: relax.concat %x, ...\n",
    ),
    "operands without a comma": (
        HEAD + "\n  %0 = relax.matmul %x %weight\n  relax.return %0\n}",
        "<text>:2:24\n  %0 = relax.matmul %x %weight\n                       ^^^^^^^\n"
        "                       'relax.matmul' op expected ',' before %weight\n",
    ),
    "name without its sign": (
        HEAD + "\n  %0 = relax.add x, %weight\n  relax.return %0\n}",
        "<text>:2:18\n  %0 = relax.add x, %weight\n                 ^\n"
        "                 expected a value, got 'x'; names of values begin with %: %x\n",
    ),
    "list for a shape": (
        HEAD + "\n  %0 = relax.reshape %x, [4, n]\n  relax.return %0\n}",
        "<text>:2:26\n  %0 = relax.reshape %x, [4, n]\n                         ^\n"
        "                         expected a value, got '['; a shape is a value, too: %shape = relax.shape [4, n]\n",
    ),
    "list for a shape, without a comma": (
        HEAD + "\n  %0 = relax.reshape %x [4, n]\n  relax.return %0\n}",
        "<text>:2:25\n  %0 = relax.reshape %x [4, n]\n                        ^\n"
        "                        expected a value, got '['; a shape is a value, too: %shape = relax.shape [4, n]\n",
    ),
    "number for a tensor": (
        HEAD + "\n  %0 = relax.multiply %x, 2.0\n  relax.return %0\n}",
        "<text>:2:27\n  %0 = relax.multiply %x, 2.0\n                          ^^^\n"
        "                          expected a value, got '2.0'; a number is a value, too: %c = relax.constant "
        "dense<1.0> : tensor<f32>\n",
    ),
    "numbers without names": (
        HEAD + "\n  %0 = relax.clip %x 0 6\n  relax.return %0\n}",
        "<text>:2:22\n  %0 = relax.clip %x 0 6\n                     ^\n"
        "                     'relax.clip' op expected attributes by name (min, max), got '0'\n",
    ),
    "commas between attributes": (
        HEAD + "\n  %0 = relax.clip %x min = 0, max = 6\n  relax.return %0\n}",
        "<text>:2:29\n  %0 = relax.clip %x min = 0, max = 6\n                            ^\n"
        "                            'relax.clip' op expected spaces between attributes, got ','\n",
    ),
    "flag of Python": (
        HEAD + "\n  %0 = relax.sum %x keepdims = True\n  relax.return %0\n}",
        "<text>:2:32\n  %0 = relax.sum %x keepdims = True\n                               ^^^^\n"
        "                               'relax.sum' op attribute keepdims expected true or false, got 'True'\n",
    ),
    "list for a number": (
        HEAD + "\n  %0 = relax.nn.softmax %x axis = [1]\n  relax.return %0\n}",
        "<text>:2:35\n  %0 = relax.nn.softmax %x axis = [1]\n                                  ^\n"
        "                                  'relax.nn.softmax' op attribute axis expected an integer, got '['\n",
    ),
    "parentheses around numbers": (
        HEAD + "\n  %0 = relax.permute_dims %x axes = (1, 0)\n  relax.return %0\n}",
        "<text>:2:37\n  %0 = relax.permute_dims %x axes = (1, 0)\n                                    ^\n"
        "                                    'relax.permute_dims' op attribute axes expected numbers in "
        "brackets, such as [1, 2], got '('\n",
    ),
    "operator of NumPy": (
        HEAD + "\n  %0 = relax.transpose %x\n  relax.return %0\n}",
        "<text>:2:8\n  %0 = relax.transpose %x\n       ^^^^^^^^^^^^^^^\n"
        "       unknown operation 'relax.transpose'; did you mean 'relax.permute_dims'\n",
    ),
    "operator without its namespace": (
        HEAD + "\n  %0 = relax.softmax %x\n  relax.return %0\n}",
        "<text>:2:8\n  %0 = relax.softmax %x\n       ^^^^^^^^^^^^^\n"
        "       unknown operation 'relax.softmax'; did you mean 'relax.nn.softmax'\n",
    ),
    "semicolon": (
        HEAD + "\n  %0 = relax.exp %x;\n  relax.return %0\n}",
        "<text>:2:20\n  %0 = relax.exp %x;\n                   ^\n                   an op ends without ;\n",
    ),
    "name that is taken": (
        HEAD + "\n  %x = relax.exp %x\n  relax.return %0\n}",
        "<text>:2:3\n  %x = relax.exp %x\n  ^^\n  value %x is defined already in line 1; give this one another name\n",
    ),
    "one name for several results": (
        HEAD + "\n  %0 = relax.split %x sections = 2 axis = 1\n  relax.return %0\n}",
        "<text>:2:3\n  %0 = relax.split %x sections = 2 axis = 1\n  ^^\n"
        "  'relax.split' op has 2 results, expected as many names, got 1: %0; write %0:2 = ...\n",
    ),
    "several results": (
        HEAD + "\n  relax.return %x, %weight\n  relax.return %0\n}",
        "<text>:2:18\n  relax.return %x, %weight\n                 ^\n"
        "                 expected an operation or '}', got ','; several results are one tuple: %0 = "
        "relax.tuple(%x, %y)\n",
    ),
    "loop without parentheses": (
        "tir.prim_func @f[%n](%X: !tir.buffer<[n], f32>) {\n  tir.for %i in %n {\n  }\n}",
        "<text>:2:11\n  tir.for %i in %n {\n          ^^\n"
        "          'tir.for' op expected '(', got '%i'; it is written tir.for (%i, %j) in (%m, %lo to %hi) { ... }\n",
    ),
    "tuple without parentheses": (
        HEAD + "\n  %0 = relax.tuple %x, %x\n  relax.return %0\n}",
        "<text>:2:20\n  %0 = relax.tuple %x, %x\n                   ^^\n"
        "                   'relax.tuple' op expected '(', got '%x'; it is written %0 = relax.tuple(%x, %s)\n",
    ),
    "packed function without quotes": (
        HEAD + "\n  %0 = relax.call_packed @f(%x) : !relax.object\n  relax.return %0\n}",
        "<text>:2:26\n  %0 = relax.call_packed @f(%x) : !relax.object\n                         ^^\n"
        "                         'relax.call_packed' op expected a string in quotes, got '@f'; "
        'it is written relax.call_packed "custom_print"(%x)\n',
    ),
    "packed function without the type of its result": (
        HEAD + '\n  %0 = relax.call_packed "f"(%x)\n  relax.return %0\n}',
        '<text>:2:3\n  %0 = relax.call_packed "f"(%x)\n  ^^\n'
        "  'relax.call_packed' op has 0 results, expected as many names, got 1: %0; with a result it is written "
        '%0 = relax.call_packed "custom_add"(%x, %y) : !relax.tensor<[m, k], f32>\n',
    ),
    "shape in parentheses": (
        HEAD + "\n  %0 = relax.shape(4, n)\n  relax.return %0\n}",
        "<text>:2:19\n  %0 = relax.shape(4, n)\n                  ^\n"
        "                  'relax.shape' op expected '[', got '('; it is written %0 = relax.shape [n, 4 * m]\n",
    ),
    "branch without another one": (
        HEAD + "\n  %0 = relax.if %x {\n    relax.yield %x\n  }\n  relax.return %0\n}",
        "<text>:5:3\n  relax.return %0\n  ^^^^^^^^^^^^\n"
        "  'relax.if' op expected 'else', got 'relax.return'; it is written %r = relax.if %c {\n",
    ),
    "constant without a type": (
        HEAD + "\n  %0 = relax.constant dense<1.0>\n  relax.return %0\n}",
        "<text>:3:3\n  relax.return %0\n  ^^^^^^^^^^^^\n"
        "  dense<...> is followed by its type: relax.constant dense<1.0> : tensor<f32>\n",
    ),
    "constant without dense": (
        HEAD + "\n  %0 = relax.constant 1.0 : !relax.tensor<[], f32>\n  relax.return %0\n}",
        "<text>:3:3\n  relax.return %0\n  ^^^^^^^^^^^^\n"
        "  a constant is written relax.constant dense<1.0> : tensor<f32>\n",
    ),
}

IF = "relax.func @f(%c: !relax.prim<i1>, %x: !relax.object) {\n"
"""The head of a function with a branch."""

CASES |= {
    "branch without a yield": (
        IF + "  %0 = relax.if %c {\n    relax.yield %x\n  } else {\n    %1 = relax.tuple(%x)\n  } // }\n"
        "  relax.return %0\n}",
        "<text>:6:3\n  } // }\n  ^\n"
        "  the region has to end with 'relax.yield': add `relax.yield %value` before the brace\n",
    ),
    "dataflow without an output": (
        HEAD + "\n  %0 = relax.dataflow {\n    %1 = relax.exp %x }\n  relax.return %0\n}",
        "<text>:3:23\n    %1 = relax.exp %x }\n                      ^\n"
        "                      the region has to end with 'relax.output': add `relax.output %value` before the brace\n",
    ),
    "type of relax behind the elements of a constant": (
        HEAD + "\n  %0 = relax.constant dense<[1.0, 2.0]> : !relax.tensor<[2], f32>\n  relax.return %0\n}",
        "<text>:2:43\n  %0 = relax.constant dense<[1.0, 2.0]> : !relax.tensor<[2], f32>\n"
        f"{' ' * 42}{'^' * 23}\n{' ' * 42}dense<...> is followed by a type of MLIR; did you mean tensor<2xf32>?\n",
    ),
    "result without its sign": (
        HEAD + "\n  y = relax.exp %x\n  relax.return %y\n}",
        "<text>:2:3\n  y = relax.exp %x\n  ^\n  unknown operation 'y'; names of values begin with %: %y\n",
    ),
    "number for the name of a result": (
        HEAD + "\n  0 = relax.exp %x\n  relax.return %0\n}",
        "<text>:2:3\n  0 = relax.exp %x\n  ^\n"
        "  expected an operation or '}', got '0'; names of values begin with %: %0\n",
    ),
    "end of the text for a value": (
        HEAD + "\n  relax.return ",
        "<text>:2:16\n  relax.return \n               ^\n               expected a value, got the end of the text\n",
    ),
}

HEADS = {
    "relax.func @f(x: !relax.object) {": (15, 1, "names of values begin with %: %x"),
    "relax.func f(%x: !relax.object) {": (12, 1, "names of functions begin with @: @f"),
    "relax.func impure @f(%x: !relax.object) {": (
        12,
        6,
        "'impure' stands before the body: relax.func @f() -> !relax.object impure {",
    ),
    "func @f(%x: !relax.object) {": (1, 4, "unknown operation 'func'; did you mean 'relax.func'"),
    "relax.func @f(%x: !relax.tensor<4x?xf32>) {": (
        33,
        1,
        "expected a shape in brackets: !relax.tensor<[4, _], f32>",
    ),
    "relax.func @f(%x: !relax.tensor<4, f32>) {": (33, 1, "expected a shape in brackets: !relax.tensor<[4, n], f32>"),
    "relax.func @f(%x: !relax.tensor<(4, n), f32>) {": (
        33,
        1,
        "expected a shape in brackets: !relax.tensor<[4, n], f32>",
    ),
    "relax.func @f(%x: !tensor<[4], f32>) {": (19, 7, "unknown type '!tensor'; did you mean !relax.tensor?"),
    "relax.func @f(%x: !relax.tensr<[4], f32>) {": (19, 12, "unknown type '!relax.tensr'; did you mean !relax.tensor?"),
    "relax.func @f(%x: !bf16) {": (19, 5, "unknown type '!bf16'"),
    'relax.func @f(%x: !relax.tensor<[4], "float32">) {': (38, 9, "types stand without quotes: f32"),
    "relax.func @f(%x: tensor<4x4xf32>) {": (
        19,
        1,
        "expected a relax type, got tensor<4x4xf32>; did you mean !relax.tensor<[4, 4], f32>?",
    ),
    "relax.func @f(%x: relax.tensor<[4], f32>) {": (19, 12, "types of dialects begin with !: !relax.tensor"),
    "relax.func @f(%x: !relax.tensor<[4], fp16>) {": (38, 4, "unknown type 'fp16'; did you mean f16?"),
    "relax.func @f(%x: !relax.tensor<[-1, 4], f32>) {": (34, 1, "expected a size of at least 0, or _ for any, got -1"),
    "relax.func @f[%n](%x: !relax.tensor<[n / 2], f32>) {": (
        40,
        1,
        "expected ']' in a shape, got '/'; a quotient is floordiv(n, 2) or ceildiv(n, 2)",
    ),
    "relax.func @f(%x: !relax.tensor<[4] f32>) {": (
        37,
        3,
        "Expected ',' between the shape and the dtype: !relax.tensor<[4, n], f32>",
    ),
    "relax.func @f(%x: !relax.object) : !relax.object {": (
        34,
        1,
        "expected '{' or '->', got ':'; the type of the result is written -> !relax.tensor<[n], f32>",
    ),
}
"""Wrong first lines of functions, and what is said: a column, how many characters from there, and a message."""


@pytest.mark.parametrize("head", HEADS)
def test_message_of_a_wrong_head(head: str):
    column, width, message = HEADS[head]
    with pytest.raises(ParseError) as caught:
        parse_module(f"{head}\n  relax.return %x\n}}")
    indent = " " * (column - 1)
    assert str(caught.value) == f"<text>:1:{column}\n{head}\n{indent}{'^' * width}\n{indent}{message}\n"


def test_message_of_a_quotient_that_begins_a_comment():
    with pytest.raises(ParseError) as caught:
        parse_module("relax.func @f[%n](%x: !relax.tensor<[n // 2], f32>) {\n  relax.return %x\n}")
    assert str(caught.value) == (
        "<text>:2:3\n  relax.return %x\n  ^^^^^^^^^^^^\n"
        "  expected ']' in a shape; // begins a comment, and a quotient is floordiv(n, 2) or ceildiv(n, 2)\n"
    )


def test_one_number_counts_for_a_list():
    text = """relax.func @main(%x: !relax.tensor<[1, 3, 8, 8], f32>, %w: !relax.tensor<[4, 3, 3, 3], f32>) {
  %0 = relax.nn.conv2d %x, %w padding = 1 strides = 2
  %1 = relax.nn.max_pool2d %0 pool_size = 2
  %2 = relax.sum %1 axis = [2, 3]
  relax.return %2
}"""
    shown = str(parse_module(text))
    assert "relax.nn.conv2d %x, %w strides = [2, 2] padding = [1, 1, 1, 1]\n" in shown
    assert "relax.nn.max_pool2d %0 pool_size = [2, 2]\n" in shown
    assert "relax.sum %1 axes = [2, 3]\n" in shown


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
    "symbol without a parameter": (
        "relax.func @main(%x: !relax.tensor<[n], f32>) {\n  relax.return %x\n}",
        "<text>:1:1: error: 'relax.func' op @main uses the unbound symbol n; bind it: @main[%n](...) (in @main)\n"
        "  > relax.func @main(%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {\n      relax.return %x\n    }",
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


@pytest.mark.parametrize("name", INVALID)
def test_message_of_the_verifier(name: str):
    text, message = INVALID[name]
    with pytest.raises(InvalidModule) as caught:
        verify_module(parse_module(text))
    assert str(caught.value) == message
