// RUN: relax-opt %s -p simplify-permute-dims --split-input-file | filecheck %s
// RUN: relax-opt %s -p simplify-permute-dims,simplify-permute-dims --split-input-file | filecheck %s
// RUN: relax-opt %s -p simplify-permute-dims --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// Elementwise operators with constants come first; two permutations that undo each other go.
// CHECK-LABEL: relax.func @there_and_back
// CHECK-NEXT:    %b = relax.constant {{.*}} : tensor<1x2x1x1xf32>
// CHECK-NEXT:    %[[SUM:.*]] = relax.add %x, %b
// CHECK-NEXT:    %[[RESULT:.*]] = relax.nn.relu %[[SUM]]
// CHECK-NEXT:    relax.return %[[RESULT]]
// LOC: relax.nn.relu %{{.*}} loc("{{.*}}":[[# @LINE + 5]]:3)
relax.func @there_and_back[%n](%x: !relax.tensor<[n, 2, 4, 4], f32>) -> !relax.tensor<[n, 2, 4, 4], f32> {
  %b = relax.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = relax.permute_dims %x axes = [0, 2, 3, 1]
  %1 = relax.add %0, %b
  %2 = relax.nn.relu %1
  %3 = relax.permute_dims %2 axes = [0, 3, 1, 2]
  relax.return %3
}

// -----

// Operands that are permuted alike are permuted together, afterwards; two permutations are one.
// CHECK-LABEL: relax.func @together
// CHECK-NEXT:    %[[SUM:.*]] = relax.add %x, %y
// CHECK-NEXT:    %[[RESULT:.*]] = relax.permute_dims %[[SUM]] axes = [2, 0, 1]
// CHECK-NEXT:    relax.return %[[RESULT]]
relax.func @together[%n](%x: !relax.tensor<[n, 3, 4], f32>, %y: !relax.tensor<[n, 3, 4], f32>) -> !relax.tensor<[4, n, 3], f32> {
  %0 = relax.permute_dims %x
  %1 = relax.permute_dims %y
  %2 = relax.add %0, %1
  %3 = relax.permute_dims %2 axes = [0, 2, 1]
  relax.return %3
}

// -----

// A permutation that only moves ones is a reshape.
// CHECK-LABEL: relax.func @ones
// CHECK-NEXT:    %[[SHAPE:.*]] = relax.shape [1, 16, n, 64]
// CHECK-NEXT:    %[[VIEW:.*]] = relax.reshape %x, %[[SHAPE]]
// CHECK-NEXT:    relax.sum %[[VIEW]]
relax.func @ones[%n](%x: !relax.tensor<[16, 1, n, 64], f32>) -> !relax.tensor<[n, 64], f32> {
  %0 = relax.permute_dims %x axes = [1, 0, 2, 3]
  %1 = relax.sum %0 axes = [0, 1]
  relax.return %1
}

// -----

// A copy of an argument that is returned stays one: the caller may write into it.
// CHECK-LABEL: relax.func @returned
// CHECK-NEXT:    %[[COPY:.*]] = relax.permute_dims %x axes = [0, 1]
// CHECK-NEXT:    relax.return %[[COPY]]
relax.func @returned[%n](%x: !relax.tensor<[2, n], f32>) -> !relax.tensor<[2, n], f32> {
  %0 = relax.permute_dims %x
  %1 = relax.permute_dims %0
  relax.return %1
}

// -----

// What is used elsewhere too, meets another tensor, or grows, stays where it is.
// CHECK-LABEL: relax.func @stay
// CHECK:         relax.permute_dims %x
// CHECK-NEXT:    relax.exp
// CHECK-NEXT:    relax.permute_dims %y
// CHECK-NEXT:    relax.add %{{.*}}, %z
// CHECK-NEXT:    relax.permute_dims %c
// CHECK-NEXT:    relax.multiply
relax.func @stay[%n](%x: !relax.tensor<[n, 3], f32>, %y: !relax.tensor<[n, 3], f32>, %z: !relax.tensor<[3, n], f32>, %c: !relax.tensor<[3, 2, 1], f32>) -> !relax.object {
  %0 = relax.permute_dims %x
  %1 = relax.exp %0
  %2 = relax.permute_dims %y
  %3 = relax.add %2, %z
  %4 = relax.permute_dims %c axes = [1, 0, 2]
  %5 = relax.multiply %4, %3
  %6 = relax.tuple(%0, %1, %5)
  relax.return %6
}

// -----

// A copy that somebody writes into stays a copy.
// CHECK-LABEL: relax.func @written
// CHECK-NEXT:    relax.permute_dims %x
// CHECK-NEXT:    relax.call_packed "fill"
relax.func @written[%n](%x: !relax.tensor<[1, n], f32>) -> !relax.tensor<[n, 1], f32> impure {
  %0 = relax.permute_dims %x
  relax.call_packed "fill"(%0)
  relax.return %0
}

// -----

