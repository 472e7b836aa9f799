// The symbol rule: a symbol named in a type or attribute is used only where a witness dominates.
// RUN: relax-opt %s --verify-diagnostics --parsing-diagnostics --split-input-file | filecheck %s

// Bound by the signature, by a cast, and by a cast that a dataflow region passes on.
// CHECK-LABEL: relax.func @bound
relax.func @bound[%n](%x: !relax.tensor<[n], f32>, %y: !relax.object) -> !relax.tensor<[_], f32> {
  %a, %k = relax.match_cast %y : !relax.tensor<[k, n], f32> binds [k]
  %b, %m = relax.dataflow {
    %c, %m = relax.match_cast %y : !relax.tensor<[m], f32> binds [m]
    relax.output %c, %m
  }
  %d = relax.call_pure_packed "f"(%b) : !relax.tensor<[k * m + n], f32>
  relax.return %d
}

// Symbols are local to a function: others may use the same names.
// CHECK-LABEL: relax.func @another
relax.func @another[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  relax.return %x
}

// The symbols of a PrimFunc are its leading arguments.
// CHECK-LABEL: tir.prim_func @kernel
tir.prim_func @kernel[%n](%X: !tir.buffer<[n], f32>) {
  %e = tir.dim 2 * n
}

// -----

// CHECK: error: 'relax.call_pure_packed' op type of result #0 uses symbol m, which nothing binds (in @nothing)
// CHECK: hint: bind it among the symbols of the function, or by a 'relax.match_cast' above
relax.func @nothing(%x: !relax.object) -> !relax.object {
  %0 = relax.call_pure_packed "f"(%x) : !relax.tensor<[m], f32>
  %1 = relax.call_pure_packed "f"(%x) : !relax.tensor<[m], f32>
  relax.return %0
}

// -----

// CHECK: error: 'relax.call_pure_packed' op type of result #0 uses symbol m, whose witness %m at {{.*}}:[[# @LINE + 3]]:3 does not dominate this use
relax.func @too_early(%x: !relax.object) -> !relax.object {
  %0 = relax.call_pure_packed "f"(%x) : !relax.tensor<[m], f32>
  %1, %m = relax.match_cast %x : !relax.tensor<[m], f32> binds [m]
  relax.return %1
}

// -----

// A cast in a region binds for the region only.
// CHECK: error: 'relax.call_pure_packed' op type of result #0 uses symbol m, whose witness %m at {{.*}} does not dominate this use
relax.func @region(%x: !relax.object) -> !relax.object {
  %0 = relax.dataflow {
    %1, %m = relax.match_cast %x : !relax.tensor<[m], f32> binds [m]
    relax.output %1
  }
  %2 = relax.call_pure_packed "f"(%x) : !relax.tensor<[m], f32>
  relax.return %2
}

// -----

// CHECK: error: 'relax.match_cast' op %n binds symbol n, which %n at {{.*}} has bound in the same scope (in @twice)
// CHECK: hint: choose another name, or use the symbol instead of binding it
relax.func @twice[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0, %n_1 = relax.match_cast %x : !relax.tensor<[n], f32> binds [n]
  relax.return %0
}

// -----

// All of a module: values and symbols, in every function.
// CHECK: error: 'relax.call_pure_packed' op type of result #0 uses symbol i, which nothing binds (in @first)
// CHECK: error: 'relax.call_pure_packed' op type of result #0 uses symbol j, which nothing binds (in @second)
relax.func @first(%x: !relax.object) -> !relax.object {
  %0 = relax.call_pure_packed "f"(%x) : !relax.tensor<[i], f32>
  relax.return %0
}
relax.func @second(%x: !relax.object) -> !relax.object {
  %0 = relax.call_pure_packed "f"(%x) : !relax.tensor<[j], f32>
  relax.return %0
}

// -----

// Errors of ops in one function and of symbols in another, in one report.
// CHECK: error: 'relax.add' op dimensions 2 and 3 do not broadcast (in @wrong_op)
// CHECK: error: 'relax.call_pure_packed' op type of result #0 uses symbol j, which nothing binds (in @wrong_symbol)
relax.func @wrong_op(%x: !relax.tensor<[2], f32>, %y: !relax.tensor<[3], f32>) -> !relax.object {
  %0 = relax.add %x, %y : !relax.tensor<[_], f32>
  relax.return %0
}
relax.func @wrong_symbol(%x: !relax.object) -> !relax.object {
  %0 = relax.call_pure_packed "f"(%x) : !relax.tensor<[j], f32>
  relax.return %0
}
