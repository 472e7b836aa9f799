// RUN: relax-opt %s -p 'bind-params{func=main w="fc.weight" b="fc.bias"}' | filecheck %s

// Weights become constants at the start, in the order of the parameters; other parameters stay.
// CHECK-LABEL: relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.tensor<[n, 8], f32> {
// CHECK-NEXT:    %w = relax.constant "fc.weight" : !relax.tensor<[4, 8], f32>
// CHECK-NEXT:    %b = relax.constant "fc.bias" : !relax.tensor<[8], f32>
// CHECK-NEXT:    %0 = relax.matmul %x, %w
// CHECK-NEXT:    %1 = relax.add %0, %b
relax.func @main[%n](%w: !relax.tensor<[4, 8], f32>, %x: !relax.tensor<[n, 4], f32>, %b: !relax.tensor<[8], f32>)
    -> !relax.tensor<[n, 8], f32> {
  %0 = relax.matmul %x, %w
  %1 = relax.add %0, %b
  relax.return %1
}
