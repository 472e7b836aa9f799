; The clock of calls that are observed: nanoseconds of CLOCK_MONOTONIC, as Python's `time.perf_counter_ns`.
define i64 @vmrt_clock() {
  %time = alloca { i64, i64 }
  %status = call i32 @clock_gettime(i32 1, ptr %time)
  %seconds = load i64, ptr %time
  %rest.at = getelementptr inbounds { i64, i64 }, ptr %time, i64 0, i32 1
  %rest = load i64, ptr %rest.at
  %nanoseconds = mul i64 %seconds, 1000000000
  %sum = add i64 %nanoseconds, %rest
  ret i64 %sum
}

; Puts a tensor of `rank` sizes on the memory at `data`, which is somebody else's, into the slot `to`.
define i32 @vmrt_lend(ptr %to, i64 %rank, ptr %sizes, i32 %dtype, ptr %data) {
entry:
  %dims.bytes = shl i64 %rank, 4
  %total = add i64 %dims.bytes, 80
  %block = call ptr @malloc(i64 %total)
  %no.memory = icmp eq ptr %block, null
  br i1 %no.memory, label %exhausted, label %fill

fill:
  %shape = getelementptr inbounds i8, ptr %block, i64 80
  %strides = getelementptr inbounds i64, ptr %shape, i64 %rank
  store <2 x i32> <i32 1, i32 3>, ptr %block
  %deleter = getelementptr inbounds %managed, ptr %block, i64 0, i32 2
  store ptr @free, ptr %deleter
  %flags = getelementptr inbounds %managed, ptr %block, i64 0, i32 3
  store i64 0, ptr %flags
  %tensor = getelementptr inbounds %managed, ptr %block, i64 0, i32 4
  %rank32 = trunc i64 %rank to i32
  call void @vmrt_describe(ptr %tensor, ptr %data, i32 %rank32, i32 %dtype, ptr %shape, ptr %strides)
  call void @vmrt_fill_strides(i64 %rank, ptr %sizes, ptr %shape, ptr %strides)
  %made = alloca %any
  store %any { i32 70, i32 0, i64 0 }, ptr %made
  %handle = getelementptr inbounds %any, ptr %made, i64 0, i32 2
  %status = call i32 @TVMFFITensorFromDLPackVersioned(ptr %block, i32 0, i32 0, ptr %handle)
  %rejected = icmp ne i32 %status, 0
  br i1 %rejected, label %undo, label %finish

finish:
  call void @vmrt_move(ptr %to, ptr %made)
  ret i32 0

undo:
  call void @free(ptr %block)
  ret i32 -1

exhausted:
  call void @vmrt_fail_memory(i64 %total)
  ret i32 -1
}
