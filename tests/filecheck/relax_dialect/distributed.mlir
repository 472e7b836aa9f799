// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// A placement says nothing of values: only the views of one worker have other shapes.
// CHECK-LABEL: relax.func @placed[
// CHECK-NEXT:      %0 = relax.dist.annotate_sharding %x mesh = [2, 3] placement = "S[0], S[1]"
// CHECK-NEXT:      %1 = relax.dist.redistribute %0 mesh = [2, 3] placement = "R, R"
// CHECK-NEXT:      %2 = relax.dist.local_view %0 mesh = [2, 3] placement = "S[0], S[1]"
// CHECK-NEXT:      %3 = relax.dist.global_view %2 mesh = [2, 3] placement = "S[0], S[1]"
// CHECK-NEXT:      %4 = relax.dist.annotate_sharding %x mesh = [] placement = ""
// CHECK-NEXT:      %5 = relax.dist.redistribute_replica_to_shard %x num_workers = 2
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "placed"
// TYPES: "relax.dist.annotate_sharding"{{.*}} -> !relax.tensor<[4 * n, 6], f32>
// TYPES: "relax.dist.redistribute"{{.*}} -> !relax.tensor<[4 * n, 6], f32>
// TYPES: "relax.dist.local_view"{{.*}} -> !relax.tensor<[2 * n, 2], f32>
// TYPES: "relax.dist.global_view"{{.*}} -> !relax.tensor<[4 * n, 6], f32>
// TYPES: "relax.dist.annotate_sharding"{{.*}} -> !relax.tensor<[4 * n, 6], f32>
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
