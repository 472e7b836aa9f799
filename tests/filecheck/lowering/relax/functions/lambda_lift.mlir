// RUN: relax-opt %s -p lambda-lift --split-input-file | filecheck %s
// RUN: relax-opt %s -p lambda-lift,lambda-lift --split-input-file | filecheck %s
// RUN: relax-opt %s -p lambda-lift --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// Captured values come first; the symbol n is told by %x. A closure that escapes is a value.
// CHECK-LABEL: relax.func @value
// CHECK-NEXT:    %f = relax.make_closure @value_f(%x) : !relax.func<[m](!relax.tensor<[m, n], f32>) -> !relax.tensor<[m, n], f32>, pure>
// CHECK-NEXT:    relax.return %f
// CHECK:       relax.func private @value_f[%n in [1, 8], %m](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[m, n], f32>) -> !relax.tensor<[m, n], f32> {
// CHECK-NEXT:    %0 = relax.add %y, %x
// CHECK-NEXT:    relax.return %0
// LOC: relax.make_closure @value_f(%x){{.*}}lambda_lift.mlir":14:3)
relax.func @value[%n in [1, 8]](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %f = relax.closure [%m](%y: !relax.tensor<[m, n], f32>) -> !relax.tensor<[m, n], f32> {
    %0 = relax.add %y, %x
    relax.return %0
  }
  relax.return %f
}

// -----

// A symbol that no captured value tells is captured as a number; a known closure is called by its function's name.
// CHECK-LABEL: relax.func @symbol
// CHECK-NEXT:    %n_1 = relax.prim n
// CHECK-NEXT:    %0 = relax.call @symbol_f(%n_1, %z) impure : !relax.tensor<[n], f32>
// CHECK-NEXT:    relax.return %0
// CHECK:       relax.func private @symbol_f[%n, %m](%n_1: !relax.prim<i64, n>, %y: !relax.tensor<[m], f32>) -> !relax.tensor<[n], f32> impure {
// CHECK-NEXT:    %s = relax.shape [n]
relax.func @symbol[%n](%x: !relax.tensor<[n], f32>, %z: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> impure {
  %f = relax.closure [%m](%y: !relax.tensor<[m], f32>) -> !relax.tensor<[n], f32> impure {
    %s = relax.shape [n]
    %0 = relax.reshape %y, %s
    relax.call_packed "show"(%0)
    relax.return %0
  }
  %0 = relax.call_closure %f(%z)
  relax.return %0
}

// -----

// What an inner closure captures, the outer one captures too.
// CHECK-LABEL: relax.func @nested
// CHECK-NEXT:    %f = relax.make_closure @nested_f(%x)
// CHECK:       relax.func private @nested_closure(%x: !relax.object, %y: !relax.object) -> !relax.object {
// CHECK-NEXT:    %0 = relax.tuple(%x, %y)
// CHECK:       relax.func private @nested_f(%x: !relax.object, %y: !relax.object) -> !relax.object {
// CHECK-NEXT:    %0 = relax.make_closure @nested_closure(%x, %y)
// CHECK-NEXT:    relax.return %0
relax.func @nested(%x: !relax.object) -> !relax.object {
  %f = relax.closure (%y: !relax.object) -> !relax.object {
    %0 = relax.closure () -> !relax.object {
      %1 = relax.tuple(%x, %y)
      relax.return %1
    }
    relax.return %0
  }
  relax.return %f
}

// -----

// Recursion is a call of the function, with the captured values again.
// CHECK-LABEL: relax.func @recursive
// CHECK:       relax.func private @recursive_f_1(%x: !relax.object, %y: !relax.object) -> !relax.object {
// CHECK-NEXT:    %0 = relax.tuple(%x, %y)
// CHECK-NEXT:    %1 = relax.call @recursive_f_1(%x, %0) : !relax.object
// CHECK-NEXT:    relax.return %1
// CHECK:       relax.func private @recursive_f()
relax.func @recursive(%x: !relax.object) -> !relax.object {
  %f = relax.closure rec %self (%y: !relax.object) -> !relax.object {
    %0 = relax.tuple(%x, %y)
    %1 = relax.call_closure %self(%0)
    relax.return %1
  }
  relax.return %f
}
relax.func private @recursive_f() -> !relax.object {
  %0 = relax.null
  relax.return %0
}

// -----

// A dataflow region must not recurse by name: there the function value is called.
// CHECK-LABEL: relax.func @dataflow
// CHECK:       relax.func private @dataflow_f(%y: !relax.object) -> !relax.object {
// CHECK-NEXT:    %self = relax.make_closure @dataflow_f() : !relax.func<(!relax.object) -> !relax.object, pure>
// CHECK-NEXT:    %0 = relax.dataflow {
// CHECK-NEXT:      %1 = relax.call_closure %self(%y)
relax.func @dataflow() -> !relax.object {
  %f = relax.closure rec %self (%y: !relax.object) -> !relax.object {
    %0 = relax.dataflow {
      %1 = relax.call_closure %self(%y)
      relax.output %1
    }
    relax.return %0
  }
  relax.return %f
}

// A PrimFunc that is used as a value gets one function that calls it.
// CHECK-LABEL: tir.prim_func @copy[
// CHECK:       relax.func private @copy_function[%n](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[n], f32>) -> !relax.tuple<> impure {
// CHECK-NEXT:    relax.call_kernel @copy(%x, %y) sizes [n]
// CHECK-NEXT:    %0 = relax.tuple()
// CHECK-NEXT:    relax.return %0
// CHECK-LABEL: relax.func @prim_func_values(
// CHECK-NEXT:    %f = relax.make_closure @copy_function()
// CHECK-NEXT:    %g = relax.make_closure @copy_function(%x)
tir.prim_func @copy[%n](%x: !tir.buffer<[n], f32>, %y: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    tir.block "copy" (%v = spatial %i in %n) {
      %0 = tir.load %x[%v]
      tir.store %0, %y[%v]
    }
  }
}
relax.func @prim_func_values(%x: !relax.tensor<[4], f32>) -> !relax.object {
  %f = relax.make_closure @copy() : !relax.func<[n](!relax.tensor<[n], f32>, !relax.tensor<[n], f32>) -> !relax.tuple<>, impure>
  %g = relax.make_closure @copy(%x) : !relax.func<(!relax.tensor<[4], f32>) -> !relax.tuple<>, impure>
  %t = relax.tuple(%f, %g)
  relax.return %t
}

// -----

// A closure hides that a region recurses; once it has a name the region cannot stay.
// CHECK-LABEL: relax.func private @count(
// CHECK-NEXT:    %f = relax.make_closure @count_f()
// CHECK-NEXT:    %0 = relax.tuple(%f)
// CHECK-NEXT:    relax.return %0
// CHECK-LABEL: relax.func private @count_f(
// CHECK-NEXT:    relax.call @count(%y)
// CHECK-LABEL: relax.func @other(
// CHECK-NEXT:    relax.dataflow
relax.func private @count(%x: !relax.object) -> !relax.object {
  %0 = relax.dataflow {
    %f = relax.closure (%y: !relax.object) -> !relax.object {
      %1 = relax.call @count(%y) : !relax.object
      relax.return %1
    }
    %2 = relax.tuple(%f)
    relax.output %2
  }
  relax.return %0
}
relax.func @other(%x: !relax.object) -> !relax.object {
  %0 = relax.dataflow {
    %1 = relax.call @count(%x) : !relax.object
    relax.output %1
  }
  relax.return %0
}
