// RUN: relax-opt %s -p combine-parallel-matmul --split-input-file | filecheck %s
// RUN: relax-opt %s -p combine-parallel-matmul,combine-parallel-matmul --split-input-file | filecheck %s
// RUN: relax-opt %s -p "combine-parallel-matmul{most_columns=1}" --split-input-file | filecheck %s --check-prefix NARROW
// RUN: relax-opt %s -p combine-parallel-matmul --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// Products, biases and functions that are alike are one each.
// CHECK-LABEL: relax.func @alike
// CHECK-NEXT:    %w = relax.constant {{.*}} : tensor<2x3xf32>
// CHECK-NEXT:    %[[PRODUCT:.*]] = relax.matmul %x, %w
// CHECK-NEXT:    %b = relax.constant dense<[5.000000e+00, 6.000000e+00, 7.000000e+00]> : tensor<3xf32>
// CHECK-NEXT:    %[[SUM:.*]] = relax.add %[[PRODUCT]], %b
// CHECK-NEXT:    %[[ACTIVE:.*]] = relax.nn.relu %[[SUM]]
// CHECK-NEXT:    %[[LEFT:.*]], %[[RIGHT:.*]] = relax.split %[[ACTIVE]] indices = [2] axis = -1
// CHECK-NEXT:    relax.tuple(%[[LEFT]], %[[RIGHT]])
// NARROW-LABEL: relax.func @alike
// NARROW-NOT:    relax.split
// LOC: relax.split %{{.*}} loc(fused["{{.*}}":[[# @LINE + 6]]:3,
relax.func @alike[%n](%x: !relax.tensor<[4, n, 2], f32>) -> !relax.object {
  %w = relax.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %v = relax.constant dense<[[8.0], [9.0]]> : tensor<2x1xf32>
  %b = relax.constant dense<[5.0, 6.0]> : tensor<2xf32>
  %c = relax.constant dense<[7.0]> : tensor<1xf32>
  %0 = relax.matmul %x, %w
  %1 = relax.add %0, %b
  %2 = relax.nn.relu %1
  %3 = relax.matmul %x, %v
  %4 = relax.add %c, %3
  %5 = relax.nn.relu %4
  %6 = relax.tuple(%2, %5)
  relax.return %6
}

// -----

// What follows one of them alone follows its part.
// CHECK-LABEL: relax.func @unlike
// CHECK:         %[[LEFT:.*]], %[[RIGHT:.*]] = relax.split
// CHECK-NEXT:    relax.nn.silu %[[LEFT]]
// CHECK-NEXT:    relax.multiply %{{.*}}, %[[RIGHT]]
relax.func @unlike[%n](%x: !relax.tensor<[n, 2], f32>) -> !relax.tensor<[n, 2], f32> {
  %w = relax.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %v = relax.constant dense<[[5.0, 6.0], [7.0, 8.0]]> : tensor<2x2xf32>
  %0 = relax.matmul %x, %w
  %1 = relax.nn.silu %0
  %2 = relax.matmul %x, %v
  %3 = relax.multiply %1, %2
  relax.return %3
}

// -----

// A value that is written in between is another one afterwards; other sizes and operands do not fit.
// CHECK-LABEL: relax.func @stay
// CHECK-NOT:     relax.split
relax.func @stay[%n](%x: !relax.tensor<[n, 2], f32>, %y: !relax.tensor<[n, 2], f32>) -> !relax.object impure {
  %w = relax.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %0 = relax.matmul %x, %w
  relax.call_packed "fill"(%x)
  %1 = relax.matmul %x, %w
  %2 = relax.matmul %y, %w
  %4 = relax.tuple(%0, %1, %2)
  relax.return %4
}
