// RUN: relax-opt %s -p lift-transform-params --split-input-file | filecheck %s
// RUN: relax-opt %s -p lift-transform-params,lift-transform-params --split-input-file | filecheck %s
// RUN: relax-opt %s -p lift-transform-params --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// What the weights determine moves, with its constant; a weight that is also used as it is is passed on.
// CHECK-LABEL: relax.func @main_transform_params(%w: !relax.tensor<[8, 4], f32>, %b: !relax.tensor<[4], f32>)
// CHECK-SAME:    -> !relax.tuple<!relax.tensor<[4], f32>, !relax.tensor<[4, 8], f32>> {
// CHECK-NEXT:    %two = relax.constant dense<2.000000e+00> : tensor<f32>
// CHECK-NEXT:    %0 = relax.permute_dims %w
// CHECK-NEXT:    %1 = relax.multiply %0, %two
// CHECK-NEXT:    %2 = relax.tuple(%b, %1)
// CHECK-NEXT:    relax.return %2
// CHECK-LABEL: relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>, %b: !relax.tensor<[4], f32>, %0: !relax.tensor<[4, 8], f32>)
// CHECK-NEXT:    %1 = relax.dataflow {
// CHECK-NEXT:      %2 = relax.add %x, %b
// CHECK-NEXT:      %3 = relax.matmul %2, %0
// CHECK-NEXT:      relax.output %3
// LOC: relax.permute_dims %w loc("{{.*}}lift_transform_params.mlir":23:5)
relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>, %w: !relax.tensor<[8, 4], f32>, %b: !relax.tensor<[4], f32>)
    -> !relax.tensor<[n, 8], f32> {
  %0 = relax.dataflow {
    %two = relax.constant dense<2.0> : tensor<f32>
    %1 = relax.permute_dims %w
    %2 = relax.multiply %1, %two
    %3 = relax.add %x, %b
    %4 = relax.matmul %3, %2
    relax.output %4
  }
  relax.return %0
}

// -----

// Nothing to move: nothing changes. What runs under a condition, or has an effect, stays.
// CHECK-NOT:   transform_params
// CHECK-LABEL: relax.func @main
// CHECK-SAME:    %w: !relax.tensor<[8], f32>
relax.func @main(%c: !relax.prim<i1>, %w: !relax.tensor<[8], f32>) -> !relax.object impure {
  %0 = relax.if %c {
    %1 = relax.exp %w
    relax.yield %1
  } else {
    relax.yield %w
  }
  %2 = relax.call_packed "change"(%w) : !relax.object
  relax.return %0
}

// -----

// A tuple of weights is made where it is used; what it is made of moves.
// CHECK-LABEL: relax.func @main_transform_params(%w: !relax.tensor<[8], f32>)
// CHECK-NEXT:    %0 = relax.exp %w
// CHECK-NEXT:    %1 = relax.tuple(%w, %0)
// CHECK-NEXT:    relax.return %1
// CHECK-LABEL: relax.func @main(%x: !relax.object, %w: !relax.tensor<[8], f32>, %0: !relax.tensor<[8], f32>)
// CHECK-NEXT:    relax.tuple(%w, %0)
relax.func @main(%x: !relax.object, %w: !relax.tensor<[8], f32>) -> !relax.tensor<[8], f32> {
  %0 = relax.exp %w
  %1 = relax.tuple(%w, %0)
  %2 = relax.tuple_get %1[0]
  %3 = relax.tuple_get %1[1]
  %4 = relax.add %2, %3
  relax.return %4
}

// -----

// What is returned is computed in each call: a caller that writes into its result does not change that of the next one.
// CHECK-LABEL: relax.func @main_transform_params(%w: !relax.tensor<[8], f32>)
// CHECK-NEXT:    %0 = relax.exp %w
// CHECK-NEXT:    %1 = relax.tuple(%0)
// CHECK-LABEL: relax.func @main(%x: !relax.object, %0: !relax.tensor<[8], f32>)
// CHECK-NEXT:    %1 = relax.log %0
// CHECK-NEXT:    %2 = relax.flatten %1
// CHECK-NEXT:    relax.return %2
relax.func @main(%x: !relax.object, %w: !relax.tensor<[8], f32>) -> !relax.tensor<[8], f32> {
  %0 = relax.exp %w
  %1 = relax.log %0
  %2 = relax.flatten %1
  relax.return %2
}
