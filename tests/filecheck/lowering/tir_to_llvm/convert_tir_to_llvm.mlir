// RUN: relax-opt %s -p "convert-tir-to-llvm{vector_bits=512}" --split-input-file | filecheck %s

// The native ABI: sizes, then parameters; pointers that do not alias; 0 for success.
// CHECK-LABEL: llvm.func @copy(%n: i64, %X: !llvm.ptr {llvm.align = 4 : i64, llvm.noalias}, %Y: !llvm.ptr {llvm.align = 4 : i64, llvm.noalias}) -> i32
// CHECK-SAME:    ["prefer-vector-width", "512"]
// CHECK:         %[[SOME:.*]] = llvm.icmp "slt" %{{.*}}, %n : i64
// CHECK-NEXT:    llvm.cond_br %[[SOME]], ^[[BODY:.*]](%{{.*}} : i64), ^[[EXIT:.*]]
// CHECK-NEXT:  ^[[BODY]](%i: i64):
// CHECK-NEXT:    %[[FROM:.*]] = llvm.getelementptr inbounds %X[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:    %x = llvm.load %[[FROM]] {alignment = 4 : i64} : !llvm.ptr -> f32
// CHECK-NEXT:    %[[TO:.*]] = llvm.getelementptr inbounds %Y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:    llvm.store %x, %[[TO]] {alignment = 4 : i64} : f32, !llvm.ptr
// CHECK-NEXT:    %[[NEXT:.*]] = llvm.add %i, %{{.*}} overflow<nsw> : i64
// CHECK-NEXT:    %[[MORE:.*]] = llvm.icmp "ne" %[[NEXT]], %n : i64
// CHECK-NEXT:    llvm.cond_br %[[MORE]], ^[[BODY]](%[[NEXT]] : i64), ^[[EXIT]]
// CHECK-NEXT:  ^[[EXIT]]:
// CHECK-NEXT:    llvm.return %{{.*}} : i32
tir.prim_func @copy[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32, align = 64>) {
  tir.for (%i) in (%n) {
    %x = tir.load %X[%i]
    tir.store %x, %Y[%i]
  }
}

// -----

// What a loop does not change is computed in front of it; what is added and taken away again, not at all. A place that
// each turn writes to is for LLVM's whole pipeline.
// CHECK-LABEL: llvm.func @rows(%n: i64, %m: i64, %X: !llvm.ptr
// CHECK:       ^{{.*}}(%i: i64):
// CHECK-NEXT:    %[[START:.*]] = llvm.mul %m, %i overflow<nsw> : i64
// CHECK-NEXT:    %[[ROW:.*]] = llvm.getelementptr %X[%[[START]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:    %[[SUM:.*]] = llvm.getelementptr inbounds %Y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:    llvm.cond_br
// CHECK:       ^{{.*}}(%j: i64):
// CHECK-NEXT:    %[[PLACE:.*]] = llvm.getelementptr %[[ROW]][%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:    %x = llvm.load %[[PLACE]]
// CHECK-NEXT:    %y = llvm.load %[[SUM]]
// CHECK-NEXT:    %z = llvm.fadd %x, %y
// CHECK-NEXT:    llvm.store %z, %[[SUM]]
// CHECK-NEXT:    llvm.add %j, %{{.*}} overflow<nsw> : i64
// CHECK:         llvm.cond_br {{.*}} {llvm_ext.loop = {llvm.loop.unroll.disable, relax.loop.repeated_work}}
// CHECK:         llvm.cond_br {{[^{]*$}}
tir.prim_func @rows[%n, %m](%X: !tir.buffer<[n, m], f32>, %Y: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    tir.for (%j) in (%m) annotations {llvm.loop.unroll.disable} {
      %sum = arith.addi %i, %j : index
      %same = arith.subi %sum, %i : index
      %x = tir.load %X[%i, %same]
      %y = tir.load %Y[%i]
      %z = arith.addf %x, %y : f32
      tir.store %z, %Y[%i]
    }
  }
}

// -----

// With may_alias, nothing is promised; a private function is internal.
// CHECK-LABEL: llvm.func internal @scalars(%a: f32, %b: i8, %c: i1, %X: !llvm.ptr {llvm.align = 1 : i64}) -> i32
tir.prim_func private @scalars(%a: f32, %b: i8, %c: i1, %X: !tir.buffer<[3], i8>) may_alias {
}

// -----

