"""The text of a module and of its functions, around the instructions that `instructions` writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from lowering.llvm.binding import CodegenError
from lowering.llvm.llvm_types import Metadata, TypeNames, constant, quoted

Emit = Callable[["FunctionText", Operation], None]


class ModuleText:
    """What the functions of a module share: type names, intrinsics to declare, metadata."""

    def __init__(self, module: ModuleOp, emitters: Mapping[type[Operation], Emit]) -> None:
        self.module = module
        self.emitters = emitters
        self.types = TypeNames()
        self.metadata = Metadata()
        self.declared: dict[str, str] = {}
        self._known: dict[tuple[str, ...], str] = {}
        """Names in operand position by name, result and parameters."""
        self.functions: dict[str, llvm.FuncOp] = {}

    def text(self) -> str:
        """The whole module."""
        ops = list(self.module.ops)
        self.functions = {op.sym_name.data: op for op in ops if isinstance(op, llvm.FuncOp)}
        body: list[str] = []
        for op in ops:
            match op:
                case llvm.FuncOp():
                    body.append(self._function(op))
                case llvm.GlobalOp():
                    body.append(self._global(op))
                case Operation(name="vm.constant"):  # given to the code when it is loaded
                    continue
                case _:
                    raise CodegenError(f"'{op.name}' op cannot stand in an LLVM module, lower it to the llvm dialect")
        intrinsics = [line for name, line in self.declared.items() if name not in self.functions]
        structs = [f"{name} = type {body}" for name, body in self.types.definitions.items()]
        return "\n".join([*structs, *body, *intrinsics, *self.metadata.lines(), ""])

    def declare(self, name: str, result: str, parameters: Sequence[str]) -> str:
        """The name of an intrinsic in operand position; its declaration is added to the module once."""
        key = (name, result, *parameters)
        if key not in self._known:
            line = f"declare {result} @{quoted(name)}({', '.join(parameters)})"
            if self.declared.setdefault(name, line) != line:
                raise CodegenError(f"intrinsic {name} is used with two signatures: {self.declared[name]} and {line}")
            self._known[key] = f"@{quoted(name)}"
        return self._known[key]

    def _global(self, op: llvm.GlobalOp) -> str:
        if op.body.blocks:
            raise CodegenError(f"'{op.name}' op {op.sym_name} has an initializer region, expected a constant value")
        type_name = self.types(op.global_type)
        words = [f"@{quoted(op.sym_name.data)} =", op.linkage.linkage.data]
        words += ["thread_local"] * (op.thread_local_ is not None)
        words += [_UNNAMED_ADDR[op.unnamed_addr.value.data]] if op.unnamed_addr is not None else []
        words += ["constant" if op.constant is not None else "global", type_name]
        if op.value is not None:
            words.append("zeroinitializer" if isinstance(op.value, UnitAttr) else constant(op.value, type_name))
        elif op.linkage.linkage.data != "external":
            words.append("zeroinitializer")
        suffix = f', section "{op.section.data}"' if op.section is not None else ""
        suffix += f", align {op.alignment.value.data}" if op.alignment is not None else ""
        return " ".join(word for word in words if word) + suffix

    def _function(self, op: llvm.FuncOp) -> str:
        names = ("%" + quoted(f"a{index}") for index in range(len(op.function_type.inputs)))
        parameters = [
            f"{self.types(type_)}{self._parameter_attributes(op, index)} {name}"
            for index, (type_, name) in enumerate(zip(op.function_type.inputs, names, strict=True))
        ]
        parameters += ["..."] * op.function_type.is_variadic
        convention = "" if op.CConv.cconv_name == "ccc" else f"{op.CConv.cconv_name} "
        result = "".join(f"{word} " for word in self._result_words(op)) + self.types(op.function_type.output)
        head = f"{convention}{result} @{quoted(op.sym_name.data)}({', '.join(parameters)})"
        head += "".join(f" {word}" for word in _function_attributes(op))
        if not op.body.blocks:
            return f"declare {head}"
        linkage = "" if op.linkage.linkage.data == "external" else f"{op.linkage.linkage.data} "
        return f"define {linkage}{head} {{\n{FunctionText(self, op).text()}}}"

    def _parameter_attributes(self, op: llvm.FuncOp, index: int) -> str:
        if op.arg_attrs is None:
            return ""
        return "".join(f" {word}" for word in self.parameter_words(op, op.arg_attrs.data[index]))

    def _result_words(self, op: llvm.FuncOp) -> Iterable[str]:
        return () if op.res_attrs is None else self.parameter_words(op, op.res_attrs.data[0])

    def parameter_words(self, op: Operation, attributes: DictionaryAttr) -> Iterable[str]:
        """Parameter attributes such as `llvm.noalias` and `llvm.align = 64`, as LLVM writes them."""
        for name, value in attributes.data.items():
            key = name.removeprefix("llvm.")
            if key in _PARAMETER_FLAGS:
                yield _PARAMETER_FLAGS[key]
            elif key == "align" and isinstance(value, IntegerAttr):
                yield f"align {value.value.data}"
            elif key in _PARAMETER_INTEGERS and isinstance(value, IntegerAttr):
                yield f"{key}({value.value.data})"
            elif key in _PARAMETER_TYPES:
                yield f"{key}({self.types(value)})"
            else:
                raise CodegenError(f"'{op.name}' op has an unknown parameter attribute {name}")


class FunctionText:
    """The body of one function: the names of its values and blocks, and the lines so far."""

    def __init__(self, module: ModuleText, function: llvm.FuncOp) -> None:
        self.module = module
        self.types = module.types
        self.function = function
        self.names: dict[SSAValue, str] = {}
        self._typed: dict[SSAValue, str] = {}
        self.long_constants: dict[Operation, str] = {}
        """Those that have names."""
        self.labels: dict[Block, str] = {}
        self.lines: list[str] = []
        self._numbers = 0
        self.label = ""
        self.edge_blocks: list[str] = []
        self.incoming: dict[Block, list[tuple[str, Sequence[SSAValue]]]] = {}

    def text(self) -> str:
        """All blocks, entry first."""
        blocks = list(self.function.body.blocks)
        # Every value is named before the first line, since a phi may use a value of a later block.
        names = self.names
        for index, argument in enumerate(blocks[0].args):
            self._name(argument, f"%a{index}")
        for number, block in enumerate(blocks):
            self.labels[block] = f"b{number}"
            if number:
                for argument in block.args:
                    self._name(argument, f"%v{len(names)}")
            for op in block.ops:
                for result in op.results:
                    self._name(result, self._operand(op, result) or f"%v{len(names)}")
        bodies = [self._block(block) for block in blocks]
        parts: list[str] = []
        for block, body in zip(blocks, bodies, strict=True):
            parts.append(f"{self.labels[block]}:\n")
            parts += self._phis(block) if block is not blocks[0] else []
            parts += body
        return "".join(parts + self.edge_blocks)

    def _operand(self, op: Operation, result: SSAValue) -> str | None:
        """What is written where a value is used instead of a name; a long constant gets a name if it is used again."""
        text = self._constant(op)
        if text is None or len(text) <= LONG_CONSTANT or result.has_one_use():
            return text
        self.long_constants[op] = text
        return None

    def _name(self, value: SSAValue, name: str) -> None:
        self.names[value] = name
        self._typed[value] = f"{self.types(value.type)} {name}"

    def _constant(self, op: Operation) -> str | None:
        if type(op) not in _OPERANDS:
            return None
        match op:
            case llvm.ConstantOp():
                return constant(op.value, self.types(op.result.type))
            case llvm.AddressOfOp():
                return f"@{quoted(op.global_name.string_value())}"
            case llvm.UndefOp():
                return "undef"
            case llvm.ZeroOp():
                return "null" if isinstance(op.res.type, llvm.LLVMPointerType) else "zeroinitializer"
            case _:
                return None

    def _block(self, block: Block) -> list[str]:
        self.lines = []
        self.label = self.labels[block]
        for op in block.ops:
            emit = self.module.emitters.get(type(op))
            if emit is None:
                raise CodegenError(f"'{op.name}' op has no LLVM text, lower it to the llvm dialect")
            emit(self, op)
        return self.lines

    def _phis(self, block: Block) -> list[str]:
        edges = self.incoming.get(block, [])
        if not block.args:
            return []
        if not edges:
            raise CodegenError(f"block {self.labels[block]} of @{self.function.sym_name.data} has no predecessor")
        lines: list[str] = []
        for index, argument in enumerate(block.args):
            sources = ", ".join(f"[ {self.names[values[index]]}, %{label} ]" for label, values in edges)
            lines.append(f"  {self.names[argument]} = phi {self.types(argument.type)} {sources}\n")
        return lines

    # What the emitters use.

    def next_number(self) -> int:
        """A number that no other name of this function has got from here."""
        self._numbers += 1
        return self._numbers

    def typed(self, value: SSAValue) -> str:
        """An operand with its type in front."""
        return self._typed[value]

    def emit(self, line: str) -> None:
        """Appends an instruction without a result."""
        self.lines.append(f"  {line}\n")

    def define(self, result: SSAValue, line: str) -> None:
        """Appends an instruction with a result."""
        self.lines.append(f"  {self.names[result]} = {line}\n")

    def edges(self, targets: Sequence[tuple[Block, Sequence[SSAValue]]]) -> list[str]:
        """Labels to branch to, one for each target of a terminator; records what the phis receive."""
        labels: list[str] = []
        seen: set[Block] = set()
        for block, values in targets:
            source, label = self.label, self.labels[block]
            if values and block in seen:
                source = label = f"{self.label}.e{len(labels)}"
                self.edge_blocks.append(f"{label}:\n  br label %{self.labels[block]}\n")
            seen.add(block)
            self.incoming.setdefault(block, []).append((source, values))
            labels.append(f"label %{label}")
        return labels


LONG_CONSTANT = 200
"""Characters. A table that is written at each use takes LLVM longer to read than all instructions around it."""

_OPERANDS = frozenset((llvm.ConstantOp, llvm.AddressOfOp, llvm.UndefOp, llvm.ZeroOp))
"""What is written where it is used."""

_UNNAMED_ADDR = {0: "", 1: "local_unnamed_addr", 2: "unnamed_addr"}

_PARAMETER_FLAGS: dict[str, str] = {
    name: name
    for name in ("inreg", "nest", "noalias", "nofree", "nonnull", "noundef", "returned", "signext", "zeroext")
} | {"readonly": "readonly", "writeonly": "writeonly", "readnone": "readnone", "nocapture": "captures(none)"}

_PARAMETER_INTEGERS = frozenset({"dereferenceable", "dereferenceable_or_null"})
_PARAMETER_TYPES = frozenset({"byval", "byref", "sret", "inalloca", "preallocated", "elementtype"})

_FUNCTION_FLAGS: dict[str, str] = {"no_inline": "noinline", "no_unwind": "nounwind", "optimize_none": "optnone"}


def _function_attributes(op: llvm.FuncOp) -> Iterable[str]:
    """Flags, then `passthrough`; xDSL's parser leaves some of them among the discardable attributes."""
    attributes = {**op.attributes, **op.properties}
    for name, word in _FUNCTION_FLAGS.items():
        if name in attributes:
            yield word
    passthrough = attributes.get("passthrough")
    if isinstance(passthrough, ArrayAttr):
        for item in cast("ArrayAttr[Attribute]", passthrough):
            yield _passthrough(op, item)


def _passthrough(op: llvm.FuncOp, item: Attribute) -> str:
    match item:
        case StringAttr():
            return item.data
        case ArrayAttr(data=(StringAttr("alignstack"), StringAttr() as value)):
            return f"alignstack({value.data})"
        case ArrayAttr(data=(StringAttr() as key, StringAttr() as value)):
            return f'"{key.data}"="{value.data}"'
        case _:
            raise CodegenError(f"'{op.name}' op has an unknown passthrough attribute {item}")
