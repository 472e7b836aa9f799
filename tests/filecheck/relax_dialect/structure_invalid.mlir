// RUN: RELAX_INVALID

// CHECK: 'relax.func' op @func_c1 expected 2 block arguments, got 1
"relax.func"() <{sym_name = "func_c1", function_type = !relax.func<[n](!relax.tensor<[n], f32>) -> !relax.object, pure>}> ({
^bb0(%x: !relax.tensor<[n], f32>):
  "relax.return"(%x) : (!relax.tensor<[n], f32>) -> ()
}) : () -> ()

// -----

// CHECK: 'relax.func' op @func_c1 block argument #0 expected !relax.object, got !relax.tensor<*, f32>
"relax.func"() <{sym_name = "func_c1", function_type = !relax.func<(!relax.object) -> !relax.object, pure>}> ({
^bb0(%x: !relax.tensor<*, f32>):
  "relax.return"(%x) : (!relax.tensor<*, f32>) -> ()
}) : () -> ()

// -----

// An opaque type says nothing of the parameters.
// CHECK: 'relax.func' op @func_c1 expected a type with parameters, got !relax.func<* -> !relax.object, pure>
"relax.func"() <{sym_name = "func_c1", function_type = !relax.func<* -> !relax.object, pure>}> ({
^bb0:
  %0 = "relax.tuple"() : () -> !relax.tuple<>
  "relax.return"(%0) : (!relax.tuple<>) -> ()
}) : () -> ()

// -----

// CHECK: 'relax.func' op @func_c2 uses the unbound symbol m
relax.func @func_c2[%n](%x: !relax.tensor<[n, m], f32>) -> !relax.object {
  relax.return %x
}

// -----

