; Threads for parallel loops: `relax_parallel` shares a range of numbers among the threads of the process.
;
; Each thread has a part of the range and takes chunks of it, large ones first and single numbers at the end; then it
; takes chunks of the others' parts. So a thread meets the memory again that it used in the loop before, and one that is
; late, because other programs run on its processor, leaves its part to the others, and all end at about the same time;
; the loop ends when the range is done and those that took part have finished, whether the others have woken or not. One
; loop runs at a time: a loop inside a loop, or a second one that starts meanwhile, runs on the thread that calls it. A
; child process after `fork` starts with no threads of its own.
;
; Some systems put a worker that wakes on the processor of the caller, and leave it there: it waits until the caller has
; done the whole loop, or takes its time, and so never seems busy enough to be moved. Where no worker takes part in some
; loops in a row, or one does on the caller's processor, the workers are kept away from the one on which the caller is.

@limit = internal global i32 0                  ; how many threads there may be, 0: not asked yet
@once = internal global i32 0                   ; whether there is a key
@has_key = internal global i32 0
@key = internal global i32 0                    ; of what relax_limit_threads says, for each thread of the program
@patience = internal global i32 -1             ; how many turns threads that wait stay awake, -1: not asked yet
@bound = internal global i32 -1                ; how many processors RELAX_AFFINITY names, -1: not asked yet
@affinity = internal global [256 x i32] zeroinitializer
@policy_variable = internal constant [18 x i8] c"RELAX_WAIT_POLICY\00"
@general_policy = internal constant [16 x i8] c"OMP_WAIT_POLICY\00"
@affinity_variable = internal constant [15 x i8] c"RELAX_AFFINITY\00"
@own_variable = internal constant [18 x i8] c"RELAX_NUM_THREADS\00"
@variable = internal constant [16 x i8] c"OMP_NUM_THREADS\00"

; What is written at different times lies in different lines of the cache.
@busy = internal global i32 0, align 128        ; whether a loop runs
@process = internal global i32 0                ; whose threads the workers are, see forget_threads_of_parent
@workers = internal global i32 0                ; how many there are
@loops = internal global i32 0, align 128       ; counts the loops; workers wait for it to change
@sleeping = internal global i32 0, align 128    ; how many of them wait in the kernel
@missed = internal global i32 0                 ; in how many loops, one after the other, workers were of no use
@caller = internal global i32 -1                ; the processor of the caller that has woken workers for this loop, or -1
@together = internal global i32 0               ; whether a worker took part in this loop on that processor
@avoided = internal global i32 -1               ; the processor that workers are kept away from, -1: none
@ids = internal global [256 x i64] zeroinitializer

; What workers need to know: void body(ptr context, i64 first, i64 last), the context, how many parts there are; and the
; team. Of the team, bit 30: it is open; from bit 16: free places; below: workers taking part.
%job = type { ptr, ptr, i64, i32 }
@job = internal global %job zeroinitializer, align 128

%part = type { i64, i64, [112 x i8] }           ; the first number that nobody has taken, and the end
@parts = internal global [256 x %part] zeroinitializer, align 128

declare ptr @getenv(ptr)
declare i32 @pthread_once(ptr, ptr)
declare i32 @pthread_key_create(ptr, ptr)
declare ptr @pthread_getspecific(i32)
declare i32 @pthread_setspecific(i32, ptr)
declare i32 @atoi(ptr)
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @sched_getcpu()
declare i32 @pthread_setaffinity_np(i64, i64, ptr)
declare i32 @getpid()
declare i64 @syscall(i64, ...)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i64 @llvm.ctpop.i64(i64)
declare i32 @llvm.smax.i32(i32, i32)
declare i32 @llvm.smin.i32(i32, i32)
declare i64 @llvm.smax.i64(i64, i64)

