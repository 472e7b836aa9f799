// RUN: relax-opt %s -p propagate-sharding,lower-distributed --report-communication 2>&1 >/dev/null | filecheck %s

// What a worker sends in one call, as rings send it: an all-reduce is a reduce-scatter and an all-gather.
// CHECK:      @main
// CHECK-NEXT:   relax.ccl.allreduce of 4 workers along x: 384 * n bytes in 6 messages
// CHECK-NEXT:   relax.ccl.allgather of 4 workers along x: 768 bytes in 3 messages
// CHECK-NEXT:   in all: 384 * n + 768 bytes in 9 messages per worker
relax.func @main[%n](%x: !relax.tensor<[n, 64], f32>, %up: !relax.tensor<[64, 256], f32, sharding<x = 4: S[1]>>,
    %down: !relax.tensor<[256, 64], f32>, %b: !relax.tensor<[256], f32, sharding<x = 4: S[0]>>) -> !relax.object {
  %0 = relax.matmul %x, %up
  %1 = relax.nn.gelu %0
  %2 = relax.matmul %1, %down
  %3 = relax.add %2, %x
  %4 = relax.sort %b
  %5 = relax.tuple(%3, %4)
  relax.return %5
}

// CHECK-NEXT: @alone
// CHECK-NEXT:   nothing is sent
relax.func @alone(%x: !relax.tensor<[4], f32>) -> !relax.object {
  relax.return %x
}

// A message is sent by one worker; an exchange that has begun counts once.
// CHECK-NEXT: @messages
// CHECK-NEXT:   relax.ccl.send of 1 workers: 16 bytes in 1 messages
// CHECK-NEXT:   relax.ccl.allreduce of 1 workers: 0 bytes in 0 messages
relax.func @messages(%x: !relax.tensor<[4], f32>) -> !relax.object {
  %0 = relax.ccl.send %x to = 1
  %1 = relax.ccl.start %x collective = "allreduce"
  %2 = relax.ccl.allreduce %x, %1
  %3 = relax.tuple(%0, %2)
  relax.return %3
}
