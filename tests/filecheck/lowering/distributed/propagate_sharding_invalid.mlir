// RUN: not relax-opt %s -p propagate-sharding 2>&1 | filecheck %s

// Two annotations of one tensor that differ are refused, with both origins.
// CHECK: propagate_sharding_invalid.mlir:8:3: error: 'relax.dist.annotate_sharding' op says x = 2: S[1] of a tensor that is shared as x = 2: S[0] by parameter x (in @main)
// CHECK: hint: use relax.dist.redistribute to move it
// CHECK: propagate_sharding_invalid.mlir:11:3: error: 'relax.dist.annotate_sharding' op says x = 2: R of a tensor that is shared as x = 2: S[1] by 'relax.dist.annotate_sharding' at {{.*}}propagate_sharding_invalid.mlir:10:3 (in @main)
relax.func @main(%x: !relax.tensor<[4, 8], f32, sharding<x = 2: S[0]>>) -> !relax.object {
  %0 = relax.dist.annotate_sharding %x mesh = [2] placement = "S[1]" axes = "x"
  %1 = relax.exp %0
  %2 = relax.dist.annotate_sharding %1 mesh = [2] placement = "S[1]" axes = "x"
  %3 = relax.dist.annotate_sharding %2 mesh = [2] placement = "R" axes = "x"
  relax.return %3
}