// CHECK: 'relax.func' op @func_c2 uses the unbound symbol m
relax.func @func_c2[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[m], f32> {
  relax.return %x
}

// -----

// CHECK: 'relax.func' op @func_c3 cannot be entered: nothing binds the symbol n
relax.func @func_c3[%n](%x: !relax.tensor<[_], f32>) -> !relax.object {
  relax.return %x
}

// -----

// CHECK: 'relax.func' op @func_c3 cannot be entered: cannot solve n * n for 'n': expected 'n' alone in some dimension, or one that is linear in it
relax.func @func_c3[%n](%x: !relax.tensor<[n * n], f32>) -> !relax.object {
  relax.return %x
}

// -----

// CHECK: 'relax.func' op @func_c4 is pure, but holds 'relax.call_packed', which is impure: it calls the packed function "f", which may have any effect; write 'impure' before the body
relax.func @func_c4(%x: !relax.object) -> !relax.object {
  relax.call_packed "f"(%x)
  relax.return %x
}

// -----

// The body of a branch counts too.
// CHECK: 'relax.func' op @func_c4 is pure, but holds 'relax.print', which is impure: it writes to the standard output; write 'impure' before the body
relax.func @func_c4(%c: !relax.prim<i1>) -> !relax.object {
  relax.if %c {
    relax.print "yes"()
    relax.yield
  } else {
    relax.yield
  }
  relax.return %c
}

// -----

// CHECK: 'relax.func' op @func_c5 is impure, so force_pure cannot hold
relax.func @func_c5(%x: !relax.object) -> !relax.object impure force_pure {
  relax.return %x
}

// -----

// CHECK: 'relax.dataflow' op calls @func_c6 recursively; recursion is control flow, call outside the region
relax.func @func_c6(%x: !relax.object) -> !relax.object {
  %gv = relax.dataflow {
    %0 = relax.call @func_c6(%x) : !relax.object
    relax.output %0
  }
  relax.return %gv
}

// -----

// Recursion through another function.
// CHECK: 'relax.dataflow' op calls @other recursively; recursion is control flow, call outside the region
relax.func @func_c6(%x: !relax.object) -> !relax.object {
  %gv = relax.dataflow {
    %0 = relax.call @other(%x) : !relax.object
    relax.output %0
  }
  relax.return %gv
}
relax.func private @other(%x: !relax.object) -> !relax.object {
  %0 = relax.call @func_c6(%x) : !relax.object
  relax.return %0
}

// -----

// CHECK: 'relax.func' op expected visibility public or private, got nested
relax.func nested @func_c7(%x: !relax.object) -> !relax.object {
  relax.return %x
}

// -----

// A symbol is bound once.
// CHECK: 'relax.func' type binds a symbol twice: n, n
relax.func @func[%n, %a as n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  relax.return %x
}

// -----

// The name of a function of dimensions is no symbol.
// CHECK: min cannot name a symbol; write %min as <symbol>
relax.func @func[%min](%x: !relax.object) -> !relax.object {
  relax.return %x
}

// -----

// CHECK: symbol n has empty or negative bounds [5, 2]
relax.func @func[%n in [5, 2]](%x: !relax.tensor<[n], f32>) -> !relax.object {
  relax.return %x
}

// -----

// CHECK: 'relax.closure' op expected itself of type !relax.func<(!relax.object) -> !relax.object, pure>, got !relax.object
relax.func @closure_c1(%x: !relax.object) -> !relax.object {
  %f = "relax.closure"() <{recursive}> ({
  ^bb0(%self: !relax.object, %y: !relax.object):
    "relax.return"(%y) : (!relax.object) -> ()
  }) : () -> !relax.func<(!relax.object) -> !relax.object, pure>
  relax.return %f
}

// -----

// CHECK: 'relax.closure' op expected 1 block arguments, got 0
relax.func @closure_c1(%x: !relax.object) -> !relax.object {
  %f = "relax.closure"() ({
  ^bb0:
    "relax.return"(%x) : (!relax.object) -> ()
  }) : () -> !relax.func<(!relax.object) -> !relax.object, pure>
  relax.return %f
}

// -----

// CHECK: 'relax.closure' op cannot be entered: cannot solve n * n for 'n': expected 'n' alone in some dimension, or one that is linear in it
relax.func @closure_c2(%x: !relax.object) -> !relax.object {
  %f = relax.closure [%n](%y: !relax.tensor<[n * n], f32>) -> !relax.object {
    relax.return %y
  }
  relax.return %f
}

// -----

// CHECK: 'relax.closure' op is pure, but holds 'relax.print', which is impure: it writes to the standard output; write 'impure' before the body
relax.func @closure_c3(%x: !relax.object) -> !relax.object {
  %f = relax.closure (%y: !relax.object) -> !relax.object {
    relax.print "{}"(%y)
    relax.return %y
  }
  relax.return %f
}

// -----

// CHECK: 'relax.return' op expected !relax.tensor<[n, 5], f32> as its function declares, got !relax.tensor<[n, 4], f32>
relax.func @return_c1[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.tensor<[n, 5], f32> {
  relax.return %x
}

// -----

// CHECK: 'relax.return' op expected !relax.tensor<[_], f32> as its function declares, got !relax.tensor<[n, 4], f32>
relax.func @return_c1[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.tensor<[_], f32> {
  relax.return %x
}

// -----

// Values are written before they are used.
// CHECK: value %y is not defined
relax.func @return(%x: !relax.object) -> !relax.object {
  relax.return %y
}

// -----

// CHECK: @recursive calls itself, so expected its result type
relax.func @recursive(%x: !relax.object) {
  %0 = relax.call @recursive(%x) : !relax.object
  relax.return %0
}

// -----

// CHECK: a recursive closure is expected to say its result type
relax.func @recursive(%x: !relax.object) -> !relax.object {
  %f = relax.closure rec %self(%y: !relax.object) {
    relax.return %y
  }
  relax.return %f
}

// -----

// CHECK: 'relax.func' op @func_c8 expected 2 distinct arg_names, got ["a"]
relax.func @func_c8(%x: !relax.object, %y: !relax.object) -> !relax.object attributes {arg_names = ["a"]} {
  relax.return %x
}

// -----

// CHECK: 'relax.func' op @func_c8 expected 2 distinct arg_names, got ["a", "a"]
relax.func @func_c8(%x: !relax.object, %y: !relax.object) -> !relax.object attributes {arg_names = ["a", "a"]} {
  relax.return %x
}

// -----

// CHECK: 'relax.func' op @func_c9 expected 1 result_names, got ["a", "b"]
relax.func @func_c9(%x: !relax.tensor<[2], f32>) -> !relax.tensor<[2], f32> attributes {result_names = ["a", "b"]} {
  relax.return %x
}
