// RUN: relax-opt %s -p legalize-ops | filecheck %s

// A collective is a call of the run-time library in destination-passing style: group, number of workers, how and where.
// CHECK-LABEL: relax.func @main[
// CHECK:         %[[G:.*]] = relax.string "x"
// CHECK-NEXT:    %[[W:.*]] = relax.prim 2
// CHECK-NEXT:    %[[A:.*]] = relax.prim 1
// CHECK-NEXT:    %[[X:.*]] = relax.call_dps_packed "vm.builtin.ccl_allgather"(%[[G]], %[[W]], %[[A]], %x) : !relax.tensor<[n, 8], f32>
// CHECK:         relax.call_dps_packed "vm.builtin.ccl_allreduce"(%{{.*}}, %{{.*}}, %{{.*}}, %[[X]]) : !relax.tensor<[n, 8], f32>
// CHECK:         relax.call_tir @strided_slice(%{{.*}}) tir_vars [i] : !relax.tensor<[n, 4], f32>
relax.func @main[%n, %i](%x: !relax.tensor<[n, 4], f32>, %w: !relax.prim<i64, i>) -> !relax.object {
  %0 = relax.ccl.allgather %x num_workers = 2 axis = 1 group = "x"
  %1 = relax.ccl.allreduce %0 op_type = "max"
  %2 = relax.dist.redistribute_replica_to_shard %1 index = i num_workers = 2 axis = 1 tile = 4
  relax.return %2
}

// Messages are calls, too; what is received is written to planned memory.
// CHECK-LABEL: relax.func @messages[
// CHECK:         relax.call_dps_packed "vm.builtin.ccl_send"(%{{.*}}, %{{.*}}, %{{.*}}, %x) : !relax.tensor<[0], i1>
// CHECK:         relax.call_dps_packed "vm.builtin.ccl_receive"(%{{.*}}, %{{.*}}, %{{.*}}) : !relax.tensor<[n], f32>
relax.func @messages[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.ccl.send %x to = 1 group = "p"
  %s = relax.shape [n]
  %1 = relax.ccl.receive %s source = 1 dtype = f32 group = "p"
  %2 = relax.tuple(%0, %1)
  relax.return %2
}
