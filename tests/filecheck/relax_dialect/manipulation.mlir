// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// The shape is an operand; the number of elements is compared where it is known.
// CHECK-LABEL: relax.func @reshape[
// CHECK-NEXT:      %0 = relax.shape [k, n]
// CHECK-NEXT:      %1 = relax.reshape %x, %0
// CHECK-NEXT:      %2 = relax.reshape %x, %s
// CHECK-NEXT:      %3 = relax.reshape %u, %0
// CHECK-NEXT:      %4 = relax.reshape %u, %t
// CHECK-NEXT:      %5 = relax.flatten %x
// CHECK-NEXT:      %6 = relax.flatten %u
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "reshape"
// TYPES: "relax.shape"{{.*}} -> !relax.shape<[k, n]>
// TYPES: "relax.reshape"{{.*}} -> !relax.tensor<[k, n], f32>
// TYPES: "relax.reshape"{{.*}} -> !relax.tensor<[_, _], f32>
// TYPES: "relax.reshape"{{.*}} -> !relax.tensor<[k, n], f32>
// TYPES: "relax.reshape"{{.*}} -> !relax.tensor<*, f32>
// TYPES: "relax.flatten"{{.*}} -> !relax.tensor<[k * n], f32>
// TYPES: "relax.flatten"{{.*}} -> !relax.tensor<[_], f32>
relax.func @reshape[%n, %k](%x: !relax.tensor<[n, k], f32>, %u: !relax.tensor<*, f32>, %s: !relax.shape<[_, _]>, %t: !relax.shape<*>) -> !relax.object {
  %0 = relax.shape [k, n]
  %1 = relax.reshape %x, %0
  %2 = relax.reshape %x, %s
  %3 = relax.reshape %u, %0
  %4 = relax.reshape %u, %t
  %5 = relax.flatten %x
  %6 = relax.flatten %u
  relax.return %x
}

// CHECK-LABEL: relax.func @permute[
// CHECK-NEXT:      %0 = relax.permute_dims %x
// CHECK-NEXT:      %1 = relax.permute_dims %x axes = [0, -1, 1]
// CHECK-NEXT:      %2 = relax.permute_dims %u axes = [1, 0]
// CHECK-NEXT:      %3 = relax.permute_dims %u
// CHECK-NEXT:      %4 = relax.flip %x axis = -1
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "permute"
// TYPES: "relax.permute_dims"{{.*}} -> !relax.tensor<[4, k, n], f32>
// TYPES: "relax.permute_dims"{{.*}} -> !relax.tensor<[n, 4, k], f32>
// TYPES: "relax.permute_dims"{{.*}} -> !relax.tensor<[_, _], f32>
// TYPES: "relax.permute_dims"{{.*}} -> !relax.tensor<*, f32>
// TYPES: "relax.flip"{{.*}} -> !relax.tensor<[n, k, 4], f32>
relax.func @permute[%n, %k](%x: !relax.tensor<[n, k, 4], f32>, %u: !relax.tensor<*, f32>) -> !relax.object {
  %0 = relax.permute_dims %x
  %1 = relax.permute_dims %x axes = [0, -1, 1]
  %2 = relax.permute_dims %u axes = [1, 0]
  %3 = relax.permute_dims %u
  %4 = relax.flip %x axis = -1
  relax.return %x
}

// CHECK-LABEL: relax.func @ones[
// CHECK-NEXT:      %0 = relax.expand_dims %x axes = [0, -1]
// CHECK-NEXT:      %1 = relax.squeeze %x axes = [0, -1]
// CHECK-NEXT:      %2 = relax.squeeze %c
// CHECK-NEXT:      %3 = relax.squeeze %x
// CHECK-NEXT:      %4 = relax.squeeze %u axes = [0]
// CHECK-NEXT:      %5 = relax.broadcast_to %x, %s
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "ones"
// TYPES: "relax.expand_dims"{{.*}} -> !relax.tensor<[1, 1, n, 1, 1], f32>
// TYPES: "relax.squeeze"{{.*}} -> !relax.tensor<[n], f32>
// TYPES: "relax.squeeze"{{.*}} -> !relax.tensor<[4], f32>
// TYPES: "relax.squeeze"{{.*}} -> !relax.tensor<*, f32>
// TYPES: "relax.squeeze"{{.*}} -> !relax.tensor<[n], f32>
// TYPES: "relax.broadcast_to"{{.*}} -> !relax.tensor<[4, n, 5], f32>
relax.func @ones[%n](%x: !relax.tensor<[1, n, 1], f32>, %c: !relax.tensor<[1, 4, 1], f32>, %u: !relax.tensor<[_, n], f32>, %s: !relax.shape<[4, n, 5]>) -> !relax.object {
  %0 = relax.expand_dims %x axes = [0, -1]
  %1 = relax.squeeze %x axes = [0, -1]
  %2 = relax.squeeze %c
  %3 = relax.squeeze %x
  %4 = relax.squeeze %u axes = [0]
  %5 = relax.broadcast_to %x, %s
  relax.return %x
}

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