; Limits the threads of loops that this thread of the program begins, 0: as those of others. Gives the limit before.
define i32 @relax_limit_threads(i32 %threads) {
  %status = call i32 @pthread_once(ptr @once, ptr @make_key)
  %key = load i32, ptr @key
  %before = call ptr @pthread_getspecific(i32 %key)
  %positive = call i32 @llvm.smax.i32(i32 %threads, i32 0)
  %kept = call i32 @llvm.smin.i32(i32 %positive, i32 256)
  %value = inttoptr i32 %kept to ptr
  %failure = call i32 @pthread_setspecific(i32 %key, ptr %value)
  %result = ptrtoint ptr %before to i32
  ret i32 %result
}

define internal void @make_key() {
  %status = call i32 @pthread_key_create(ptr @key, ptr null)
  store atomic i32 1, ptr @has_key release, align 4
  ret void
}

; How many threads a loop may have: as relax_limit_threads says for the caller, else RELAX_NUM_THREADS, or
; OMP_NUM_THREADS, or as many as RELAX_AFFINITY names processors, or as there are.
define i32 @relax_max_threads() {
  %made = load atomic i32, ptr @has_key acquire, align 4
  %has_key = icmp ne i32 %made, 0
  br i1 %has_key, label %look, label %all
look:
  %key = load i32, ptr @key
  %value = call ptr @pthread_getspecific(i32 %key)
  %chosen = ptrtoint ptr %value to i32
  %is_chosen = icmp sgt i32 %chosen, 0
  br i1 %is_chosen, label %done, label %all
all:
  %known = load atomic i32, ptr @limit monotonic, align 4
  %is_known = icmp sgt i32 %known, 0
  br i1 %is_known, label %done, label %ask
ask:
  %own = call i32 @number(ptr @own_variable)
  %has_own = icmp sgt i32 %own, 0
  br i1 %has_own, label %found, label %general
general:
  %wanted = call i32 @number(ptr @variable)
  %is_wanted = icmp sgt i32 %wanted, 0
  br i1 %is_wanted, label %found, label %count
count:
  %processors = call i32 @processors()
  %bound = call i32 @bound_processors()
  %is_bound = icmp sgt i32 %bound, 0
  %all_there = select i1 %is_bound, i32 %bound, i32 %processors
  br label %found
found:
  %threads = phi i32 [ %own, %ask ], [ %wanted, %general ], [ %all_there, %count ]
  call void @relax_set_num_threads(i32 %threads)
  br label %done
done:
  %result = phi i32 [ %chosen, %look ], [ %known, %all ], [ %threads, %found ]
  ret i32 %result
}

define void @relax_set_num_threads(i32 %threads) {
  %positive = call i32 @llvm.smax.i32(i32 %threads, i32 1)
  %large = icmp sgt i32 %positive, 256
  %kept = select i1 %large, i32 256, i32 %positive
  store atomic i32 %kept, ptr @limit monotonic, align 4
  ret void
}

; The number that a variable of the environment starts with, 0 if there is none.
define internal i32 @number(ptr %name) {
  %text = call ptr @getenv(ptr %name)
  %missing = icmp eq ptr %text, null
  br i1 %missing, label %none, label %some
none:
  ret i32 0
some:
  %value = call i32 @atoi(ptr %text)
  ret i32 %value
}

; How many turns a thread that waits stays awake: as RELAX_WAIT_POLICY says, or OMP_WAIT_POLICY, none if that begins as
; "passive", all as "active", else those of some tens of microseconds.
define internal i32 @turns_awake() {
  %known = load atomic i32, ptr @patience monotonic, align 4
  %is_known = icmp sge i32 %known, 0
  br i1 %is_known, label %done, label %ask
ask:
  %own = call ptr @getenv(ptr @policy_variable)
  %missing = icmp eq ptr %own, null
  br i1 %missing, label %general, label %read
general:
  %other = call ptr @getenv(ptr @general_policy)
  %none = icmp eq ptr %other, null
  br i1 %none, label %keep, label %read
read:
  %text = phi ptr [ %own, %ask ], [ %other, %general ]
  %letter = load i8, ptr %text
  %small = or i8 %letter, 32
  %passive = icmp eq i8 %small, 112
  %active = icmp eq i8 %small, 97
  %long = select i1 %active, i32 2147483647, i32 4000
  %turns = select i1 %passive, i32 0, i32 %long
  br label %keep
keep:
  %found = phi i32 [ 4000, %general ], [ %turns, %read ]
  store atomic i32 %found, ptr @patience monotonic, align 4
  br label %done
done:
  %result = phi i32 [ %known, %0 ], [ %found, %keep ]
  ret i32 %result
}

