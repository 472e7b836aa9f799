// RUN: relax-opt %s -p propagate-sharding --split-input-file | filecheck %s

// Backwards: the rows of the second weight want the columns of the first; terms are added up once.
// CHECK-LABEL: relax.func @backwards[%n](%x: !relax.tensor<[n, 8], f32>, %v: !relax.tensor<[8, 16], f32, sharding<x = 2: S[1]>>, %w: !relax.tensor<[16, 8], f32, sharding<x = 2: S[0]>>) -> !relax.object
// CHECK-NEXT:    %0 = relax.matmul %x, %v : !relax.tensor<[n, 16], f32, sharding<x = 2: S[1]>>
// CHECK-NEXT:    %1 = relax.nn.relu %0 : !relax.tensor<[n, 16], f32, sharding<x = 2: S[1]>>
// CHECK-NEXT:    %2 = relax.matmul %1, %w : !relax.tensor<[n, 8], f32, sharding<x = 2: P>>
// CHECK-NEXT:    %3 = relax.dist.redistribute %2 mesh = [2] placement = "R" axes = "x"
// CHECK-NEXT:    relax.return %3
relax.func @backwards[%n](%x: !relax.tensor<[n, 8], f32>, %v: !relax.tensor<[8, 16], f32>, %w: !relax.tensor<[16, 8], f32, sharding<x = 2: S[0]>>) -> !relax.object {
  %0 = relax.matmul %x, %v
  %1 = relax.nn.relu %0
  %2 = relax.matmul %1, %w
  relax.return %2
}

// -----

// Forwards: tiles of a batch need nothing from other workers.
// CHECK-LABEL: relax.func @batch[%n](%x: !relax.tensor<[n, 8], f32, sharding<x = 2: S[0]>>, %w: !relax.tensor<[8, 8], f32>, %b: !relax.tensor<[8], f32>) -> !relax.tensor<[n, 8], f32, sharding<x = 2: S[0]>>
// CHECK-NEXT:    %0 = relax.matmul %x, %w : !relax.tensor<[n, 8], f32, sharding<x = 2: S[0]>>
// CHECK-NEXT:    %1 = relax.add %0, %b : !relax.tensor<[n, 8], f32, sharding<x = 2: S[0]>>
// CHECK-NEXT:    %2 = relax.nn.softmax %1 : !relax.tensor<[n, 8], f32, sharding<x = 2: S[0]>>
// CHECK-NEXT:    relax.return %2
relax.func @batch[%n](%x: !relax.tensor<[n, 8], f32, sharding<x = 2: S[0]>>, %w: !relax.tensor<[8, 8], f32>, %b: !relax.tensor<[8], f32>) -> !relax.tensor<[n, 8], f32> {
  %0 = relax.matmul %x, %w
  %1 = relax.add %0, %b
  %2 = relax.nn.softmax %1
  relax.return %2
}

// -----

// Softmax wants its axis as a whole; what has no rule is computed by all workers.
// CHECK-LABEL: relax.func @whole_axis[%n](%x: !relax.tensor<[n, 8], f32, sharding<x = 2: S[1]>>) -> !relax.object
// CHECK-NEXT:    %0 = relax.exp %x : !relax.tensor<[n, 8], f32, sharding<x = 2: S[1]>>
// CHECK-NEXT:    %1 = relax.dist.redistribute %0 mesh = [2] placement = "R" axes = "x"
// CHECK-NEXT:    %2 = relax.nn.softmax %1
// CHECK-NEXT:    %3 = relax.sort %2
// CHECK-NEXT:    relax.return %3
relax.func @whole_axis[%n](%x: !relax.tensor<[n, 8], f32, sharding<x = 2: S[1]>>) -> !relax.object {
  %0 = relax.exp %x
  %1 = relax.nn.softmax %0
  %2 = relax.sort %1
  relax.return %2
}

// -----

