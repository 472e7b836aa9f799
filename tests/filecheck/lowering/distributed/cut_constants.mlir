// RUN: relax-opt %s -p "propagate-sharding,lower-distributed,cut-constants{rank=1},dce" --split-input-file | filecheck %s

// A worker has its tile of a constant; here the last one has less.
// CHECK-LABEL: relax.func @main[
// CHECK:         %[[C:.*]] = relax.constant "const_{{.*}}" : !relax.tensor<[2], f32>
// CHECK-NEXT:    %[[T:.*]] = relax.match_cast %[[C]] : !relax.tensor<[tile_x], f32>
// CHECK-NOT:     redistribute_replica_to_shard
// CHECK:         relax.add %{{.*}}, %[[T]]
relax.func @main[%n](%x: !relax.tensor<[n, 5], f32, sharding<x = 2: S[1]>>) -> !relax.object {
  %0 = relax.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0]> : tensor<5xf32>
  %1 = relax.add %x, %0
  relax.return %1
}

// -----

// Elements that are not in this process are cut when the program runs.
// CHECK-LABEL: relax.func @named[
// CHECK:         %[[C:.*]] = relax.constant "w" : !relax.tensor<[6], f32>
// CHECK-NEXT:    relax.dist.redistribute_replica_to_shard %[[C]] index = x_index num_workers = 2 tile = 3 group = "x"
relax.func @named(%x: !relax.tensor<[2, 6], f32, sharding<x = 2: S[1]>>) -> !relax.object {
  %0 = relax.constant "w" : !relax.tensor<[6], f32>
  %1 = relax.add %x, %0
  relax.return %1
}

// -----

// Along both axes of a mesh, in units: the second of 2 x 2 workers has two rows, and the last two columns.
// CHECK-LABEL: relax.func @two_axes[
// CHECK:         relax.constant "const_{{.*}}" : !relax.tensor<[2, 1, 2], f32>
// CHECK-NOT:     redistribute_replica_to_shard
// CHECK:         relax.return
relax.func @two_axes(%x: !relax.tensor<[3, 6], f32, sharding<y = 2: S[0], z = 2: S[1:2]>>) -> !relax.object {
  %0 = relax.constant dense<[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]> : tensor<3x6xf32>
  %1 = relax.add %x, %0
  relax.return %1
}
