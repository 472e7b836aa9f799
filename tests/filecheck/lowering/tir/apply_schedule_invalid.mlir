// RUN: relax-opt %s -p 'apply-schedule{file="%S/inputs/matmul.json"}' --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s
// RUN: not relax-opt %s --split-input-file -p 'apply-schedule{file="%S/nowhere.json"}' 2>&1 | filecheck %s --check-prefix MISSING
// RUN: not relax-opt %s --split-input-file -p 'apply-schedule{file="%s"}' 2>&1 | filecheck %s --check-prefix OTHER

// A file that is not there, and one with other content.
// MISSING: apply-schedule: expected a file of schedule traces, got {{.*}}nowhere.json: no such file or directory
// OTHER: apply-schedule: expected a file of schedule traces, got {{.*}}apply_schedule_invalid.mlir: expected JSON, got other text in line 1, column 1

// A trace that does not fit the function is refused at the function.
// CHECK: 'tir.prim_func' op cannot be scheduled: get_block: expected the name of a block, got "C"; there are "D"
tir.prim_func @matmul[%n](%X: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    tir.block "D" (%vi = spatial %i in %n) {
      %zero = arith.constant 0.0 : f32
      tir.store %zero, %X[%vi]
    }
  }
}

// -----

// CHECK: has a trace of @matmul, which is no prim_func here
tir.prim_func @other() {
}