// Heads stay in one piece: two workers have two of four heads each, and two and one of three.
// CHECK-LABEL: relax.func @heads[%n](%x: !relax.tensor<[n, 8], f32, sharding<x = 2: S[1]>>, %y: !relax.tensor<[n, 3, 2], f32, sharding<x = 2: S[1]>>) -> !relax.object
// CHECK-NEXT:    %s = relax.shape [n, 4, 2]
// CHECK-NEXT:    %0 = relax.reshape %x, %s : !relax.tensor<[n, 4, 2], f32, sharding<x = 2: S[1]>>
// CHECK-NEXT:    %t = relax.shape [n, 6]
// CHECK-NEXT:    %1 = relax.reshape %y, %t : !relax.tensor<[n, 6], f32, sharding<x = 2: S[1:2]>>
// CHECK-NEXT:    %2 = relax.tuple(%0, %1)
// CHECK-NEXT:    relax.return %2
relax.func @heads[%n](%x: !relax.tensor<[n, 8], f32, sharding<x = 2: S[1]>>, %y: !relax.tensor<[n, 3, 2], f32, sharding<x = 2: S[1]>>) -> !relax.object {
  %s = relax.shape [n, 4, 2]
  %0 = relax.reshape %x, %s
  %t = relax.shape [n, 6]
  %1 = relax.reshape %y, %t
  %2 = relax.tuple(%0, %1)
  relax.return %2
}

// -----

// What workers have of columns follows from the heads that are made of them.
// CHECK-LABEL: relax.func @columns_of_heads[%n](%x: !relax.tensor<[n, 8], f32>, %w: !relax.tensor<[8, 6], f32, sharding<x = 2: S[1:2]>>) -> !relax.object
// CHECK-NEXT:    %0 = relax.matmul %x, %w : !relax.tensor<[n, 6], f32, sharding<x = 2: S[1:2]>>
// CHECK-NEXT:    %s = relax.shape [n, 3, 2]
// CHECK-NEXT:    %1 = relax.reshape %0, %s : !relax.tensor<[n, 3, 2], f32, sharding<x = 2: S[1]>>
// CHECK-NEXT:    relax.return %1
relax.func @columns_of_heads[%n](%x: !relax.tensor<[n, 8], f32>, %w: !relax.tensor<[8, 6], f32, sharding<x = 2: S[1]>>) -> !relax.object {
  %0 = relax.matmul %x, %w
  %s = relax.shape [n, 3, 2]
  %1 = relax.reshape %0, %s
  relax.return %1
}

// -----

// One of three workers would have nothing of two heads: columns stay as they are, and are gathered.
// CHECK-LABEL: relax.func @fewer_heads_than_workers[%n]({{.*}}%w: !relax.tensor<[8, 6], f32, sharding<x = 3: S[1]>>)
// CHECK:         relax.dist.redistribute %0 mesh = [3] placement = "R" axes = "x"
relax.func @fewer_heads_than_workers[%n](%x: !relax.tensor<[n, 8], f32>, %w: !relax.tensor<[8, 6], f32, sharding<x = 3: S[1]>>) -> !relax.object {
  %0 = relax.matmul %x, %w
  %s = relax.shape [n, 2, 3]
  %1 = relax.reshape %0, %s
  relax.return %1
}

// -----

// Two annotations that want different things: the cheaper operand is moved, and both origins are named.
// CHECK-LABEL: relax.func @conflict(%x: !relax.tensor<[64, 8], f32, sharding<x = 2: S[0]>>, %y: !relax.tensor<[64, 8], f32, sharding<x = 2: S[1]>>) -> !relax.object
// CHECK-NEXT:    %y_1 = relax.dist.redistribute %y mesh = [2] placement = "S[0]" axes = "x" {conflict = "S[1] by parameter y, S[0] by parameter x"}
// CHECK-NEXT:    %0 = relax.add %x, %y_1 : !relax.tensor<[64, 8], f32, sharding<x = 2: S[0]>>
// CHECK-NEXT:    relax.return %0
relax.func @conflict(%x: !relax.tensor<[64, 8], f32, sharding<x = 2: S[0]>>, %y: !relax.tensor<[64, 8], f32, sharding<x = 2: S[1]>>) -> !relax.object {
  %0 = relax.add %x, %y
  relax.return %0
}

// -----

