// RUN: relax-opt %s -p adjust-matmul-order --split-input-file | filecheck %s
// RUN: relax-opt %s -p adjust-matmul-order,adjust-matmul-order --split-input-file | filecheck %s
// RUN: relax-opt %s -p adjust-matmul-order --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// A matrix of low rank is applied factor by factor.
// CHECK-LABEL: relax.func @low_rank
// CHECK-NEXT:    %[[SMALL:.*]] = relax.matmul %x, %a
// CHECK-NEXT:    %[[RESULT:.*]] = relax.matmul %[[SMALL]], %b
// CHECK-NEXT:    relax.return %[[RESULT]]
// LOC: relax.matmul %x, %a loc(fused["{{.*}}":[[# @LINE + 2]]:3, "{{.*}}":[[# @LINE + 3]]:3])
relax.func @low_rank[%m, %n](%x: !relax.tensor<[m, n, 512], f32>, %a: !relax.tensor<[512, 8], f32>, %b: !relax.tensor<[8, 512], f32>) -> !relax.tensor<[m, n, 512], f32> {
  %0 = relax.matmul %a, %b
  %1 = relax.matmul %x, %0
  relax.return %1
}

// -----

// Two constants are multiplied first, since that is done once.
// CHECK-LABEL: relax.func @constants
// CHECK:         %[[PRODUCT:.*]] = relax.matmul %a, %b
// CHECK-NEXT:    relax.matmul %x, %[[PRODUCT]]
relax.func @constants[%n](%x: !relax.tensor<[n, 2], f32>) -> !relax.tensor<[n, 2], f32> {
  %a = relax.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %b = relax.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  %0 = relax.matmul %x, %a
  %1 = relax.matmul %0, %b
  relax.return %1
}

// -----

// What depends on the sizes, is used elsewhere, or saves nothing stays.
// CHECK-LABEL: relax.func @stay
// CHECK-NEXT:    relax.matmul %x, %a
// CHECK-NEXT:    relax.matmul %{{.*}}, %b
// CHECK-NEXT:    relax.matmul %b, %a
// CHECK-NEXT:    relax.matmul %x, %
relax.func @stay[%m, %n, %k](%x: !relax.tensor<[n, k], f32>, %a: !relax.tensor<[k, m], f32>, %b: !relax.tensor<[m, k], f32>, %c: !relax.tensor<[m, k], f32>) -> !relax.object {
  %0 = relax.matmul %x, %a
  %1 = relax.matmul %0, %b
  %2 = relax.matmul %b, %a
  %3 = relax.matmul %x, %a
  %4 = relax.matmul %3, %2
  %5 = relax.tuple(%1, %3, %4)
  relax.return %5
}
