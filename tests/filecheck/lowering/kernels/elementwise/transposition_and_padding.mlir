// RUN: relax-opt %s -p "legalize-ops,fuse-ops,fuse-tir,schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s

// A transposition and the padding after it are one kernel, but not row by row: the first goes in tiles of 16 x 16
// bytes, through memory for all of its result, and the second copies what is contiguous.

// CHECK-LABEL: tir.prim_func @fused_permute_dims_nn_pad[
// CHECK:         tir.alloc_buffer : !tir.buffer<[n, h, w, 64], ui8>
// CHECK:         tir.for (%tile)
// CHECK-COUNT-16:  tir.load %x{{.*}} : vector<16xi8>
// CHECK-COUNT-16:  vector.shuffle
// CHECK-NOT:     tir.for (%row)
// CHECK:         tir.store {{.*}}, %{{.*}}[{{.*}}]

relax.func @main[%n, %h, %w](%x: !relax.tensor<[n, 64, h, w], ui8>) -> !relax.tensor<[n, h + 2, w + 2, 64], ui8> {
  %0 = relax.permute_dims %x axes = [0, 2, 3, 1]
  %1 = relax.nn.pad %0 pad_width = [0, 0, 1, 1, 1, 1, 0, 0] pad_value = 7.0
  relax.return %1
}