// Along two axes at once: a batch along one, the layer's columns and rows along the other.
// CHECK-LABEL: relax.func @two_axes[%n](%x: !relax.tensor<[n, 8], f32, sharding<d = 2: S[0], t = 2: R>>, %v: !relax.tensor<[8, 16], f32, sharding<d = 2: R, t = 2: S[1]>>, %w: !relax.tensor<[16, 8], f32, sharding<d = 2: R, t = 2: S[0]>>) -> !relax.object
// CHECK-NEXT:    %0 = relax.matmul %x, %v : !relax.tensor<[n, 16], f32, sharding<d = 2: S[0], t = 2: S[1]>>
// CHECK-NEXT:    %1 = relax.nn.relu %0 : !relax.tensor<[n, 16], f32, sharding<d = 2: S[0], t = 2: S[1]>>
// CHECK-NEXT:    %2 = relax.matmul %1, %w : !relax.tensor<[n, 8], f32, sharding<d = 2: S[0], t = 2: P>>
// CHECK-NEXT:    %3 = relax.dist.redistribute %2 mesh = [2, 2] placement = "S[0], R" axes = "d, t"
// CHECK-NEXT:    relax.return %3
relax.func @two_axes[%n](%x: !relax.tensor<[n, 8], f32, sharding<d = 2: S[0], t = 2: R>>, %v: !relax.tensor<[8, 16], f32, sharding<d = 2: R, t = 2: S[1]>>, %w: !relax.tensor<[16, 8], f32>) -> !relax.object {
  %0 = relax.matmul %x, %v
  %1 = relax.nn.relu %0
  %2 = relax.matmul %1, %w
  relax.return %2
}

// -----

// Tiles of a sequence are normalised: an all-gather before the columns, a reduce-scatter after the rows.
// CHECK-LABEL: relax.func @sequence[%n](%x: !relax.tensor<[n, 8], f32, sharding<x = 2: S[0]>>, %g: !relax.tensor<[8], f32>, %v: !relax.tensor<[8, 16], f32, sharding<x = 2: S[1]>>, %w: !relax.tensor<[16, 8], f32, sharding<x = 2: S[0]>>) -> !relax.object
// CHECK-NEXT:    %0 = relax.dist.annotate_sharding %x mesh = [2] placement = "S[0]" axes = "x"
// CHECK-NEXT:    %1 = relax.nn.rms_norm %0, %g axes = [-1] : !relax.tensor<[n, 8], f32, sharding<x = 2: S[0]>>
// CHECK-NEXT:    %2 = relax.dist.redistribute %1 mesh = [2] placement = "R" axes = "x"
// CHECK-NEXT:    %3 = relax.matmul %2, %v : !relax.tensor<[n, 16], f32, sharding<x = 2: S[1]>>
// CHECK-NEXT:    %4 = relax.nn.relu %3 : !relax.tensor<[n, 16], f32, sharding<x = 2: S[1]>>
// CHECK-NEXT:    %5 = relax.matmul %4, %w : !relax.tensor<[n, 8], f32, sharding<x = 2: P>>
// CHECK-NEXT:    %6 = relax.dist.redistribute %5 mesh = [2] placement = "S[0]" axes = "x"
// CHECK-NEXT:    %7 = relax.add %6, %0 : !relax.tensor<[n, 8], f32, sharding<x = 2: S[0]>>
// CHECK-NEXT:    relax.return %7
relax.func @sequence[%n](%x: !relax.tensor<[n, 8], f32>, %g: !relax.tensor<[8], f32>, %v: !relax.tensor<[8, 16], f32, sharding<x = 2: S[1]>>, %w: !relax.tensor<[16, 8], f32, sharding<x = 2: S[0]>>) -> !relax.object {
  %0 = relax.dist.annotate_sharding %x mesh = [2] placement = "S[0]" axes = "x"
  %1 = relax.nn.rms_norm %0, %g axes = [-1]
  %2 = relax.matmul %1, %v
  %3 = relax.nn.relu %2
  %4 = relax.matmul %3, %w
  %5 = relax.add %4, %0
  relax.return %5
}

// -----

