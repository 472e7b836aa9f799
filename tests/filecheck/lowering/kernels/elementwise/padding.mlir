// RUN: relax-opt %s -p "legalize-ops,schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s

// Constant padding: a row inside of the data is a fill, a copy and a fill; other rows are filled. There is no condition
// for each element. The last vector overlaps the one before, so that it needs no mask; rows that are
// shorter than a vector have narrower ones, and the two elements at an end one of two.

// CHECK-LABEL: tir.prim_func @nn_pad(
// CHECK:         tir.for (%row)
// CHECK:           [[INSIDE:%[0-9]+]] = arith.cmpi ult
// CHECK:           tir.if [[INSIDE]]
// CHECK:             vector.broadcast {{.*}} : f32 to vector<2xf32>
// CHECK:             tir.store {{.*}}, %pad_1
// CHECK:             tir.for (%v_1)
// CHECK:               [[COPY:%[0-9]+]] = tir.load %x_1[{{.*}}] : vector<8xf32>
// CHECK-NOT:           arith.select
// CHECK:               tir.store [[COPY]], %pad_1
// CHECK:             [[LAST:%[0-9]+]] = tir.load %x_1[{{.*}}] : vector<8xf32>
// CHECK:             tir.store [[LAST]], %pad_1
// CHECK:             tir.load %x_1[{{.*}}] : vector<4xf32>
// CHECK:             tir.load %x_1[{{.*}}] : vector<2xf32>
// CHECK:           } else {
// CHECK:             [[ZEROS:%[0-9]+]] = vector.broadcast {{.*}} : f32 to vector<8xf32>
// CHECK:             tir.store [[ZEROS]], %pad_1
// CHECK-NOT:     mask

relax.func @zeros(%x: !relax.tensor<[64, 100], f32>) -> !relax.tensor<[66, 104], f32> {
  %0 = relax.nn.pad %x pad_width = [1, 1, 2, 2]
  relax.return %0
}
