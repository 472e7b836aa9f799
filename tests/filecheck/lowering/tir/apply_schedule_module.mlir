// RUN: relax-opt %s -p 'apply-schedule{file="%S/inputs/module.json"}' | filecheck %s
// RUN: relax-opt %s -p 'apply-schedule{file="%S/inputs/module.json"},apply-schedule{file="%S/inputs/module.json"}' | filecheck %s
// RUN: relax-opt %S/../tir/apply_schedule.mlir -p 'apply-schedule{file="%S/inputs/module.json"}' --verify-diagnostics | filecheck %s --check-prefix=OTHER

// A trace of a module says which function each step means; what it names is not there in another module.
// CHECK: attributes {schedule = "
// OTHER: cannot be scheduled: work_on: expected the name of a function, got @elementwise; there are @matmul, @other

// CHECK-LABEL: tir.prim_func @matmul
// CHECK:         tir.for parallel (%i) in (%n) {
// CHECK-NEXT:      tir.for (%j, %r) in (%m, %k) {
tir.prim_func @matmul[%n, %k, %m](%A: !tir.buffer<[n, k], f32>, %B: !tir.buffer<[k, m], f32>, %C: !tir.buffer<[n, m], f32>) {
  tir.for (%i, %j, %r) in (%n, %m, %k) {
    tir.block "C" (%vi = spatial %i in %n, %vj = spatial %j in %m, %vr = reduce %r in %k) {
      tir.init {
        %zero = arith.constant 0.0 : f32
        tir.store %zero, %C[%vi, %vj]
      }
      %c = tir.load %C[%vi, %vj]
      %a = tir.load %A[%vi, %vr]
      %b = tir.load %B[%vr, %vj]
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      tir.store %s, %C[%vi, %vj]
    }
  }
}

// CHECK-LABEL: tir.prim_func @elementwise
// CHECK-NOT:     tir.alloc_buffer
// CHECK:         tir.block "C"
// CHECK-NOT:     tir.block
tir.prim_func @elementwise[%n](%A: !tir.buffer<[n], i32>, %C: !tir.buffer<[n], i32>) {
  %B = tir.alloc_buffer : !tir.buffer<[n], i32>
  tir.for (%i) in (%n) {
    tir.block "B" (%vi = spatial %i in %n) {
      %a = tir.load %A[%vi]
      %two = arith.addi %a, %a : i32
      tir.store %two, %B[%vi]
    }
  }
  tir.for (%i) in (%n) {
    tir.block "C" (%vi = spatial %i in %n) {
      %b = tir.load %B[%vi]
      %four = arith.addi %b, %b : i32
      tir.store %four, %C[%vi]
    }
  }
}
