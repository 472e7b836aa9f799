// RUN: relax-opt %s -p lower-call-tir --split-input-file --verify-diagnostics | filecheck %s
// RUN: relax-opt %s -p insert-kills --split-input-file --verify-diagnostics | filecheck %s --check-prefix KILLS

// The ops of a region are pure, so memory cannot be written or freed in it.
// CHECK: error: 'relax.call_tir' op is in a 'relax.dataflow', whose ops are pure, but its result is to be written
// CHECK: hint: run 'to-non-dataflow' before
// KILLS: error: 'relax.output' op is in a 'relax.dataflow', whose ops are pure, but the memory of values ends in it
// KILLS: hint: run 'to-non-dataflow' before
tir.prim_func @exp[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
}
relax.func @region[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.dataflow {
    %1 = relax.call_tir @exp(%x) : !relax.tensor<[n], f32>
    relax.output %1
  }
  relax.return %0
}

// -----

// CHECK: error: 'relax.call_tir' op is in a 'relax.fused', whose ops are pure, but its result is to be written
// CHECK: hint: run 'fuse-tir' before
// KILLS: error: 'relax.yield' op is in a 'relax.fused', whose ops are pure, but the memory of values ends in it
// KILLS: hint: run 'fuse-tir' before
tir.prim_func @exp[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
}
relax.func @group[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.fused {
    %1 = relax.call_tir @exp(%x) : !relax.tensor<[n], f32>
    relax.yield %1
  }
  relax.return %0
}