// Branches: terms are added up before a region ends, and both regions give tiles in the same way.
// CHECK-LABEL: relax.func @branches[
// CHECK-NEXT:    %0 = relax.if %c {
// CHECK-NEXT:      %1 = relax.matmul %x, %w : !relax.tensor<[n, 6], f32, sharding<x = 2: P>>
// CHECK-NEXT:      %2 = relax.dist.redistribute %1 mesh = [2] placement = "S[1]" axes = "x"
// CHECK-NEXT:      relax.yield %2
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %3 = relax.exp %y : !relax.tensor<[n, 6], f32, sharding<x = 2: S[1]>>
// CHECK-NEXT:      relax.yield %3
// CHECK-NEXT:    }
// CHECK-NEXT:    %4 = relax.negative %0 : !relax.tensor<[n, 6], f32, sharding<x = 2: S[1]>>
relax.func @branches[%n](%c: !relax.tensor<[], i1>, %x: !relax.tensor<[n, 8], f32, sharding<x = 2: S[1]>>, %w: !relax.tensor<[8, 6], f32, sharding<x = 2: S[0]>>, %y: !relax.tensor<[n, 6], f32, sharding<x = 2: S[1]>>) -> !relax.object {
  %0 = relax.if %c {
    %1 = relax.matmul %x, %w
    relax.yield %1
  } else {
    %2 = relax.exp %y
    relax.yield %2
  }
  %3 = relax.negative %0
  relax.return %3
}

// -----

// Loops: what is carried is shared in every iteration as at first; what no iteration changes is moved once, before.
// CHECK-LABEL: relax.func @loop[
// CHECK:         %w_1 = relax.dist.redistribute %w mesh = [2] placement = "R" axes = "x"
// CHECK-NEXT:    %r = relax.for %i = %a to %b (%acc: !relax.tensor<[n, 8], f32, sharding<x = 2: S[0]>> = %x) {
// CHECK-NEXT:      %0 = relax.sort %w_1
// CHECK-NEXT:      %1 = relax.matmul %acc, %0 : !relax.tensor<[n, 8], f32, sharding<x = 2: S[0]>>
// CHECK-NEXT:      relax.yield %1
// CHECK-NEXT:    }
// CHECK-NEXT:    relax.return %r
relax.func @loop[%n](%x: !relax.tensor<[n, 8], f32, sharding<x = 2: S[0]>>, %w: !relax.tensor<[8, 8], f32, sharding<x = 2: S[1]>>) -> !relax.object {
  %a = relax.prim 0
  %b = relax.prim 3
  %r = relax.for %i = %a to %b (%acc: !relax.tensor<[n, 8], f32> = %x) {
    %0 = relax.sort %w
    %1 = relax.matmul %acc, %0
    relax.yield %1
  }
  relax.return %r
}

// -----

// A dimension that grows from iteration to iteration is not shared.
// CHECK-LABEL: relax.func @growing[
// CHECK:         %x_1 = relax.dist.redistribute %x mesh = [2] placement = "R" axes = "x"
// CHECK-NEXT:    %r = relax.for %i = %a to %b [%m](%y: !relax.tensor<[m, 8], f32> = %x_1)
relax.func @growing[%n](%x: !relax.tensor<[n, 8], f32, sharding<x = 2: S[0]>>) -> !relax.object {
  %a = relax.prim 0
  %b = relax.prim 3
  %r = relax.for %i = %a to %b [%m](%y: !relax.tensor<[m, 8], f32> = %x) {
    %0 = relax.concat %y, %y axis = 0
    relax.yield %0
  }
  relax.return %r
}

// -----

