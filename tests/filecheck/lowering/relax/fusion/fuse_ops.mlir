// RUN: relax-opt %s -p legalize-ops,fuse-ops --split-input-file | filecheck %s
// RUN: relax-opt %s -p legalize-ops,fuse-ops,fuse-ops --split-input-file | filecheck %s
// RUN: relax-opt %s -p legalize-ops,fuse-ops --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// What follows a product element by element is computed with it.
// CHECK-LABEL: relax.func @epilogue
// CHECK-NEXT:    %0 = relax.fused {
// CHECK-NEXT:      %1 = relax.call_tir @matmul(%x, %w)
// CHECK-NEXT:      %2 = relax.call_tir @add(%1, %b)
// CHECK-NEXT:      %3 = relax.call_tir @nn_relu(%2)
// CHECK-NEXT:      relax.yield %3
// CHECK-NEXT:    }
// CHECK-NEXT:    relax.return %0
// LOC: relax.fused {
// LOC: } loc(fused[{{.*}}fuse_ops.mlir":17:3{{.*}}fuse_ops.mlir":18:3{{.*}}fuse_ops.mlir":19:3])
relax.func @epilogue[%n](%x: !relax.tensor<[n, 4], f32>, %w: !relax.tensor<[4, 8], f32>, %b: !relax.tensor<[8], f32>) -> !relax.tensor<[n, 8], f32> {
  %0 = relax.matmul %x, %w
  %1 = relax.add %0, %b
  %2 = relax.nn.relu %1
  relax.return %2
}

// -----

// A value that is used elsewhere is there in memory: what computes it ends a group.
// CHECK-LABEL: relax.func @elsewhere
// CHECK-NEXT:    %0 = relax.fused {
// CHECK:           relax.call_tir @exp
// CHECK:           relax.call_tir @negative
// CHECK:         %[[SUM:.*]] = relax.fused {
// CHECK:           relax.call_tir @tanh(%0)
// CHECK:           relax.call_tir @add
// CHECK:         relax.tuple(%0, %[[SUM]])
relax.func @elsewhere[%n](%x: !relax.tensor<[n], f32>) -> !relax.tuple<!relax.tensor<[n], f32>, !relax.tensor<[n], f32>> {
  %0 = relax.exp %x
  %1 = relax.negative %0
  %2 = relax.tanh %1
  %3 = relax.add %2, %x
  %4 = relax.tuple(%1, %3)
  relax.return %4
}

// -----

// Calls do not pass an op with effects; regions of branches are looked at by themselves.
// CHECK-LABEL: relax.func @effects
// CHECK-NEXT:    %0 = relax.call_tir @exp(%x)
// CHECK-NEXT:    relax.call_packed "show"(%x)
// CHECK-NEXT:    %1 = relax.call_tir @exp(%0)
// CHECK-NEXT:    %2 = relax.if %c {
// CHECK-NEXT:      %{{.*}} = relax.fused {
// CHECK:           relax.yield
// CHECK:         } else {
relax.func @effects[%n](%x: !relax.tensor<[n], f32>, %c: !relax.prim<i1>) -> !relax.tensor<[n], f32> impure {
  %0 = relax.exp %x
  relax.call_packed "show"(%x)
  %1 = relax.exp %0
  %2 = relax.if %c {
    %3 = relax.tanh %1
    %4 = relax.add %3, %1
    relax.yield %4
  } else {
    relax.yield %1
  }
  relax.return %2
}

// -----

// Two products stay apart; the first has nobody to be computed with.
// CHECK-LABEL: relax.func @products
// CHECK-NEXT:    %0 = relax.call_tir @matmul(%x)
// CHECK-NEXT:    %1 = relax.call_tir @matmul_1(%0, %x)
// CHECK-NEXT:    relax.return %1
relax.func @products[%n](%x: !relax.tensor<[n, n], f32>) -> !relax.tensor<[n, n], f32> {
  %0 = relax.matmul %x, %x
  %1 = relax.matmul %0, %x
  relax.return %1
}
