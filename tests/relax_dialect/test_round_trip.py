"""Random straight-line functions print and parse back to themselves, in both forms."""

from collections.abc import Callable
from io import StringIO

from hypothesis import given, reject
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp, f16, f32
from xdsl.ir import Block, Operation, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from relax_dialect.ops.binary import AddOp, LessOp
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.dataflow import DataflowOp, OutputOp
from relax_dialect.ops.datatype import AstypeOp
from relax_dialect.ops.joining import ConcatOp, SplitOp
from relax_dialect.ops.linear_algebra import MatmulOp
from relax_dialect.ops.manipulation import ExpandDimsOp, FlattenOp, PermuteDimsOp, SqueezeOp
from relax_dialect.ops.reduction import SumOp
from relax_dialect.ops.shapes import ShapeOfOp, TupleOp
from relax_dialect.ops.structure import FuncOp, ReturnOp
from relax_dialect.ops.unary import ExpOp
from relax_dialect.struct_info.types import FuncType, ObjectType, TensorType
from tests.support.struct_info import SYMBOLS, context, shapes
from tir_dialect.dims import symbol
from tir_dialect.types import SymbolAttr

Make = Callable[[SSAValue, SSAValue], Operation]

OPS: list[Make] = [
    lambda x, y: ExpOp(x),
    AddOp,
    LessOp,
    MatmulOp,
    lambda x, y: ConcatOp([x, y], axis=-1),
    lambda x, y: SplitOp(x, sections=2),
    lambda x, y: FlattenOp(x),
    lambda x, y: PermuteDimsOp(x),
    lambda x, y: ExpandDimsOp(x, [0]),
    lambda x, y: SqueezeOp(x, [0]),
    lambda x, y: SumOp(x, [0], keepdims=True),
    lambda x, y: AstypeOp(x, f16),
    lambda x, y: ShapeOfOp(x),
    lambda x, y: MatchCastOp(x, TensorType(None, f32)),
]


@st.composite
def functions(draw: st.DrawFn) -> FuncOp:
    """A function with symbols, two tensors and a dataflow region of random ops."""
    params = [TensorType(draw(shapes()), f32) for _ in range(2)]
    witnesses = [TensorType((symbol(name),), f32) for name in SYMBOLS]
    bounds = [SymbolAttr(name, 0, draw(st.none() | st.integers(1, 9))) for name in SYMBOLS]
    func = FuncOp("main", FuncType([*params, *witnesses], ObjectType(), symbols=bounds))
    values: list[SSAValue] = list(func.params)
    ops: list[Operation] = []
    for make in draw(st.lists(st.sampled_from(OPS), max_size=8)):
        tensors = [value for value in values if isinstance(value.type, TensorType)]
        operands = draw(st.sampled_from(tensors)), draw(st.sampled_from(tensors))
        try:
            op = make(*operands)
        except VerifyException:
            continue
        ops.append(op)
        values += op.results
    outputs = draw(st.lists(st.sampled_from(values), max_size=3))
    block = DataflowOp(Block([*ops, OutputOp(*outputs)]))
    result = TupleOp(*block.res)
    func.body.block.add_ops([block, result, ReturnOp(result.result)])
    return func


def _text(module: ModuleOp, generic: bool) -> str:
    stream = StringIO()
    Printer(stream, print_generic_format=generic).print_op(module)
    return stream.getvalue()


@given(functions(), st.booleans())
def test_functions_round_trip(func: FuncOp, generic: bool):
    module = ModuleOp([func])
    try:
        module.verify()
    except VerifyException:
        reject()  # bounds may refute what the ops alone could not
    text = _text(module, generic)
    parsed = Parser(context(), text).parse_module()
    parsed.verify()
    assert parsed.is_structurally_equivalent(module)
    assert _text(module, generic) == text
