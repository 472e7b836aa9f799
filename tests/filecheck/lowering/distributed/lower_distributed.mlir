// RUN: relax-opt %s -p lower-distributed --split-input-file | filecheck %s

// A product over a dimension that workers share gives terms of a sum, which an all-reduce adds up.
// CHECK-LABEL: relax.func @all_reduce[%x_index, %n](%workers: !relax.shape<[2, x_index, n]>, %x: !relax.tensor<[n, 4], f32>, %w: !relax.tensor<[4, 4], f32>) -> !relax.tensor<[n, 4], f32>
// CHECK-SAME:  mesh = #relax.sharding<x = 2: R>
// CHECK-NEXT:    %0 = relax.matmul %x, %w
// CHECK-NEXT:    %1 = relax.ccl.allreduce %0 group = "x"
// CHECK-NEXT:    relax.return %1
relax.func @all_reduce[%n](%x: !relax.tensor<[n, 8], f32, sharding<x = 2: S[1]>>, %w: !relax.tensor<[8, 4], f32, sharding<x = 2: S[0]>>) -> !relax.tensor<[n, 4], f32> {
  %0 = relax.matmul %x, %w : !relax.tensor<[n, 4], f32, sharding<x = 2: P>>
  %1 = relax.dist.redistribute %0 mesh = [2] placement = "R" axes = "x"
  relax.return %1
}

// -----

// An all-reduce of which each worker takes a tile is a reduce-scatter.
// CHECK-LABEL: relax.func @reduce_scatter[
// CHECK:         %0 = relax.sum %x axes = [1]
// CHECK-NEXT:    %1 = relax.ccl.reduce_scatter %0 num_workers = 2 tile = 3 group = "x"
// CHECK-NEXT:    relax.return %1
relax.func @reduce_scatter(%x: !relax.tensor<[6, 8], f32, sharding<x = 2: S[1]>>) -> !relax.object {
  %0 = relax.sum %x axes = [1] : !relax.tensor<[6], f32, sharding<x = 2: P>>
  %1 = relax.dist.redistribute %0 mesh = [2] placement = "R" axes = "x"
  %2 = relax.dist.redistribute %1 mesh = [2] placement = "S[0]" axes = "x"
  relax.return %2
}

// -----

// An all-gather of which each worker takes a tile along another dimension is an all-to-all.
// CHECK-LABEL: relax.func @all_to_all[
// CHECK:         %0 = relax.ccl.all_to_all %x concat_axis = 0 size = 6 num_workers = 2 axis = 1 tile = 4 group = "x"
// CHECK-NEXT:    relax.return %0
relax.func @all_to_all(%x: !relax.tensor<[6, 8], f32, sharding<x = 2: S[0]>>) -> !relax.object {
  %0 = relax.dist.redistribute %x mesh = [2] placement = "R" axes = "x"
  %1 = relax.dist.redistribute %0 mesh = [2] placement = "S[1]" axes = "x"
  relax.return %1
}

// -----

// What is gathered and cut again, or annotated as what it is, stays.
// CHECK-LABEL: relax.func @nothing[
// CHECK-NEXT:    %0 = relax.exp %x
// CHECK-NEXT:    relax.return %0
relax.func @nothing(%x: !relax.tensor<[6, 8], f32, sharding<x = 2: S[0]>>) -> !relax.object {
  %0 = relax.dist.redistribute %x mesh = [2] placement = "R" axes = "x"
  %1 = relax.dist.redistribute %0 mesh = [2] placement = "S[0]" axes = "x"
  %2 = relax.dist.annotate_sharding %1 mesh = [2] placement = "S[0]" axes = "x"
  %3 = relax.exp %2 : !relax.tensor<[6, 8], f32, sharding<x = 2: S[0]>>
  relax.return %3
}

// -----

// A whole that is used otherwise, too, is not gathered again: taking a tile moves nothing.
// CHECK-LABEL: relax.func @used_twice[
// CHECK-NEXT:    %0 = relax.ccl.allgather %x num_workers = 2 size = 6 group = "x"
// CHECK-NEXT:    %1 = relax.dist.redistribute_replica_to_shard %0 index = x_index num_workers = 2 axis = 1 tile = 4 group = "x"
relax.func @used_twice(%x: !relax.tensor<[6, 8], f32, sharding<x = 2: S[0]>>) -> !relax.object {
  %0 = relax.dist.redistribute %x mesh = [2] placement = "R" axes = "x"
  %1 = relax.dist.redistribute %0 mesh = [2] placement = "S[1]" axes = "x"
  %2 = relax.tuple(%0, %1)
  relax.return %2
}

// -----

