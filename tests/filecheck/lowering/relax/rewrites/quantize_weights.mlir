// RUN: relax-opt %s -p "quantize-weights{min-elements=32}" --split-input-file | filecheck %s
// RUN: relax-opt %s -p "quantize-weights{min-elements=32},quantize-weights{min-elements=32}" --split-input-file | filecheck %s
// RUN: relax-opt %s -p "quantize-weights{min-elements=33 leave-out=\"*_norm\",\"head\" max-error=0.01 explain=true}" --split-input-file | filecheck %s --check-prefix WHY
// RUN: not relax-opt %s -p "quantize-weights{format=q2_k}" 2>&1 | filecheck %s --check-prefix REFUSED

// REFUSED: format expected one of q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k, q6_k, mxfp4, u4_f32, u8_f32, got 'q2_k'

// Blocks are along the dimension that is summed: the columns of what is multiplied as it is.
// CHECK-LABEL: relax.func @columns
// CHECK-NEXT:    %w = relax.constant dense<{{.*}}> : tensor<2x34xui8>
// CHECK-NEXT:    %[[D:.*]] = relax.dequantize_blocks %w format = "q8_0"
// CHECK-NEXT:    %[[T:.*]] = relax.permute_dims %[[D]] axes = [1, 0]
// CHECK-NEXT:    %[[Y:.*]] = relax.matmul %x, %[[T]]
// CHECK-NEXT:    relax.return %[[Y]]
// WHY-LABEL: relax.func @columns
// WHY-SAME:    {quantized_weights = ["w [32, 2]: 256 to 68 bytes, relative error {{[0-9.e-]+}}"]}
relax.func @columns[%n](%x: !relax.tensor<[n, 32], f32>) -> !relax.tensor<[n, 2], f32> {
  %w = relax.constant dense<1.5> : tensor<32x2xf32>
  %y = relax.matmul %x, %w
  relax.return %y
}

// -----

// The rows of what is multiplied transposed, in any float.
// CHECK-LABEL: relax.func @rows
// CHECK-NEXT:    %w = relax.constant dense<{{.*}}> : tensor<2x34xui8>
// CHECK-NEXT:    %[[D:.*]] = relax.dequantize_blocks %w format = "q8_0"
// CHECK-NEXT:    %[[T:.*]] = relax.permute_dims %[[D]] axes = [1, 0]
// CHECK-NEXT:    %[[Y:.*]] = relax.matmul %x, %[[T]]
// CHECK-NEXT:    relax.return %[[Y]]
relax.func @rows[%n](%x: !relax.tensor<[n, 4, 32], f32>) -> !relax.tensor<[n, 4, 2], f32> {
  %w = relax.constant dense<1.5> : tensor<2x32xf16>
  %t = relax.permute_dims %w
  %f = relax.astype %t dtype = f32
  %y = relax.matmul %x, %f
  relax.return %y
}

// -----

// A table is taken from as bytes; the output head reads the same ones.
// CHECK-LABEL: relax.func @embedding
// CHECK-NEXT:    %w = relax.constant dense<{{.*}}> : tensor<2x34xui8>
// CHECK-NEXT:    %[[ROWS:.*]] = relax.take %w, %ids axis = 0 mode = "clip"
// CHECK-NEXT:    %[[X:.*]] = relax.dequantize_blocks %[[ROWS]] format = "q8_0"
// CHECK-NEXT:    %[[W:.*]] = relax.dequantize_blocks %w format = "q8_0"
// CHECK-NEXT:    %[[T:.*]] = relax.permute_dims %[[W]] axes = [1, 0]
// CHECK-NEXT:    %[[Y:.*]] = relax.matmul %[[X]], %[[T]]
// CHECK-NEXT:    relax.return %[[Y]]
relax.func @embedding[%n](%ids: !relax.tensor<[n], i64>) -> !relax.tensor<[n, 2], f32> {
  %w = relax.constant dense<1.5> : tensor<2x32xf32>
  %x = relax.take %w, %ids axis = 0 mode = "clip"
  %t = relax.permute_dims %w
  %y = relax.matmul %x, %t
  relax.return %y
}

// -----

