// RUN: RELAX_INVALID

// CHECK: 'relax.add' op expected operands of one dtype, got f32 and f16; convert with 'relax.astype'
relax.func @add_c1[%n](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[n], f16>) -> !relax.object {
  %0 = relax.add %x, %y
  relax.return %x
}

// -----

// CHECK: 'relax.add' op expected operands of one dtype, got ui8 and i8; convert with 'relax.astype'
relax.func @add_c1[%n](%x: !relax.tensor<[n], ui8>, %y: !relax.tensor<[n], i8>) -> !relax.object {
  %0 = relax.add %x, %y
  relax.return %x
}

// -----

// CHECK: 'relax.add' op operand #0 expected an integer or floating-point dtype, got i1
relax.func @add_c2[%n](%x: !relax.tensor<[n], i1>) -> !relax.object {
  %0 = relax.add %x, %x
  relax.return %x
}

// -----

// CHECK: 'relax.left_shift' op operand #0 expected an integer dtype, got f32
relax.func @left_shift_c2[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.left_shift %x, %x
  relax.return %x
}

// -----

// CHECK: 'relax.logical_and' op operand #0 expected i1, got i8
relax.func @logical_and_c2[%n](%x: !relax.tensor<[n], i8>) -> !relax.object {
  %0 = relax.logical_and %x, %x
  relax.return %x
}

// -----

// CHECK: 'relax.add' op dimensions 4 and 5 do not broadcast
relax.func @add_c3[%n](%x: !relax.tensor<[n, 4], f32>, %y: !relax.tensor<[5], f32>) -> !relax.object {
  %0 = relax.add %x, %y
  relax.return %x
}

// -----

// Neither can be 1.
// CHECK: 'relax.add' op dimensions 2 * n and 2 * n + 3 do not broadcast
relax.func @add_c3[%n](%x: !relax.tensor<[2 * n], f32>, %y: !relax.tensor<[2 * n + 3], f32>) -> !relax.object {
  %0 = relax.add %x, %y
  relax.return %x
}

// -----

// CHECK: 'relax.add' op expected operands on one device, got cpu and cuda:0
relax.func @add[%n](%x: !relax.tensor<[n], f32, "cpu">, %y: !relax.tensor<[n], f32, "cuda:0">) -> !relax.object {
  %0 = relax.add %x, %y
  relax.return %x
}

// -----

// CHECK: 'relax.add' op expected 2 operands (x, y), got 1
relax.func @add[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.add %x
  relax.return %x
}
