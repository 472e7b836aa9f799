"""What is said of texts with common mistakes, as a whole."""

from __future__ import annotations

import pytest
from xdsl.utils.exceptions import ParseError

from lowering.parsing import parse_module

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
        "                   'relax.concat' op expected operands without parentheses: relax.concat %x, %x\n",
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
        "                    'relax.concat' op expected operands without brackets: relax.concat %x, %x\n",
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
        "  'relax.if' op expected 'else', got 'relax.return'; it has both branches: "
        "relax.if %c { ... } else { ... }\n",
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

CASES |= {
    "return of nothing": (
        "relax.func @main(%x: !relax.tensor<[4], f32>) {\n  relax.return\n}",
        "<text>:3:1\n"
        "}\n"
        "^\n"
        "expected a value, got '}'; a function returns one value, which may be empty: %0 = relax.tuple()\n",
    ),
    "type after a return": (
        "relax.func @main(%x: !relax.tensor<[4], f32>) {\n  relax.return %x : !relax.tensor<[4], f32>\n}",
        "<text>:2:19\n"
        "  relax.return %x : !relax.tensor<[4], f32>\n"
        "                  ^\n"
        "                  expected an operation or '}', got ':'; 'relax.return' has no type, its value has one\n",
    ),
    "comment of C": (
        "relax.func @main(%x: !relax.tensor<[4], f32>) {\n  /* nothing */\n  relax.return %x\n}",
        "<text>:2:3\n  /* nothing */\n  ^\n  comments begin with // and end with the line, not with /* and */\n",
    ),
    "docstring": (
        'relax.func @main(%x: !relax.tensor<[4], f32>) {\n  """Doubles."""\n  relax.return %x\n}',
        '<text>:2:3\n  """Doubles."""\n  ^\n  expected an operation, got a string; comments begin with //\n',
    ),
    "infix operator": (
        "relax.func @main(%x: !relax.tensor<[4], f32>) {\n  %y = %x + %x\n  relax.return %y\n}",
        "<text>:2:8\n  %y = %x + %x\n       ^^\n       an operation begins with its name: relax.add %x, %y\n",
    ),
    "call without an op": (
        "relax.func @main(%x: !relax.tensor<[4], f32>) {\n  %y = @g(%x)\n  relax.return %y\n}",
        "<text>:2:8\n  %y = @g(%x)\n       ^^\n       a function is called by relax.call: %0 = relax.call @g(%x)\n",
    ),
    "brace too many": (
        "relax.func @main(%x: !relax.tensor<[4], f32>) {\n  relax.return %x\n}\n}",
        "<text>:4:1\n}\n^\nexpected an operation, got '}'; no brace is open\n",
    ),
    "operator of TVMScript": (
        "relax.func @main(%x: !relax.tensor<[4], f32>) {\n  %y = R.exp(%x)\n  relax.return %y\n}",
        "<text>:2:8\n  %y = R.exp(%x)\n       ^^^^^\n       unknown operation 'R.exp'; did you mean 'relax.exp'\n",
    ),
    "TVMScript": (
        "from tvm.script import relax as R\n",
        "<text>:1:1\n"
        "from tvm.script import relax as R\n"
        "^^^^\n"
        "expected the text of a module, got Python: TVMScript is read by relax-translate "
        "--import-tvmscript, or from a .py file\n",
    ),
    "parenthesis around a condition": (
        "relax.func @f(%c: !relax.prim<i1>, %x: !relax.object) {\n"
        "  %0 = relax.if (%c) {\n"
        "    relax.yield %x\n"
        "  }\n"
        "  relax.return %0\n"
        "}",
        "<text>:2:17\n"
        "  %0 = relax.if (%c) {\n"
        "                ^\n"
        "                expected a value, got '('; operands stand without parentheses\n",
    ),
    "arguments of Python": (
        "relax.func @main(%x: !relax.tensor<[4], f32>) {\n  %y = relax.sum(%x, axis=0)\n  relax.return %y\n}",
        "<text>:2:17\n"
        "  %y = relax.sum(%x, axis=0)\n"
        "                ^\n"
        "                'relax.sum' op expected operands without parentheses: relax.sum %x axis = 0\n",
    ),
    "dataflow that returns": (
        "relax.func @main(%x: !relax.tensor<[4], f32>) {\n"
        "  %y = relax.dataflow {\n"
        "    relax.return %x\n"
        "  }\n"
        "  relax.return %y\n"
        "}",
        "<text>:4:3\n  }\n  ^\n  the region has to end with 'relax.output', not with 'relax.return'\n",
    ),
    "attribute of another spelling": (
        "relax.func @main(%x: !relax.tensor<[4], f32>) {\n  %y = relax.nn.softmax %x axs = 0\n  relax.return %y\n}",
        "<text>:2:28\n"
        "  %y = relax.nn.softmax %x axs = 0\n"
        "                           ^^^\n"
        "                           'relax.nn.softmax' op attribute axs is unknown, expected one of "
        "axis; did you mean axis?\n",
    ),
    "attribute in braces": (
        "relax.func @main(%x: !relax.tensor<[4], f32>) {\n  %y = relax.nn.softmax %x {axis = 0}\n  relax.return %y\n}",
        "<text>:2:28\n"
        "  %y = relax.nn.softmax %x {axis = 0}\n"
        "                           ^\n"
        "                           'relax.nn.softmax' op expected axis before the dictionary of "
        "attributes, without braces: axis = ...\n",
    ),
    "number for a constant": (
        "relax.func @main(%x: !relax.tensor<[4], f32>) {\n  %y = relax.constant 1.0 : f32\n  relax.return %y\n}",
        "<text>:2:23\n"
        "  %y = relax.constant 1.0 : f32\n"
        "                      ^^^^^^^^^\n"
        "                      expected dense<...> or the name of a tensor, got 1.0 : f32; did you mean "
        "dense<1.0> : tensor<f32>?\n",
    ),
    "list for a constant": (
        "relax.func @main(%x: !relax.tensor<[4], f32>) {\n  %y = relax.constant [1, 2]\n  relax.return %y\n}",
        "<text>:2:23\n"
        "  %y = relax.constant [1, 2]\n"
        "                      ^^^^^^\n"
        "                      expected dense<...> or the name of a tensor, got [1, 2]; did you mean "
        "dense<[1, 2]> : tensor<2xi64>?\n",
    ),
    "constant of another shape": (
        "relax.func @main(%x: !relax.tensor<[4], f32>) {\n"
        "  %y = relax.constant dense<[1.0, 2.0, 3.0]> : tensor<2xf32>\n"
        "  relax.return %y\n"
        "}",
        "<text>:2:23\n"
        "  %y = relax.constant dense<[1.0, 2.0, 3.0]> : tensor<2xf32>\n"
        "                      ^^^^^\n"
        "                      the elements have the shape [3], and the type has [2]\n",
    ),
    "constant of another kind": (
        "relax.func @main(%x: !relax.tensor<[4], f32>) {\n"
        "  %y = relax.constant dense<[1.5]> : tensor<1xi32>\n"
        "  relax.return %y\n"
        "}",
        "<text>:2:30\n"
        "  %y = relax.constant dense<[1.5]> : tensor<1xi32>\n"
        "                             ^^^\n"
        "                             expected an integer as the type says, got 1.5\n",
    ),
    "types of operands": (
        "relax.func @main(%x: !relax.tensor<[4], f32>) {\n"
        "  %y = relax.exp %x : (!relax.tensor<[4], f32>) -> !relax.tensor<[4], f32>\n"
        "  relax.return %y\n"
        "}",
        "<text>:2:23\n"
        "  %y = relax.exp %x : (!relax.tensor<[4], f32>) -> !relax.tensor<[4], f32>\n"
        "                      ^\n"
        "                      expected the type of the result alone, without those of the operands\n",
    ),
    "kind of an iterator": (
        'tir.prim_func @f(%X: !tir.buffer<[4], f32>) {\n  tir.block "b" (%v = reduction 0 in 4) {\n  }\n}',
        "<text>:2:23\n"
        '  tir.block "b" (%v = reduction 0 in 4) {\n'
        "                      ^^^^^^^^^\n"
        "                      'tir.block' op expected the kind of an iterator, one of spatial, reduce, "
        "scan, opaque, got 'reduction'; did you mean reduce?\n",
    ),
    "no kind of an iterator": (
        'tir.prim_func @f(%X: !tir.buffer<[4], f32>) {\n  tir.block "b" (%v = 0 in 4) {\n  }\n}',
        "<text>:2:23\n"
        '  tir.block "b" (%v = 0 in 4) {\n'
        "                      ^\n"
        "                      'tir.block' op expected the kind of an iterator, one of spatial, reduce, "
        "scan, opaque, got '0'\n",
    ),
    "arithmetic in an index": (
        "tir.prim_func @f(%X: !tir.buffer<[4], f32>) {\n  %i = arith.constant 0 : index\n  %a = tir.load %X[%i + 1]\n}",
        "<text>:3:23\n"
        "  %a = tir.load %X[%i + 1]\n"
        "                      ^\n"
        "                      'tir.load' op expected ']', got '+'; an index is a value: %j = "
        "arith.addi %i, %one : index\n",
    ),
    "integer addition of floats": (
        "tir.prim_func @f(%X: !tir.buffer<[4], f32>) {\n  %a = tir.load %X[0]\n  %b = arith.addi %a, %a : f32\n}",
        "<text>:3:3\n"
        "  %b = arith.addi %a, %a : f32\n"
        "  ^^\n"
        "  'arith.addi' op computes with integers, got f32; did you mean arith.addf?\n",
    ),
    "float addition of integers": (
        "tir.prim_func @f(%X: !tir.buffer<[4], f32>) {\n"
        "  %a = arith.constant 0 : i32\n"
        "  %b = arith.addf %a, %a : i32\n"
        "}",
        "<text>:3:3\n"
        "  %b = arith.addf %a, %a : i32\n"
        "  ^^\n"
        "  'arith.addf' op computes with floats, got i32; did you mean arith.addi?\n",
    ),
    "addition of TVM": (
        "tir.prim_func @f(%X: !tir.buffer<[4], f32>) {\n  %a = tir.load %X[0]\n  %b = tir.add %a, %a\n}",
        "<text>:3:8\n"
        "  %b = tir.add %a, %a\n"
        "       ^^^^^^^\n"
        "       unknown operation 'tir.add'; did you mean 'arith.addf' or 'arith.addi'\n",
    ),
    "exponential of TVMScript": (
        "tir.prim_func @f(%X: !tir.buffer<[4], f32>) {\n  %a = tir.load %X[0]\n  %b = T.exp(%a)\n}",
        "<text>:3:8\n  %b = T.exp(%a)\n       ^^^^^\n       unknown operation 'T.exp'; did you mean 'math.exp'\n",
    ),
    "allocation of MLIR": (
        "tir.prim_func @f(%X: !tir.buffer<[4], f32>) {\n  %a = tir.alloc : !tir.buffer<[4], f32>\n}",
        "<text>:2:8\n"
        "  %a = tir.alloc : !tir.buffer<[4], f32>\n"
        "       ^^^^^^^^^\n"
        "       unknown operation 'tir.alloc'; did you mean 'tir.alloc_buffer'\n",
    ),
    "return of a kernel": (
        "tir.prim_func @f(%X: !tir.buffer<[4], f32>) {\n  tir.return %X\n}",
        "<text>:2:3\n"
        "  tir.return %X\n"
        "  ^^^^^^^^^^\n"
        "  unknown operation 'tir.return'; a 'tir.prim_func' returns nothing: it writes into its buffers\n",
    ),
    "parameter of the machine without a type": (
        "vm.func @main(%x) {\n}",
        "<text>:1:17\n"
        "vm.func @main(%x) {\n"
        "                ^\n"
        "                'vm.func' op expected ':', got ')'; it is written vm.func @main(%x : "
        '!vm.object) -> !vm.tensor<1, f32> attributes {arg_names = ["x"]} {\n',
    ),
    "function of the machine in quotes": (
        'vm.func @main(%x : !vm.object) -> !vm.object {\n  %0 = vm.call "f"(%x)\n}',
        '<text>:2:3\n  %0 = vm.call "f"(%x)\n  ^^\n  names of functions begin with @, and have no quotes: @f\n',
    ),
}


def test_numbers_are_constants_before_the_loops_around_them():
    text = """tir.prim_func @f(%X: !tir.buffer<[4], f32>, %Y: !tir.buffer<[4], f32>) {
  tir.for (%i) in (4) {
    tir.block "b" (%v = spatial %i in 4) {
      %a = tir.load %X[0]
      tir.store %a, %Y[%v]
    }
  }
}"""
    shown = str(parse_module(text))
    assert (
        shown
        == """builtin.module {
  tir.prim_func @f(%X: !tir.buffer<[4], f32>, %Y: !tir.buffer<[4], f32>) {
    %0 = arith.constant 4 : index
    %1 = arith.constant 4 : index
    tir.for (%i) in (%0) {
      tir.block "b" (%v = spatial %i in %1) {
        %2 = arith.constant 0 : index
        %a = tir.load %X[%2]
        tir.store %a, %Y[%v]
      }
    }
  }
}"""
    )
    assert str(parse_module(shown)) == shown


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