// Tiles that differ in size are symbols; those of arguments are checked.
// CHECK-LABEL: relax.func @uneven[%x_index, %n](%workers: !relax.shape<[2, x_index, n]>, %x: !relax.tensor<[max(0, min(n - x_index * floordiv(n + 1, 2), floordiv(n + 1, 2))), 8], f32>)
// CHECK-NEXT:    %0 = relax.shape [max(0, min(n - x_index * floordiv(n + 1, 2), floordiv(n + 1, 2)))]
// CHECK-NEXT:    %1, %n_x = relax.match_cast %0 : !relax.shape<[n_x]> binds [n_x]
// CHECK-NEXT:    %x_1 = relax.match_cast %x : !relax.tensor<[n_x, 8], f32>
// CHECK-NEXT:    %2 = relax.exp %x_1
// CHECK-NEXT:    %3 = relax.ccl.allgather %2 num_workers = 2 size = n group = "x"
// CHECK-NEXT:    relax.return %3
relax.func @uneven[%n](%x: !relax.tensor<[n, 8], f32, sharding<x = 2: S[0]>>) -> !relax.tensor<[n, 8], f32> {
  %0 = relax.exp %x : !relax.tensor<[n, 8], f32, sharding<x = 2: S[0]>>
  %1 = relax.dist.redistribute %0 mesh = [2] placement = "R" axes = "x"
  relax.return %1
}

// -----

// Along several axes, one after the other: first what makes tensors smaller.
// CHECK-LABEL: relax.func @two_axes[%x_index, %y_index](%workers: !relax.shape<[2, x_index, 3, y_index]>, %x: !relax.tensor<[3, 9], f32>)
// CHECK-NEXT:    %0 = relax.dist.redistribute_replica_to_shard %x index = y_index num_workers = 3 axis = 1 tile = 3 group = "y"
// CHECK-NEXT:    %1 = relax.ccl.allgather %0 num_workers = 2 size = 6 group = "x"
// CHECK-NEXT:    relax.return %1
relax.func @two_axes(%x: !relax.tensor<[6, 9], f32, sharding<x = 2: S[0], y = 3: R>>) -> !relax.object {
  %0 = relax.dist.redistribute %x mesh = [2, 3] placement = "R, S[1]" axes = "x, y"
  relax.return %0
}

// -----

// Axes that wait for each other's dimension give it up first.
// CHECK-LABEL: relax.func @exchange[
// CHECK-NEXT:    %0 = relax.ccl.allgather %x num_workers = 2 size = 6 group = "x"
// CHECK-NEXT:    %1 = relax.ccl.all_to_all %0 concat_axis = 1 size = 6 num_workers = 3 tile = 2 group = "y"
// CHECK-NEXT:    %2 = relax.dist.redistribute_replica_to_shard %1 index = x_index num_workers = 2 axis = 1 tile = 3 group = "x"
relax.func @exchange(%x: !relax.tensor<[6, 6], f32, sharding<x = 2: S[0], y = 3: S[1]>>) -> !relax.object {
  %0 = relax.dist.redistribute %x mesh = [2, 3] placement = "S[1], S[0]" axes = "x, y"
  relax.return %0
}

// -----

// Functions without shardings stay.
// CHECK-LABEL: relax.func @alone(%x: !relax.tensor<[6], f32>)
// CHECK-NEXT:    %0 = relax.exp %x
relax.func @alone(%x: !relax.tensor<[6], f32>) -> !relax.object {
  %0 = relax.exp %x
  relax.return %0
}

// -----

// Branches and loops of tiles; a tile's symbol is bound before what uses it.
// CHECK-LABEL: relax.func @control[
// CHECK:         %{{.*}}, %n_x = relax.match_cast %{{.*}} : !relax.shape<[n_x]> binds [n_x]
// CHECK:         %r = relax.for %i = %a to %b (%acc: !relax.tensor<[n_x, 8], f32> = %{{.*}}) {
// CHECK-NEXT:      %[[A:.*]] = relax.ccl.allgather %acc num_workers = 2 size = n group = "x"
// CHECK-NEXT:      %[[S:.*]] = relax.sort %[[A]] axis = 0
// CHECK-NEXT:      %[[T:.*]] = relax.dist.redistribute_replica_to_shard %[[S]] index = x_index num_workers = 2 tile = n_x group = "x"
// CHECK-NEXT:      relax.yield %[[T]]
// CHECK:         %{{.*}} = relax.if %c {
// CHECK-NEXT:      relax.yield %r
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[E:.*]] = relax.exp %r
// CHECK-NEXT:      relax.yield %[[E]]
// CHECK-NEXT:    }
relax.func @control[%n](%c: !relax.tensor<[], i1>, %x: !relax.tensor<[n, 8], f32, sharding<x = 2: S[0]>>) -> !relax.object {
  %a = relax.prim 0
  %b = relax.prim 3
  %r = relax.for %i = %a to %b (%acc: !relax.tensor<[n, 8], f32, sharding<x = 2: S[0]>> = %x) {
    %0 = relax.dist.redistribute %acc mesh = [2] placement = "R" axes = "x"
    %1 = relax.sort %0 axis = 0
    %2 = relax.dist.redistribute %1 mesh = [2] placement = "S[0]" axes = "x"
    relax.yield %2
  }
  %s = relax.if %c {
    relax.yield %r
  } else {
    %3 = relax.exp %r : !relax.tensor<[n, 8], f32, sharding<x = 2: S[0]>>
    relax.yield %3
  } : !relax.tensor<[n, 8], f32, sharding<x = 2: S[0]>>
  relax.return %s
}

