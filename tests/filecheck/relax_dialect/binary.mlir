// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// Operands of one dtype; comparisons give truth values.
// CHECK-LABEL: relax.func @numbers[
// CHECK-NEXT:      %0 = relax.add %x, %y
// CHECK-NEXT:      %1 = relax.atan2 %x, %y
// CHECK-NEXT:      %2 = relax.divide %x, %y
// CHECK-NEXT:      %3 = relax.equal %x, %y
// CHECK-NEXT:      %4 = relax.floor_divide %x, %y
// CHECK-NEXT:      %5 = relax.floor_mod %x, %y
// CHECK-NEXT:      %6 = relax.greater %x, %y
// CHECK-NEXT:      %7 = relax.greater_equal %x, %y
// CHECK-NEXT:      %8 = relax.less %x, %y
// CHECK-NEXT:      %9 = relax.less_equal %x, %y
// CHECK-NEXT:      %10 = relax.log_add_exp %x, %y
// CHECK-NEXT:      %11 = relax.maximum %x, %y
// CHECK-NEXT:      %12 = relax.minimum %x, %y
// CHECK-NEXT:      %13 = relax.mod %x, %y
// CHECK-NEXT:      %14 = relax.multiply %x, %y
// CHECK-NEXT:      %15 = relax.not_equal %x, %y
// CHECK-NEXT:      %16 = relax.power %x, %y
// CHECK-NEXT:      %17 = relax.subtract %x, %y
// CHECK-NEXT:      %18 = relax.ewise_fma %x, %y, %x
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "numbers"
// TYPES: "relax.add"{{.*}} -> !relax.tensor<[n], f32>
// TYPES: "relax.atan2"{{.*}} -> !relax.tensor<[n], f32>
// TYPES: "relax.divide"{{.*}} -> !relax.tensor<[n], f32>
// TYPES: "relax.equal"{{.*}} -> !relax.tensor<[n], i1>
// TYPES: "relax.floor_divide"{{.*}} -> !relax.tensor<[n], f32>
// TYPES: "relax.floor_mod"{{.*}} -> !relax.tensor<[n], f32>
// TYPES: "relax.greater"{{.*}} -> !relax.tensor<[n], i1>
// TYPES: "relax.greater_equal"{{.*}} -> !relax.tensor<[n], i1>
// TYPES: "relax.less"{{.*}} -> !relax.tensor<[n], i1>
// TYPES: "relax.less_equal"{{.*}} -> !relax.tensor<[n], i1>
// TYPES: "relax.log_add_exp"{{.*}} -> !relax.tensor<[n], f32>
// TYPES: "relax.maximum"{{.*}} -> !relax.tensor<[n], f32>
// TYPES: "relax.minimum"{{.*}} -> !relax.tensor<[n], f32>
// TYPES: "relax.mod"{{.*}} -> !relax.tensor<[n], f32>
// TYPES: "relax.multiply"{{.*}} -> !relax.tensor<[n], f32>
// TYPES: "relax.not_equal"{{.*}} -> !relax.tensor<[n], i1>
// TYPES: "relax.power"{{.*}} -> !relax.tensor<[n], f32>
// TYPES: "relax.subtract"{{.*}} -> !relax.tensor<[n], f32>
// TYPES: "relax.ewise_fma"{{.*}} -> !relax.tensor<[n], f32>
relax.func @numbers[%n](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.add %x, %y
  %1 = relax.atan2 %x, %y
  %2 = relax.divide %x, %y
  %3 = relax.equal %x, %y
  %4 = relax.floor_divide %x, %y
  %5 = relax.floor_mod %x, %y
  %6 = relax.greater %x, %y
  %7 = relax.greater_equal %x, %y
  %8 = relax.less %x, %y
  %9 = relax.less_equal %x, %y
  %10 = relax.log_add_exp %x, %y
  %11 = relax.maximum %x, %y
  %12 = relax.minimum %x, %y
  %13 = relax.mod %x, %y
  %14 = relax.multiply %x, %y
  %15 = relax.not_equal %x, %y
  %16 = relax.power %x, %y
  %17 = relax.subtract %x, %y
  %18 = relax.ewise_fma %x, %y, %x
  relax.return %x
}

