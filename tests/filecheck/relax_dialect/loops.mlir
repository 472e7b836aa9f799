// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP

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
