// RUN: relax-opt %s -p canonicalize | filecheck %s
// RUN: relax-opt %s -p canonicalize --print-debuginfo | filecheck %s --check-prefix LOC

// To the shape that a tensor has, and to the order: nothing is done.
// CHECK-LABEL: relax.func @identity
// CHECK-NEXT:    %0 = relax.exp %x
// CHECK-NEXT:    relax.return %0
relax.func @identity[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %s = relax.shape [n]
  %0 = relax.reshape %x, %s
  %1 = relax.flatten %0
  %2 = relax.permute_dims %1 axes = [0]
  %3 = relax.exp %2
  relax.return %3
}

// Two in a row are one, or none.
// CHECK-LABEL: relax.func @twice
// CHECK-NEXT:    %[[SHAPE:.*]] = relax.shape [m, 2 * n]
// CHECK-NEXT:    %[[NEW:.*]] = relax.reshape %x, %[[SHAPE]]
// CHECK-NEXT:    %[[MOVED:.*]] = relax.permute_dims %x axes = [1, 2, 0]
// CHECK-NEXT:    %[[EXP:.*]] = relax.exp %x
// CHECK-NEXT:    relax.tanh %[[NEW]]
// CHECK-NEXT:    relax.tuple(%{{.*}}, %[[MOVED]], %[[EXP]])
// LOC: relax.reshape {{.*}} loc("{{.*}}manipulation_canonicalize.mlir":30:3)
// LOC: relax.permute_dims {{.*}} loc("{{.*}}manipulation_canonicalize.mlir":32:3)
relax.func @twice[%n, %m](%x: !relax.tensor<[2, n, m], f32>) -> !relax.object {
  %s = relax.shape [m, 2 * n]
  %0 = relax.flatten %x
  %1 = relax.reshape %0, %s
  %2 = relax.permute_dims %x
  %3 = relax.permute_dims %2 axes = [1, 0, 2]
  %5 = relax.permute_dims %2
  %6 = relax.exp %5
  %4 = relax.tanh %1
  %7 = relax.tuple(%4, %3, %6)
  relax.return %7
}

// A copy that somebody may write into stays, and a shape of which too little is known.
// CHECK-LABEL: relax.func @stays
// CHECK-NEXT:    relax.permute_dims %x axes = [0]
// CHECK-NEXT:    relax.call_packed "change"
// CHECK-NEXT:    relax.reshape
relax.func @stays(%x: !relax.tensor<[_], f32>, %s: !relax.shape<[_]>) -> !relax.object impure {
  %0 = relax.permute_dims %x axes = [0]
  relax.call_packed "change"(%0)
  %1 = relax.reshape %x, %s
  relax.return %1
}

// New and dropped dimensions are shapes too.
// CHECK-LABEL: relax.func @views
// CHECK-NEXT:    %[[A:.*]] = relax.exp %x
// CHECK-NEXT:    %[[SHAPE:.*]] = relax.shape [n, 3]
// CHECK-NEXT:    %[[B:.*]] = relax.reshape %y, %[[SHAPE]]
// CHECK-NEXT:    relax.add %[[A]], %[[B]]
relax.func @views[%n](%x: !relax.tensor<[n, 3], f32>, %y: !relax.tensor<[1, 3 * n], f32>)
    -> !relax.tensor<[n, 3], f32> {
  %0 = relax.expand_dims %x axes = [0]
  %1 = relax.squeeze %0 axes = [0]
  %2 = relax.exp %1
  %3 = relax.squeeze %y axes = [0]
  %s = relax.shape [n, 3]
  %4 = relax.reshape %3, %s
  %5 = relax.add %2, %4
  relax.return %5
}
