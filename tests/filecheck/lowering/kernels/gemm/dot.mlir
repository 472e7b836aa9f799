// RUN: relax-opt %s -p "legalize-ops,schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s

// Dot products, for operands that are both contiguous along K: one vector accumulator for each of 3 rows and 4 columns.
// Chunks of K keep their sums apart in totals; the last elements are loaded with a mask, whose other lanes are zero.

// CHECK-LABEL: tir.prim_func @einsum(
// CHECK:         %partial_sums = tir.alloc_buffer : !tir.buffer<[24, 8], f32, align = 64>
// CHECK:         %sums = tir.alloc_buffer : !tir.buffer<[12, 8], f32, scope = "local", align = 64>
// CHECK:         %totals = tir.alloc_buffer : !tir.buffer<[12, 8], f32, scope = "local", align = 64>
// CHECK:         tir.for (%chunk)
// CHECK:           tir.for (%v)
// CHECK-COUNT-3:     tir.load %x_1[{{.*}}] : vector<8xf32>
// CHECK:             [[B:%[0-9]+]] = tir.load %y_1[{{.*}}] : vector<8xf32>
// CHECK:             math.fma {{.*}}[[B]]
// CHECK:             math.fma {{.*}}[[B]]
// CHECK:             math.fma {{.*}}[[B]]
// CHECK-COUNT-9:     math.fma
// CHECK-NOT:         math.fma
// CHECK:           tir.store {{.*}}, %totals
// CHECK:         [[MASK:%[0-9]+]] = vector.create_mask {{.*}} : vector<8xi1>
// CHECK-COUNT-3: tir.load %x_1[{{.*}}] mask [[MASK]]
// CHECK-COUNT-12: math.fma
// CHECK-COUNT-12: tir.store {{.*}}, %partial_sums

// A tree of shuffles makes one vector of results of eight accumulators: halves, quarters, then single lanes. At the end
// of a row of the output the store is masked.

// CHECK:         vector.shuffle {{.*}} [0, 1, 2, 3, 8, 9, 10, 11]
// CHECK-NEXT:    vector.shuffle {{.*}} [4, 5, 6, 7, 12, 13, 14, 15]
// CHECK-NEXT:    arith.addf {{.*}} : vector<8xf32>
// CHECK:         vector.shuffle {{.*}} [0, 1, 8, 9, 4, 5, 12, 13]
// CHECK:         vector.shuffle {{.*}} [0, 8, 2, 10, 4, 12, 6, 14]
// CHECK:         tir.if
// CHECK:           tir.store {{.*}}, %einsum_1[{{%[0-9]+}}]
// CHECK:         } else {
// CHECK:           vector.create_mask
// CHECK:           tir.store {{.*}}, %einsum_1[{{.*}}] mask

relax.func @transposed_b(%x: !relax.tensor<[3, 2099], f32>, %y: !relax.tensor<[600, 2099], f32>) -> !relax.tensor<[3, 600], f32> {
  %0 = relax.einsum %x, %y subscripts = "mk,nk->mn"
  relax.return %0
}
