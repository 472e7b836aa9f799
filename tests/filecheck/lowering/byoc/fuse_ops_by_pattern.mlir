// RUN: relax-opt %s -p "fuse-ops-by-pattern{backend=blas}" | filecheck %s
// RUN: relax-opt %s -p "fuse-ops-by-pattern{backend=blas},fuse-ops-by-pattern{backend=blas}" | filecheck %s

// The longest pattern is tried first; what stands between two matches stays where it is.

// CHECK-LABEL: relax.func @layers
// CHECK-NEXT:    %[[A:.*]] = relax.fused attributes {codegen = "blas", composites = ["blas.matmul_bias_relu"]} {
// CHECK-NEXT:      %[[P:.*]] = relax.matmul %x, %w
// CHECK-NEXT:      %[[Q:.*]] = relax.add %[[P]], %b
// CHECK-NEXT:      %[[R:.*]] = relax.nn.relu %[[Q]]
// CHECK-NEXT:      relax.yield %[[R]]
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[E:.*]] = relax.exp %[[A]]
// CHECK-NEXT:    %[[B:.*]] = relax.fused attributes {codegen = "blas", composites = ["blas.matmul"]} {
// CHECK-NEXT:      %[[M:.*]] = relax.matmul %[[E]], %w
// CHECK-NEXT:      relax.yield %[[M]]
// CHECK-NEXT:    }
// CHECK-NEXT:    relax.return %[[B]]
relax.func @layers[%n](%x: !relax.tensor<[n, 4], f32>, %w: !relax.tensor<[4, 4], f32>, %b: !relax.tensor<[4], f32>)
    -> !relax.tensor<[n, 4], f32> {
  %0 = relax.matmul %x, %w
  %1 = relax.add %0, %b
  %2 = relax.nn.relu %1
  %3 = relax.exp %2
  %4 = relax.matmul %3, %w
  relax.return %4
}

// A value that others use cannot be inside.

// CHECK-LABEL: relax.func @used
// CHECK-NEXT:    %[[P:.*]] = relax.fused attributes {codegen = "blas", composites = ["blas.matmul"]}
// CHECK:         %[[Q:.*]] = relax.add %[[P]], %x
// CHECK-NEXT:    %[[R:.*]] = relax.subtract %[[Q]], %[[P]]
relax.func @used[%n](%x: !relax.tensor<[n, 4], f32>, %w: !relax.tensor<[4, 4], f32>) -> !relax.tensor<[n, 4], f32> {
  %0 = relax.matmul %x, %w
  %1 = relax.add %0, %x
  %2 = relax.subtract %1, %0
  relax.return %2
}
