// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// CHECK-LABEL: relax.func @layers[
// CHECK-NEXT:      %0 = relax.nn.dropout %x
// CHECK-NEXT:      %1 = relax.nn.dropout %x rate = 0.1
// CHECK-NEXT:      %2 = relax.nn.batch_flatten %x
// CHECK-NEXT:      %3 = relax.nn.batch_flatten %u
// CHECK-NEXT:      %4 = relax.nn.pixel_shuffle %x upscale_factor = 2
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "layers"
// TYPES: "relax.nn.dropout"{{.*}} -> !relax.tensor<[n, 4 * c, 3, 5], f32>
// TYPES: "relax.nn.dropout"{{.*}} -> !relax.tensor<[n, 4 * c, 3, 5], f32>
// TYPES: "relax.nn.batch_flatten"{{.*}} -> !relax.tensor<[n, 60 * c], f32>
// TYPES: "relax.nn.batch_flatten"{{.*}} -> !relax.tensor<[_, _], f32>
// TYPES: "relax.nn.pixel_shuffle"{{.*}} -> !relax.tensor<[n, c, 6, 10], f32>
relax.func @layers[%n, %c](%x: !relax.tensor<[n, 4 * c, 3, 5], f32>, %u: !relax.tensor<*, f32>) -> !relax.object {
  %0 = relax.nn.dropout %x
  %1 = relax.nn.dropout %x rate = 0.1
  %2 = relax.nn.batch_flatten %x
  %3 = relax.nn.batch_flatten %u
  %4 = relax.nn.pixel_shuffle %x upscale_factor = 2
  relax.return %x
}
