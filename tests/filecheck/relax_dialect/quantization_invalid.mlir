// RUN: RELAX_INVALID

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