// -----

// The callee gets the workers, and its symbols; what calls one of workers is one, too.
// CHECK-LABEL: relax.func @caller[%x_index, %k](%workers: !relax.shape<[2, x_index, k]>, %x: !relax.tensor<[2 * k, 8], f32>)
// CHECK-NEXT:    %0 = relax.dist.redistribute_replica_to_shard %x index = x_index num_workers = 2 tile = k group = "x"
// CHECK-NEXT:    %1 = relax.shape [2, x_index, 2 * k]
// CHECK-NEXT:    %2 = relax.call @callee(%1, %0) : !relax.tensor<[max(0, min(2 * k - k * x_index, k))], f32>
// CHECK-NEXT:    %3 = relax.match_cast %2 : !relax.tensor<[k], f32>
// CHECK-LABEL: relax.func private @callee[%x_index, %n](%workers: !relax.shape<[2, x_index, n]>,
relax.func @caller[%k](%x: !relax.tensor<[2 * k, 8], f32>) -> !relax.object {
  %0 = relax.dist.redistribute %x mesh = [2] placement = "S[0]" axes = "x"
  %1 = relax.call @callee(%0) : !relax.tensor<[2 * k], f32, sharding<x = 2: S[0]>>
  relax.return %1
}
relax.func private @callee[%n](%x: !relax.tensor<[n, 8], f32, sharding<x = 2: S[0]>>) -> !relax.tensor<[n], f32, sharding<x = 2: S[0]>> {
  %1 = relax.sum %x axes = [1] : !relax.tensor<[n], f32, sharding<x = 2: S[0]>>
  relax.return %1
}

// -----

// A worker takes from its rows of a table, and zeros where another one has the row: terms of a sum.
// CHECK-LABEL: relax.func @table[
// CHECK:         %0 = relax.shape []
// CHECK:         [[ROWS:%[0-9]+]] = relax.prim 8
// CHECK-NEXT:    [[EXTENT:%[0-9]+]] = relax.full %0, [[ROWS]] dtype = i64
// CHECK-NEXT:    [[POSITION:%[0-9]+]] = relax.floor_mod %i, [[EXTENT]]
// CHECK-NEXT:    [[BEGIN:%[0-9]+]] = relax.prim 4 * x_index
// CHECK-NEXT:    [[FIRST:%[0-9]+]] = relax.full %0, [[BEGIN]] dtype = i64
// CHECK-NEXT:    [[LOCAL:%[0-9]+]] = relax.subtract [[POSITION]], [[FIRST]]
// CHECK-NEXT:    [[IN:%[0-9]+]] = relax.greater_equal [[LOCAL]]
// CHECK:         [[BELOW:%[0-9]+]] = relax.less [[LOCAL]]
// CHECK-NEXT:    [[OWN:%[0-9]+]] = relax.logical_and [[IN]], [[BELOW]]
// CHECK-NEXT:    [[MASK:%[0-9]+]] = relax.expand_dims [[OWN]] axes = [-1]
// CHECK-NEXT:    [[TAKEN:%[0-9]+]] = relax.take %t, [[LOCAL]] axis = 0 mode = "clip"
// CHECK:         [[TERM:%[0-9]+]] = relax.where [[MASK]], [[TAKEN]]
// CHECK-NEXT:    [[SUM:%[0-9]+]] = relax.ccl.allreduce [[TERM]] group = "x"
// CHECK-NEXT:    relax.return [[SUM]]
relax.func @table[%n](%t: !relax.tensor<[8, 6], f32, sharding<x = 2: S[0]>>, %i: !relax.tensor<[n], i64>) -> !relax.object {
  %0 = relax.take %t, %i axis = 0 mode = "wrap" : !relax.tensor<[n, 6], f32, sharding<x = 2: P>>
  %1 = relax.dist.redistribute %0 mesh = [2] placement = "R" axes = "x"
  relax.return %1
}

// -----

