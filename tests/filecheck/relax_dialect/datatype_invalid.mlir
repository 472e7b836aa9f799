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

// -----

// Axis, then parameters.
// CHECK: 'relax.quantize' op axis 2 is out of range for rank 2
relax.func @quantize_c1[%n](%x: !relax.tensor<[n, 4], f32>, %s: !relax.tensor<[4], f32>, %z: !relax.tensor<[4], i8>) -> !relax.object {
  %0 = relax.quantize %x, %s, %z dtype = i8 axis = 2
  relax.return %x
}

// -----

// CHECK: 'relax.quantize' op expected a dimension that is 1 or the one of the shape, got 5 and 4
relax.func @quantize_c2[%n](%x: !relax.tensor<[n, 4], f32>, %s: !relax.tensor<[5], f32>, %z: !relax.tensor<[4], i8>) -> !relax.object {
  %0 = relax.quantize %x, %s, %z dtype = i8
  relax.return %x
}

// -----

// CHECK: 'relax.quantize' op operand #1 expected a scalar or rank 1, got !relax.tensor<[4, 1], f32>
relax.func @quantize_c2[%n](%x: !relax.tensor<[n, 4], f32>, %s: !relax.tensor<[4, 1], f32>, %z: !relax.tensor<[4], i8>) -> !relax.object {
  %0 = relax.quantize %x, %s, %z dtype = i8
  relax.return %x
}

// -----

// CHECK: 'relax.quantize' op operand #0 expected a floating-point dtype, got i8
relax.func @quantize_c1[%n](%x: !relax.tensor<[n, 4], i8>, %s: !relax.tensor<[], f32>, %z: !relax.tensor<[], i8>) -> !relax.object {
  %0 = relax.quantize %x, %s, %z dtype = i8
  relax.return %x
}

// -----

// CHECK: 'relax.quantize' op dtype expected an integer dtype, got f16
relax.func @quantize_c2[%n](%x: !relax.tensor<[n, 4], f32>, %s: !relax.tensor<[], f32>, %z: !relax.tensor<[], i8>) -> !relax.object {
  %0 = relax.quantize %x, %s, %z dtype = f16
  relax.return %x
}

// -----

// CHECK: 'relax.dequantize' op operand #0 expected an integer dtype, got f32
relax.func @dequantize_c1[%n](%x: !relax.tensor<[n, 4], f32>, %s: !relax.tensor<[], f32>, %z: !relax.tensor<[], i8>) -> !relax.object {
  %0 = relax.dequantize %x, %s, %z dtype = f32
  relax.return %x
}

// -----

// CHECK: 'relax.dequantize' op dtype expected a floating-point dtype, got i8
relax.func @dequantize_c2[%n](%x: !relax.tensor<[n, 4], i8>, %s: !relax.tensor<[], f32>, %z: !relax.tensor<[], i8>) -> !relax.object {
  %0 = relax.dequantize %x, %s, %z dtype = i8
  relax.return %x
}

// -----

// CHECK: 'relax.dequantize_blocks' op operand #0 expected ui8 of rank 1 or more, got !relax.tensor<[n, 20], i8>
relax.func @dequantize_blocks_c1[%n](%w: !relax.tensor<[n, 20], i8>) -> !relax.object {
  %0 = relax.dequantize_blocks %w format = "q4_1"
  relax.return %w
}

// -----

// CHECK: 'relax.dequantize_blocks' op operand #0 expected ui8 of rank 1 or more, got !relax.tensor<[], ui8>
relax.func @dequantize_blocks_c1(%w: !relax.tensor<[], ui8>) -> !relax.object {
  %0 = relax.dequantize_blocks %w format = "q4_1"
  relax.return %w
}

// -----

// CHECK: 'relax.dequantize_blocks' op format expected one of q4_0, {{.*}}, got q9
relax.func @dequantize_blocks_c2[%n](%w: !relax.tensor<[n, 20], ui8>) -> !relax.object {
  %0 = relax.dequantize_blocks %w format = "q9"
  relax.return %w
}

// -----

// CHECK: 'relax.dequantize_blocks' op expected a row of blocks of 20 bytes, got 30
relax.func @dequantize_blocks_c3[%n](%w: !relax.tensor<[n, 30], ui8>) -> !relax.object {
  %0 = relax.dequantize_blocks %w format = "q4_1"
  relax.return %w
}

// -----

// CHECK: 'relax.dequantize_blocks' op dtype expected a floating-point dtype, got i8
relax.func @dequantize_blocks_c4[%n](%w: !relax.tensor<[n, 20], ui8>) -> !relax.object {
  %0 = relax.dequantize_blocks %w format = "q4_1" dtype = i8
  relax.return %w
}
