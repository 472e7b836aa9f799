// RUN: relax-opt %s -p legalize-ops,lower-call-tir,insert-kills,lower-shapes,convert-relax-to-vm --validate-each 2>&1 | filecheck %s
// RUN: relax-opt %s -p "legalize-ops,bind-symbolic-vars{n=4},fuse-ops" --validate-each 2>&1 | filecheck %s --check-prefix NOTES

// Inputs are drawn for four sets of sizes; the program runs after each pass, also on the machine.
// CHECK: validated {{[0-9]+}} passes by 4 calls of 1 functions
// CHECK-NOT: not validated
// NOTES: validated 2 passes by 4 calls of 1 functions
// NOTES-NEXT: bind-symbolic-vars is not validated: it changes the signatures of functions
relax.func @main[%n, %m](%x: !relax.tensor<[n, m], f32>) -> !relax.tensor<[n, m], f32> {
  %0 = relax.exp %x
  %1 = relax.add %0, %x
  relax.return %1
}