// Calls: arguments as the parameters of the callee are, the result as it returns it. What is no function of workers,
// or a tuple for one that is not looked into, gets the whole.
// CHECK-LABEL: relax.func @calls[
// CHECK-NEXT:    %x_1 = relax.dist.redistribute %x mesh = [2] placement = "S[0]" axes = "x"
// CHECK-NEXT:    %0 = relax.call @callee(%x_1) : !relax.tensor<[n], f32, sharding<x = 2: S[0]>>
// CHECK-NEXT:    %1 = relax.dist.redistribute %0 mesh = [2] placement = "R" axes = "x"
// CHECK-NEXT:    %2 = relax.call @other(%1) : !relax.tensor<[n], f32>
// CHECK-NEXT:    %3 = relax.tuple(%0, %2)
// CHECK-NEXT:    %4 = relax.tuple_get %3[0]
// CHECK-NEXT:    %5 = relax.dist.redistribute %4 mesh = [2] placement = "R" axes = "x"
// CHECK-NEXT:    %6 = relax.tuple_get %3[1]
// CHECK-NEXT:    %7 = relax.tuple(%5, %6)
// CHECK-NEXT:    %8 = relax.call_pure_packed "f"(%7)
relax.func @calls[%n](%x: !relax.tensor<[n, 8], f32>) -> !relax.object {
  %0 = relax.call @callee(%x)
  %1 = relax.call @other(%0)
  %2 = relax.tuple(%0, %1)
  %3 = relax.call_pure_packed "f"(%2) : !relax.object
  relax.return %3
}
relax.func private @callee[%n](%x: !relax.tensor<[n, 8], f32, sharding<x = 2: S[0]>>) -> !relax.tensor<[n], f32> {
  %1 = relax.sum %x axes = [1]
  relax.return %1
}
relax.func private @other[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %1 = relax.exp %x
  relax.return %1
}

// -----

// Rows of a table on workers: each has a term. Columns of a matrix whose matmul all get, as a plan says.
// CHECK-LABEL: relax.func @vocabulary[
// CHECK-NEXT:    %0 = relax.take %t, %i axis = 0 : !relax.tensor<[n, 6], f32, sharding<x = 2: P>>
// CHECK-NEXT:    %1 = relax.dist.redistribute %0 mesh = [2] placement = "R" axes = "x"
// CHECK-NEXT:    %2 = relax.matmul %1, %w : !relax.tensor<[n, 9], f32, sharding<x = 2: S[1]>>
// CHECK-NEXT:    %3 = relax.dist.redistribute %2 mesh = [2] placement = "R" axes = "x"
// CHECK-NEXT:    relax.return %3
relax.func @vocabulary[%n](%t: !relax.tensor<[9, 6], f32, sharding<x = 2: S[0]>>, %i: !relax.tensor<[n], i64>, %w: !relax.tensor<[6, 9], f32, sharding<x = 2: S[1]>>) -> !relax.object {
  %0 = relax.take %t, %i axis = 0
  %1 = relax.matmul %0, %w {gathered = "x"}
  relax.return %1
}

// -----

// A PrimFunc by how its loops index buffers: rows stay, a sum over columns has terms. What has its symbols from a cast is
// shared as what it was.
// CHECK-LABEL: relax.func @kernel[
// CHECK-NEXT:    %0, %m = relax.match_cast %x : !relax.tensor<[m, 8], f32, sharding<x = 2: S[1]>> binds [m]
// CHECK-NEXT:    %1 = relax.call_tir @sums(%0) : !relax.tensor<[m], f32, sharding<x = 2: P>>
// CHECK-NEXT:    %2 = relax.dist.redistribute %1 mesh = [2] placement = "R" axes = "x"
tir.prim_func @sums[%n](%X: !tir.buffer<[n, 8], f32>, %Y: !tir.buffer<[n], f32>) {
  %c8 = arith.constant 8 : index
  tir.for (%i, %j) in (%n, %c8) {
    tir.block "sums" (%vi = spatial %i in %n, %vj = reduce %j in %c8) {
      tir.init {
        %zero = arith.constant 0.0 : f32
        tir.store %zero, %Y[%vi]
      }
      %x = tir.load %X[%vi, %vj]
      %y = tir.load %Y[%vi]
      %s = arith.addf %y, %x : f32
      tir.store %s, %Y[%vi]
    }
  }
}
relax.func @kernel[%n](%x: !relax.tensor<[n, 8], f32, sharding<x = 2: S[1]>>) -> !relax.object {
  %0, %m = relax.match_cast %x : !relax.tensor<[m, 8], f32> binds [m]
  %1 = relax.call_tir @sums(%0) : !relax.tensor<[m], f32>
  relax.return %1
}
