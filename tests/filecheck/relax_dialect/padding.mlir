// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// CHECK-LABEL: relax.func @pad[
// CHECK-NEXT:      %0 = relax.nn.pad %x pad_width = [0, 0, 1, 2]
// CHECK-NEXT:      %1 = relax.nn.pad %x pad_width = [1, 1, 0, -2] pad_value = 0.5
// CHECK-NEXT:      %2 = relax.nn.pad %x pad_width = [1, 0, 1, 1] mode = "reflect"
// CHECK-NEXT:      %3 = relax.nn.pad %u pad_width = [1, 0] mode = "replicate"
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "pad"
// TYPES: "relax.nn.pad"{{.*}} -> !relax.tensor<[n, 7], f32>
// TYPES: "relax.nn.pad"{{.*}} -> !relax.tensor<[n + 2, 2], f32>
// TYPES: "relax.nn.pad"{{.*}} -> !relax.tensor<[n + 1, 6], f32>
// TYPES: "relax.nn.pad"{{.*}} -> !relax.tensor<[_], f32>
relax.func @pad[%n](%x: !relax.tensor<[n, 4], f32>, %u: !relax.tensor<*, f32>) -> !relax.object {
  %0 = relax.nn.pad %x pad_width = [0, 0, 1, 2]
  %1 = relax.nn.pad %x pad_width = [1, 1, 0, -2] pad_value = 0.5
  %2 = relax.nn.pad %x pad_width = [1, 0, 1, 1] mode = "reflect"
  %3 = relax.nn.pad %u pad_width = [1, 0] mode = "replicate"
  relax.return %x
}
