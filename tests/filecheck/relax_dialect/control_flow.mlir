// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP

// The result is the join of what the branches yield, unless less is written.
// CHECK-LABEL: relax.func @branches[
// CHECK-NEXT:      %r = relax.if %c {
// CHECK-NEXT:        %0 = relax.exp %x
// CHECK-NEXT:        relax.yield %0
// CHECK-NEXT:      } else {
// CHECK-NEXT:        relax.yield %y
// CHECK-NEXT:      }
// CHECK-NEXT:      %s, %t = relax.if %p {
// CHECK-NEXT:        relax.yield %x, %c
// CHECK-NEXT:      } else {
// CHECK-NEXT:        relax.yield %x, %x
// CHECK-NEXT:      } : !relax.tensor<*, f32>, !relax.object
// CHECK-NEXT:      relax.return %r
relax.func @branches[%n, %m](%c: !relax.tensor<[], i1>, %p: !relax.prim<i1>, %x: !relax.tensor<[n, 4], f32>, %y: !relax.tensor<[m, 4], f32>) -> !relax.tensor<[_, 4], f32> {
  %r = relax.if %c {
    %0 = relax.exp %x
    relax.yield %0
  } else {
    relax.yield %y
  }
  %s, %t = relax.if %p {
    relax.yield %x, %c
  } else {
    relax.yield %x, %x
  } : !relax.tensor<*, f32>, !relax.object
  relax.return %r
}

// A branch for its effect only.
// CHECK-LABEL: relax.func @effects(%c: !relax.prim<i1>) -> !relax.tuple<> impure {
// CHECK-NEXT:      relax.if %c {
// CHECK-NEXT:        relax.print "yes"()
// CHECK-NEXT:        relax.yield
// CHECK-NEXT:      } else {
// CHECK-NEXT:        relax.yield
// CHECK-NEXT:      }
// CHECK-NEXT:      %0 = relax.tuple()
// CHECK-NEXT:      relax.return %0
relax.func @effects(%c: !relax.prim<i1>) -> !relax.tuple<> impure {
  relax.if %c {
    relax.print "yes"()
    relax.yield
  } else {
    relax.yield
  }
  %0 = relax.tuple()
  relax.return %0
}

// A symbol that a branch binds is unknown after it.
// CHECK-LABEL: relax.func @local_symbol(
// CHECK-NEXT:      %r = relax.if %c {
// CHECK-NEXT:        %0, %m = relax.match_cast %x : !relax.tensor<[2 * m], f32> binds [m]
// CHECK-NEXT:        relax.yield %0
// CHECK-NEXT:      } else {
// CHECK-NEXT:        relax.yield %x
// CHECK-NEXT:      }
// CHECK-NEXT:      %s = relax.shape_of %r
// CHECK-NEXT:      relax.return %s
relax.func @local_symbol(%c: !relax.prim<i1>, %x: !relax.tensor<[_], f32>) -> !relax.object {
  %r = relax.if %c {
    %0, %m = relax.match_cast %x : !relax.tensor<[2 * m], f32> binds [m]
    relax.yield %0
  } else {
    relax.yield %x
  }
  %s = relax.shape_of %r
  relax.return %s
}

// A symbol that both branches bind and yield at the same place is known after it.
// CHECK-LABEL: relax.func @common_symbol[
// CHECK:             relax.yield %0, %m
// CHECK:             relax.yield %1, %m_1
// CHECK-NEXT:      }
// CHECK-NEXT:      %s = relax.shape [m]
// CHECK-NEXT:      relax.return %r
relax.func @common_symbol[%n](%c: !relax.prim<i1>, %x: !relax.tensor<[n], f32>, %y: !relax.tensor<[_], f32>) -> !relax.tensor<[_], f32> {
  %r, %k = relax.if %c {
    %0, %m = relax.match_cast %x : !relax.tensor<[m], f32> binds [m]
    relax.yield %0, %m
  } else {
    %0, %m = relax.match_cast %y : !relax.tensor<[m], f32> binds [m]
    relax.yield %0, %m
  }
  %s = relax.shape [m]
  relax.return %r
}

// A written result type may name a new symbol, to which each branch gives a value of its own.
// CHECK-LABEL: relax.func @new_symbol[
// CHECK:           %r, %k = relax.if %c {
// CHECK-NEXT:        relax.yield %x, %a
// CHECK-NEXT:      } else {
// CHECK-NEXT:        relax.yield %y, %b
// CHECK-NEXT:      } : !relax.tensor<[k, 4], f32>, !relax.prim<i64, k>
// CHECK-NEXT:      %s = relax.shape [k]
relax.func @new_symbol[%n, %m](%c: !relax.prim<i1>, %x: !relax.tensor<[2 * n, 4], f32>, %y: !relax.tensor<[m, 4], f32>) -> !relax.tensor<[_, 4], f32> {
  %a = relax.prim 2 * n
  %b = relax.prim m
  %r, %k = relax.if %c {
    relax.yield %x, %a
  } else {
    relax.yield %y, %b
  } : !relax.tensor<[k, 4], f32>, !relax.prim<i64, k>
  %s = relax.shape [k]
  relax.return %r
}