; How many processors RELAX_AFFINITY names, as in "0,2,4-7"; none if it is not written so. They are in `affinity` then.
define internal i32 @bound_processors() {
  %known = load atomic i32, ptr @bound acquire, align 4
  %is_known = icmp sge i32 %known, 0
  br i1 %is_known, label %done, label %ask
ask:
  %text = call ptr @getenv(ptr @affinity_variable)
  %missing = icmp eq ptr %text, null
  br i1 %missing, label %keep, label %look
look:                                           ; at a letter: `first` is that of a range that has begun, or -1
  %at = phi ptr [ %text, %ask ], [ %next, %digit ], [ %next, %dash ], [ %next, %more ]
  %value = phi i32 [ -1, %ask ], [ %longer, %digit ], [ -1, %dash ], [ -1, %more ]
  %first = phi i32 [ -1, %ask ], [ %first, %digit ], [ %value, %dash ], [ -1, %more ]
  %count = phi i32 [ 0, %ask ], [ %count, %digit ], [ %count, %dash ], [ %filled, %more ]
  %next = getelementptr i8, ptr %at, i64 1
  %letter = load i8, ptr %at
  switch i8 %letter, label %number [ i8 0, label %range
                                     i8 44, label %range
                                     i8 45, label %dash ]
number:
  %offset = sub i8 %letter, 48
  %is_digit = icmp ult i8 %offset, 10
  %small = icmp slt i32 %value, 1000
  %valid = and i1 %is_digit, %small
  br i1 %valid, label %digit, label %keep
digit:
  %shown = call i32 @llvm.smax.i32(i32 %value, i32 0)
  %tens = mul i32 %shown, 10
  %units = zext i8 %offset to i32
  %longer = add i32 %tens, %units
  br label %look
dash:
  %begun = icmp sge i32 %first, 0
  %empty = icmp slt i32 %value, 0
  %wrong = or i1 %begun, %empty
  br i1 %wrong, label %keep, label %look
range:                                          ; from the first one, or the only one, to this one
  %single = icmp slt i32 %first, 0
  %lower = select i1 %single, i32 %value, i32 %first
  %absent = icmp slt i32 %value, 0
  %backwards = icmp slt i32 %value, %lower
  %beyond = icmp sge i32 %value, 1024
  %bad = or i1 %absent, %backwards
  %refused = or i1 %bad, %beyond
  br i1 %refused, label %keep, label %fill
fill:
  %processor = phi i32 [ %lower, %range ], [ %following, %store ]
  %filled = phi i32 [ %count, %range ], [ %stored, %store ]
  %inside = icmp sle i32 %processor, %value
  %room = icmp slt i32 %filled, 256
  %again = and i1 %inside, %room
  br i1 %again, label %store, label %more
store:
  %place = zext i32 %filled to i64
  %place_at = getelementptr [256 x i32], ptr @affinity, i64 0, i64 %place
  store i32 %processor, ptr %place_at
  %stored = add i32 %filled, 1
  %following = add i32 %processor, 1
  br label %fill
more:
  %ends = icmp eq i8 %letter, 0
  br i1 %ends, label %keep, label %look
keep:
  %found = phi i32 [ 0, %ask ], [ 0, %number ], [ 0, %dash ], [ 0, %range ], [ %filled, %more ]
  store atomic i32 %found, ptr @bound release, align 4
  br label %done
done:
  %result = phi i32 [ %known, %0 ], [ %found, %keep ]
  ret i32 %result
}

