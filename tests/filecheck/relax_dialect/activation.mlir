// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// CHECK-LABEL: relax.func @activations[
// CHECK-NEXT:      %0 = relax.nn.relu %x
// CHECK-NEXT:      %1 = relax.nn.relu %i
// CHECK-NEXT:      %2 = relax.nn.gelu %x
// CHECK-NEXT:      %3 = relax.nn.gelu_tanh %x
// CHECK-NEXT:      %4 = relax.nn.silu %x
// CHECK-NEXT:      %5 = relax.nn.selu %x
// CHECK-NEXT:      %6 = relax.nn.leakyrelu %x
// CHECK-NEXT:      %7 = relax.nn.leakyrelu %x alpha = 0.25
// CHECK-NEXT:      %8 = relax.nn.softplus %x beta = 2.0
// CHECK-NEXT:      %9 = relax.nn.prelu %x, %s
// CHECK-NEXT:      %10 = relax.clip %x min = 0.0 max = 6.0
// CHECK-NEXT:      %11 = relax.clip %i min = -inf max = 6.0
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "activations"
// TYPES: "relax.nn.relu"{{.*}} -> !relax.tensor<[n, 4], f32>
// TYPES: "relax.nn.relu"{{.*}} -> !relax.tensor<[n], i8>
// TYPES: "relax.nn.gelu"{{.*}} -> !relax.tensor<[n, 4], f32>
// TYPES: "relax.nn.gelu_tanh"{{.*}} -> !relax.tensor<[n, 4], f32>
// TYPES: "relax.nn.silu"{{.*}} -> !relax.tensor<[n, 4], f32>
// TYPES: "relax.nn.selu"{{.*}} -> !relax.tensor<[n, 4], f32>
// TYPES: "relax.nn.leakyrelu"{{.*}} -> !relax.tensor<[n, 4], f32>
// TYPES: "relax.nn.leakyrelu"{{.*}} -> !relax.tensor<[n, 4], f32>
// TYPES: "relax.nn.softplus"{{.*}} -> !relax.tensor<[n, 4], f32>
// TYPES: "relax.nn.prelu"{{.*}} -> !relax.tensor<[n, 4], f32>
// TYPES: "relax.clip"{{.*}} -> !relax.tensor<[n, 4], f32>
// TYPES: "relax.clip"{{.*}} -> !relax.tensor<[n], i8>
relax.func @activations[%n](%x: !relax.tensor<[n, 4], f32>, %i: !relax.tensor<[n], i8>, %s: !relax.tensor<[4], f32>) -> !relax.object {
  %0 = relax.nn.relu %x
  %1 = relax.nn.relu %i
  %2 = relax.nn.gelu %x
  %3 = relax.nn.gelu_tanh %x
  %4 = relax.nn.silu %x
  %5 = relax.nn.selu %x
  %6 = relax.nn.leakyrelu %x
  %7 = relax.nn.leakyrelu %x alpha = 0.25
  %8 = relax.nn.softplus %x beta = 2.0
  %9 = relax.nn.prelu %x, %s
  %10 = relax.clip %x min = 0.0 max = 6.0
  %11 = relax.clip %i min = -inf max = 6.0
  relax.return %x
}

// CHECK-LABEL: relax.func @softmax[
// CHECK-NEXT:      %0 = relax.nn.softmax %x
// CHECK-NEXT:      %1 = relax.nn.log_softmax %x axis = 0
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "softmax"
// TYPES: "relax.nn.softmax"{{.*}} -> !relax.tensor<[n, _], f32>
// TYPES: "relax.nn.log_softmax"{{.*}} -> !relax.tensor<[n, _], f32>
relax.func @softmax[%n](%x: !relax.tensor<[n, _], f32>) -> !relax.object {
  %0 = relax.nn.softmax %x
  %1 = relax.nn.log_softmax %x axis = 0
  relax.return %x
}
