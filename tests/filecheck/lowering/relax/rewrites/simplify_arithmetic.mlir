// RUN: relax-opt %s -p simplify-arithmetic --split-input-file | filecheck %s
// RUN: relax-opt %s -p simplify-arithmetic,simplify-arithmetic --split-input-file | filecheck %s
// RUN: relax-opt %s -p simplify-arithmetic --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// What does nothing goes; powers are products; a quotient by a power of two is a product.
// CHECK-LABEL: relax.func @rules
// CHECK-NEXT:    %[[SQUARE:.*]] = relax.multiply %x, %x
// CHECK-NEXT:    %[[EIGHTH:.*]] = relax.constant dense<1.250000e-01> : tensor<f32>
// CHECK-NEXT:    %[[PART:.*]] = relax.multiply %[[SQUARE]], %[[EIGHTH]]
// CHECK-NEXT:    %[[AGAIN:.*]] = relax.multiply %[[PART]], %[[PART]]
// CHECK-NEXT:    %[[CUBE:.*]] = relax.multiply %[[AGAIN]], %[[PART]]
// CHECK-NEXT:    %[[LAST:.*]] = relax.negative %[[CUBE]]
// CHECK-NEXT:    relax.return %[[LAST]]
// LOC: relax.multiply %x, %x loc("{{.*}}":[[# @LINE + 8]]:3)
relax.func @rules[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %one = relax.constant dense<1.0> : tensor<1xf32>
  %two = relax.constant dense<2.0> : tensor<f32>
  %three = relax.constant dense<3.0> : tensor<f32>
  %eight = relax.constant dense<8.0> : tensor<f32>
  %zero = relax.constant dense<0.0> : tensor<f32>
  %0 = relax.multiply %one, %x
  %1 = relax.power %0, %two
  %2 = relax.divide %1, %eight
  %3 = relax.subtract %2, %zero
  %4 = relax.power %3, %three
  %5 = relax.negative %4
  relax.return %5
}

// -----

// Minus zero plus zero is zero; a third is not exact; one does not divide by what is not its second operand.
// CHECK-LABEL: relax.func @not_the_same
// CHECK:         relax.add %x, %zero
// CHECK:         relax.divide %{{.*}}, %three
// CHECK:         relax.divide %one, %
// CHECK:         relax.broadcast_to
// CHECK:         relax.multiply
relax.func @not_the_same[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[2, n], f32> {
  %zero = relax.constant dense<0.0> : tensor<f32>
  %one = relax.constant dense<1.0> : tensor<f32>
  %ones = relax.constant dense<1.0> : tensor<2x1xf32>
  %three = relax.constant dense<3.0> : tensor<f32>
  %0 = relax.add %x, %zero
  %1 = relax.divide %0, %three
  %2 = relax.divide %one, %1
  %s = relax.shape [n]
  %3 = relax.broadcast_to %2, %s
  %4 = relax.multiply %3, %ones
  relax.return %4
}

// -----

// Functions applied twice.
// CHECK-LABEL: relax.func @twice
// CHECK-NEXT:    %0 = relax.ceil %x
// CHECK-NEXT:    %1 = relax.add %0, %x
// CHECK-NEXT:    relax.return %1
relax.func @twice[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.ceil %x
  %1 = relax.ceil %0
  %2 = relax.negative %x
  %3 = relax.negative %2
  %4 = relax.add %1, %3
  relax.return %4
}
