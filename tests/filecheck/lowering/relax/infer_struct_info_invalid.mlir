// RUN: relax-opt %s -p infer-struct-info --verify-diagnostics --split-input-file | filecheck %s

// What turns out to be wrong is reported at its op, all of it at once.
// CHECK: error: 'relax.match_cast' op can never succeed: dimension 0: 2 does not match 3 (in @wrong_cast)
// CHECK: error: 'relax.add' op dimensions 2 and 3 do not broadcast (in @wrong_operands)
relax.func @wrong_cast(%x: !relax.tensor<[2], f32>) -> !relax.tensor<*, f32> {
  %0 = relax.exp %x : !relax.tensor<[_], f32>
  %1 = relax.match_cast %0 : !relax.tensor<[3], f32>
  relax.return %1
}
relax.func @wrong_operands(%x: !relax.tensor<[2], f32>, %y: !relax.tensor<[3], f32>) -> !relax.tensor<*, f32> {
  %0 = relax.exp %x : !relax.tensor<[_], f32>
  %1 = relax.add %0, %y : !relax.tensor<[_], f32>
  relax.return %1
}

// -----

// An error in a loop that does not come from an assumption about what it carries.
// CHECK: error: 'relax.match_cast' op can never succeed: dimension 0: 2 does not match 3 (in @loop)
relax.func @loop(%x: !relax.tensor<[2], f32>, %n: !relax.prim<i64>) -> !relax.tensor<*, f32> {
  %zero = relax.prim 0
  %r = relax.for %i = %zero to %n (%a: !relax.tensor<*, f32> = %x) {
    %0 = relax.exp %x : !relax.tensor<[_], f32>
    %1 = relax.match_cast %0 : !relax.tensor<[3], f32>
    relax.yield %1
  }
  relax.return %r
}
