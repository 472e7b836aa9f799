// RUN: relax-opt %s -p remove-kills | filecheck %s
// RUN: relax-opt %s -p remove-kills,remove-kills | filecheck %s

// What a program says about the end of values goes, in branches too.
// CHECK-LABEL: relax.func @ended
// CHECK-NOT: relax.kill
// CHECK: relax.return
relax.func @ended(%c: !relax.tensor<[], i1>, %x: !relax.tensor<[4], f32>) -> !relax.tensor<[4], f32> impure {
  %a = relax.exp %x
  %b = relax.if %c {
    %t = relax.log %a
    relax.kill %a
    relax.yield %t
  } else {
    relax.yield %x
  }
  %d = relax.exp %b
  relax.kill %b
  relax.return %d
}
