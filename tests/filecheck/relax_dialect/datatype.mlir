// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// CHECK-LABEL: relax.func @astype[
// CHECK-NEXT:      %0 = relax.astype %x dtype = f16
// CHECK-NEXT:      %1 = relax.astype %x dtype = i1
// CHECK-NEXT:      %2 = relax.astype %u dtype = ui8
// CHECK-NEXT:      relax.return %0
// TYPES-LABEL: sym_name = "astype"
// TYPES: "relax.astype"{{.*}} -> !relax.tensor<[n, _], f16>
// TYPES: "relax.astype"{{.*}} -> !relax.tensor<[n, _], i1>
// TYPES: "relax.astype"{{.*}} -> !relax.tensor<*, ui8>
relax.func @astype[%n](%x: !relax.tensor<[n, _], f32>, %u: !relax.tensor<*, _>) -> !relax.object {
  %0 = relax.astype %x dtype = f16
  %1 = relax.astype %x dtype = i1
  %2 = relax.astype %u dtype = ui8
  relax.return %0
}

// Of unknown bytes, of a known shape.
// CHECK-LABEL: relax.func @reinterpret[
// CHECK-NEXT:      %s = relax.shape [4, n]
// CHECK-NEXT:      %0 = relax.reinterpret %x, %s dtype = i8
// CHECK-NEXT:      %1 = relax.reinterpret %x, %s offset = 4 * n
// CHECK-NEXT:      %2 = relax.reinterpret %u, %s dtype = f16
// TYPES-LABEL: sym_name = "reinterpret"
// TYPES: "relax.reinterpret"{{.*}} -> !relax.tensor<[4, n], i8>
// TYPES: "relax.reinterpret"{{.*}} -> !relax.tensor<[4, n], f32>
// TYPES: "relax.reinterpret"{{.*}} -> !relax.tensor<[4, n], f16>
relax.func @reinterpret[%n](%x: !relax.tensor<[9, n], f32>, %u: !relax.tensor<*, _>) -> !relax.object {
  %s = relax.shape [4, n]
  %0 = relax.reinterpret %x, %s dtype = i8
  %1 = relax.reinterpret %x, %s offset = 4 * n
  %2 = relax.reinterpret %u, %s dtype = f16
  relax.return %0
}

// CHECK-LABEL: relax.func @quantization[
// CHECK-NEXT:      %0 = relax.quantize %x, %s, %z dtype = i8
// CHECK-NEXT:      %1 = relax.quantize %x, %t, %y dtype = ui8 axis = 0
// CHECK-NEXT:      %2 = relax.dequantize %i, %t, %y dtype = f32
// CHECK-NEXT:      %3 = relax.dequantize %0, %s, %z dtype = f16 axis = 1
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "quantization"
// TYPES: "relax.quantize"{{.*}} -> !relax.tensor<[n, 4], i8>
// TYPES: "relax.quantize"{{.*}} -> !relax.tensor<[n, 4], ui8>
// TYPES: "relax.dequantize"{{.*}} -> !relax.tensor<[n, 4], f32>
// TYPES: "relax.dequantize"{{.*}} -> !relax.tensor<[n, 4], f16>
relax.func @quantization[%n](%x: !relax.tensor<[n, 4], f32>, %s: !relax.tensor<[4], f32>, %z: !relax.tensor<[4], i8>, %t: !relax.tensor<[], f32>, %i: !relax.tensor<[n, 4], ui8>, %y: !relax.tensor<[], ui8>) -> !relax.object {
  %0 = relax.quantize %x, %s, %z dtype = i8
  %1 = relax.quantize %x, %t, %y axis = 0 dtype = ui8
  %2 = relax.dequantize %i, %t, %y dtype = f32
  %3 = relax.dequantize %0, %s, %z axis = 1 dtype = f16
  relax.return %x
}

// CHECK-LABEL: relax.func @dequantize_blocks[
// CHECK-NEXT:      %0 = relax.dequantize_blocks %w format = "q4_1"
// CHECK-NEXT:      %1 = relax.dequantize_blocks %k format = "q6_k" dtype = f16
// CHECK-NEXT:      %2 = relax.dequantize_blocks %b0 format = "q8_0"
// CHECK-NEXT:      %3 = relax.dequantize_blocks %u format = "mxfp4"
// TYPES-LABEL: sym_name = "dequantize_blocks"
// TYPES: "relax.dequantize_blocks"{{.*}} -> !relax.tensor<[n, 64], f32>
// TYPES: "relax.dequantize_blocks"{{.*}} -> !relax.tensor<[256], f16>
// TYPES: "relax.dequantize_blocks"{{.*}} -> !relax.tensor<[2, 32 * floordiv(b, 34)], f32>
// TYPES: "relax.dequantize_blocks"{{.*}} -> !relax.tensor<[_, _], f32>
relax.func @dequantize_blocks[%n, %b](%w: !relax.tensor<[n, 40], ui8>, %k: !relax.tensor<[210], ui8>, %b0: !relax.tensor<[2, b], ui8>, %u: !relax.tensor<[_, _], ui8>) -> !relax.object {
  %0 = relax.dequantize_blocks %w format = "q4_1"
  %1 = relax.dequantize_blocks %k dtype = f16 format = "q6_k"
  %2 = relax.dequantize_blocks %b0 format = "q8_0"
  %3 = relax.dequantize_blocks %u format = "mxfp4" dtype = f32
  relax.return %w
}
