// RUN: relax-opt %s -p reorder-take-after-matmul --split-input-file | filecheck %s
// RUN: relax-opt %s -p reorder-take-after-matmul,reorder-take-after-matmul --split-input-file | filecheck %s

// Columns are taken out of the product.
// CHECK-LABEL: relax.func @columns
// CHECK-NEXT:    %[[PRODUCT:.*]] = relax.matmul %x, %w
// CHECK-NEXT:    %[[RESULT:.*]] = relax.take %[[PRODUCT]], %i axis = -1 mode = "clip"
// CHECK-NEXT:    relax.return %[[RESULT]]
relax.func @columns[%n, %m](%x: !relax.tensor<[n, 2], f32>, %w: !relax.tensor<[2, 8], f32>, %i: !relax.tensor<[m], i64>) -> !relax.tensor<[n, m], f32> {
  %0 = relax.take %w, %i axis = 1 mode = "clip"
  %1 = relax.matmul %x, %0
  relax.return %1
}

// -----

// Rows are summed over, and matrices that are taken out of several are another matter.
// CHECK-LABEL: relax.func @stay
// CHECK-NEXT:    relax.take %w, %i axis = 0
// CHECK-NEXT:    relax.matmul
// CHECK-NEXT:    relax.take %v, %i axis = 0
// CHECK-NEXT:    relax.matmul
relax.func @stay[%n](%x: !relax.tensor<[n, 2], f32>, %w: !relax.tensor<[8, 8], f32>, %v: !relax.tensor<[8, 2, 2], f32>, %i: !relax.tensor<[2], i64>) -> !relax.object {
  %0 = relax.take %w, %i axis = 0
  %1 = relax.matmul %x, %0
  %2 = relax.take %v, %i axis = 0
  %3 = relax.matmul %x, %2
  %4 = relax.tuple(%1, %3)
  relax.return %4
}
