// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// A placement says nothing of values: the type has it, and only the views of one worker have other shapes.
// CHECK-LABEL: relax.func @placed[
// CHECK-NEXT:      %0 = relax.dist.annotate_sharding %x mesh = [2, 3] placement = "S[0], S[1]"
// CHECK-NEXT:      %1 = relax.dist.redistribute %0 mesh = [2, 3] placement = "R, R"
// CHECK-NEXT:      %2 = relax.dist.local_view %0 mesh = [2, 3] placement = "S[0], S[1]"
// CHECK-NEXT:      %3 = relax.dist.global_view %2 mesh = [2, 3] placement = "S[0], S[1]"
// CHECK-NEXT:      %4 = relax.dist.annotate_sharding %x mesh = [] placement = ""
// CHECK-NEXT:      %5 = relax.dist.redistribute_replica_to_shard %x num_workers = 2
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "placed"
// TYPES: "relax.dist.annotate_sharding"{{.*}} -> !relax.tensor<[4 * n, 6], f32, sharding<axis0 = 2: S[0], axis1 = 3: S[1]>>
// TYPES: "relax.dist.redistribute"{{.*}} -> !relax.tensor<[4 * n, 6], f32, sharding<axis0 = 2: R, axis1 = 3: R>>
// TYPES: "relax.dist.local_view"{{.*}} -> !relax.tensor<[2 * n, 2], f32>
// TYPES: "relax.dist.global_view"{{.*}} -> !relax.tensor<[4 * n, 6], f32, sharding<axis0 = 2: S[0], axis1 = 3: S[1]>>
// TYPES: "relax.dist.annotate_sharding"{{.*}} -> !relax.tensor<[4 * n, 6], f32, sharding<>>
// TYPES: "relax.dist.redistribute_replica_to_shard"{{.*}} -> !relax.tensor<[2 * n, 6], f32>
relax.func @placed[%n](%x: !relax.tensor<[4 * n, 6], f32>) -> !relax.object {
  %0 = relax.dist.annotate_sharding %x mesh = [2, 3] placement = "S[0], S[1]"
  %1 = relax.dist.redistribute %0 mesh = [2, 3] placement = "R, R"
  %2 = relax.dist.local_view %0 mesh = [2, 3] placement = "S[0], S[1]"
  %3 = relax.dist.global_view %2 mesh = [2, 3] placement = "S[0], S[1]"
  %4 = relax.dist.annotate_sharding %x mesh = [] placement = ""
  %5 = relax.dist.redistribute_replica_to_shard %x num_workers = 2
  relax.return %x
}

// The axes of a mesh have names, and sizes that may be symbols.
// CHECK-LABEL: relax.func @named[%p](%p_1: !relax.prim<i64, p>, %x: !relax.tensor<[8, 6], f32, sharding<x = p: S[1]>>)
// CHECK-NEXT:      %0 = relax.dist.redistribute %x mesh = [p] placement = "P[max]" axes = "x"
// CHECK-NEXT:      %1 = relax.dist.redistribute_replica_to_shard %x index = 1 num_workers = 3 tile = p group = "x"
// TYPES-LABEL: sym_name = "named"
// TYPES: "relax.dist.redistribute"{{.*}} -> !relax.tensor<[8, 6], f32, sharding<x = p: P[max]>>
// TYPES: "relax.dist.redistribute_replica_to_shard"{{.*}} -> !relax.tensor<[p, 6], f32>
relax.func @named[%p](%p_1: !relax.prim<i64, p>, %x: !relax.tensor<[8, 6], f32, sharding<x = p: S[1]>>) -> !relax.object {
  %0 = relax.dist.redistribute %x mesh = [p] placement = "P[max]" axes = "x"
  %1 = relax.dist.redistribute_replica_to_shard %x num_workers = 3 group = "x" tile = p index = 1
  relax.return %x
}
