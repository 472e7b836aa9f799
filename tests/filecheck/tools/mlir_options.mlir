// What `mlir-opt` calls its options is understood, too.

// RUN: relax-opt %s --pass-pipeline='builtin.module(legalize-ops,schedule-cpu{target=x86-64-v3})' | filecheck %s --check-prefix PIPELINE
// RUN: relax-opt %s -p legalize-ops,dce --mlir-print-ir-before=dce --mlir-print-ir-after=legalize-ops 2>&1 | filecheck %s --check-prefix NAMED
// RUN: relax-opt %s -p legalize-ops,dce --mlir-print-ir-before-all 2>&1 | filecheck %s --check-prefix BEFORE
// RUN: relax-opt %s -p dce,legalize-ops --mlir-print-ir-after-change 2>&1 | filecheck %s --check-prefix CHANGE
// RUN: relax-opt %s -p dce --mlir-timing 2>&1 | filecheck %s --check-prefix TIMING
// RUN: not relax-opt %s -p "verify-stage{stage=vm}" --mlir-print-ir-after-failure 2>&1 | filecheck %s --check-prefix FAILURE
// RUN: not relax-opt %s --pass-pipeline='builtin.module(relax.func(dce))' 2>&1 | filecheck %s --check-prefix NESTED
// RUN: not relax-opt %s -p dce --mlir-print-ir-after=dec 2>&1 | filecheck %s --check-prefix UNKNOWN

relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.exp %x
  relax.return %0
}

// PIPELINE: relax.call_tir @exp

// NAMED:      IR Dump After legalize-ops //
// NAMED-NEXT: builtin.module
// NAMED:      relax.call_tir @exp
// NAMED:      IR Dump Before dce //
// NAMED-NOT:  IR Dump

// BEFORE: IR Dump Before legalize-ops //
// BEFORE: relax.exp
// BEFORE: IR Dump Before dce //
// BEFORE: relax.call_tir @exp

// CHANGE:     IR Dump After dce (no change) //
// CHANGE-NOT: relax.exp
// CHANGE:     IR Dump After legalize-ops //
// CHANGE:     relax.call_tir @exp

// TIMING: ms  dce
// TIMING: ms  total

// FAILURE: IR Dump After verify-stage Failed //
// FAILURE: "relax.exp"

// NESTED: error: passes run on modules, not on each relax.func: write builtin.module(dce)

// UNKNOWN: error: unknown pass 'dec'
// UNKNOWN: hint: did you mean 'dce'