; How many processors this process may run on.
define internal i32 @processors() {
  %set = alloca [16 x i64], align 8
  call void @llvm.memset.p0.i64(ptr %set, i8 0, i64 128, i1 false)
  %code = call i32 @sched_getaffinity(i32 0, i64 128, ptr %set)
  %count = call i32 @members(ptr %set)
  %positive = call i32 @llvm.smax.i32(i32 %count, i32 1)
  ret i32 %positive
}

; How many processors a set has.
define internal i32 @members(ptr %set) {
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %after, %loop ]
  %sum = phi i64 [ 0, %0 ], [ %more, %loop ]
  %word = getelementptr [16 x i64], ptr %set, i64 0, i64 %i
  %bits = load i64, ptr %word, align 8
  %ones = call i64 @llvm.ctpop.i64(i64 %bits)
  %more = add i64 %sum, %ones
  %after = add i64 %i, 1
  %again = icmp ult i64 %after, 16
  br i1 %again, label %loop, label %done
done:
  %count = trunc i64 %more to i32
  ret i32 %count
}
declare void @PAUSE
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; body(context, first, last) for parts that make up the range from lower to before upper.
define void @relax_parallel(ptr %f, ptr %data, i64 %lower, i64 %upper, i32 %threads) {
  %alone = icmp sle i32 %threads, 1
  br i1 %alone, label %serial, label %fork
fork:
  call void @forget_threads_of_parent()
  %taken = cmpxchg ptr @busy, i32 0, i32 1 seq_cst seq_cst
  %mine = extractvalue { i32, i1 } %taken, 1
  br i1 %mine, label %shared, label %serial
serial:
  call void %f(ptr %data, i64 %lower, i64 %upper)
  ret void
shared:
  %most = call i32 @llvm.smin.i32(i32 %threads, i32 256)
  %others = sub i32 %most, 1
  call void @hire(i32 %others)
  %count = zext i32 %most to i64
  call void @divide(i64 %lower, i64 %upper, i64 %count)
  store ptr %f, ptr @job
  store ptr %data, ptr getelementptr (%job, ptr @job, i64 0, i32 1)
  store i64 %count, ptr getelementptr (%job, ptr @job, i64 0, i32 2)
  %places = shl i32 %others, 16
  %open = or i32 %places, 1073741824
  store atomic i32 %open, ptr getelementptr (%job, ptr @job, i64 0, i32 3) seq_cst, align 4
  %old = atomicrmw add ptr @loops, i32 1 seq_cst
  %asleep = load atomic i32, ptr @sleeping seq_cst, align 4
  %must_wake = icmp sgt i32 %asleep, 0
  br i1 %must_wake, label %wake, label %work
wake:
  %here = call i32 @sched_getcpu()
  store atomic i32 %here, ptr @caller seq_cst, align 4
  %missed = load i32, ptr @missed
  %often = icmp sge i32 %missed, 2
  br i1 %often, label %part, label %call
part:
  store i32 0, ptr @missed
  call void @keep_apart(i32 %here)
  br label %call
call:
  %woken = call i64 (i64, ...) @syscall(i64 FUTEX, ptr @loops, i32 129, i32 %others, ptr null, ptr null, i32 0)
  br label %work
work:
  call void @take_chunks(i64 0)
  %closed = atomicrmw and ptr getelementptr (%job, ptr @job, i64 0, i32 3), i32 65535 seq_cst
  %unused = icmp eq i32 %closed, %open
  %before = load i32, ptr @missed
  %one_more = add i32 %before, 1
  %most_missed = call i32 @llvm.smin.i32(i32 %one_more, i32 2)
  call void @wait_for_team()
  %shared_processor = load atomic i32, ptr @together seq_cst, align 4
  %no_gain = icmp ne i32 %shared_processor, 0
  %useless = or i1 %unused, %no_gain
  %now_missed = select i1 %useless, i32 %most_missed, i32 0
  store i32 %now_missed, ptr @missed
  store atomic i32 -1, ptr @caller seq_cst, align 4
  store atomic i32 0, ptr @together seq_cst, align 4
  store atomic i32 0, ptr @busy seq_cst, align 4
  ret void
}

