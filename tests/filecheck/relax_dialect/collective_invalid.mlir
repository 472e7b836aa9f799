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

// -----

// CHECK: 'relax.ccl.allgather' op axis 1 is out of range for rank 1
relax.func @ccl_allgather_c3[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.ccl.allgather %x num_workers = 1 axis = 1
  relax.return %x
}

// -----

// CHECK: 'relax.ccl.reduce_scatter' op expected at least one worker, got 0
relax.func @ccl_reduce_scatter_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.ccl.reduce_scatter %x num_workers = 0
  relax.return %x
}

// -----

// CHECK: 'relax.ccl.reduce_scatter' op axis 1 is out of range for rank 1
relax.func @ccl_reduce_scatter_c2[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.ccl.reduce_scatter %x num_workers = 2 axis = 1
  relax.return %x
}

// -----

// CHECK: 'relax.ccl.reduce_scatter' op expected a dimension that 2 workers divide, got 7
relax.func @ccl_reduce_scatter_c3(%x: !relax.tensor<[7], f32>) -> !relax.object {
  %0 = relax.ccl.reduce_scatter %x num_workers = 2
  relax.return %x
}

// -----

// CHECK: 'relax.ccl.reduce_scatter' op expected op_type to be one of sum, prod, min, max, avg, got mode
relax.func @ccl_reduce_scatter_c4(%x: !relax.tensor<[8], f32>) -> !relax.object {
  %0 = relax.ccl.reduce_scatter %x num_workers = 2 op_type = "mode"
  relax.return %x
}

// -----

// CHECK: 'relax.ccl.all_to_all' op expected at least one worker, got 0
relax.func @ccl_all_to_all_c1(%x: !relax.tensor<[8, 8], f32>) -> !relax.object {
  %0 = relax.ccl.all_to_all %x num_workers = 0 concat_axis = 1
  relax.return %x
}

// -----

// CHECK: 'relax.ccl.all_to_all' op expected each axis once, got [1, 1]
relax.func @ccl_all_to_all_c2(%x: !relax.tensor<[8, 8], f32>) -> !relax.object {
  %0 = relax.ccl.all_to_all %x num_workers = 2 axis = 1 concat_axis = 1
  relax.return %x
}

// -----

// CHECK: 'relax.ccl.all_to_all' op expected a dimension that 2 workers divide, got 7
relax.func @ccl_all_to_all_c3(%x: !relax.tensor<[7, 8], f32>) -> !relax.object {
  %0 = relax.ccl.all_to_all %x num_workers = 2 concat_axis = 1
  relax.return %x
}

// -----

// CHECK: 'relax.ccl.send' op tag expected a number that is not negative, got -1
relax.func @ccl_send_c1(%x: !relax.tensor<[8, 8], f32>) -> !relax.object {
  %0 = relax.ccl.send %x to = 1 tag = -1
  relax.return %x
}

// -----

// CHECK: 'relax.ccl.receive' op source expected a number that is not negative, got -1
relax.func @ccl_receive_c1(%s: !relax.shape<[8, 8]>) -> !relax.object {
  %0 = relax.ccl.receive %s source = -1 dtype = f32
  relax.return %0
}

// -----

// CHECK: 'relax.ccl.receive' op expected a size that is not negative, got 0 and -1
relax.func @ccl_receive_c2(%x: !relax.tensor<[8], f32>) -> !relax.object {
  %s = relax.shape [8, -1]
  %0 = relax.ccl.receive %s source = 0 dtype = f32
  relax.return %0
}

// -----

// CHECK: 'relax.ccl.start' op expected collective to be one of allreduce, allgather, reduce_scatter, got broadcast
relax.func @ccl_start_c1(%x: !relax.tensor<[8, 8], f32>) -> !relax.object {
  %0 = relax.ccl.start %x collective = "broadcast"
  relax.return %0
}

// -----

// CHECK: 'relax.ccl.start' op expected op_type to be one of sum, prod, min, max, avg, got mode
relax.func @ccl_start_c2(%x: !relax.tensor<[8, 8], f32>) -> !relax.object {
  %0 = relax.ccl.start %x collective = "allreduce" op_type = "mode"
  relax.return %0
}

// -----

// CHECK: 'relax.ccl.start' op expected at least one worker, got 0
relax.func @ccl_start_c3(%x: !relax.tensor<[8, 8], f32>) -> !relax.object {
  %0 = relax.ccl.start %x collective = "allgather"
  relax.return %0
}

// -----

// CHECK: 'relax.ccl.start' op axis 2 is out of range for rank 2
relax.func @ccl_start_axis_c3(%x: !relax.tensor<[8, 8], f32>) -> !relax.object {
  %0 = relax.ccl.start %x collective = "reduce_scatter" num_workers = 2 axis = 2
  relax.return %0
}

// -----

// CHECK: 'relax.ccl.allreduce' op expected a tensor, and the result of at most one relax.ccl.start, got 3 operands
relax.func @ccl_allreduce_c2(%x: !relax.tensor<[8, 8], f32>) -> !relax.object {
  %0 = relax.ccl.allreduce %x, %x, %x
  relax.return %0
}

// -----

// CHECK: 'relax.ccl.allgather' op expected the result of a relax.ccl.start, !relax.tensor<[0], i1>, got !relax.tensor<[8, 8], f32>
relax.func @ccl_allgather_c4(%x: !relax.tensor<[8, 8], f32>) -> !relax.object {
  %0 = relax.ccl.allgather %x, %x num_workers = 2
  relax.return %0
}

// -----

// CHECK: 'relax.ccl.reduce_scatter' op expected a tensor, and the result of at most one relax.ccl.start, got 3 operands
relax.func @ccl_reduce_scatter_c5(%x: !relax.tensor<[8, 8], f32>) -> !relax.object {
  %0 = relax.ccl.reduce_scatter %x, %x, %x num_workers = 2
  relax.return %0
}
