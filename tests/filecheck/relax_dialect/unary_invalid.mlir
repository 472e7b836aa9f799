// RUN: RELAX_INVALID

// CHECK: 'relax.exp' op operand #0 expected a floating-point dtype, got i32
relax.func @exp_c1[%n](%x: !relax.tensor<[n], i32>) -> !relax.object {
  %0 = relax.exp %x
  relax.return %x
}

// -----

// CHECK: 'relax.bitwise_not' op operand #0 expected an integer dtype or i1, got f32
relax.func @bitwise_not_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.bitwise_not %x
  relax.return %x
}

// -----

// CHECK: 'relax.logical_not' op operand #0 expected i1, got i8
relax.func @logical_not_c1[%n](%x: !relax.tensor<[n], i8>) -> !relax.object {
  %0 = relax.logical_not %x
  relax.return %x
}

// -----

// CHECK: 'relax.negative' op operand #0 expected an integer or floating-point dtype, got i1
relax.func @negative_c1[%n](%x: !relax.tensor<[n], i1>) -> !relax.object {
  %0 = relax.negative %x
  relax.return %x
}

// -----

// CHECK: 'relax.exp' op operand #0 expected a tensor, got !relax.shape<*>
relax.func @exp(%x: !relax.shape<*>) -> !relax.object {
  %0 = relax.exp %x
  relax.return %x
}

// -----

// The result type may say less than what is inferred, not more and nothing else.
// CHECK: 'relax.exp' op result #0 expected !relax.tensor<[n], f32> as inferred, got !relax.tensor<[n], f16>
relax.func @exp[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.exp %x : !relax.tensor<[n], f16>
  relax.return %x
}

// -----

// CHECK: 'relax.exp' op result #0 declares !relax.tensor<[4], f32>, but only !relax.tensor<[_], f32> can be inferred; refine the result with 'relax.match_cast'
relax.func @exp(%x: !relax.tensor<[_], f32>, %n: !relax.prim<i64>) -> !relax.object {
  %0 = relax.exp %x : !relax.tensor<[4], f32>
  relax.return %x
}

// -----

// CHECK: 'relax.exp' op expected 1 operand (x), got 2
relax.func @exp(%x: !relax.tensor<[_], f32>) -> !relax.object {
  %0 = relax.exp %x, %x
  relax.return %x
}

// -----

// CHECK: 'relax.exp' op expected operands without parentheses: relax.exp %x
relax.func @exp_in_parentheses[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.exp(%x)
  relax.return %x
}
