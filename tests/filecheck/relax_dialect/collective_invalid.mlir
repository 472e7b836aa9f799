// RUN: RELAX_INVALID

// CHECK: 'relax.ccl.allreduce' op expected op_type to be one of sum, prod, min, max, avg, got median
relax.func @ccl_allreduce_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.ccl.allreduce %x op_type = "median"
  relax.return %x
}

// -----

// CHECK: 'relax.ccl.allgather' op expected at least one worker, got 0
relax.func @ccl_allgather_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.ccl.allgather %x num_workers = 0
  relax.return %x
}

// -----

// CHECK: 'relax.ccl.allgather' op expected a rank of at least 1, got 1 and 0
relax.func @ccl_allgather_c2(%x: !relax.tensor<[], f32>) -> !relax.object {
  %0 = relax.ccl.allgather %x num_workers = 1
  relax.return %x
}

// -----

// CHECK: 'relax.ccl.scatter_from_worker0' op expected at least one worker, got -1
relax.func @ccl_scatter_from_worker0_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.ccl.scatter_from_worker0 %x num_workers = -1
  relax.return %x
}

// -----

// CHECK: 'relax.ccl.scatter_from_worker0' op axis 1 is out of range for rank 1
relax.func @ccl_scatter_from_worker0_c2[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.ccl.scatter_from_worker0 %x num_workers = 1 axis = 1
  relax.return %x
}

// -----

// CHECK: 'relax.ccl.scatter_from_worker0' op expected a dimension that 2 workers divide, got 2 * n + 1
relax.func @ccl_scatter_from_worker0_c3[%n](%x: !relax.tensor<[2 * n + 1], f32>) -> !relax.object {
  %0 = relax.ccl.scatter_from_worker0 %x num_workers = 2
  relax.return %x
}
