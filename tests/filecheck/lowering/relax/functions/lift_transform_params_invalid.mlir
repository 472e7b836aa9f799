// RUN: relax-opt %s -p "lift-transform-params{num-input=1}" --verify-diagnostics --split-input-file | filecheck %s

// CHECK: 'relax.func' op @main has 0 parameters, got 1 as number of inputs
relax.func @main() -> !relax.object {
  %0 = relax.null
  relax.return %0
}

// -----

// CHECK: 'relax.func' op @main could not be entered without its weights: cannot solve k * m
relax.func @main[%k, %m](%x: !relax.object, %w: !relax.tensor<[k, m], f32>) -> !relax.object {
  %0 = relax.flatten %w
  %1 = relax.shape [k]
  %2 = relax.exp %0
  %3 = relax.tuple(%2, %1)
  relax.return %3
}

// -----

// CHECK: 'relax.call' op refers to @main, whose signature would change
relax.func @main(%x: !relax.object) -> !relax.object {
  relax.return %x
}
relax.func @other(%x: !relax.object) -> !relax.object {
  %0 = relax.call @main(%x) : !relax.object
  relax.return %0
}
