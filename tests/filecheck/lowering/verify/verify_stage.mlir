// RUN: relax-opt %s -p "verify-stage{stage=relax}" | filecheck %s --check-prefix RELAX
// RUN: relax-opt %s -p "verify-stage{stage=relax-legal}" --verify-diagnostics | filecheck %s --check-prefix LEGAL
// RUN: relax-opt %s -p "verify-stage{stage=relax-dps}" --verify-diagnostics | filecheck %s --check-prefix DPS
// RUN: relax-opt %s -p "verify-stage{stage=tir}" --verify-diagnostics | filecheck %s --check-prefix TIR
// RUN: relax-opt %s -p "verify-stage{stage=tir-flat}" --verify-diagnostics | filecheck %s --check-prefix FLAT
// RUN: relax-opt %s -p "relax-to-vm,verify-stage{stage=vm}" | filecheck %s --check-prefix VM
// RUN: relax-opt %s -p "relax-to-vm,verify-stage{stage=relax}" --verify-diagnostics | filecheck %s --check-prefix BACK

// Everything written by hand is legal at the start, and gets to the virtual machine.
// RELAX: relax.func @main
// VM: vm.func @main

// Each illegal op of each function, with the pass that removes it.
// LEGAL:      [[# @LINE + 20]]:5: error: 'relax.exp' op is not legal in stage relax-legal, where every operator is a call
// LEGAL:      > {{.*}} relax.exp
// LEGAL:      hint: 'legalize-ops' removes it; run it before
// LEGAL:      error: 'relax.add' op is not legal in stage relax-legal
// LEGAL-NOT:  error:

// DPS: error: 'relax.dataflow' op is not legal in stage relax-dps
// DPS: hint: 'to-non-dataflow' removes it; run it before
// DPS: error: 'relax.call_tir' op is not legal in stage relax-dps
// DPS: hint: 'lower-call-tir' removes it; run it before

// TIR:     error: 'relax.func' op is not legal in stage tir, whose functions are 'tir.prim_func' (in @main)
// TIR-NOT: error:

// FLAT: error: 'tir.block' op is not legal in stage tir-flat

// BACK: error: 'vm.func' op is not legal in stage relax, whose functions are 'relax.func', 'tir.prim_func' (in @main)

relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.dataflow {
    %1 = relax.exp %x
    %2 = relax.call_tir @double(%1) : !relax.tensor<[n], f32>
    relax.output %2
  }
  %3 = relax.add %0, %0
  relax.return %3
}

tir.prim_func @double[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    tir.block "double" (%vi = spatial %i in %n) {
      %x = tir.load %X[%vi]
      %y = arith.addf %x, %x : f32
      tir.store %y, %Y[%vi]
    }
  }
}
