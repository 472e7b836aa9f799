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
