// RUN: relax-opt %s -p eliminate-common-subexpr --split-input-file | filecheck %s
// RUN: relax-opt %s -p eliminate-common-subexpr,eliminate-common-subexpr --split-input-file | filecheck %s
// RUN: relax-opt %s -p eliminate-common-subexpr --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// Equal ops, and those that are equal then; the first one stays. Other properties or types make another op.
// CHECK-LABEL: relax.func @equal
// CHECK-NEXT:    %0 = relax.exp %x
// CHECK-NEXT:    %1 = relax.sum %0 axes = [0]
// CHECK-NEXT:    %2 = relax.sum %0 axes = [1]
// CHECK-NEXT:    %3 = relax.exp %x : !relax.tensor<*, f32>
// CHECK-NEXT:    %4 = relax.add %1, %1
// CHECK-NEXT:    %5 = relax.tuple(%4, %2, %3)
// LOC: relax.exp %x loc("{{.*}}eliminate_common_subexpr.mlir":15:3)
relax.func @equal(%x: !relax.tensor<[4, 4], f32>) -> !relax.object {
  %0 = relax.exp %x
  %1 = relax.exp %x
  %2 = relax.sum %0 axes = [0]
  %3 = relax.sum %1 axes = [0]
  %4 = relax.sum %1 axes = [1]
  %5 = relax.exp %x : !relax.tensor<*, f32>
  %6 = relax.add %2, %3
  %7 = relax.tuple(%6, %4, %5)
  relax.return %7
}

// Of two results each has its own memory: the caller may write into one and read the other.
// CHECK-LABEL: relax.func @returned
// CHECK-NEXT:    %0 = relax.exp %x
// CHECK-NEXT:    %1 = relax.exp %x
// CHECK-NEXT:    %2 = relax.log %0
// CHECK-NEXT:    %3 = relax.flatten %1
// CHECK-NEXT:    relax.tuple(%0, %3, %2)
relax.func @returned(%x: !relax.tensor<[4, 4], f32>) -> !relax.object {
  %0 = relax.exp %x
  %1 = relax.exp %x
  %2 = relax.exp %x
  %3 = relax.log %2
  %4 = relax.flatten %1
  %5 = relax.tuple(%0, %4, %3)
  relax.return %5
}

// -----

// A region uses what was computed before it, not what another branch computes; a closure captures nothing new.
// CHECK-LABEL: relax.func @regions
// CHECK-NEXT:    %0 = relax.exp %x
// CHECK-NEXT:    %1 = relax.if %c {
// CHECK-NEXT:      %2 = relax.log %x
// CHECK-NEXT:      %3 = relax.add %0, %2
// CHECK-NEXT:      relax.yield %3
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %4 = relax.log %x
// CHECK-NEXT:      relax.yield %4
// CHECK-NEXT:    }
// CHECK-NEXT:    relax.closure
// CHECK-NEXT:      %6 = relax.exp %x
// CHECK-NEXT:      relax.add %6, %6
relax.func @regions(%x: !relax.tensor<[4], f32>, %c: !relax.prim<i1>) -> !relax.object {
  %0 = relax.exp %x
  %1 = relax.if %c {
    %2 = relax.exp %x
    %3 = relax.log %x
    %4 = relax.add %2, %3
    relax.yield %4
  } else {
    %5 = relax.log %x
    relax.yield %5
  }
  %6 = relax.closure () -> !relax.object {
    %7 = relax.exp %x
    %8 = relax.exp %x
    %9 = relax.add %7, %8
    relax.return %9
  }
  %10 = relax.tuple(%0, %1, %6)
  relax.return %10
}

// -----

// What is written into is nobody else's, under another type and outside of its region neither.
// CHECK-LABEL: relax.func @written
// CHECK-NEXT:    %0, %1 = relax.dataflow {
// CHECK-NEXT:      relax.exp %x
// CHECK-NEXT:      relax.exp %x
// CHECK-NEXT:      relax.flatten
// CHECK-NEXT:      relax.output
// CHECK-NEXT:    }
// CHECK-NEXT:    relax.call_packed "change"(%1)
// CHECK-NEXT:    %{{.*}} = relax.exp %x
// CHECK-NEXT:    relax.call_tir_inplace
tir.prim_func private @halve[%n](%x: !tir.buffer<[n], f32>) {
}
relax.func @written(%x: !relax.tensor<[4], f32>) -> !relax.object impure {
  %0, %1 = relax.dataflow {
    %2 = relax.exp %x
    %3 = relax.exp %x
    %4 = relax.flatten %3
    relax.output %2, %4
  }
  relax.call_packed "change"(%1)
  %5 = relax.exp %x
  %6 = relax.call_tir_inplace @halve(%5) inplace [0] : !relax.tensor<[4], f32>
  %7 = relax.tuple(%0, %6)
  relax.return %7
}