// The carried type holds in every iteration.
// CHECK-LABEL: relax.func @while_loop[
// CHECK-NEXT:      %r = relax.while (%a: !relax.tensor<[n], f32> = %x) {
// CHECK-NEXT:        %c = relax.call_pure_packed "go_on"(%a) : !relax.tensor<[], i1>
// CHECK-NEXT:        relax.yield %c
// CHECK-NEXT:      } do (%b) {
// CHECK-NEXT:        %0 = relax.exp %b
// CHECK-NEXT:        relax.yield %0
// CHECK-NEXT:      }
// CHECK-NEXT:      relax.return %r
relax.func @while_loop[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %r = relax.while (%a: !relax.tensor<[n], f32> = %x) {
    %c = relax.call_pure_packed "go_on"(%a) : !relax.tensor<[], i1>
    relax.yield %c
  } do (%b) {
    %0 = relax.exp %b
    relax.yield %0
  }
  relax.return %r
}

// The symbol of a loop is bound anew in every iteration, so that the shape may change; after the loop it is unknown.
// CHECK-LABEL: relax.func @growing[
// CHECK-NEXT:      %r = relax.while [%m in [1, 1024]](%a: !relax.tensor<[m, 4], f32> = %x) {
// CHECK-NEXT:        %c = relax.call_pure_packed "go_on"(%a) : !relax.prim<i1>
// CHECK-NEXT:        relax.yield %c
// CHECK-NEXT:      } do [%m_1 as m in [1, 1024]](%b) {
// CHECK-NEXT:        %0 = relax.concat %b, %b
// CHECK-NEXT:        relax.yield %0
// CHECK-NEXT:      }
// CHECK-NEXT:      relax.return %r
relax.func @growing[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.tensor<[_, 4], f32> {
  %r = relax.while [%m in [1, 1024]](%a: !relax.tensor<[m, 4], f32> = %x) {
    %c = relax.call_pure_packed "go_on"(%a) : !relax.prim<i1>
    relax.yield %c
  } do [%m_1 as m in [1, 1024]](%b) {
    %0 = relax.concat %b, %b
    relax.yield %0
  }
  relax.return %r
}

// A counter, by default in steps of one.
// CHECK-LABEL: relax.func @for_loop[
// CHECK-NEXT:      %upper = relax.prim n
// CHECK-NEXT:      %r = relax.for %i = %lower to %upper (%a: !relax.tensor<[n], f32> = %x) {
// CHECK-NEXT:        %0 = relax.exp %a
// CHECK-NEXT:        relax.yield %0
// CHECK-NEXT:      }
// CHECK-NEXT:      %s, %t = relax.for %i_1 = %lower to %upper step %step [%m](%a_1: !relax.tensor<[m], f32> = %x, %b: !relax.object = %x) {
// CHECK-NEXT:        %e = relax.concat %a_1, %a_1
// CHECK-NEXT:        relax.yield %e, %a_1
// CHECK-NEXT:      }
// CHECK-NEXT:      relax.return %r
relax.func @for_loop[%n](%x: !relax.tensor<[n], f32>, %lower: !relax.prim<i64>, %step: !relax.prim<i64>) -> !relax.object {
  %upper = relax.prim n
  %r = relax.for %i = %lower to %upper (%a: !relax.tensor<[n], f32> = %x) {
    %0 = relax.exp %a
    relax.yield %0
  }
  %s, %t = relax.for %i_1 = %lower to %upper step %step [%m](%a_1: !relax.tensor<[m], f32> = %x, %b: !relax.object = %x) {
    %e = relax.concat %a_1, %a_1
    relax.yield %e, %a_1
  }
  relax.return %r
}

// The counter as a symbol of the body.
// CHECK-LABEL: relax.func @counter_symbol[%n](%x: !relax.tensor<[n], f32>) -> !relax.object impure {
// CHECK-NEXT:      %lower = relax.prim 1
// CHECK-NEXT:      %upper = relax.prim n
// CHECK-NEXT:      relax.for %i as i = %lower to %upper () {
// CHECK-NEXT:        %0 = relax.strided_slice %x axes = [0] begin = [0] end = [i] assume_inbound
// CHECK-NEXT:        %1 = relax.match_cast %0 : !relax.tensor<[i], f32>
// CHECK-NEXT:        relax.print "{}"(%1)
// CHECK-NEXT:        relax.yield
// CHECK-NEXT:      }
// CHECK-NEXT:      relax.return %x
relax.func @counter_symbol[%n](%x: !relax.tensor<[n], f32>) -> !relax.object impure {
  %lower = relax.prim 1
  %upper = relax.prim n
  relax.for %i as i = %lower to %upper () {
    %0 = relax.strided_slice %x axes = [0] begin = [0] end = [i] assume_inbound
    %1 = relax.match_cast %0 : !relax.tensor<[i], f32>
    relax.print "{}"(%1)
    relax.yield
  }
  relax.return %x
}
