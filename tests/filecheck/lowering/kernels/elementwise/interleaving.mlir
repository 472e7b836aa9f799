// RUN: relax-opt %s -p "legalize-ops,schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s

// Three components are interleaved: three vectors are loaded and stored, with two shuffles for each that is stored. The
// last step overlaps the one before it, so that it needs no mask; fewer pixels than a vector go one by one.

// CHECK-LABEL: tir.prim_func @permute_dims(
// CHECK:         arith.cmpi sge
// CHECK:         tir.if
// CHECK:           tir.for (%v)
// CHECK:             [[AT:%[0-9]+]] = arith.minsi
// CHECK:             [[R:%[0-9]+]] = tir.load %x_1[[[AT]]] : vector<8xf32>
// CHECK:             [[G:%[0-9]+]] = tir.load %x_1[{{.*}}] : vector<8xf32>
// CHECK:             [[B:%[0-9]+]] = tir.load %x_1[{{.*}}] : vector<8xf32>
// CHECK-NEXT:        [[RG:%[0-9]+]] = vector.shuffle [[R]], [[G]] [0, 8, 0, 1, 9, 1, 2, 10]
// CHECK-NEXT:        [[RGB:%[0-9]+]] = vector.shuffle [[RG]], [[B]] [0, 1, 8, 3, 4, 9, 6, 7]
// CHECK-COUNT-4:     vector.shuffle
// CHECK-COUNT-3:     tir.store {{.*}}, %transpose_1
// CHECK-NOT:         mask
// CHECK:         } else {
// CHECK:           tir.for (%e)

relax.func @to_nhwc(%x: !relax.tensor<[3, 4096], f32>) -> !relax.tensor<[4096, 3], f32> {
  %0 = relax.permute_dims %x axes = [1, 0]
  relax.return %0
}

// The inverse: of three vectors of pixels, every third element.

// CHECK-LABEL: tir.prim_func @permute_dims_1(
// CHECK-COUNT-3:   tir.load %x_1[{{.*}}] : vector<8xf32>
// CHECK-NEXT:      vector.shuffle {{.*}} [0, 3, 6, 9, 12, 15, 2, 5]
// CHECK-NEXT:      vector.shuffle {{.*}} [0, 1, 2, 3, 4, 5, 10, 13]
// CHECK-COUNT-4:   vector.shuffle
// CHECK-COUNT-3:   tir.store {{.*}}, %transpose_1

relax.func @to_nchw(%x: !relax.tensor<[4096, 3], f32>) -> !relax.tensor<[3, 4096], f32> {
  %0 = relax.permute_dims %x axes = [1, 0]
  relax.return %0
}