; Makes so many parts of the range, about as large.
define internal void @divide(i64 %lower, i64 %upper, i64 %count) {
entry:
  %size = sub i64 %upper, %lower
  %all = call i64 @llvm.smax.i64(i64 %size, i64 0)
  %each = udiv i64 %all, %count
  %rest = urem i64 %all, %count
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %after, %loop ]
  %first = phi i64 [ %lower, %entry ], [ %end, %loop ]
  %is_longer = icmp ult i64 %i, %rest
  %more = zext i1 %is_longer to i64
  %length = add i64 %each, %more
  %end = add i64 %first, %length
  %part = getelementptr [256 x %part], ptr @parts, i64 0, i64 %i
  store atomic i64 %first, ptr %part monotonic, align 8
  %end_at = getelementptr %part, ptr %part, i64 0, i32 1
  store i64 %end, ptr %end_at
  %after = add i64 %i, 1
  %again = icmp ult i64 %after, %count
  br i1 %again, label %loop, label %done
done:
  ret void
}

; Runs chunks of all parts, from one on, until none is left.
define internal void @take_chunks(i64 %own) {
entry:
  %count = load i64, ptr getelementptr (%job, ptr @job, i64 0, i32 2)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %after, %loop ]
  %sum = add i64 %own, %i
  %number = urem i64 %sum, %count
  call void @take_chunks_of(i64 %number)
  %after = add i64 %i, 1
  %again = icmp ult i64 %after, %count
  br i1 %again, label %loop, label %done
done:
  ret void
}

; Runs chunks of a part, each half of what is left of it.
define internal void @take_chunks_of(i64 %number) {
entry:
  %f = load ptr, ptr @job
  %data = load ptr, ptr getelementptr (%job, ptr @job, i64 0, i32 1)
  %part = getelementptr [256 x %part], ptr @parts, i64 0, i64 %number
  %end_at = getelementptr %part, ptr %part, i64 0, i32 1
  %end = load i64, ptr %end_at
  br label %loop
loop:
  %first = load atomic i64, ptr %part seq_cst, align 8
  %left = sub i64 %end, %first
  %some = icmp sgt i64 %left, 0
  br i1 %some, label %take, label %done
take:
  %half = lshr i64 %left, 1
  %size = call i64 @llvm.smax.i64(i64 %half, i64 1)
  %until = add i64 %first, %size
  %taken = cmpxchg ptr %part, i64 %first, i64 %until seq_cst seq_cst
  %mine = extractvalue { i64, i1 } %taken, 1
  br i1 %mine, label %run, label %loop
run:
  call void %f(ptr %data, i64 %first, i64 %until)
  br label %loop
done:
  ret void
}

; Until no worker takes part any more: some tens of microseconds awake, then asleep.
define internal void @wait_for_team() {
  %turns = call i32 @turns_awake()
  br label %spin
spin:
  %turn = phi i32 [ 0, %0 ], [ %more, %pause ]
  %team = load atomic i32, ptr getelementptr (%job, ptr @job, i64 0, i32 3) seq_cst, align 4
  %none = icmp eq i32 %team, 0
  br i1 %none, label %done, label %some
some:
  %patient = icmp ult i32 %turn, %turns
  br i1 %patient, label %pause, label %sleep
pause:
  call void @PAUSE
  %more = add i32 %turn, 1
  br label %spin
sleep:
  %code = call i64 (i64, ...) @syscall(i64 FUTEX, ptr getelementptr (%job, ptr @job, i64 0, i32 3), i32 128, i32 %team, ptr null, ptr null, i32 0)
  br label %pause
done:
  ret void
}

