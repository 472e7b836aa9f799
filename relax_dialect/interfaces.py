"""Result inference: one classmethod per op that infers its result types and is also its verifier."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation, OptResultDef, VarResultDef
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from relax_dialect.inference import DimCheck, Inference
from relax_dialect.ops.syntax import parse_optional_result_types
from relax_dialect.scope import prover_at
from relax_dialect.struct_info.base import StructInfo
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.match import Verdict, is_subtype
from relax_dialect.struct_info.types import ObjectType, PrimType, ShapeType, TensorType, TupleType
from tir_dialect.dims import DimSizeError, Prover


class InfersResultTypes(IRDLOperation, ABC):
    """An op whose result types follow from its operand types and properties.

    `infer` is the one position that knows: constructors take the result types from it, the parser fills in omitted
    ones, the verifier compares with it, and run-time checks are what it could not prove. A declared result type may say
    less than the inferred one, never more: what is not provable takes a `relax.match_cast`.
    """

    @classmethod
    @abstractmethod
    def infer(cls, inference: Inference) -> Sequence[StructInfo]:
        """The result types; raises `VerifyException` through `inference.fail` if the operands are provably wrong."""

    @classmethod
    def infer_result_types(
        cls,
        operand_types: Sequence[Attribute],
        properties: Mapping[str, Attribute] | None = None,
        prover: Prover | None = None,
    ) -> tuple[StructInfo, ...]:
        """The result types for these operand types and properties; default properties may be left out."""
        return cls._infer_with(Inference(cls, operand_types, properties or {}, prover))

    @classmethod
    def _infer_with(cls, inference: Inference) -> tuple[StructInfo, ...]:
        """`infer`, for which a shape that is too large to compute with is an error of the op."""
        try:
            return tuple(cls.infer(inference))
        except DimSizeError as error:
            raise VerifyException(f"'{cls.name}' op has a shape that is too large an expression: {error}") from error

    @classmethod
    def parse_result_types(
        cls,
        parser: Parser,
        operand_types: Sequence[Attribute],
        properties: Mapping[str, Attribute],
        position: int,
    ) -> Sequence[StructInfo]:
        """Parses the result types, or infers them if they are not written.

        An op whose types are wrong gets results of which nothing is known, so that the rest of the text is read and the
        verifier reports all errors. If it may have any number of results, that is a parse error at `position`, where
        the text of the op starts.
        """
        types = parse_optional_result_types(parser)
        if types is not None:
            return types
        try:
            return cls.infer_result_types(operand_types, properties)
        except VerifyException as error:
            if (unknown := unknown_results(cls)) is not None:
                return unknown
            parser.raise_error(str(error), position, position + 1)

    @classmethod
    def refuse_properties(cls, parser: Parser, attributes: Mapping[str, Attribute], start: int) -> None:
        """Raises an error for a dictionary of attributes, read from `start`, that has a property: it has no effect."""
        for name in cls.get_irdl_definition().properties:
            if name in attributes:
                message = f"'{cls.name}' op expected {name} in front of the dictionary of attributes"
                parser.raise_error(message, start, start + 1)

    def types_follow(self) -> bool:
        """Whether the result types are the inferred ones, so that the text does not say them."""
        try:
            return self.infer_result_types(self.operand_types, self.properties) == tuple(self.result_types)
        except VerifyException:
            return False

    def runtime_checks(self) -> tuple[DimCheck, ...]:
        """What has to be checked when the op runs, because it could neither be proved nor refuted here."""
        return self._inference()[1]

    def _inference(self) -> tuple[tuple[StructInfo, ...], tuple[DimCheck, ...]]:
        inference = Inference(type(self), self.operand_types, self.properties, prover_at(self))
        return self._infer_with(inference), tuple(inference.checks)

    def verify_(self) -> None:
        inferred, _ = self._inference()
        if len(inferred) != len(self.results):
            raise VerifyException(f"'{self.name}' op expected {len(inferred)} results, got {len(self.results)}")
        for index, want in enumerate(inferred):
            verify_result(self, index, want)


_UNKNOWN = (TensorType(None, None), ObjectType(), ShapeType(None), FuncType(None), PrimType(i64), TupleType(()))
"""Types that say least, of every kind."""


def unknown_results(cls: type[IRDLOperation]) -> tuple[StructInfo, ...] | None:
    """Result types of an op of which nothing is known; `None` if their number is not fixed, or none of ours fits."""
    found: list[StructInfo] = []
    for _, definition in cls.get_irdl_definition().results:
        if isinstance(definition, VarResultDef | OptResultDef):
            return None
        fitting = next((info for info in _UNKNOWN if definition.constr.verifies((info,))), None)
        if fitting is None:
            return None
        found.append(fitting)
    return tuple(found)


def verify_result(op: Operation, index: int, inferred: StructInfo) -> None:
    """Raises `VerifyException` unless the declared type of result `index` says no more than the inferred one."""
    declared = op.results[index].type
    if declared == inferred:
        return
    if isinstance(declared, TensorType) and isinstance(inferred, TensorType):
        # A sharding says where a value is, not what it is: it is decided, and need not follow.
        inferred = inferred.with_sharding(declared.sharding)
    verdict = is_subtype(inferred, declared, prover_at(op))
    if verdict is Verdict.NEVER:
        raise VerifyException(f"'{op.name}' op result #{index} expected {inferred} as inferred, got {declared}")
    if verdict is Verdict.RUNTIME:
        raise VerifyException(
            f"'{op.name}' op result #{index} declares {declared}, but only {inferred} can be inferred; "
            "refine the result with 'relax.match_cast'"
        )
