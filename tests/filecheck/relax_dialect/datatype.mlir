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