// -----

// Effects happen as often as they are written, and each cast binds its own symbol.
// CHECK-LABEL: relax.func @stays
// CHECK-NEXT:    relax.call_packed "next"
// CHECK-NEXT:    relax.call_packed "next"
// CHECK-NEXT:    relax.match_cast %x : !relax.tensor<[k], f32> binds [k]
// CHECK-NEXT:    relax.match_cast %x : !relax.tensor<[l], f32> binds [l]
relax.func @stays(%x: !relax.object) -> !relax.object impure {
  %0 = relax.call_packed "next"(%x) : !relax.object
  %1 = relax.call_packed "next"(%x) : !relax.object
  %2, %k = relax.match_cast %x : !relax.tensor<[k], f32> binds [k]
  %3, %l = relax.match_cast %x : !relax.tensor<[l], f32> binds [l]
  %4 = relax.tuple(%0, %1, %2, %3)
  relax.return %4
}

// New memory is another one each time.
// CHECK-LABEL: relax.func @new_memory
// CHECK-NEXT:    %a = relax.alloc_tensor
// CHECK-NEXT:    %b = relax.alloc_tensor
// CHECK-NEXT:    %t = relax.tuple(%a, %b)
relax.func @new_memory() -> !relax.object {
  %a = relax.alloc_tensor : !relax.tensor<[4], f32>
  %b = relax.alloc_tensor : !relax.tensor<[4], f32>
  %t = relax.tuple(%a, %b)
  relax.return %t
}

// -----

// A branch that hands its value to somebody who may write into it has its own, and so has every iteration of a loop;
// what a loop writes is read by its later iterations, and after it.
// CHECK-LABEL: relax.func @written_in_branch
// CHECK-NEXT:    %0 = relax.exp %x
// CHECK-NEXT:    %1 = relax.if %c {
// CHECK-NEXT:      %2 = relax.exp %x
// CHECK-NEXT:      relax.call_packed "change"(%2)
// CHECK:         } else {
// CHECK-NEXT:      %4 = relax.log %0
// CHECK-NEXT:      relax.yield %4
relax.func @written_in_branch(%x: !relax.tensor<[4], f32>, %c: !relax.prim<i1>) -> !relax.tensor<[4], f32> impure {
  %0 = relax.exp %x
  %1 = relax.if %c {
    %2 = relax.exp %x
    relax.call_packed "change"(%2)
    %3 = relax.log %2
    relax.yield %3
  } else {
    %4 = relax.exp %x
    %5 = relax.log %4
    relax.yield %5
  }
  %6 = relax.add %0, %1
  relax.return %6
}
// CHECK-LABEL: relax.func @written_in_loop
// CHECK:         %0 = relax.exp %x
// CHECK-NEXT:    %y = relax.negative %x
// CHECK-NEXT:    %1 = relax.exp %y
// CHECK-NEXT:    %r = relax.for
// CHECK-NEXT:      %2 = relax.exp %x
// CHECK-NEXT:      %3 = relax.exp %y
// CHECK-NEXT:      relax.call_packed "change"(%2)
// CHECK-NEXT:      relax.call_packed "change"(%y)
// CHECK:         %{{.*}} = relax.exp %y
// CHECK-NEXT:    relax.tuple(%0, %1, %r, %{{.*}})
relax.func @written_in_loop(%x: !relax.tensor<[4], f32>, %n: !relax.prim<i64>) -> !relax.object impure {
  %zero = relax.prim 0
  %0 = relax.exp %x
  %y = relax.negative %x
  %1 = relax.exp %y
  %r = relax.for %i = %zero to %n (%sum: !relax.tensor<[4], f32> = %x) {
    %2 = relax.exp %x
    %3 = relax.exp %y
    relax.call_packed "change"(%2)
    relax.call_packed "change"(%y)
    %4 = relax.add %2, %3
    %5 = relax.add %sum, %4
    relax.yield %5
  }
  %6 = relax.exp %y
  %7 = relax.tuple(%0, %1, %r, %6)
  relax.return %7
}

// -----

// Packed weights are decoded by each kernel that reads them: as one value they would be unpacked into memory.
// CHECK-LABEL: relax.func @packed
// CHECK:         relax.matmul %x, %{{.*}}
// CHECK:         relax.dequantize_blocks
// CHECK:         relax.matmul
relax.func @packed(%x: !relax.tensor<[4, 32], f32>, %w: !relax.tensor<[32, 34], ui8>) -> !relax.object {
  %0 = relax.dequantize_blocks %w format = "q8_0"
  %1 = relax.permute_dims %0
  %2 = relax.matmul %x, %1
  %3 = relax.dequantize_blocks %w format = "q8_0"
  %4 = relax.permute_dims %3
  %5 = relax.matmul %2, %4
  relax.return %5
}
