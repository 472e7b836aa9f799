; Threads for parallel loops by an OpenMP run time, with GNU's entry points: as `threads.ll`, by `GOMP_parallel`.

%loop = type { ptr, ptr, i64, i64, i64 }        ; body, context, next number, end, chunk

declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare i32 @omp_get_max_threads()
declare void @omp_set_num_threads(i32)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)

define i32 @relax_max_threads() {
  %threads = call i32 @omp_get_max_threads()
  ret i32 %threads
}

define void @relax_set_num_threads(i32 %threads) {
  call void @omp_set_num_threads(i32 %threads)
  ret void
}

; OpenMP has a number for each thread that begins loops.
define i32 @relax_limit_threads(i32 %threads) {
  %before = call i32 @omp_get_max_threads()
  %is_limit = icmp sgt i32 %threads, 0
  br i1 %is_limit, label %limit, label %done
limit:
  call void @omp_set_num_threads(i32 %threads)
  br label %done
done:
  ret i32 %before
}

define void @relax_parallel(ptr %f, ptr %data, i64 %lower, i64 %upper, i32 %threads) {
  %loop = alloca %loop, align 8
  %total = sub i64 %upper, %lower
  %wide = sext i32 %threads to i64
  %pieces = mul i64 %wide, 4
  %quotient = sdiv i64 %total, %pieces
  %size = call i64 @llvm.smax.i64(i64 %quotient, i64 1)
  %context = getelementptr %loop, ptr %loop, i32 0, i32 1
  %next = getelementptr %loop, ptr %loop, i32 0, i32 2
  %end = getelementptr %loop, ptr %loop, i32 0, i32 3
  %chunk = getelementptr %loop, ptr %loop, i32 0, i32 4
  store ptr %f, ptr %loop
  store ptr %data, ptr %context
  store i64 %lower, ptr %next
  store i64 %upper, ptr %end
  store i64 %size, ptr %chunk
  call void @GOMP_parallel(ptr @take_chunks, ptr %loop, i32 %threads, i32 0)
  ret void
}

define internal void @take_chunks(ptr %loop) {
  %f = load ptr, ptr %loop
  %context = getelementptr %loop, ptr %loop, i32 0, i32 1
  %data = load ptr, ptr %context
  %next = getelementptr %loop, ptr %loop, i32 0, i32 2
  %end = getelementptr %loop, ptr %loop, i32 0, i32 3
  %last = load i64, ptr %end
  %chunk = getelementptr %loop, ptr %loop, i32 0, i32 4
  %size = load i64, ptr %chunk
  br label %more
more:
  %first = atomicrmw add ptr %next, i64 %size seq_cst
  %some = icmp slt i64 %first, %last
  br i1 %some, label %run, label %done
run:
  %after = add i64 %first, %size
  %until = call i64 @llvm.smin.i64(i64 %after, i64 %last)
  call void %f(ptr %data, i64 %first, i64 %until)
  br label %more
done:
  ret void
}
