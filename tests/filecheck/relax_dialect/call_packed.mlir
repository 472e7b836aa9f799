// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// Without a type the result of a packed function is dropped.
// CHECK-LABEL: relax.func @packed[%n](%x: !relax.tensor<[n], f32>, %s: !relax.shape<*>) -> !relax.object impure {
// CHECK-NEXT:      relax.call_packed "custom_print"(%x)
// CHECK-NEXT:      %0 = relax.call_packed "custom_add"(%x, %x) : !relax.tensor<[n], f32>
// CHECK-NEXT:      %1 = relax.call_packed "nothing"() {note} : !relax.object
// CHECK-NEXT:      relax.return %0
// TYPES-LABEL: sym_name = "packed"
// TYPES: "relax.call_packed"{{.*}} -> !relax.tensor<[n], f32>
// TYPES: "relax.call_packed"{{.*}} -> !relax.object
relax.func @packed[%n](%x: !relax.tensor<[n], f32>, %s: !relax.shape<*>) -> !relax.object impure {
  relax.call_packed "custom_print"(%x)
  %0 = relax.call_packed "custom_add"(%x, %x) : !relax.tensor<[n], f32>
  %1 = relax.call_packed "nothing"() {note} : !relax.object
  relax.return %0
}

// Promised to be pure, so allowed in dataflow; the result is an object unless something else is written.
// CHECK-LABEL: relax.func @pure_packed[
// CHECK-NEXT:      %gv = relax.dataflow {
// CHECK-NEXT:        %0 = relax.call_pure_packed "f"(%x)
// CHECK-NEXT:        %1 = relax.call_pure_packed "my_shape"(%x) : !relax.shape<*>
// CHECK-NEXT:        relax.output %1
// CHECK-NEXT:      }
// CHECK-NEXT:      relax.return %gv
// TYPES-LABEL: sym_name = "pure_packed"
relax.func @pure_packed[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %gv = relax.dataflow {
    %0 = relax.call_pure_packed "f"(%x)
    %1 = relax.call_pure_packed "my_shape"(%x) : !relax.shape<*>
    relax.output %1
  }
  relax.return %gv
}

// Destination passing: several results, and a result whose shape is an operand.
// CHECK-LABEL: relax.func @dps_packed[
// CHECK-NEXT:      %0 = relax.call_dps_packed "custom_tile"(%x) : !relax.tensor<[2 * n], f32>
// CHECK-NEXT:      %1, %2 = relax.call_dps_packed "two"(%x) : !relax.tensor<[n], f32>, !relax.tensor<[], i64>
// CHECK-NEXT:      %3 = relax.call_dps_packed "f"(%x) shape(%s) : !relax.tensor<*, f32>
// CHECK-NEXT:      relax.return %0
// TYPES-LABEL: sym_name = "dps_packed"
// TYPES: "relax.call_dps_packed"{{.*}} -> !relax.tensor<[2 * n], f32>
// TYPES: "relax.call_dps_packed"{{.*}} -> (!relax.tensor<[n], f32>, !relax.tensor<[], i64>)
// TYPES: "relax.call_dps_packed"{{.*}} -> !relax.tensor<*, f32>
relax.func @dps_packed[%n](%x: !relax.tensor<[n], f32>, %s: !relax.shape<*>) -> !relax.object {
  %0 = relax.call_dps_packed "custom_tile"(%x) : !relax.tensor<[2 * n], f32>
  %1, %2 = relax.call_dps_packed "two"(%x) : !relax.tensor<[n], f32>, !relax.tensor<[], i64>
  %3 = relax.call_dps_packed "f"(%x) shape(%s) : !relax.tensor<*, f32>
  relax.return %0
}
