// RUN: relax-opt %s -p overlap-collectives --split-input-file | filecheck %s

// The sum is not needed by the product, which is computed while workers exchange its terms.
// CHECK-LABEL: relax.func @after[
// CHECK-NEXT:    %0 = relax.ccl.start %x collective = "allreduce" group = "x"
// CHECK-NEXT:    %1 = relax.matmul %y, %w
// CHECK-NEXT:    %2 = relax.ccl.allreduce %x, %0 group = "x"
// CHECK-NEXT:    %3 = relax.add %2, %r
// CHECK-NEXT:    relax.add %3, %1
relax.func @after[%n](%x: !relax.tensor<[n, 256], f32>, %r: !relax.tensor<[n, 256], f32>, %y: !relax.tensor<[n, 256], f32>,
    %w: !relax.tensor<[256, 256], f32>) -> !relax.object {
  %0 = relax.ccl.allreduce %x group = "x"
  %1 = relax.add %0, %r
  %2 = relax.matmul %y, %w
  %3 = relax.add %1, %2
  relax.return %3
}

// -----

// It begins where its operand is made.
// CHECK-LABEL: relax.func @before[
// CHECK-NEXT:    %0 = relax.exp %x
// CHECK-NEXT:    %1 = relax.ccl.start %0 collective = "allgather" num_workers = 2 size = n group = "x"
// CHECK-NEXT:    %2 = relax.matmul %y, %w
// CHECK-NEXT:    %3 = relax.ccl.allgather %0, %1 num_workers = 2 size = n group = "x"
// CHECK-NEXT:    relax.add %3, %2
relax.func @before[%n, %t](%x: !relax.tensor<[t, 256], f32>, %y: !relax.tensor<[n, 256], f32>,
    %w: !relax.tensor<[256, 256], f32>) -> !relax.object {
  %0 = relax.exp %x
  %1 = relax.matmul %y, %w
  %2 = relax.ccl.allgather %0 num_workers = 2 size = n group = "x"
  %3 = relax.add %2, %1
  relax.return %3
}

// -----

// What takes as long as the exchange is enough: results of the others would have to be kept for longer.
// CHECK-LABEL: relax.func @enough[
// CHECK-NEXT:    %0 = relax.ccl.start %x collective = "reduce_scatter" op_type = "max" num_workers = 2 axis = 1
// CHECK-NEXT:    %1 = relax.matmul %y, %w
// CHECK-NEXT:    %2 = relax.ccl.reduce_scatter %x, %0 op_type = "max" num_workers = 2 axis = 1
// CHECK-NEXT:    %3 = relax.negative %2
// CHECK-NEXT:    %4 = relax.matmul %1, %w
// CHECK-NEXT:    relax.tuple(%3, %4)
relax.func @enough[%n](%x: !relax.tensor<[n, 256], f32>, %y: !relax.tensor<[n, 256], f32>,
    %w: !relax.tensor<[256, 256], f32>) -> !relax.object {
  %0 = relax.ccl.reduce_scatter %x op_type = "max" num_workers = 2 axis = 1
  %1 = relax.negative %0
  %2 = relax.matmul %y, %w
  %3 = relax.matmul %2, %w
  %4 = relax.tuple(%1, %3)
  relax.return %4
}

// -----

// Nothing moves across another exchange, a call or a branch; what names a symbol that comes later waits for it; and what
// takes no time is no reason to begin.
// CHECK-LABEL: relax.func @stay[
// CHECK-NOT:     relax.ccl.start
relax.func @stay[%n](%x: !relax.tensor<[n, 256], f32>, %go: !relax.tensor<[], i1>, %y: !relax.tensor<[n, 256], f32>,
    %w: !relax.tensor<[256, 256], f32>) -> !relax.object impure {
  %0 = relax.ccl.allreduce %x group = "x"
  %1 = relax.ccl.allreduce %y group = "y"
  %2 = relax.call_packed "f"(%y) : !relax.object
  %3 = relax.matmul %y, %w
  %4 = relax.ccl.allreduce %3 op_type = "max" group = "x"
  %5 = relax.if %go {
    relax.yield %3
  } else {
    relax.yield %y
  } : !relax.tensor<[n, 256], f32>
  %6 = relax.matmul %y, %w
  %7 = relax.ccl.allreduce %6
  %8, %k = relax.match_cast %7 : !relax.tensor<[k, 256], f32> binds [k]
  %9 = relax.shape [k, 256]
  %10 = relax.zeros %9 dtype = f32
  %11 = relax.matmul %10, %w
  %12 = relax.ccl.allreduce %11 all_groups
  %13 = relax.matmul %y, %w
  %14 = relax.tuple(%0, %1, %2, %4, %5, %8, %11, %12, %13)
  relax.return %14
}

// -----

// CHECK-LABEL: relax.func @nothing[
// CHECK-NEXT:    %0 = relax.ccl.allreduce %x group = "x"
// CHECK-NEXT:    %1 = relax.add %0, %x
// CHECK-NEXT:    %2 = relax.exp %z
relax.func @nothing[%n](%x: !relax.tensor<[n, 256], f32>, %z: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.ccl.allreduce %x group = "x"
  %1 = relax.add %0, %x
  %2 = relax.exp %z
  %3 = relax.tuple(%1, %2)
  relax.return %3
}
