// RUN: relax-opt %s -p verify-dominance --verify-diagnostics --split-input-file | filecheck %s

// A use after its definition, in the block, below it in the dominator tree and in nested regions.
// CHECK-LABEL: func.func @dominated
func.func @dominated(%c: i1, %a: i32) -> i32 {
  %x = arith.addi %a, %a : i32
  cf.cond_br %c, ^left, ^right
^left:
  %y = scf.if %c -> (i32) {
    scf.yield %x : i32
  } else {
    scf.yield %a : i32
  }
  cf.br ^join(%y : i32)
^right:
  cf.br ^join(%x : i32)
^join(%r: i32):
  func.return %r : i32
}

// -----

// All errors of the module at once, each with place, function and lines around it.
// CHECK:      [[# @LINE + 5]]:3: error: 'arith.addi' op operand #0 (%x) is used before it is defined at {{.*}}:[[# @LINE + 6]]:3 (in @before)
// CHECK-NEXT:     func.func @before(%a: i32) -> i32 {
// CHECK-NEXT: >   %y = arith.addi %x, %a : i32
// CHECK:      error: 'arith.addi' op operand #0 (%v) is used before it is defined at {{.*}} (in @also)
func.func @before(%a: i32) -> i32 {
  %y = arith.addi %x, %a : i32
  %x = arith.addi %a, %a : i32
  func.return %y : i32
}
func.func @also(%a: i32) -> i32 {
  %y = arith.addi %v, %a : i32
  %v = arith.addi %a, %a : i32
  func.return %y : i32
}

// -----

// CHECK: error: 'func.return' op operand #0 (%x) is defined at {{.*}} in a block that does not dominate this use
func.func @one_side(%c: i1) -> i32 {
  cf.cond_br %c, ^left, ^join
^left:
  %x = arith.constant 1 : i32
  cf.br ^join
^join:
  func.return %x : i32
}