// A PrimFunc of tiles: itself, where the size is a symbol that it has for nothing else; else a copy whose loops have the
// size of the tile.
// CHECK-LABEL: tir.prim_func private @sums_tile[%tile](%X: !tir.buffer<[4, tile], f32>, %Y: !tir.buffer<[4], f32>)
// CHECK:         tir.for (%i, %j) in (%c4, %tile) {
// CHECK-NEXT:      tir.block "sums" (%vi = spatial %i in %c4, %vj = reduce %j in %tile) {
// CHECK-LABEL: relax.func @kernels[
// CHECK-NEXT:    %0 = relax.call_tir @twice(%x) : !relax.tensor<[4, 3], f32>
// CHECK-NEXT:    %1 = relax.call_tir @sums_tile(%0) : !relax.tensor<[4], f32>
// CHECK-NEXT:    %2 = relax.call_tir @sums_tile(%x) : !relax.tensor<[4], f32>
tir.prim_func @twice[%n, %m](%X: !tir.buffer<[n, m], f32>, %Y: !tir.buffer<[n, m], f32>) {
  tir.for (%i, %j) in (%n, %m) {
    %x = tir.load %X[%i, %j]
    %y = arith.addf %x, %x : f32
    tir.store %y, %Y[%i, %j]
  }
}
tir.prim_func @sums(%X: !tir.buffer<[4, 6], f32>, %Y: !tir.buffer<[4], f32>) {
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  tir.for (%i, %j) in (%c4, %c6) {
    tir.block "sums" (%vi = spatial %i in %c4, %vj = reduce %j in %c6) {
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
relax.func @kernels(%x: !relax.tensor<[4, 6], f32, sharding<x = 2: S[1]>>) -> !relax.object {
  %0 = relax.call_tir @twice(%x) : !relax.tensor<[4, 6], f32, sharding<x = 2: S[1]>>
  %1 = relax.call_tir @sums(%0) : !relax.tensor<[4], f32, sharding<x = 2: P>>
  %2 = relax.call_tir @sums(%x) : !relax.tensor<[4], f32, sharding<x = 2: P>>
  %3 = relax.dist.redistribute %1 mesh = [2] placement = "R" axes = "x"
  %4 = relax.dist.redistribute %2 mesh = [2] placement = "R" axes = "x"
  %5 = relax.tuple(%3, %4)
  relax.return %5
}

// -----

// The symbols of a cast come from the sizes of the whole; the tile is restated in terms of them.
// CHECK-LABEL: relax.func @cast[
// CHECK:         %2 = relax.shape [n, 8]
// CHECK-NEXT:    %3, %m = relax.match_cast %2 : !relax.shape<[2 * m, 8]> binds [m]
// CHECK-NEXT:    %4 = relax.match_cast %x_1 : !relax.tensor<[m, 8], f32>
// CHECK-NEXT:    %5 = relax.ccl.allgather %4 num_workers = 2 size = 2 * m group = "x"
relax.func @cast[%n](%x: !relax.tensor<[n, 8], f32, sharding<x = 2: S[0]>>) -> !relax.tensor<[_, 8], f32> {
  %0, %m = relax.match_cast %x : !relax.tensor<[2 * m, 8], f32, sharding<x = 2: S[0]>> binds [m]
  %1 = relax.dist.redistribute %0 mesh = [2] placement = "R" axes = "x"
  relax.return %1
}

// -----

// Tiles of units are gathered as tiles of a dimension of units.
// CHECK-LABEL: relax.func @units[%x_index, %n](%workers: !relax.shape<[2, x_index, n]>, %x: !relax.tensor<[n, 4 * max(0, min(3 - 2 * x_index, 2))], f32>)
// CHECK-NEXT:    %0 = relax.shape [max(0, min(3 - 2 * x_index, 2))]
// CHECK-NEXT:    %1, %tile_x = relax.match_cast %0 : !relax.shape<[tile_x]> binds [tile_x]
// CHECK-NEXT:    %x_1 = relax.match_cast %x : !relax.tensor<[n, 4 * tile_x], f32>
// CHECK-NEXT:    %2 = relax.shape [n, tile_x, 4]
// CHECK-NEXT:    %3 = relax.reshape %x_1, %2
// CHECK-NEXT:    %4 = relax.ccl.allgather %3 num_workers = 2 axis = 1 size = 3 group = "x"
// CHECK-NEXT:    %5 = relax.shape [n, 12]
// CHECK-NEXT:    %6 = relax.reshape %4, %5
// CHECK-NEXT:    relax.return %6
relax.func @units[%n](%x: !relax.tensor<[n, 12], f32, sharding<x = 2: S[1:4]>>) -> !relax.tensor<[n, 12], f32> {
  %0 = relax.dist.redistribute %x mesh = [2] placement = "R" axes = "x"
  relax.return %0
}
