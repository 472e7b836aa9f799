// RUN: env RELAX_TUNING=0 relax-opt %s -p 'schedule-tuned{target="x86-64-v3 cores=2"}' | filecheck %s
// RUN: env RELAX_TUNING=0 relax-opt %s -p 'schedule-tuned{target="x86-64-v3 cores=2"},schedule-tuned{target="x86-64-v3 cores=2"}' | filecheck %s
// RUN: echo '{"version": 2}' > %t.json
// RUN: env RELAX_TUNING_FILE=%t.json relax-opt %s -p 'schedule-tuned{target="x86-64-v3 cores=2"}' 2>&1 | filecheck %s --check-prefix=DAMAGED

// Of what nothing was found it does what schedule-cpu does. (Records are tested in tests/lowering/tune.)
// CHECK-LABEL: tir.prim_func @exp
// CHECK:         tir.for parallel

// A database that cannot be read is not used, and a warning says so.
// DAMAGED:       warning: {{.*}} is no tuning database: expected version 1, got 2; move it away; until then kernels have their default schedules
// DAMAGED:       tir.for parallel
tir.prim_func @exp[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    tir.block "exp" (%vi = spatial %i in %n) {
      %x = tir.load %X[%vi]
      %y = math.exp %x : f32
      tir.store %y, %Y[%vi]
    }
  }
}
