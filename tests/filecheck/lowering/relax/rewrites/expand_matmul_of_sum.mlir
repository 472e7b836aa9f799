// RUN: relax-opt %s -p expand-matmul-of-sum --split-input-file | filecheck %s
// RUN: relax-opt %s -p expand-matmul-of-sum,expand-matmul-of-sum --split-input-file | filecheck %s
// RUN: relax-opt %s -p expand-matmul-of-sum,adjust-matmul-order --split-input-file | filecheck %s --check-prefix ORDER

// A product with a sum is a sum of products; with `adjust-matmul-order`, the part of low rank is never a matrix.
// CHECK-LABEL: relax.func @adapter
// CHECK-NEXT:    %[[DELTA:.*]] = relax.matmul %a, %b
// CHECK-NEXT:    %[[LEFT:.*]] = relax.matmul %x, %w
// CHECK-NEXT:    %[[RIGHT:.*]] = relax.matmul %x, %[[DELTA]]
// CHECK-NEXT:    %[[SUM:.*]] = relax.add %[[LEFT]], %[[RIGHT]]
// CHECK-NEXT:    relax.return %[[SUM]]
// ORDER-LABEL: relax.func @adapter
// ORDER-NEXT:    %[[LEFT:.*]] = relax.matmul %x, %w
// ORDER-NEXT:    %[[INNER:.*]] = relax.matmul %x, %a
// ORDER-NEXT:    %[[RIGHT:.*]] = relax.matmul %[[INNER]], %b
// ORDER-NEXT:    relax.add %[[LEFT]], %[[RIGHT]]
relax.func @adapter[%n](%x: !relax.tensor<[n, 64], f32>, %w: !relax.tensor<[64, 64], f32>, %a: !relax.tensor<[64, 2], f32>, %b: !relax.tensor<[2, 64], f32>) -> !relax.tensor<[n, 64], f32> {
  %0 = relax.matmul %a, %b
  %1 = relax.add %w, %0
  %2 = relax.matmul %x, %1
  relax.return %2
}

// -----

// A sum that is used elsewhere, or of a row, stays.
// CHECK-LABEL: relax.func @stay
// CHECK:         relax.add
// CHECK-NEXT:    relax.matmul
// CHECK-NEXT:    relax.add
// CHECK-NEXT:    relax.matmul
// CHECK-NEXT:    relax.tuple
relax.func @stay[%n](%x: !relax.tensor<[n, 2], f32>, %w: !relax.tensor<[2, 2], f32>, %b: !relax.tensor<[2], f32>) -> !relax.object {
  %0 = relax.add %w, %w
  %1 = relax.matmul %x, %0
  %2 = relax.add %w, %b
  %3 = relax.matmul %x, %2
  %4 = relax.tuple(%0, %1, %3)
  relax.return %4
}
