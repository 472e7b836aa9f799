// RUN: relax-opt %s -p "legalize-ops,fuse-ops,fuse-tir,schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s
// RUN: relax-opt %s -p "legalize-ops,fuse-ops,fuse-tir,schedule-cpu{target=\"x86-64-v3 cores=1 activation-bits=32\"}" | filecheck %s --check-prefix FLOATS

// Many rows of x, block-quantised weights, and a machine that adds up two products of 16 bits: 32 numbers of a row are
// rounded to 16 bits at a time. The even and the odd numbers of four are pairs, as they are in a word of the weights.

// CHECK-LABEL: tir.prim_func @fused_dequantize_blocks_permute_dims_matmul(
// CHECK:         %row_integers = tir.alloc_buffer : !tir.buffer<[4608], i16
// CHECK:         %row_steps = tir.alloc_buffer : !tir.buffer<[24, 6], f32
// CHECK:         %row_sums = tir.alloc_buffer : !tir.buffer<[24, 6], f32
// CHECK:         tir.for (%row)
// CHECK:           tir.for (%chunk)
// CHECK-COUNT-4:     math.roundeven
// CHECK:             tir.store {{.*}}, %row_steps
// CHECK:             tir.convert trunci {{.*}} : vector<8xi32> to vector<8xi16>
// CHECK:             vector.shuffle {{.*}} [0, 2, 1, 3, 4, 6, 5, 7] : vector<8xi16>, vector<8xi16>
// CHECK:             tir.store {{.*}}, %row_integers
// CHECK:             tir.store {{.*}}, %row_sums

// A panel has two vectors of columns. A vector is decoded from the same block of eight rows of the weights: a lane is a
// column, and has its scale, its least number, and pairs of integers.

// CHECK:         %panel = tir.alloc_buffer : !tir.buffer<[96, 16], i32
// CHECK:         %scales = tir.alloc_buffer : !tir.buffer<[6, 16], f32
// CHECK:         %leasts = tir.alloc_buffer : !tir.buffer<[6, 16], f32
// CHECK:         tir.for (%unit)
// CHECK:           tir.for (%v)
// CHECK:             tir.for (%block)
// CHECK-COUNT-8:     tir.prefetch %w
// CHECK-COUNT-8:     tir.load %w_1[{{.*}}] : vector<16xi8>
// CHECK:             tir.convert extf {{.*}} : vector<8xf16> to vector<8xf32>
// CHECK:             tir.store {{.*}}, %scales
// CHECK:             tir.store {{.*}}, %leasts
// CHECK-COUNT-16:    tir.store {{.*}}, %panel
// CHECK-NOT:         tir.store {{.*}}, %panel

// Three tiles of six rows and one of two. A tile has the sums of a group of 32 numbers, which are scaled and added to
// totals.

// CHECK:           tir.for (%strip)
// CHECK:             tir.if
// CHECK:               tir.for (%group)
// CHECK:                 %sums = tir.alloc_buffer : !tir.buffer<[6, 16], i32, scope = "local"
// CHECK:                 tir.for (%pair)
// CHECK-COUNT-2:           tir.load %panel
// CHECK:                   tir.load %row_integers_1
// CHECK-COUNT-12:          tir.dot i16 {{.*}} : vector<8xi32>
// CHECK-NOT:               tir.dot
// CHECK:                 tir.load %scales
// CHECK:                 tir.load %leasts
// CHECK:                 tir.load %row_steps
// CHECK:                 tir.load %row_sums
// CHECK:                 tir.convert sitofp {{.*}} : vector<8xi32> to vector<8xf32>
// CHECK-COUNT-2:         math.fma
// CHECK-NEXT:            tir.store
// CHECK-COUNT-22:        math.fma
// CHECK-NOT:             math.fma
// CHECK:               else
// CHECK-COUNT-4:           tir.dot i16
// CHECK-NOT:               tir.dot

// Where rows may not be rounded, blocks are decoded to f32.

// FLOATS-LABEL: tir.prim_func @fused_dequantize_blocks_permute_dims_matmul(
// FLOATS:         %decoded = tir.alloc_buffer : !tir.buffer<[768], f32
// FLOATS-NOT:     tir.dot

relax.func @decoded(%x: !relax.tensor<[20, 192], f32>, %w: !relax.tensor<[64, 120], ui8>) -> !relax.tensor<[20, 64], f32> {
  %0 = relax.dequantize_blocks %w format = "q4_1"
  %1 = relax.permute_dims %0
  %2 = relax.matmul %x, %1
  relax.return %2
}
