// RUN: relax-opt %s -p 'update-param-struct-info{x="!relax.tensor<[4, _], f32>"}' --verify-diagnostics --split-input-file | filecheck %s

// CHECK: 'relax.func' op @main has the parameters y, got a type for x
relax.func @main(%y: !relax.object) -> !relax.object {
  relax.return %y
}

// -----

// CHECK: 'relax.func' op @main expected types that tell the symbol m
relax.func @main[%n, %m](%x: !relax.tensor<[n, m], f32>) -> !relax.object {
  relax.return %x
}

// -----

// CHECK: 'relax.func' op @main parameter #0 dimension 0: 4 does not match 5
relax.func @main(%x: !relax.tensor<[5, 4], f32>) -> !relax.object {
  relax.return %x
}

// -----

// CHECK: 'relax.func' op @main parameter #0 dimension 0: expected n in [5, 8], got 4
relax.func @main[%n in [5, 8]](%x: !relax.tensor<[n, _], f32>) -> !relax.object {
  relax.return %x
}
