builtin.module {
  tir.prim_func @guarded_by_if[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
    %c1 = arith.constant 1 : index
    tir.for (%i) in (%n) {
      %j = arith.addi %i, %c1 : index
      %inside = arith.cmpi slt, %j, %n : index
      tir.if %inside {
        %x = tir.load %X[%j]
        tir.store %x, %Y[%i]
      }
    }
  }
  tir.prim_func @guarded_by_where[%n](%X: !tir.buffer<[n], f32>, %s: f32) {
    %e = tir.dim n + 1
    tir.for (%i) in (%e) {
      %inside = arith.cmpi slt, %i, %n : index
      tir.block "fill" (%vi = spatial %i in %n) where %inside {
        tir.store %s, %X[%vi]
      }
    }
  }
  tir.prim_func @indirect[%n](%I: !tir.buffer<[n], i64>, %X: !tir.buffer<[4], f32>, %s: f32) {
    tir.for (%i) in (%n) {
      %k = tir.load %I[%i]
      %j = arith.index_cast %k : i64 to index
      tir.store %s, %X[%j]
    }
  }
  tir.prim_func @right_for_some_sizes[%n, %m](%X: !tir.buffer<[m], f32>, %s: f32) {
    tir.for (%i) in (%n) {
      tir.store %s, %X[%i]
    }
  }
  tir.prim_func @triangle[%n](%X: !tir.buffer<[n], f32>, %s: f32) {
    tir.for (%i) in (%n) {
      tir.for (%j) in (%i to %n) {
        %d = arith.subi %j, %i : index
        tir.store %s, %X[%d]
      }
    }
  }
  tir.prim_func @empty(%X: !tir.buffer<[0], f32>, %s: f32) {
    %c0 = arith.constant 0 : index
    tir.for (%i) in (%c0) {
      tir.store %s, %X[%i]
    }
  }
  tir.prim_func @parts[%n](%X: !tir.buffer<[4 * n], f32>, %s: f32) {
    %c4 = arith.constant 4 : index
    tir.for parallel (%i) in (%n) {
      %begin = arith.muli %i, %c4 : index
      %end = arith.addi %begin, %c4 : index
      tir.for (%j) in (%begin to %end) {
        tir.store %s, %X[%j]
      }
    }
  }
  tir.prim_func @own_memory[%n, %m](%X: !tir.buffer<[n, m], f32>, %Y: !tir.buffer<[n], f32>) {
    %c0 = arith.constant 0 : index
    tir.for parallel (%i) in (%n) {
      %A = tir.alloc_buffer : !tir.buffer<[1], f32>
      tir.for (%j) in (%m) {
        tir.block "sum" (%vi = opaque %i in %n, %vj = reduce %j in %m) {
          %x = tir.load %X[%vi, %vj]
          tir.store %x, %A[%c0]
        }
      }
      %a = tir.load %A[%c0]
      tir.store %a, %Y[%i]
    }
  }
  tir.prim_func @one_iteration[%n](%I: !tir.buffer<[n], i64>, %X: !tir.buffer<[4], f32>, %s: f32) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    tir.for parallel (%t) in (%c1) {
      tir.store %s, %X[%c0]
    }
    tir.for parallel (%i) in (%n) {
      %first = arith.cmpi eq, %i, %c0 : index
      tir.if %first {
        tir.store %s, %X[%c0]
      }
      %k = tir.load %I[%i]
      %j = arith.index_cast %k : i64 to index
      tir.store %s, %X[%j]
    }
  }
  tir.prim_func @declared[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
    %c1 = arith.constant 1 : index
    %c0 = arith.constant 0 : index
    tir.for (%i) in (%n) {
      tir.block "b" (%v = spatial %i in %n) {
        tir.reads %X[%v]
        tir.writes %Y[%c0 to %n]
        %next = arith.addi %v, %c1 : index
        %inside = arith.cmpi slt, %next, %c0 : index
        tir.if %inside {
          %x = tir.load %X[%next]
          tir.store %x, %Y[%v]
        }
      }
    }
  }
  tir.prim_func @inner_triangle[%n](%X: !tir.buffer<[n], f32>) {
    %c1 = arith.constant 1 : index
    %last = arith.subi %n, %c1 : index
    tir.for (%i) in (%n) {
      %m = arith.subi %last, %i : index
      tir.for (%j) in (%m) {
        %k = arith.addi %i, %c1 : index
        %x = tir.load %X[%k]
        tir.store %x, %X[%i]
      }
    }
  }
}