// A vectorized loop of constant length is vector code without a loop; a mask becomes a masked access.
// CHECK-LABEL: llvm.func @lanes
// CHECK:         %x = llvm.load %X {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>
// CHECK:         %y = llvm.fadd %x, %x : vector<16xf32>
// CHECK:         llvm_ext.masked_store %y, %Y, %{{.*}} {alignment = 4 : i32} : vector<16xf32>, vector<16xi1>
// CHECK-NOT:     llvm.add
tir.prim_func @lanes[%n](%X: !tir.buffer<[16], f32>, %Y: !tir.buffer<[n], f32>) {
  %lanes = arith.constant 16 : index
  tir.for vectorized (%i) in (%lanes) {
    %x = tir.load %X[%i]
    %y = arith.addf %x, %x : f32
    %inside = arith.cmpi slt, %i, %n : index
    tir.if %inside {
      tir.store %y, %Y[%i]
    }
  }
}

// -----

// An unrolled loop leaves the copying to LLVM.
// CHECK-LABEL: llvm.func @unrolled
// CHECK:         llvm.cond_br {{.*}} {llvm_ext.loop = {llvm.loop.unroll.full}}
tir.prim_func @unrolled(%X: !tir.buffer<[4], f32>) {
  %four = arith.constant 4 : index
  tir.for unrolled (%i) in (%four) {
    %x = tir.load %X[%i]
    tir.store %x, %X[%i]
  }
}

// -----

// The body of a parallel loop is a function over a part of the range, which threads call. Nothing in it can fail.
// CHECK-LABEL: llvm.func internal @team.parallel0(%{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: !llvm.ptr {llvm.align = 4 : i64, llvm.noalias}) attributes
// CHECK-LABEL: llvm.func internal @team.parallel0.thread(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)
// CHECK:         llvm.call @team.parallel0(
// CHECK-LABEL: llvm.func @team(%n: i64, %X: !llvm.ptr
// CHECK:         llvm.call @relax_parallel(
// CHECK-NOT:     relax.raise
tir.prim_func @team[%n](%X: !tir.buffer<[n], f32>) {
  tir.for parallel (%i) in (%n) {
    %x = tir.load %X[%i]
    tir.store %x, %X[%i]
  }
}

// -----

// A part of a loop that can fail gives the text of an error or null; threads keep it where the caller finds it.
// CHECK-LABEL: llvm.func internal @checked.parallel0({{.*}}) -> !llvm.ptr
// CHECK-LABEL: llvm.func internal @checked.parallel0.thread(
// CHECK:         %[[ERROR:.*]] = llvm.call @checked.parallel0(
// CHECK:         llvm.store %[[ERROR]]
// CHECK-LABEL: llvm.func @checked(
// CHECK:         llvm.call @relax_parallel(
// CHECK:         llvm.call @relax.raise(
tir.prim_func @checked[%n](%X: !tir.buffer<[n], i64>) {
  tir.for parallel (%i) in (%n) {
    %x = tir.load %X[%i]
    %ok = arith.cmpi slt, %x, %x : i64
    tir.assert %ok, "it is not"
  }
}

// -----

// A bool takes a byte in memory; a bf16 is the bits of one.
// CHECK-LABEL: llvm.func @storage
// CHECK:         %[[BYTE:.*]] = llvm.load %B {alignment = 1 : i64} : !llvm.ptr -> i8
// CHECK:         llvm.icmp "ne" %[[BYTE]], %{{.*}} : i8
// CHECK:         %x = llvm.load %X {alignment = 2 : i64} : !llvm.ptr -> i16
// CHECK:         %[[WIDE:.*]] = llvm.zext %x : i16 to i32
// CHECK:         %[[HIGH:.*]] = llvm.shl %[[WIDE]], %{{.*}} : i32
// CHECK:         llvm.bitcast %[[HIGH]] : i32 to f32
tir.prim_func @storage(%B: !tir.buffer<[], i1>, %X: !tir.buffer<[], bf16>) {
  %b = tir.load %B[]
  %x = tir.load %X[]
  %y = arith.addf %x, %x : bf16
  %z = arith.select %b, %y, %x : bf16
  tir.store %z, %X[]
}

// -----

