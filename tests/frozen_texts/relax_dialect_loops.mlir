builtin.module {
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
}