// Types stay as they are written.
// CHECK-LABEL: relax.func @coarse
// CHECK:         relax.dequantize_blocks %{{.*}} format = "q8_0" : !relax.tensor<*, f32>
// CHECK-NOT:     relax.constant
relax.func @coarse[%n](%ids: !relax.tensor<[n], i64>) -> !relax.tensor<*, f32> {
  %w = relax.constant dense<1.5> : tensor<2x32xf32>
  %x = relax.take %w, %ids axis = 0 : !relax.tensor<*, f32>
  relax.return %x
}

// -----

// Weights that are computed of constants.
// CHECK-LABEL: relax.func @computed
// CHECK:         relax.dequantize_blocks
// CHECK-NOT:     relax.reshape
// WHY-LABEL: relax.func @computed
// WHY-SAME:    {quantized_weights = ["flat [32, 2]: 256 to 68 bytes,
relax.func @computed[%n](%x: !relax.tensor<[n, 32], f32>) -> !relax.tensor<[n, 2], f32> {
  %flat = relax.constant dense<1.5> : tensor<64xf32>
  %shape = relax.shape [32, 2]
  %w = relax.reshape %flat, %shape
  %y = relax.matmul %x, %w
  relax.return %y
}

// -----

// What is left, and why.
// WHY-LABEL: relax.func @left
// WHY-SAME:    "a_norm [32, 2]: left, as its name says"
// WHY-SAME:    "head [32, 2]: left, as its name says"
// WHY-SAME:    "small [32, 1]: left, it has fewer than 33 elements"
// WHY-SAME:    "odd [33, 2]: left, its rows of 33 are no multiple of 32"
// WHY-SAME:    "stack [2, 32, 2]: left, it is a stack of matrices"
// WHY-SAME:    "both [32, 32]: left, it is read both by rows and by columns"
// WHY-SAME:    "shared [32, 2]: left, 'relax.add' reads it too"
// WHY-SAME:    "half [32, 2]: left, the product is not of f32"
// WHY-SAME:    "infinite [32, 2]: left, not all of its elements are finite"
// WHY-SAME:    "tiny [32, 2]: left, the relative error would be 1"
// WHY-SAME:    "huge [32, 2]: left, the relative error would be inf"
// WHY-SAME:    "elsewhere [32, 2]: left, its elements are not in this process"
// WHY-NOT:     relax.dequantize_blocks
relax.func @left[%n](
  %x: !relax.tensor<[n, 32], f32>, %z: !relax.tensor<[n, 33], f32>, %h: !relax.tensor<[n, 32], f16>, %g: !relax.tensor<[32, 2], f32>
) -> !relax.object {
  %a_norm = relax.constant dense<1.5> : tensor<32x2xf32>
  %0 = relax.matmul %x, %a_norm
  %head = relax.constant dense<2.5> : tensor<32x2xf32>
  %1 = relax.matmul %x, %head
  %small = relax.constant dense<1.5> : tensor<32x1xf32>
  %2 = relax.matmul %x, %small
  %odd = relax.constant dense<1.5> : tensor<33x2xf32>
  %3 = relax.matmul %z, %odd
  %stack = relax.constant dense<1.5> : tensor<2x32x2xf32>
  %4 = relax.matmul %x, %stack
  %both = relax.constant dense<1.5> : tensor<32x32xf32>
  %5 = relax.matmul %x, %both
  %transposed = relax.permute_dims %both
  %6 = relax.matmul %x, %transposed
  %shared = relax.constant dense<1.5> : tensor<32x2xf32>
  %7 = relax.matmul %x, %shared
  %8 = relax.add %shared, %g
  %half = relax.constant dense<1.5> : tensor<32x2xf16>
  %9 = relax.matmul %h, %half
  %infinite = relax.constant dense<0x7F800000> : tensor<32x2xf32>
  %10 = relax.matmul %x, %infinite
  %tiny = relax.constant dense<1.0e-9> : tensor<32x2xf32>
  %11 = relax.matmul %x, %tiny
  %huge = relax.constant dense<1.0e+9> : tensor<32x2xf32>
  %12 = relax.matmul %x, %huge
  %w = relax.constant "elsewhere" : !relax.tensor<[32, 2], f32>
  %13 = relax.matmul %x, %w
  // What depends on an argument is no weight.
  %14 = relax.matmul %x, %g
  %all = relax.tuple(%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14)
  relax.return %all
}
