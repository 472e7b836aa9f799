// RUN: relax-opt %s -p run-codegen | filecheck %s
// RUN: relax-opt %s -p run-codegen,run-codegen | filecheck %s

// The library gets the text of the group, its inputs, and results to fill.

// CHECK-LABEL: relax.func @handed_over
// CHECK-NEXT:    %[[T:.*]] = relax.string "{{.*}}inputs{{.*}}: 2, {{.*}}outputs{{.*}}: [2], {{.*}}relax.matmul{{.*}}"
// CHECK-NEXT:    %[[R:.*]] = relax.call_dps_packed "relax.blas"(%[[T]], %x, %w) : !relax.tensor<[n, 4], f32>
// CHECK-NEXT:    relax.return %[[R]]
relax.func @handed_over[%n](%x: !relax.tensor<[n, 4], f32>, %w: !relax.tensor<[4, 4], f32>)
    -> !relax.tensor<[n, 4], f32> {
  %0 = relax.fused attributes {codegen = "blas", composites = ["blas.matmul"]} {
    %1 = relax.matmul %x, %w
    relax.yield %1
  }
  relax.return %0
}

// What the library has not goes back into the program.

// CHECK-LABEL: relax.func @declined
// CHECK-NEXT:    %[[E:.*]] = relax.exp %x
// CHECK-NEXT:    relax.return %[[E]]
relax.func @declined[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.fused attributes {codegen = "blas"} {
    %1 = relax.exp %x
    relax.yield %1
  }
  relax.return %0
}
