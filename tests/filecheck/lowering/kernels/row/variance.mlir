// RUN: relax-opt %s -p "legalize-ops,schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s

// Mean and variance of a row in one pass, by shifted data: the shift is the mean of the first 32 elements, 0 if that is no
// number. Then the sums of the differences and of their squares are formed in one loop, each in four accumulators.

// CHECK-LABEL: tir.prim_func @nn_layer_norm(
// CHECK:         %shifts = tir.alloc_buffer : !tir.buffer<[1], f32, scope = "local", align = 64>
// CHECK:         tir.for (%row)
// CHECK:           tir.store {{.*}}, %heads
// CHECK:           [[MEAN:%[0-9]+]] = arith.divf
// CHECK:           arith.subf [[MEAN]], [[MEAN]]
// CHECK:           arith.cmpf oeq
// CHECK:           tir.store {{.*}}, %shifts
// CHECK:           [[SHIFT:%[0-9]+]] = tir.load %shifts
// CHECK:           %sums_9 = tir.alloc_buffer : !tir.buffer<[32], f32, scope = "local", align = 64>
// CHECK:           %sums_10 = tir.alloc_buffer : !tir.buffer<[32], f32, scope = "local", align = 64>
// CHECK:           tir.for (%v_1)
// CHECK:             tir.for vectorized
// CHECK:               tir.load %x_1
// CHECK-NEXT:          arith.subf
// CHECK-NEXT:          arith.addf
// CHECK:               arith.subf
// CHECK-NEXT:          arith.mulf
// CHECK-NEXT:          arith.addf
// CHECK-NEXT:          tir.store {{.*}}, %sums_9
// CHECK-NEXT:          tir.store {{.*}}, %sums_10

relax.func @rows(%x: !relax.tensor<[64, 1000], f32>, %g: !relax.tensor<[1000], f32>, %b: !relax.tensor<[1000], f32>) -> !relax.tensor<[64, 1000], f32> {
  %0 = relax.nn.layer_norm %x, %g, %b axes = [-1]
  relax.return %0
}