// Tensors that are permuted alike are joined first.
// CHECK-LABEL: relax.func @joined
// CHECK-NEXT:    %[[JOINED:.*]] = relax.concat %x, %y axis = 1
// CHECK-NEXT:    %[[RESULT:.*]] = relax.permute_dims %[[JOINED]] axes = [2, 0, 1]
// CHECK-NEXT:    relax.return %[[RESULT]]
relax.func @joined[%n](%x: !relax.tensor<[n, 3, 4], f32>, %y: !relax.tensor<[n, 5, 4], f32>) -> !relax.tensor<[4, n, 8], f32> {
  %0 = relax.permute_dims %x axes = [2, 0, 1]
  %1 = relax.permute_dims %y axes = [2, 0, 1]
  %2 = relax.concat %0, %1 axis = -1
  relax.return %2
}

// -----

// What undoes a permutation is met, also if another op uses what is permuted.
// CHECK-LABEL: relax.func @one_user_undoes
// CHECK-NEXT:    %[[PERMUTED:.*]] = relax.permute_dims %x axes = [0, 2, 1]
// CHECK-NEXT:    %[[BACK:.*]] = relax.nn.relu %x
// CHECK-NEXT:    %[[SUM:.*]] = relax.sum %[[BACK]] axes = [1]
// CHECK-NEXT:    %[[OTHER:.*]] = relax.max %[[PERMUTED]] axes = [1]
// CHECK-NEXT:    relax.tuple(%[[SUM]], %[[OTHER]])
relax.func @one_user_undoes[%n](%x: !relax.tensor<[n, 3, 4], f32>) -> !relax.object {
  %0 = relax.permute_dims %x axes = [0, 2, 1]
  %1 = relax.nn.relu %0
  %2 = relax.permute_dims %1 axes = [0, 2, 1]
  %3 = relax.sum %2 axes = [1]
  %4 = relax.max %0 axes = [1]
  %5 = relax.tuple(%3, %4)
  relax.return %5
}

// -----

// A value that is used twice is permuted once, where the uses have come together; dimensions of 1 take any order.
// CHECK-LABEL: relax.func @swish
// CHECK-NEXT:    %[[GATE:.*]] = relax.sigmoid %x
// CHECK-NEXT:    %[[SWISH:.*]] = relax.multiply %x, %[[GATE]]
// CHECK-NEXT:    %[[SHAPE:.*]] = relax.shape [n, 1, 3]
// CHECK-NEXT:    %[[ROW:.*]] = relax.reshape %y, %[[SHAPE]]
// CHECK-NEXT:    %[[SUM:.*]] = relax.add %[[SWISH]], %[[ROW]]
// CHECK-NEXT:    %[[RESULT:.*]] = relax.permute_dims %[[SUM]] axes = [0, 2, 1]
// CHECK-NEXT:    relax.return %[[RESULT]]
relax.func @swish[%n](%x: !relax.tensor<[n, 4, 3], f32>, %y: !relax.tensor<[n, 3, 1], f32>) -> !relax.tensor<[n, 3, 4], f32> {
  %0 = relax.permute_dims %x axes = [0, 2, 1]
  %1 = relax.sigmoid %0
  %2 = relax.multiply %0, %1
  %3 = relax.add %2, %y
  relax.return %3
}

// -----

// A mean is that of what is not permuted, so it is no other user either.
// CHECK-LABEL: relax.func @reduced
// CHECK-NEXT:    %[[TANH:.*]] = relax.tanh %x
// CHECK-NEXT:    %[[MEAN:.*]] = relax.mean %[[TANH]] axes = [1] keepdims
// CHECK-NEXT:    %[[SCALED:.*]] = relax.multiply %[[TANH]], %[[MEAN]]
// CHECK-NEXT:    relax.return %[[SCALED]]
relax.func @reduced[%n](%x: !relax.tensor<[n, 4, 3], f32>) -> !relax.tensor<[n, 4, 3], f32> {
  %0 = relax.permute_dims %x axes = [0, 2, 1]
  %1 = relax.tanh %0
  %2 = relax.mean %1 axes = [-1] keepdims
  %3 = relax.multiply %1, %2
  %4 = relax.permute_dims %3 axes = [0, 2, 1]
  relax.return %4
}

// -----

// A sum along an axis that is counted from the front.
// CHECK-LABEL: relax.func @summed
// CHECK-NEXT:    %[[SUM:.*]] = relax.sum %x axes = [1] keepdims
// CHECK-NOT:     relax.permute_dims
relax.func @summed[%n](%x: !relax.tensor<[n, 4, 3], f32>) -> !relax.tensor<[n, 3, 1], f32> {
  %0 = relax.permute_dims %x axes = [0, 2, 1]
  %1 = relax.sum %0 axes = [2] keepdims
  relax.return %1
}

// -----

// Two results in the place of one permuted value would be two permutations.
// CHECK-LABEL: relax.func @two_results
// CHECK-NEXT:    %[[PERMUTED:.*]] = relax.permute_dims %x axes = [0, 2, 1]
// CHECK-NEXT:    %[[FIRST:.*]] = relax.exp %[[PERMUTED]]
// CHECK-NEXT:    %[[SECOND:.*]] = relax.tanh %[[PERMUTED]]
// CHECK-NEXT:    relax.tuple(%[[FIRST]], %[[SECOND]])
relax.func @two_results[%n](%x: !relax.tensor<[n, 4, 3], f32>) -> !relax.object {
  %0 = relax.permute_dims %x axes = [0, 2, 1]
  %1 = relax.exp %0
  %2 = relax.tanh %0
  %3 = relax.tuple(%1, %2)
  relax.return %3
}
