// A text says which errors it causes, as for `mlir-opt`: verifiers, the parser and passes.

// RUN: relax-opt %s --split-input-file --verify-diagnostics -p "propagate-sharding,verify-stage{stage=relax-legal}" | filecheck %s

// CHECK: relax.func @fine
relax.func @fine(%x: !relax.tensor<[2], f32>) -> !relax.tensor<[2], f32> {
  relax.return %x
}

// -----

relax.func @shapes(%x: !relax.tensor<[2], f32>, %y: !relax.tensor<[3], f32>) -> !relax.tensor<[2], f32> {
  // expected-error @+1 {{2 and 3 do not broadcast}}
  %0 = relax.add %x, %y
  relax.return %0
}

// -----

relax.func @undefined(%x: !relax.tensor<[2], f32>) -> !relax.tensor<[2], f32> {
  relax.return %nothing  // expected-error-re {{value {{%[a-z]+}} is not defined}}
}

// -----

relax.func @stage(%x: !relax.tensor<[2], f32>) -> !relax.tensor<[2], f32> {
  // Both ops are reported by one run of the pass.
  %0 = relax.exp %x
  // expected-error@above {{relax.exp}}
  // expected-error@below {{relax.log}}
  %1 = relax.log %0
  relax.return %1
}

// -----

// What is hinted at may be expected, too.
relax.func @hint(%x: !relax.tensor<[4, 8], f32, sharding<x = 2: S[0]>>) -> !relax.object {
  // expected-error @+2 {{says x = 2: S[1] of a tensor that is shared as x = 2: S[0] by parameter x}}
  // expected-note @+1 {{use relax.dist.redistribute}}
  %0 = relax.dist.annotate_sharding %x mesh = [2] placement = "S[1]" axes = "x"
  relax.return %0
}
