// RUN: relax-opt %s -p fold-constants --split-input-file | filecheck %s
// RUN: relax-opt %s -p fold-constants,fold-constants --split-input-file | filecheck %s
// RUN: relax-opt %s -p fold-constants --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// A whole subgraph becomes the constant that the rest of the program uses; it stands where its last op stood.
// CHECK-LABEL: relax.func @subgraph
// CHECK-NEXT:    %0 = relax.constant dense<{{\[\[}}5.000000e-01, 1.500000e+00], [1.000000e+00, 2.000000e+00]]> : tensor<2x2xf32>
// CHECK-NEXT:    %y = relax.matmul %x, %0
// CHECK-NEXT:    relax.return %y
// LOC: relax.constant dense<{{.*}}fold_constants.mlir":15:3)
relax.func @subgraph[%n](%x: !relax.tensor<[n, 2], f32>) -> !relax.tensor<[n, 2], f32> {
  %w = relax.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %s = relax.constant dense<0.5> : tensor<f32>
  %0 = relax.permute_dims %w
  %1 = relax.multiply %0, %s
  %y = relax.matmul %x, %1
  relax.return %y
}

// -----

// Several results; operands that are shapes and prims.
// CHECK-LABEL: relax.func @results
// CHECK-NEXT:    %a = relax.constant dense<0> : tensor<2xi64>
// CHECK-NEXT:    %b = relax.constant dense<7> : tensor<2xi64>
// CHECK-NEXT:    %0 = relax.add %x, %a
// CHECK-NEXT:    %1 = relax.add %0, %b
relax.func @results(%x: !relax.tensor<[2], i64>) -> !relax.tensor<[2], i64> {
  %s = relax.shape [2]
  %z = relax.zeros %s dtype = i64
  %v = relax.prim 7
  %f = relax.full %s, %v
  %c = relax.concat %z, %f axis = 0
  %a, %b = relax.split %c sections = 2 axis = 0
  %0 = relax.add %x, %a
  %1 = relax.add %0, %b
  relax.return %1
}

// -----

// Memory that somebody may write into, or keep, is not that of a constant.
// CHECK-LABEL: relax.func @written
// CHECK-NEXT:    %c = relax.constant dense<1.000000e+00>
// CHECK-NEXT:    %0 = relax.exp %c
// CHECK-NEXT:    relax.call_packed "writes"(%0)
// CHECK-NEXT:    %1 = relax.constant dense<2.71828198>
// CHECK-NEXT:    %2 = relax.exp %1
// CHECK-NEXT:    relax.call_packed "keeps"(%2)
relax.func @written() -> !relax.object impure {
  %c = relax.constant dense<1.0> : tensor<1xf32>
  %0 = relax.exp %c
  relax.call_packed "writes"(%0)
  %1 = relax.exp %c
  %2 = relax.exp %1
  relax.call_packed "keeps"(%2)
  relax.return %2
}

// -----

// What is much larger than what it is made of stays, and so does what needs a symbol or a weight that is elsewhere.
// CHECK-LABEL: relax.func @left_alone
// CHECK:         relax.broadcast_to
// CHECK:         relax.broadcast_to
// CHECK:         relax.exp
relax.func @left_alone[%n](%x: !relax.tensor<[n], f32>) -> !relax.tuple<!relax.tensor<[1000, 1000], f32>, !relax.tensor<[n], f32>, !relax.tensor<[2], f32>> {
  %c = relax.constant dense<1.0> : tensor<f32>
  %big = relax.shape [1000, 1000]
  %0 = relax.broadcast_to %c, %big
  %s = relax.shape [n]
  %1 = relax.broadcast_to %c, %s
  %w = relax.constant "weight" : !relax.tensor<[2], f32>
  %2 = relax.exp %w
  %r = relax.tuple(%0, %1, %2)
  relax.return %r
}

// -----

// What fails is left to the run time, which may never come there.
// CHECK-LABEL: relax.func @fails
// CHECK:         relax.dynamic_strided_slice
relax.func @fails() -> !relax.tensor<[_], f32> {
  %c = relax.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %begin = relax.constant dense<[0]> : tensor<1xi64>
  %end = relax.constant dense<[2]> : tensor<1xi64>
  %step = relax.constant dense<[0]> : tensor<1xi64>
  %0 = relax.dynamic_strided_slice %c, %begin, %end, %step
  relax.return %0
}

// -----

// A result of unknown size gets the type of its value, and so do those that follow from it.
// CHECK-LABEL: relax.func @unknown
// CHECK-SAME:    -> !relax.tensor<[2], f32>
// CHECK-NEXT:    %u = relax.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
// CHECK-NEXT:    %y = relax.multiply %u, %x
// CHECK-NEXT:    relax.return %y
relax.func @unknown(%x: !relax.tensor<[], f32>) -> !relax.tensor<[_], f32> {
  %c = relax.constant dense<[1.0, 2.0, 1.0]> : tensor<3xf32>
  %u = relax.unique %c
  %y = relax.multiply %u, %x
  relax.return %y
}

// -----

// Packed weights stay packed; what is done to the bytes is folded.
// CHECK-LABEL: relax.func @packed
// CHECK-NEXT:    %b = relax.constant dense<{{.*}}> : tensor<1x18xui8>
// CHECK-NEXT:    %w = relax.dequantize_blocks %b format = "q4_0"
// CHECK-NEXT:    %y = relax.add %x, %w
relax.func @packed(%x: !relax.tensor<[1, 32], f32>) -> !relax.tensor<[1, 32], f32> {
  %a = relax.constant dense<1> : tensor<18xui8>
  %b = relax.expand_dims %a axes = [0]
  %w = relax.dequantize_blocks %b format = "q4_0"
  %y = relax.add %x, %w
  relax.return %y
}
