// RUN: relax-opt %s -p legalize-ops --split-input-file | filecheck %s
// RUN: relax-opt %s -p legalize-ops,legalize-ops --split-input-file | filecheck %s

// Ops that differ only in names of symbols share a kernel.
// CHECK:       tir.prim_func @exp[%n](%x: !tir.buffer<[n], f32>, %exp: !tir.buffer<[n], f32>) {
// CHECK-NOT:   tir.prim_func
// CHECK-LABEL: relax.func @shared
// CHECK:         %0 = relax.call_tir @exp(%x) : !relax.tensor<[n], f32>
// CHECK:         %1 = relax.call_tir @exp(%y) : !relax.tensor<[m], f32>
relax.func @shared[%n, %m](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[m], f32>) -> !relax.tensor<[m], f32> {
  %0 = relax.exp %x
  %1 = relax.exp %y
  relax.return %1
}

// -----

// A size that the kernel could not solve for its symbols has a name of its own there.
// CHECK:       tir.prim_func @exp[%d0](%x: !tir.buffer<[d0], f32>, %exp: !tir.buffer<[d0], f32>) {
// CHECK-LABEL: relax.func @compound
// CHECK:         relax.call_tir @exp(%x) : !relax.tensor<[m * n], f32>
relax.func @compound[%n, %m](%s: !relax.shape<[n, m]>, %x: !relax.tensor<[n * m], f32>) -> !relax.tensor<[n * m], f32> {
  %0 = relax.exp %x
  relax.return %0
}

// -----

// Extents of which one may be 1: the index is multiplied by 1 or 0, which the call decides.
// CHECK:       tir.prim_func @add[%n, %m](%x: !tir.buffer<[n], f32>, %y: !tir.buffer<[m], f32>, %add: !tir.buffer<[broadcast(m, n)], f32>) {
// CHECK:           %[[STEP:.*]] = tir.dim min(max(0, n + 1 - broadcast(m, n)), 1)
// CHECK-NEXT:      arith.muli %{{.*}}, %[[STEP]]
relax.func @broadcast[%n, %m](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[m], f32>) -> !relax.tensor<[_], f32> {
  %0 = relax.add %x, %y
  relax.return %0
}

// -----

// What guards have found to be equal has one name in the kernel, so that operands are copied as a whole.
// CHECK:       tir.prim_func @concat[%n, %m, %k]({{.*}}: !tir.buffer<[n, m], f32>, %y: !tir.buffer<[k, m], f32>, %concat: !tir.buffer<[k + n, m], f32>) {
// CHECK-LABEL: relax.func @joined
// CHECK:         relax.call_tir @concat({{%.*}}, %y) : !relax.tensor<[k + n, m], f32>
relax.func @joined[%n, %m, %k, %l](%x: !relax.tensor<[n, m], f32>, %y: !relax.tensor<[k, l], f32>) -> !relax.tensor<[n + k, m], f32> {
  %0 = relax.guard %x, equal m, l, "equal dimensions besides the axis"
  %1 = relax.concat %0, %y
  relax.return %1
}

// -----

// Views stay, and so does control flow.
// CHECK-LABEL: relax.func @views
// CHECK-NEXT:    %0 = relax.flatten %x
relax.func @views[%n](%x: !relax.tensor<[n, 2], f32>) -> !relax.tensor<[2 * n], f32> {
  %0 = relax.flatten %x
  relax.return %0
}

// -----

// Only blocks that some dimension does not fill ask where it ends.
// CHECK:       tir.prim_func @layout_transform[%n](%x: !tir.buffer<[n, 8, 3, 3], f32>
// CHECK-NOT:       tir.if
// CHECK:         }
// CHECK:       tir.prim_func @layout_transform_1[%n]
// CHECK:           tir.if
// CHECK-LABEL: relax.func @blocks
relax.func @blocks[%n](%x: !relax.tensor<[n, 8, 3, 3], f32>) -> !relax.object {
  %0 = relax.layout_transform %x source = "NCHW" target = "NCHW4c"
  %1 = relax.layout_transform %x source = "NCHW" target = "NCHW3c"
  %2 = relax.tuple (%0, %1)
  relax.return %2
}
