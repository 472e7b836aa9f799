// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// CHECK-LABEL: relax.func @exchanged[
// CHECK-NEXT:      %0 = relax.ccl.allreduce %x
// CHECK-NEXT:      %1 = relax.ccl.allreduce %x op_type = "avg" all_groups
// CHECK-NEXT:      %2 = relax.ccl.allgather %x num_workers = 2
// CHECK-NEXT:      %3 = relax.ccl.broadcast_from_worker0 %x
// CHECK-NEXT:      %4 = relax.ccl.scatter_from_worker0 %x num_workers = 2
// CHECK-NEXT:      %5 = relax.ccl.scatter_from_worker0 %y num_workers = 3 axis = -1
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "exchanged"
// TYPES: "relax.ccl.allreduce"{{.*}} -> !relax.tensor<[4 * n, 6], f32>
// TYPES: "relax.ccl.allreduce"{{.*}} -> !relax.tensor<[4 * n, 6], f32>
// TYPES: "relax.ccl.allgather"{{.*}} -> !relax.tensor<[8 * n, 6], f32>
// TYPES: "relax.ccl.broadcast_from_worker0"{{.*}} -> !relax.tensor<[4 * n, 6], f32>
// TYPES: "relax.ccl.scatter_from_worker0"{{.*}} -> !relax.tensor<[2 * n, 6], f32>
// TYPES: "relax.ccl.scatter_from_worker0"{{.*}} -> !relax.tensor<[_, floordiv(m, 3)], f32>
relax.func @exchanged[%n, %m](%x: !relax.tensor<[4 * n, 6], f32>, %y: !relax.tensor<[_, m], f32>) -> !relax.object {
  %0 = relax.ccl.allreduce %x
  %1 = relax.ccl.allreduce %x op_type = "avg" all_groups
  %2 = relax.ccl.allgather %x num_workers = 2
  %3 = relax.ccl.broadcast_from_worker0 %x
  %4 = relax.ccl.scatter_from_worker0 %x num_workers = 2
  %5 = relax.ccl.scatter_from_worker0 %y num_workers = 3 axis = -1
  relax.return %x
}

// Along an axis of a mesh, with tiles of any size.
// CHECK-LABEL: relax.func @along[
// CHECK-NEXT:      %0 = relax.ccl.allgather %x num_workers = 2 axis = 1 group = "x"
// CHECK-NEXT:      %1 = relax.ccl.allgather %x num_workers = 2 size = m group = "x"
// CHECK-NEXT:      %2 = relax.ccl.reduce_scatter %x num_workers = 2 axis = 1 tile = t group = "x"
// CHECK-NEXT:      %3 = relax.ccl.reduce_scatter %x op_type = "max" num_workers = 2
// CHECK-NEXT:      %4 = relax.ccl.all_to_all %x concat_axis = 1 num_workers = 2
// CHECK-NEXT:      %5 = relax.ccl.all_to_all %x concat_axis = 0 size = m num_workers = 3 axis = 1 tile = t group = "y"
// TYPES-LABEL: sym_name = "along"
// TYPES: "relax.ccl.allgather"{{.*}} -> !relax.tensor<[2 * n, 12], f32>
// TYPES: "relax.ccl.allgather"{{.*}} -> !relax.tensor<[m, 6], f32>
// TYPES: "relax.ccl.reduce_scatter"{{.*}} -> !relax.tensor<[2 * n, t], f32>
// TYPES: "relax.ccl.reduce_scatter"{{.*}} -> !relax.tensor<[n, 6], f32>
// TYPES: "relax.ccl.all_to_all"{{.*}} -> !relax.tensor<[n, 12], f32>
// TYPES: "relax.ccl.all_to_all"{{.*}} -> !relax.tensor<[m, t], f32>
relax.func @along[%n, %m, %t](%x: !relax.tensor<[2 * n, 6], f32>, %s: !relax.shape<[m, t]>) -> !relax.object {
  %0 = relax.ccl.allgather %x num_workers = 2 axis = 1 group = "x"
  %1 = relax.ccl.allgather %x num_workers = 2 size = m group = "x"
  %2 = relax.ccl.reduce_scatter %x num_workers = 2 axis = 1 tile = t group = "x"
  %3 = relax.ccl.reduce_scatter %x num_workers = 2 op_type = "max"
  %4 = relax.ccl.all_to_all %x num_workers = 2 axis = 0 concat_axis = 1
  %5 = relax.ccl.all_to_all %x num_workers = 3 axis = 1 concat_axis = 0 tile = t size = m group = "y"
  relax.return %x
}

// -----

// Messages between two workers: what is sent gives an empty tensor, what is received has the shape that it is said to have.
// CHECK-LABEL: relax.func @messages[
// CHECK-NEXT:    %0 = relax.ccl.send %x to = 1 tag = 3 group = "p"
// CHECK-NEXT:    %s = relax.shape [n, 2]
// CHECK-NEXT:    %1 = relax.ccl.receive %s source = 1 dtype = f16
relax.func @messages[%n](%x: !relax.tensor<[n], f32>) -> !relax.tuple<!relax.tensor<[0], i1>, !relax.tensor<[n, 2], f16>> {
  %0 = relax.ccl.send %x to = 1 tag = 3 group = "p"
  %s = relax.shape [n, 2]
  %1 = relax.ccl.receive %s source = 1 dtype = f16
  %2 = relax.tuple(%0, %1)
  relax.return %2
}

// -----

// An exchange that begins before it ends.
// CHECK-LABEL: relax.func @begun[
// CHECK-NEXT:    %0 = relax.ccl.start %x collective = "allreduce" op_type = "max" group = "x"
// CHECK-NEXT:    %1 = relax.ccl.allreduce %x, %0 op_type = "max" group = "x"
// CHECK-NEXT:    %2 = relax.ccl.start %1 collective = "allgather" num_workers = 2 axis = 1
// CHECK-NEXT:    %3 = relax.ccl.allgather %1, %2 num_workers = 2 axis = 1
// CHECK-NEXT:    %4 = relax.ccl.start %3 collective = "reduce_scatter" num_workers = 2 axis = 1
// CHECK-NEXT:    %5 = relax.ccl.reduce_scatter %3, %4 num_workers = 2 axis = 1
relax.func @begun[%n](%x: !relax.tensor<[n, 6], f32>) -> !relax.object {
  %0 = relax.ccl.start %x collective = "allreduce" op_type = "max" group = "x"
  %1 = relax.ccl.allreduce %x, %0 op_type = "max" group = "x"
  %2 = relax.ccl.start %1 collective = "allgather" num_workers = 2 axis = 1
  %3 = relax.ccl.allgather %1, %2 num_workers = 2 axis = 1
  %4 = relax.ccl.start %3 collective = "reduce_scatter" num_workers = 2 axis = 1
  %5 = relax.ccl.reduce_scatter %3, %4 num_workers = 2 axis = 1
  relax.return %5
}