// CHECK-LABEL: relax.func @bits[
// CHECK-NEXT:      %0 = relax.bitwise_and %x, %x
// CHECK-NEXT:      %1 = relax.bitwise_or %x, %x
// CHECK-NEXT:      %2 = relax.bitwise_xor %x, %x
// CHECK-NEXT:      %3 = relax.left_shift %x, %x
// CHECK-NEXT:      %4 = relax.right_shift %x, %x
// CHECK-NEXT:      %5 = relax.bitwise_and %b, %b
// CHECK-NEXT:      %6 = relax.bitwise_or %b, %b
// CHECK-NEXT:      %7 = relax.bitwise_xor %b, %b
// CHECK-NEXT:      %8 = relax.logical_and %b, %b
// CHECK-NEXT:      %9 = relax.logical_or %b, %b
// CHECK-NEXT:      %10 = relax.logical_xor %b, %b
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "bits"
// TYPES: "relax.bitwise_and"{{.*}} -> !relax.tensor<[n], ui8>
// TYPES: "relax.bitwise_or"{{.*}} -> !relax.tensor<[n], ui8>
// TYPES: "relax.bitwise_xor"{{.*}} -> !relax.tensor<[n], ui8>
// TYPES: "relax.left_shift"{{.*}} -> !relax.tensor<[n], ui8>
// TYPES: "relax.right_shift"{{.*}} -> !relax.tensor<[n], ui8>
// TYPES: "relax.bitwise_and"{{.*}} -> !relax.tensor<[n], i1>
// TYPES: "relax.bitwise_or"{{.*}} -> !relax.tensor<[n], i1>
// TYPES: "relax.bitwise_xor"{{.*}} -> !relax.tensor<[n], i1>
// TYPES: "relax.logical_and"{{.*}} -> !relax.tensor<[n], i1>
// TYPES: "relax.logical_or"{{.*}} -> !relax.tensor<[n], i1>
// TYPES: "relax.logical_xor"{{.*}} -> !relax.tensor<[n], i1>
relax.func @bits[%n](%x: !relax.tensor<[n], ui8>, %b: !relax.tensor<[n], i1>) -> !relax.object {
  %0 = relax.bitwise_and %x, %x
  %1 = relax.bitwise_or %x, %x
  %2 = relax.bitwise_xor %x, %x
  %3 = relax.left_shift %x, %x
  %4 = relax.right_shift %x, %x
  %5 = relax.bitwise_and %b, %b
  %6 = relax.bitwise_or %b, %b
  %7 = relax.bitwise_xor %b, %b
  %8 = relax.logical_and %b, %b
  %9 = relax.logical_or %b, %b
  %10 = relax.logical_xor %b, %b
  relax.return %x
}

// Provable: equal dimensions, and 1 with any other.
// CHECK-LABEL: relax.func @broadcast_known[
// CHECK-NEXT:      %0 = relax.add %x, %x
// CHECK-NEXT:      %1 = relax.add %x, %y
// CHECK-NEXT:      %2 = relax.add %z, %x
// CHECK-NEXT:      %3 = relax.add %s, %y
// CHECK-NEXT:      %4 = relax.add %y, %z
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "broadcast_known"
// TYPES: "relax.add"{{.*}} -> !relax.tensor<[n, 4 * m], f32>
// TYPES: "relax.add"{{.*}} -> !relax.tensor<[n, 4 * m], f32>
// TYPES: "relax.add"{{.*}} -> !relax.tensor<[n, 4 * m], f32>
// TYPES: "relax.add"{{.*}} -> !relax.tensor<[n, 1], f32>
// TYPES: "relax.add"{{.*}} -> !relax.tensor<[n, 4 * m], f32>
relax.func @broadcast_known[%n, %m](%x: !relax.tensor<[n, 4 * m], f32>, %y: !relax.tensor<[n, 1], f32>, %z: !relax.tensor<[4 * m], f32>, %s: !relax.tensor<[], f32>) -> !relax.object {
  %0 = relax.add %x, %x
  %1 = relax.add %x, %y
  %2 = relax.add %z, %x
  %3 = relax.add %s, %y
  %4 = relax.add %y, %z
  relax.return %x
}

// Not provable: the dimension is a broadcast, and the check is made at run time.
// CHECK-LABEL: relax.func @broadcast_unknown[
// CHECK-NEXT:      %0 = relax.add %x, %y
// CHECK-NEXT:      %1 = relax.add %x, %z
// CHECK-NEXT:      %2 = relax.add %u, %z
// CHECK-NEXT:      %3 = relax.add %u, %x
// CHECK-NEXT:      %4 = relax.add %v, %x
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "broadcast_unknown"
// TYPES: "relax.add"{{.*}} -> !relax.tensor<[broadcast(m, n)], f32>
// TYPES: "relax.add"{{.*}} -> !relax.tensor<[4], f32>
// TYPES: "relax.add"{{.*}} -> !relax.tensor<[4], f32>
// TYPES: "relax.add"{{.*}} -> !relax.tensor<[_], f32>
// TYPES: "relax.add"{{.*}} -> !relax.tensor<*, f32>
relax.func @broadcast_unknown[%n, %m](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[m], f32>, %z: !relax.tensor<[4], f32>, %u: !relax.tensor<[_], f32>, %v: !relax.tensor<*, f32>) -> !relax.object {
  %0 = relax.add %x, %y
  %1 = relax.add %x, %z
  %2 = relax.add %u, %z
  %3 = relax.add %u, %x
  %4 = relax.add %v, %x
  relax.return %x
}

// An unknown dtype may be the same one.
// CHECK-LABEL: relax.func @unknown_dtype[
// CHECK-NEXT:      %0 = relax.add %x, %y
// CHECK-NEXT:      %1 = relax.add %x, %x
// CHECK-NEXT:      %2 = relax.less %x, %x
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "unknown_dtype"
// TYPES: "relax.add"{{.*}} -> !relax.tensor<[n], f16>
// TYPES: "relax.add"{{.*}} -> !relax.tensor<[n], _>
// TYPES: "relax.less"{{.*}} -> !relax.tensor<[n], i1>
relax.func @unknown_dtype[%n](%x: !relax.tensor<[n], _>, %y: !relax.tensor<[n], f16>) -> !relax.object {
  %0 = relax.add %x, %y
  %1 = relax.add %x, %x
  %2 = relax.less %x, %x
  relax.return %x
}
