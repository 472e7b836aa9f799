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
