builtin.module {
  relax.func @exchanged[%n, %m](%x: !relax.tensor<[4 * n, 6], f32>, %y: !relax.tensor<[_, m], f32>) -> !relax.object {
    %0 = relax.ccl.allreduce %x
    %1 = relax.ccl.allreduce %x op_type = "avg" all_groups
    %2 = relax.ccl.allgather %x num_workers = 2
    %3 = relax.ccl.broadcast_from_worker0 %x
    %4 = relax.ccl.scatter_from_worker0 %x num_workers = 2
    %5 = relax.ccl.scatter_from_worker0 %y num_workers = 3 axis = -1
    relax.return %x
  }
}
