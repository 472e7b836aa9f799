// RUN: RELAX_INVALID

// CHECK: 'relax.dist.annotate_sharding' op expected a mesh with sizes of at least 1, got [2, 0]
relax.func @dist_annotate_sharding_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.dist.annotate_sharding %x mesh = [2, 0] placement = "R, R"
  relax.return %x
}

// -----

// CHECK: 'relax.dist.redistribute' op expected R, S[dimension] or P for each of the 2 axes of the mesh, got "S[0]"
relax.func @dist_redistribute_c2[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.dist.redistribute %x mesh = [2, 2] placement = "S[0]"
  relax.return %x
}

// -----

// CHECK: 'relax.dist.redistribute' op expected R, S[dimension] or P for each of the 1 axes of the mesh, got "T"
relax.func @dist_redistribute_c2[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.dist.redistribute %x mesh = [2] placement = "T"
  relax.return %x
}

// -----

// CHECK: 'relax.dist.redistribute' op expected each dimension to be sharded once, got axis0 = 2: S[0], axis1 = 2: S[0]
relax.func @dist_redistribute_c2[%n](%x: !relax.tensor<*, f32>) -> !relax.object {
  %0 = relax.dist.redistribute %x mesh = [2, 2] placement = "S[0], S[0]"
  relax.return %x
}

// -----

// CHECK: 'relax.dist.redistribute' op expected a placement within rank 1, got S[1]
relax.func @dist_redistribute_c3[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.dist.redistribute %x mesh = [2] placement = "S[1]"
  relax.return %x
}

// -----

// CHECK: 'relax.dist.local_view' op expected a dimension that 2 workers divide, got 3
relax.func @dist_local_view_c1(%x: !relax.tensor<[3], f32>) -> !relax.object {
  %0 = relax.dist.local_view %x mesh = [2] placement = "S[0]"
  relax.return %x
}

// -----

// CHECK: 'relax.dist.redistribute_replica_to_shard' op expected a dimension that 4 workers divide, got 6
relax.func @dist_redistribute_replica_to_shard_c3(%x: !relax.tensor<[6], f32>) -> !relax.object {
  %0 = relax.dist.redistribute_replica_to_shard %x num_workers = 4
  relax.return %x
}

// -----

// CHECK: 'relax.dist.redistribute' op expected 2 different names for the axes of the mesh, got "x, x"
relax.func @dist_redistribute_c4(%x: !relax.tensor<[3], f32>) -> !relax.object {
  %0 = relax.dist.redistribute %x mesh = [2, 2] placement = "R, R" axes = "x, x"
  relax.return %x
}

// -----

// CHECK: 'relax.dist.local_view' op expected placements R or S[dimension], got axis0 = 2: P
relax.func @dist_local_view_c2(%x: !relax.tensor<[3], f32>) -> !relax.object {
  %0 = relax.dist.local_view %x mesh = [2] placement = "P"
  relax.return %x
}

// -----

// CHECK: 'relax.dist.global_view' op expected a constant size of the mesh along axis axis0, got n
relax.func @dist_global_view_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.dist.global_view %x mesh = [n] placement = "S[0]"
  relax.return %x
}

// -----

// CHECK: 'relax.dist.global_view' op expected placements R or S[dimension], got axis0 = 2: P[max]
relax.func @dist_global_view_c2(%x: !relax.tensor<[3], f32>) -> !relax.object {
  %0 = relax.dist.global_view %x mesh = [2] placement = "P[max]"
  relax.return %x
}
