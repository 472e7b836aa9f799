import pytest
from hypothesis import given
from hypothesis import strategies as st

from vm_dialect.executable.model import (
    IMMEDIATE_MAX,
    IMMEDIATE_MIN,
    STATE,
    VOID,
    Call,
    Goto,
    If,
    Operand,
    OperandKind,
    Ret,
    decode,
    encode,
)

operands = st.builds(Operand, st.sampled_from(OperandKind), st.integers(IMMEDIATE_MIN, IMMEDIATE_MAX))
indices = st.integers(0, 1 << 40)
offsets = st.integers(-(1 << 40), 1 << 40)
instructions = st.one_of(
    st.builds(Call, indices, indices, st.lists(operands, max_size=5).map(tuple)),
    st.builds(Ret, operands),
    st.builds(Goto, offsets),
    st.builds(If, operands, offsets),
)


@given(operands)
def test_an_operand_is_one_word(operand: Operand):
    assert 0 <= operand.encode() < 1 << 64
    assert Operand.decode(operand.encode()) == operand


@given(st.lists(instructions, max_size=6))
def test_encoding_is_reversible(code: list[Call | Ret | Goto | If]):
    words = [word for instruction in code for word in encode(instruction)]
    assert all(0 <= word < 1 << 64 for word in words)
    position, decoded = 0, list[object]()
    while position < len(words):
        instruction, position = decode(words, position)
        decoded.append(instruction)
    assert decoded == code


def test_the_word_is_that_of_tvm():
    assert Operand(OperandKind.CONSTANT, 3).encode() == (2 << 56) | 3
    assert Operand(OperandKind.IMMEDIATE, -1).encode() == (1 << 56) | ((1 << 56) - 1)
    assert VOID.value == 1 << 54
    assert STATE.value == VOID.value + 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([9, 0], "unknown opcode 9"),
        ([2, 7 << 56], "unknown operand kind 7"),
        ([2], "ends in the middle"),
        ([1, 0, 0], "ends in the middle"),
        ([1, 0, 0, 1 << 63], "ends in the middle"),
    ],
)
def test_nonsense_is_refused(words: list[int], message: str):
    with pytest.raises(ValueError, match=message):
        decode(words, 0)
