"""`legalize-ops`: operators become calls of kernels.
Sizes that are data are found out by a kernel, and bound to new symbols before the op is legalised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.diagnostics import Finding, InvalidModule, fail, refuse
from lowering.locations import inherit_location
from lowering.relax.lower_shapes import FreshSymbols
from lowering.relax_to_tir.kernel import KERNELS, REWRITES, SIZES, Kernel, Kernels
from lowering.rewriting import apply_patterns, op_rewrite_pattern
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.shapes import TensorToShapeOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.struct_info.sharding import ShardingAttr
from relax_dialect.struct_info.types import ShapeType, TensorType
from tir_dialect.dims import symbol


def stem(op: Operation) -> str:
    """What the kernel of an op is called: `nn_softmax`."""
    return op.name.removeprefix("relax.").replace(".", "_")


def measure(op: Operation, kernels: Kernels, names: FreshSymbols) -> Sequence[SSAValue]:
    """Makes the dimensions of the results known; gives the tensors that are kept for the op's own kernel."""
    rule = SIZES[type(op)]
    unknown = [result for result in op.results if _unknown(result)]
    if rule is None or not unknown:
        return ()
    kernel = Kernel(op, ())
    call = kernels.call(kernel, lambda: rule(kernel, op), f"{stem(op)}_sizes")
    Rewriter.insert_op(call, InsertPoint.before(op))
    numbers, *kept = call.res
    # New symbols for the elements of a tensor of sizes.
    shape = TensorToShapeOp(numbers)
    inherit_location(op, shape)
    symbols = names.take(shape.result.type.rank or 0)
    cast = MatchCastOp(shape.result, ShapeType(symbols), symbols)
    inherit_location(op, cast)
    Rewriter.insert_op([shape, cast], InsertPoint.before(op))
    dims = [symbol(name) for name in symbols]
    each = iter(dims)
    for result in unknown:
        info = result.type
        if isinstance(info, TensorType) and info.dims is not None:
            shape = [(dims[0] if len(dims) == 1 else next(each)) if dim is None else dim for dim in info.dims]
            Rewriter.replace_value_with_new_type(result, info.with_shape(shape))
    return kept


def _unknown(result: OpResult) -> bool:
    return isinstance(result.type, TensorType) and result.type.dims is not None and result.type.known_dims is None


class LegalizeOpsPass(ModulePass):
    """Replaces every operator by a `relax.call_tir` of a PrimFunc made from its tensor expression.

    Before:

    ```mlir
    %y = relax.exp %x : !relax.tensor<[n], f32>
    ```

    After:

    ```mlir
    tir.prim_func @exp[%n](%x: !tir.buffer<[n], f32>, %exp: !tir.buffer<[n], f32>) { ... }
    ...
    %y = relax.call_tir @exp(%x) : !relax.tensor<[n], f32>
    ```

    Equal kernels are made once. An op whose result has a size that depends on data (`relax.unique`) becomes two calls:
    the first finds out the sizes, which are bound to new symbols. Ops that only look at memory in another way
    (`relax.reshape` and its kin) stay. All operators that have no legalisation, or whose shapes are not known, are
    reported at once. Idempotent.
    """

    name = "legalize-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Legalises every function."""
        kernels = Kernels(op)
        findings: list[Finding] = []
        for func in [inner for inner in op.ops if isinstance(inner, FuncOp)]:
            require_one_worker(func)
            apply_patterns(func, [ExpandOperator(findings), CallKernel(kernels, FreshSymbols(func), findings)])
        refuse(findings)


def require_one_worker(func: FuncOp) -> None:
    """Fails for a function of whose parameters several workers have tiles: it would run as if each had the whole."""
    for name, info in zip(func.param_names, func.function_type.params, strict=True):
        if isinstance(info, TensorType) and info.sharding is not None and info.sharding.workers != 1:
            fail(
                func,
                f"expected parameters that this worker has as a whole, got {name}, which is shared as "
                f"{info.sharding.text}",
                f"{_command(info.sharding)} runs it; the passes propagate-sharding and lower-distributed make the "
                "program of each worker",
            )


def _command(sharding: ShardingAttr) -> str:
    """What runs a program on the workers of a mesh."""
    sizes = ",".join(f"{axis.name}={axis.size}" for axis in sharding.mesh)
    return f"mpiexec -n {sharding.workers or 'N'} relax-run FILE --mesh {sizes}"


@dataclass(frozen=True)
class ExpandOperator(RewritePattern):
    """An operator that is made of others becomes these: `batch_flatten(x)  ->  reshape(x, s)`."""

    findings: list[Finding]
    """Where what cannot be expanded is reported."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: Operator, rewriter: PatternRewriter) -> None:
        rule = REWRITES[type(op)]
        if rule is None:
            return
        try:
            values = rule(op, rewriter)
        except InvalidModule as error:
            self.findings.extend(error.findings)
            return
        if values is not None:
            rewriter.replace(op, [], values)


@dataclass(frozen=True)
class CallKernel(RewritePattern):
    """An operator is the call of a kernel that computes its tensor expression: `exp(x)  ->  call_tir @exp(x)`."""

    kernels: Kernels
    names: FreshSymbols
    """For the dimensions of results that only a kernel finds out."""
    findings: list[Finding]
    """Where what no kernel can be made of is reported."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: Operator, rewriter: PatternRewriter) -> None:
        rule = KERNELS[type(op)]
        if rule is None:
            return
        try:
            kept = measure(op, self.kernels, self.names)  # which gives the op new results
            kernel = Kernel(op, op.results, kept)
            call = self.kernels.call(kernel, lambda: rule(kernel, op), stem(op))
        except InvalidModule as error:
            self.findings.extend(error.findings)
            return
        except (TypeError, ValueError) as error:
            if not str(error).startswith(
                "te"
            ):  # what the tensor expressions refuse; anything else is a bug of the rule
                raise
            types = ", ".join(str(operand.type) for operand in op.operands)
            message = f"cannot be computed for ({types}): {error}"
            self.findings.append(Finding.at(op, message, "convert the operands with relax.astype first"))
            return
        rewriter.replace(op, call)
