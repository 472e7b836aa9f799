// RUN: relax-opt %s -p "use-winograd{tile=2 target=\"x86-64-v3\"},legalize-ops,fuse-ops,fuse-tir,pack-weights{target=\"x86-64-v3\"},schedule-cpu{target=\"x86-64-v3 cores=1\" explain=true}" | filecheck %s

// Patches of bytes are numbers of 16 bits after their transform, and the memory for them is seen as pairs of these by the
// micro-kernel, whose accumulators have 32 bits.

// CHECK-LABEL: tir.prim_func @fused_winograd_conv2d
// CHECK-SAME:    Winograd since transforms are around products of the same points
// CHECK-NOT:     %padded = tir.alloc_buffer
// CHECK:         tir.for parallel (%task)
// CHECK:           %[[PAIRS:.*]] = tir.alloc_buffer : !tir.buffer<[{{.*}}], i32, align = 64>
// CHECK:           %[[NUMBERS:.*]] = tir.view %[[PAIRS]]{{.*}}i16
// CHECK:           %sums = tir.alloc_buffer : !tir.buffer<[{{.*}}], i32, align = 64>

// Tile number t of two that are interleaved begins at t floordiv 2 * 4 + t mod 2. Sixteen channels are transformed at
// once; at the border a patch is copied, with the point of zero around the data.
// CHECK:             arith.remui
// CHECK:             tir.call unchecked @relax.routine.linear.i16.16to16x16{{.*}}(%x{{.*}}, %[[NUMBERS]])
// CHECK:             vector.broadcast {{.*}} : i8 to vector<16xi8>
// CHECK:             tir.call unchecked @relax.routine.linear.i16.16to16x16{{.*}}, %[[NUMBERS]])
// CHECK:             tir.call unchecked @relax.routine.tile.i32.6x16{{.*}}(%[[PAIRS]], %{{.*}}, %sums)

// Sums are 4 times those of the convolution; then comes the epilogue, to bytes. The values of a tile that is within the
// image stay in registers.
// CHECK-COUNT-24:    arith.{{addi|subi}} {{.*}} : vector<8xi32>
// CHECK-COUNT-4:     arith.shrsi {{.*}} : vector<8xi32>
// CHECK:             tir.call unchecked @relax.routine.linear.i32.16to4x8{{.*}}(%sums, %
// CHECK:             arith.shrsi
// CHECK:             tir.convert fptoui
// CHECK:             tir.store
relax.func @main[%n](%x: !relax.tensor<[n, 28, 28, 64], ui8>) -> !relax.object {
  %k = relax.constant dense<1> : tensor<48x3x3x64xi8>
  %p = relax.nn.pad %x pad_width = [0, 0, 2, 2, 2, 2, 0, 0] pad_value = 7.0
  %y = relax.nn.conv2d %p, %k dilation = [2, 2] data_layout = "NHWC" kernel_layout = "OHWI" out_dtype = i32
  %f = relax.astype %y dtype = f32
  %z = relax.astype %f dtype = ui8
  relax.return %z
}

// Both factors have two numbers in 32 bits.
// CHECK:       tir.prim_func private @relax.routine.tile.i32.6x16
// CHECK-COUNT-12: tir.dot i16 {{.*}}, i16