; Starts workers until there are so many, or the system gives no more.
define internal void @hire(i32 %wanted) {
  %id = alloca i64, align 8
  br label %loop
loop:
  %count = load i32, ptr @workers
  %enough = icmp sge i32 %count, %wanted
  br i1 %enough, label %done, label %start
start:
  %more = add i32 %count, 1
  %number = zext i32 %more to i64
  %own = inttoptr i64 %number to ptr
  %code = call i32 @pthread_create(ptr %id, ptr null, ptr @work_forever, ptr %own)
  %failed = icmp ne i32 %code, 0
  br i1 %failed, label %done, label %started
started:
  %thread = load i64, ptr %id
  %place = zext i32 %count to i64
  %id_at = getelementptr [256 x i64], ptr @ids, i64 0, i64 %place
  store i64 %thread, ptr %id_at
  store i32 -1, ptr @avoided
  call void @bind(i64 %thread, i32 %more)
  %detached = call i32 @pthread_detach(i64 %thread)
  store i32 %more, ptr @workers
  br label %loop
done:
  ret void
}

; Lets a worker run on the processor that RELAX_AFFINITY names for it, if it does: the first one is the caller's.
define internal void @bind(i64 %thread, i32 %worker) {
  %set = alloca [16 x i64], align 8
  %count = call i32 @bound_processors()
  %free = icmp eq i32 %count, 0
  br i1 %free, label %done, label %move
move:
  %place = urem i32 %worker, %count
  %index = zext i32 %place to i64
  %place_at = getelementptr [256 x i32], ptr @affinity, i64 0, i64 %index
  %processor = load i32, ptr %place_at
  call void @llvm.memset.p0.i64(ptr %set, i8 0, i64 128, i1 false)
  %number = zext i32 %processor to i64
  %word_number = lshr i64 %number, 6
  %bit = and i64 %number, 63
  %bits = shl i64 1, %bit
  %word = getelementptr [16 x i64], ptr %set, i64 0, i64 %word_number
  store i64 %bits, ptr %word, align 8
  %moved = call i32 @pthread_setaffinity_np(i64 %thread, i64 128, ptr %set)
  br label %done
done:
  ret void
}

; Lets the workers run on the processors that the caller may use, but for the one on which it is, if there are others.
define internal void @keep_apart(i32 %here) {
  %set = alloca [16 x i64], align 8
  %last = load i32, ptr @avoided
  %same = icmp eq i32 %here, %last
  %unknown = icmp uge i32 %here, 1024
  %bound = call i32 @bound_processors()
  %placed = icmp sgt i32 %bound, 0
  %settled = or i1 %same, %placed
  %skip = or i1 %settled, %unknown
  br i1 %skip, label %done, label %read
read:
  call void @llvm.memset.p0.i64(ptr %set, i8 0, i64 128, i1 false)
  %code = call i32 @sched_getaffinity(i32 0, i64 128, ptr %set)
  %number = zext i32 %here to i64
  %index = lshr i64 %number, 6
  %bit = and i64 %number, 63
  %mine = shl i64 1, %bit
  %others = xor i64 %mine, -1
  %word = getelementptr [16 x i64], ptr %set, i64 0, i64 %index
  %bits = load i64, ptr %word, align 8
  %rest = and i64 %bits, %others
  store i64 %rest, ptr %word, align 8
  %left = call i32 @members(ptr %set)
  %none = icmp eq i32 %left, 0
  br i1 %none, label %done, label %move
move:
  store i32 %here, ptr @avoided
  %workers = load i32, ptr @workers
  br label %loop
loop:
  %i = phi i32 [ 0, %move ], [ %after, %next ]
  %some = icmp slt i32 %i, %workers
  br i1 %some, label %next, label %done
next:
  %place = zext i32 %i to i64
  %id_at = getelementptr [256 x i64], ptr @ids, i64 0, i64 %place
  %id = load i64, ptr %id_at
  %moved = call i32 @pthread_setaffinity_np(i64 %id, i64 128, ptr %set)
  %after = add i32 %i, 1
  br label %loop
done:
  ret void
}

