// RUN: relax-opt %s -p "use-winograd{tile=2 target=\"x86-64-v3\"}" --split-input-file | filecheck %s
// RUN: relax-opt %s -p "use-winograd{tile=2 target=\"x86-64-v3\"},use-winograd{tile=2 target=\"x86-64-v3\"}" --split-input-file | filecheck %s
// RUN: relax-opt %s -p "use-winograd{tile=4 target=\"x86-64-v3\"}" --split-input-file | filecheck %s --check-prefix LARGE
// RUN: relax-opt %s -p "use-winograd{tile=1 target=\"x86-64-v3\"}" --split-input-file | filecheck %s --check-prefix NONE

// Patches of 4 x 4 for tiles of 2 x 2: transforms around a GEMM for each of 16 points. The weights are transformed here.
// CHECK-LABEL: tir.prim_func @winograd_conv2d[%n, %h, %w](%X: !tir.buffer<[n, 8, h, w, 8], f32>, %W: !tir.buffer<[16, 64, 64], f32>, %result: !tir.buffer<[n, 8, h, w, 8], f32>)
// CHECK:         tir.block "padded"
// CHECK:         tir.block "transform"
// CHECK-COUNT-16:  tir.load %padded
// CHECK-COUNT-16:  tir.store {{.*}}, %transformed
// CHECK:         tir.block "products"
// CHECK:           arith.mulf
// CHECK:           arith.addf
// CHECK:         tir.block "inverse"
// CHECK-COUNT-16:  tir.load %products
// CHECK-COUNT-4:   tir.store {{.*}}, %tiles
// CHECK-LABEL: relax.func @main
// CHECK:         %k = relax.constant "{{.*}}" : !relax.tensor<[16, 64, 64], f32>
// CHECK-NEXT:    %y = relax.call_tir @winograd_conv2d(%x, %k) : !relax.tensor<[n, 8, h, w, 8], f32>

// With tiles of 4 x 4 there are 36 points.
// LARGE-LABEL: relax.func @main
// LARGE:         %k = relax.constant "{{.*}}" : !relax.tensor<[36, 64, 64], f32>

// NONE-LABEL:  relax.func @main
// NONE:          relax.nn.conv2d
relax.func @main[%n, %h, %w](%x: !relax.tensor<[n, 8, h, w, 8], f32>) -> !relax.object {
  %k = relax.constant dense<1.0> : tensor<8x8x3x3x8x8xf32>
  %y = relax.nn.conv2d %x, %k padding = [1, 1, 1, 1] data_layout = "NCHW8c" kernel_layout = "OIHW8i8o"
  relax.return %y
}

// -----

// Left as they are: a stride, another window, weights that are no constants, groups, images whose weights cost more than
// the multiplications.
// CHECK-LABEL: relax.func @others
// CHECK-COUNT-5: relax.nn.conv2d
// CHECK-NOT:     call_tir
relax.func @others[%n, %h, %w](%x: !relax.tensor<[n, 8, h, w, 8], f32>, %v: !relax.tensor<[8, 8, 3, 3, 8, 8], f32>,
    %s: !relax.tensor<[1, 64, 2, 2, 8], f32>) -> !relax.object {
  %k = relax.constant dense<1.0> : tensor<8x8x3x3x8x8xf32>
  %g = relax.constant dense<1.0> : tensor<8x4x3x3x8x8xf32>
  %p = relax.constant dense<1.0> : tensor<8x8x5x5x8x8xf32>
  %l = relax.constant dense<1.0> : tensor<64x64x3x3x8x8xf32>
  %0 = relax.nn.conv2d %x, %k strides = [2, 2] padding = [1, 1, 1, 1] data_layout = "NCHW8c" kernel_layout = "OIHW8i8o"
  %1 = relax.nn.conv2d %x, %p padding = [2, 2, 2, 2] data_layout = "NCHW8c" kernel_layout = "OIHW8i8o"
  %2 = relax.nn.conv2d %x, %v padding = [1, 1, 1, 1] data_layout = "NCHW8c" kernel_layout = "OIHW8i8o"
  %3 = relax.nn.conv2d %x, %g padding = [1, 1, 1, 1] groups = 2 data_layout = "NCHW8c" kernel_layout = "OIHW8i8o"
  %4 = relax.nn.conv2d %s, %l padding = [1, 1, 1, 1] data_layout = "NCHW8c" kernel_layout = "OIHW8i8o"
  %5 = relax.tuple(%0, %1, %2, %3, %4)
  relax.return %5
}

// -----

// Bytes with channels last, for machines that multiply them as numbers of 16 bits: exact, by tiles of 2 x 2 with weights
// of 16 bits in panels; what is around the data becomes part of the kernel.
// CHECK-LABEL: tir.prim_func @winograd_conv2d[%n, %h, %w](%X: !tir.buffer<[n, h, w, 64], ui8>, %W: !tir.buffer<[16, 3, 32, 16, 2], i16>, %result: !tir.buffer<[n, h, w, 48], i32>)
// CHECK:         tir.block "padded"
// CHECK:           arith.constant 7 : i8
// CHECK:         tir.block "transform"
// CHECK:           arith.extui {{.*}} : i8 to i16
// CHECK:           arith.subi {{.*}} : i16
// CHECK:         tir.block "products"
// CHECK-COUNT-2:   arith.extsi {{.*}} : i16 to i32
// CHECK:         tir.block "inverse"
// CHECK:         tir.block "result"
// CHECK:           arith.shrsi
// CHECK-LABEL: relax.func @bytes
// CHECK-NOT:     nn.pad
// CHECK:         %k = relax.constant "{{.*}}" : !relax.tensor<[16, 3, 32, 16, 2], i16>
// CHECK-NEXT:    %y = relax.call_tir @winograd_conv2d(%x, %k) : !relax.tensor<[n, h, w, 48], i32>

// LARGE-LABEL: relax.func @bytes
// LARGE:         !relax.tensor<[16, 3, 32, 16, 2], i16>

// NONE-LABEL:  relax.func @bytes
// NONE:          relax.nn.conv2d
relax.func @bytes[%n, %h, %w](%x: !relax.tensor<[n, h, w, 64], ui8>) -> !relax.object {
  %k = relax.constant dense<1> : tensor<48x3x3x64xi8>
  %p = relax.nn.pad %x pad_width = [0, 0, 1, 1, 1, 1, 0, 0] pad_value = 7.0
  %y = relax.nn.conv2d %p, %k data_layout = "NHWC" kernel_layout = "OHWI" out_dtype = i32
  relax.return %y
}

// -----

// With dilation a tile has every second row and column: that number i begins at i floordiv 2 * 4 + i mod 2.
// CHECK-LABEL: tir.prim_func @winograd_conv2d
// CHECK:         tir.block "transform"
// CHECK:           %[[FOUR:.*]] = arith.constant 4 : index
// CHECK:           arith.muli %{{.*}}, %[[FOUR]] : index
// CHECK:           arith.remui %vi
// CHECK-LABEL: relax.func @dilated
// CHECK:         relax.call_tir @winograd_conv2d
// LARGE-LABEL: relax.func @dilated
// NONE-LABEL:  relax.func @dilated
relax.func @dilated[%n](%x: !relax.tensor<[n, 8, 28, 28, 8], f32>) -> !relax.object {
  %k = relax.constant dense<1.0> : tensor<8x8x3x3x8x8xf32>
  %y = relax.nn.conv2d %x, %k padding = [2, 2, 2, 2] dilation = [2, 2] data_layout = "NCHW8c" kernel_layout = "OIHW8i8o"
  relax.return %y
}
