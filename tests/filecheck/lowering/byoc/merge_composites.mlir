// RUN: relax-opt %s -p "fuse-ops-by-pattern{backend=blas},merge-composites" | filecheck %s
// RUN: relax-opt %s -p "fuse-ops-by-pattern{backend=blas},merge-composites,merge-composites" | filecheck %s

// Producer and user become one group, which yields what others use.

// CHECK-LABEL: relax.func @neighbours
// CHECK-NEXT:    %[[A:.*]], %[[B:.*]] = relax.fused attributes {codegen = "blas", composites = ["blas.matmul", "blas.matmul"]} {
// CHECK-NEXT:      %[[P:.*]] = relax.matmul %x, %w
// CHECK-NEXT:      %[[Q:.*]] = relax.matmul %[[P]], %w
// CHECK-NEXT:      relax.yield %[[P]], %[[Q]]
// CHECK-NEXT:    }
// CHECK-NEXT:    relax.subtract %[[A]], %[[B]]
relax.func @neighbours[%n](%x: !relax.tensor<[n, 4], f32>, %w: !relax.tensor<[4, 4], f32>)
    -> !relax.tensor<[n, 4], f32> {
  %0 = relax.matmul %x, %w
  %1 = relax.matmul %0, %w
  %2 = relax.subtract %0, %1
  relax.return %2
}

// An op between them keeps two groups apart.

// CHECK-LABEL: relax.func @between
// CHECK:         composites = ["blas.matmul"]
// CHECK:         relax.exp
// CHECK:         composites = ["blas.matmul"]
relax.func @between[%n](%x: !relax.tensor<[n, 4], f32>, %w: !relax.tensor<[4, 4], f32>)
    -> !relax.tensor<[n, 4], f32> {
  %0 = relax.matmul %x, %w
  %1 = relax.exp %0
  %2 = relax.matmul %1, %w
  relax.return %2
}

// Both producers of one user.

// CHECK-LABEL: relax.func @two_producers
// CHECK-NEXT:    composites = ["blas.matmul", "blas.matmul", "blas.matmul"]
// CHECK-NOT:     relax.fused
relax.func @two_producers[%n](%x: !relax.tensor<[n, n], f32>) -> !relax.tensor<[n, n], f32> {
  %0 = relax.matmul %x, %x
  %1 = relax.matmul %x, %x
  %2 = relax.matmul %0, %1
  relax.return %2
}
