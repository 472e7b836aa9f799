// RUN: relax-opt %s -p "use-winograd{tile=2 target=\"x86-64-v3\"},legalize-ops,fuse-ops,fuse-tir,pack-weights{target=\"x86-64-v3\"},schedule-cpu{target=\"x86-64-v3 cores=1\" explain=true}" | filecheck %s

// A task has memory for the transformed patches and the sums of a block of tiles. The padding and the whole products are
// never stored. A row of memory for patches is that of 128 channels, though there are 64.

// CHECK-LABEL: tir.prim_func @fused_winograd_conv2d_nn_relu_panels
// CHECK-SAME:    Winograd since transforms are around products of the same points
// CHECK-NOT:     %padded = tir.alloc_buffer
// CHECK:         tir.for parallel (%task)
// CHECK:           %transformed = tir.alloc_buffer : !tir.buffer<[91520], f32, align = 64>
// CHECK:           %sums = tir.alloc_buffer : !tir.buffer<[37760], f32, align = 64>
// CHECK:           tir.for (%unit) {{.*}}relax.loop.plain_addresses

// Patches are transformed where they lie in the data; those at the border are copied with zeros first.
// CHECK:             %patch = tir.alloc_buffer : !tir.buffer<[128], f32, align = 64>
// CHECK:             tir.for (%t)
// CHECK:               tir.for (%c)
// CHECK:                 tir.call unchecked @relax.routine.linear.f32.16to16x8{{.*}}(%x_1, %transformed)
// CHECK:                 tir.call unchecked @relax.routine.linear.f32.16to16x8{{.*}}, %transformed)

// A GEMM for each point, by the register tiles of other GEMMs, with rows that are left over by smaller ones.
// CHECK:             tir.for (%point)
// CHECK:               tir.for (%panel)
// CHECK:                 tir.for (%strip)
// CHECK:                   tir.call unchecked @relax.routine.tile.f32.6x16{{.*}}(%transformed, %k_1, %sums)
// CHECK:                   tir.call unchecked @relax.routine.tile.f32.4x16{{.*}}(%transformed, %k_1, %sums)

// The inverse transform of a tile and the epilogue: in registers if the whole tile lies within the image, else of the
// results that do.
// CHECK-COUNT-4:     arith.maximumf
// CHECK:             %tile = tir.alloc_buffer : !tir.buffer<[32], f32, align = 64>
// CHECK:             tir.call unchecked @relax.routine.linear.f32.16to4x8{{.*}}(%sums, %
// CHECK:             tir.for (%p_1)
// CHECK:               tir.for (%q_1)
// CHECK:                 arith.maximumf
// CHECK:                 tir.store {{.*}}, %z
relax.func @main[%n, %h, %w](%x: !relax.tensor<[n, 8, h, w, 8], f32>) -> !relax.object {
  %k = relax.constant dense<1.0> : tensor<8x8x3x3x8x8xf32>
  %y = relax.nn.conv2d %x, %k padding = [1, 1, 1, 1] data_layout = "NCHW8c" kernel_layout = "OIHW8i8o"
  %z = relax.nn.relu %y
  relax.return %z
}

// How far rows are apart is a constant in the code of high tiles, one for up to 128 channels and one for up to 512. It is
// an argument of low ones, which are the same for all numbers of channels.
// CHECK:       tir.prim_func private @relax.routine.tile.f32.6x16{{.*}}%column, %ahead,
// CHECK:       tir.prim_func private @relax.routine.tile.f32.4x16{{.*}}%column, %row_each, %ahead,