// Small buffers are on the stack, others in blocks, which are given back on every way out.
// CHECK-LABEL: llvm.func @memory
// CHECK:         llvm.alloca %{{.*}} x !llvm.array<8 x f32> {alignment = 64 : i64}
// CHECK:         %T = llvm.call @relax_scratch_take(
// CHECK:         llvm.call @relax_scratch_give(%T)
// CHECK:         llvm.call @relax.raise(
// CHECK-NEXT:    llvm.return %{{.*}} : i32
// CHECK:         llvm.call @relax_scratch_give(%T)
// CHECK-NEXT:    llvm.return %{{.*}} : i32
tir.prim_func @memory[%n](%ok: i1) {
  %S = tir.alloc_buffer : !tir.buffer<[8], f32, scope = "local">
  %T = tir.alloc_buffer : !tir.buffer<[n, 4], f32>
  tir.assert %ok, "it is fine"
}

// -----

// A hint may lead out of its buffer, so its address is not said to be inside.
// CHECK-LABEL: llvm.func @hint
// CHECK:         %[[PLACE:.*]] = llvm.getelementptr %X[%{{.*}}] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:    llvm.call_intrinsic "llvm.prefetch.p0"(%[[PLACE]], {{.*}}) : (!llvm.ptr, i32, i32, i32) -> ()
tir.prim_func @hint[%n](%X: !tir.buffer<[n], f32>) {
  tir.prefetch %X[%n] level 2
}

// -----

// Where an element lies among whole vectors, are bits of its address.
// CHECK-LABEL: llvm.func @misaligned
// CHECK:         %[[BITS:.*]] = llvm.mlir.constant(3) : i64
// CHECK-NEXT:    %[[MASK:.*]] = llvm.mlir.constant(7) : i64
// CHECK:         %[[PLACE:.*]] = llvm.getelementptr %X[%n] : (!llvm.ptr, i64) -> !llvm.ptr, f64
// CHECK-NEXT:    %[[ADDRESS:.*]] = llvm.ptrtoint %[[PLACE]] : !llvm.ptr to i64
// CHECK-NEXT:    %[[ELEMENTS:.*]] = llvm.lshr %[[ADDRESS]], %[[BITS]] : i64
// CHECK-NEXT:    llvm.and %[[ELEMENTS]], %[[MASK]] : i64
tir.prim_func @misaligned[%n](%X: !tir.buffer<[n], f64>) {
  %e = tir.misalignment %X[%n] of 8
}

// -----

// A call checks the sizes that it passes, and whether the callee has failed; an unchecked one just calls.
tir.prim_func private @relax.routine.fill[%n in [4, _]](%X: !tir.buffer<[n], f32>) {
}
// CHECK-LABEL: llvm.func @calls
// CHECK: llvm.icmp "sge"
// CHECK: llvm.call @relax.routine.fill.inner(
// CHECK: llvm.cond_br
// CHECK-LABEL: llvm.func @calls_unchecked
// CHECK-NOT: llvm.cond_br
// CHECK: llvm.call @relax.routine.fill.inner(
// CHECK-NOT: llvm.cond_br
// CHECK: llvm.return
tir.prim_func @calls[%n](%X: !tir.buffer<[n], f32>) {
  tir.call @relax.routine.fill[%n](%X)
}
tir.prim_func @calls_unchecked[%n](%X: !tir.buffer<[n], f32>) {
  tir.call unchecked @relax.routine.fill[%n](%X)
}

// -----

// A PrimFunc with the name of a function that compiled code calls has another one, also where it is called. What nothing else
// is called keeps its name.
// CHECK-DAG:   llvm.func @strlen(!llvm.ptr) -> i64
// CHECK-DAG:   llvm.func @kernel.strlen(%n
// CHECK-DAG:   llvm.func @kernel.memcpy(%n
// CHECK-DAG:   llvm.func @kernel.llvm.exp.f32(%n
// CHECK-DAG:   llvm.func @malloc(%n
// CHECK-DAG:   llvm.call @kernel.strlen.inner
tir.prim_func @strlen[%n](%X: !tir.buffer<[n], f32>) {
  %A = tir.alloc_buffer : !tir.buffer<[n], f32>
  tir.for (%i) in (%n) {
    %x = tir.load %X[%i]
    tir.store %x, %A[%i]
  }
}
tir.prim_func @memcpy[%n](%X: !tir.buffer<[n], f32>) {
  tir.call @strlen[%n](%X)
}
tir.prim_func @llvm.exp.f32[%n](%X: !tir.buffer<[n], f32>) {
}
tir.prim_func @malloc[%n](%X: !tir.buffer<[n], f32>) {
}