; After a fork there are no workers, whatever the memory says. The first loop of a process sets the memory right; others
; that begin meanwhile wait for it. While it does so, `process` holds the number of the process with a minus: of another
; process, forked at that moment, it is as good as any other number.
define internal void @forget_threads_of_parent() {
  %here = call i32 @getpid()
  %claimed = sub i32 0, %here
  br label %look
look:
  %before = load atomic i32, ptr @process seq_cst, align 4
  %same = icmp eq i32 %before, %here
  br i1 %same, label %done, label %new
new:
  %others = icmp eq i32 %before, %claimed
  br i1 %others, label %wait, label %claim
wait:
  call void @PAUSE
  br label %look
claim:
  %swapped = cmpxchg ptr @process, i32 %before, i32 %claimed seq_cst seq_cst
  %mine = extractvalue { i32, i1 } %swapped, 1
  br i1 %mine, label %reset, label %look
reset:
  store i32 0, ptr @workers
  store i32 0, ptr @missed
  store i32 -1, ptr @avoided
  store atomic i32 0, ptr @sleeping seq_cst, align 4
  store atomic i32 0, ptr getelementptr (%job, ptr @job, i64 0, i32 3) seq_cst, align 4
  store atomic i32 0, ptr @busy seq_cst, align 4
  store atomic i32 %here, ptr @process seq_cst, align 4
  br label %done
done:
  ret void
}

; A worker: waits for a loop, some tens of microseconds awake, then asleep; takes a place in its team if there is one,
; and begins with the part that has its number, or, when there are fewer parts, with another one that is not the caller's.
define internal ptr @work_forever(ptr %own) {
  %number = ptrtoint ptr %own to i64
  %index_of_worker = sub i64 %number, 1
  %turns = call i32 @turns_awake()
  br label %wait
wait:
  %seen = phi i32 [ 0, %0 ], [ %now, %leave ], [ %now, %join ]
  br label %spin
spin:
  %turn = phi i32 [ 0, %wait ], [ %more, %pause ]
  %now = load atomic i32, ptr @loops seq_cst, align 4
  %same = icmp eq i32 %now, %seen
  br i1 %same, label %idle, label %join
idle:
  %patient = icmp ult i32 %turn, %turns
  br i1 %patient, label %pause, label %sleep
sleep:
  %count = atomicrmw add ptr @sleeping, i32 1 seq_cst
  %code = call i64 (i64, ...) @syscall(i64 FUTEX, ptr @loops, i32 128, i32 %seen, ptr null, ptr null, i32 0)
  %awake = atomicrmw sub ptr @sleeping, i32 1 seq_cst
  br label %pause
pause:
  call void @PAUSE
  %more = add i32 %turn, 1
  br label %spin
join:
  %team = load atomic i32, ptr getelementptr (%job, ptr @job, i64 0, i32 3) seq_cst, align 4
  %full = icmp slt i32 %team, 1073807360
  br i1 %full, label %wait, label %enter
enter:
  %place = sub i32 %team, 65535
  %entered = cmpxchg ptr getelementptr (%job, ptr @job, i64 0, i32 3), i32 %team, i32 %place seq_cst seq_cst
  %mine = extractvalue { i32, i1 } %entered, 1
  br i1 %mine, label %work, label %join
work:
  %caller = load atomic i32, ptr @caller seq_cst, align 4
  %was_woken = icmp sge i32 %caller, 0
  br i1 %was_woken, label %compare, label %take
compare:
  %here = call i32 @sched_getcpu()
  %same_processor = icmp eq i32 %here, %caller
  br i1 %same_processor, label %note, label %take
note:
  store atomic i32 1, ptr @together seq_cst, align 4
  br label %take
take:
  %parts = load i64, ptr getelementptr (%job, ptr @job, i64 0, i32 2)
  %others = sub i64 %parts, 1
  %index = urem i64 %index_of_worker, %others
  %own_part = add i64 %index, 1
  call void @take_chunks(i64 %own_part)
  %left = atomicrmw sub ptr getelementptr (%job, ptr @job, i64 0, i32 3), i32 1 seq_cst
  %last = icmp eq i32 %left, 1
  br i1 %last, label %report, label %leave
report:
  %told = call i64 (i64, ...) @syscall(i64 FUTEX, ptr getelementptr (%job, ptr @job, i64 0, i32 3), i32 129, i32 1, ptr null, ptr null, i32 0)
  br label %leave
leave:
  br label %wait
}
