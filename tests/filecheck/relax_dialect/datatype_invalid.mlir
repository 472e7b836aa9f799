// RUN: RELAX_INVALID

// CHECK: 'relax.astype' op property dtype expected an element type, got i3
relax.func @astype_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.astype %x dtype = i3
  relax.return %x
}

// -----

// CHECK: 'relax.reinterpret' op property dtype expected an element type, got i3
relax.func @reinterpret_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %s = relax.shape [n]
  %0 = relax.reinterpret %x, %s dtype = i3
  relax.return %0
}

// -----

// CHECK: 'relax.reinterpret' op expected an offset that is not negative, got 0 and -4
relax.func @reinterpret_c2[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %s = relax.shape [n]
  %0 = relax.reinterpret %x, %s offset = -4
  relax.return %0
}

// -----

// CHECK: 'relax.reinterpret' op expected an offset in multiples of 4 bytes, got 2
relax.func @reinterpret_c2[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %s = relax.shape [n]
  %0 = relax.reinterpret %x, %s offset = 2
  relax.return %0
}

// -----

// CHECK: 'relax.reinterpret' op expected bytes that the operand has, got 4 * n + 8 and 4 * n
relax.func @reinterpret_c3[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %s = relax.shape [n]
  %0 = relax.reinterpret %x, %s offset = 8
  relax.return %0
}

// -----

// CHECK: 'relax.reinterpret' op expected a size that is not negative, got 0 and -4
relax.func @reinterpret_c4(%x: !relax.tensor<[4], f32>) -> !relax.object {
  %s = relax.shape [-4]
  %0 = relax.reinterpret %x, %s
  relax.return %0
}
