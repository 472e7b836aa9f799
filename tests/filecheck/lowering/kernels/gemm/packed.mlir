// RUN: relax-opt %s -p "legalize-ops,schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s

// A packed GEMM: loops over K blocks, blocks of rows, panels of 16 columns and strips of 6 rows. The first strip packs the panel. Whole tiles go to the output, others through memory; the last two rows have a lower tile.

// CHECK-LABEL: tir.prim_func @matmul(
// CHECK:         %packed_columns = tir.alloc_buffer : !tir.buffer<[{{.*}}, 256, 16], f32, align = 64>
// CHECK:         tir.for (%task)
// CHECK:           tir.for (%k_block, %section)
// CHECK:             tir.for (%block)
// CHECK:               tir.for (%panel)
// CHECK:                 tir.for (%strip)
// CHECK:                   tir.if
// CHECK:                     tir.call unchecked @relax.routine.tile.f32.6x16{{.*}}, %matmul_1)
// CHECK:                   } else {
// CHECK:                     %tile = tir.alloc_buffer : !tir.buffer<[6, 16], f32, align = 64>
// CHECK:                     tir.call unchecked @relax.routine.tile.f32.6x16
// CHECK:                     tir.call unchecked @relax.routine.tile.f32.6x16
// CHECK:                     tir.call unchecked @relax.routine.tile.f32.2x16
// CHECK:                     tir.for (%i)

// The micro-kernel: 6 x 2 vector accumulators, the rows of the output are prefetched; a step of K loads two vectors of B and broadcasts 6 elements of A. Accumulators replace the output in the first K block and are added to it in others.

// CHECK:       tir.prim_func private @relax.routine.tile.f32.6x16
// CHECK:         %sums = tir.alloc_buffer : !tir.buffer<[6, 16], f32, scope = "local", align = 64>
// CHECK:         tir.prefetch %tile[{{.*}}] level 1
// CHECK:         tir.for (%r) in (%lower to %upper) annotations {llvm.loop.unroll.count = 4 : i32} {
// CHECK:           [[B0:%[0-9]+]] = tir.load %columns[{{.*}}] : vector<8xf32>
// CHECK:           [[B1:%[0-9]+]] = tir.load %columns[{{.*}}] : vector<8xf32>
// CHECK:           [[A0:%[0-9]+]] = vector.broadcast {{.*}} : f32 to vector<8xf32>
// CHECK:           math.fma [[A0]], [[B0]]
// CHECK:           math.fma [[A0]], [[B1]]
// CHECK:           [[A1:%[0-9]+]] = vector.broadcast
// CHECK:           math.fma [[A1]], [[B0]]
// CHECK:           math.fma [[A1]], [[B1]]
// CHECK:         tir.if
// CHECK-NOT:       tir.load %tile
// CHECK:           tir.store {{.*}}, %tile
// CHECK:         } else {
// CHECK:           tir.load %tile

// The one that packs: each vector of B is also stored to the panel.

// CHECK:       tir.prim_func private @relax.routine.tile.f32.6x16
// CHECK:         tir.for (%r)
// CHECK:           [[B:%[0-9]+]] = tir.load %columns[{{.*}}] : vector<8xf32>
// CHECK:           tir.store [[B]], %into

relax.func @large(%x: !relax.tensor<[512, 512], f32>, %y: !relax.tensor<[512, 512], f32>) -> !relax.tensor<[512, 512], f32> {
  %0 = relax.matmul %x, %y
  relax.return %0
}
