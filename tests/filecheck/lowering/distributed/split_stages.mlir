// RUN: relax-opt %s -p split-stages --split-input-file | filecheck %s

// A stage for each worker: a tensor goes once to each stage that uses it, with a tag of its own; each makes constants for
// itself, and has the parameters that it uses.
// CHECK-LABEL: relax.func @main_stage0[%p_index, %n](%workers: !relax.shape<[3, p_index, n]>, %x: !relax.tensor<[n, 8], f32>, %w: !relax.tensor<[8, 8], f32>)
// CHECK-SAME:  mesh = #relax.sharding<p = 3: R>
// CHECK-SAME:  arguments = array<i64: 0, 1>
// CHECK-NEXT:    %0 = relax.matmul %x, %w
// CHECK-NEXT:    %1 = relax.ccl.send %0 to = 1 group = "p"
// CHECK-NEXT:    %2 = relax.ccl.send %0 to = 2 tag = 1 group = "p"
// CHECK-NEXT:    %3 = relax.tuple(%1, %2)
// CHECK-NEXT:    relax.return %3
// CHECK-LABEL: relax.func @main_stage1[%p_index, %n](%workers: !relax.shape<[3, p_index, n]>, %w: !relax.tensor<[8, 8], f32>)
// CHECK-NEXT:    %c = relax.constant
// CHECK-NEXT:    %0 = relax.shape [n, 8]
// CHECK-NEXT:    %1 = relax.ccl.receive %0 source = 0 dtype = f32 group = "p"
// CHECK-NEXT:    %2 = relax.multiply %1, %c
// CHECK-NEXT:    %3 = relax.matmul %2, %w
// CHECK-NEXT:    %4 = relax.ccl.send %3 to = 2 tag = 2 group = "p"
// CHECK-LABEL: relax.func @main_stage2[%p_index, %n](%workers: !relax.shape<[3, p_index, n]>) -> !relax.tensor<[n, 8], f32>
// CHECK-NEXT:    %c = relax.constant
// CHECK-NEXT:    %0 = relax.shape [n, 8]
// CHECK-NEXT:    %1 = relax.ccl.receive %0 source = 1 tag = 2 dtype = f32 group = "p"
// CHECK-NEXT:    %2 = relax.shape [n, 8]
// CHECK-NEXT:    %3 = relax.ccl.receive %2 source = 0 tag = 1 dtype = f32 group = "p"
// CHECK-NEXT:    %4 = relax.add %1, %3
// CHECK-NEXT:    %5 = relax.add %4, %c
// CHECK-NEXT:    relax.return %5
relax.func @main[%n](%x: !relax.tensor<[n, 8], f32>, %w: !relax.tensor<[8, 8], f32>) -> !relax.tensor<[n, 8], f32> {
  %c = relax.constant dense<2.0> : tensor<f32>
  %0 = relax.matmul %x, %w
  %1 = relax.multiply %0, %c {stage = 1 : i64}
  %2 = relax.matmul %1, %w
  %3 = relax.add %2, %0 {stage = 2 : i64}
  %4 = relax.add %3, %c
  relax.return %4
}

// -----

// Functions without stages stay.
// CHECK-LABEL: relax.func @alone(
relax.func @alone(%x: !relax.tensor<[8], f32>) -> !relax.object {
  %0 = relax.exp %x
  relax.return %0
}
