builtin.module {
  relax.func @messages[%n](%x: !relax.tensor<[n], f32>) -> !relax.tuple<!relax.tensor<[0], i1>, !relax.tensor<[n, 2], f16>> {
    %0 = relax.ccl.send %x to = 1 tag = 3 group = "p"
    %s = relax.shape [n, 2]
    %1 = relax.ccl.receive %s source = 1 dtype = f16
    %2 = relax.tuple(%0, %1)
    relax.return %2
  }
}
// -----
builtin.module {
  relax.func @begun[%n, %t](%x: !relax.tensor<[n, 256], f32>, %y: !relax.tensor<[t, 4], f32>) -> !relax.object {
    %0 = relax.ccl.start %x collective = "allreduce" group = "x"
    %1 = relax.ccl.start %y collective = "allgather" num_workers = 2 size = n group = "y"
    %2 = relax.ccl.allreduce %x, %0 group = "x"
    %3 = relax.ccl.allgather %y, %1 num_workers = 2 size = n group = "y"
    %4 = relax.tuple(%2, %3)
    relax.return %4
  }
}
