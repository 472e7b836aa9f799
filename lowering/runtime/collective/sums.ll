; `out` has the sums of `count` terms of `n` elements each. Elements are KIND, and are added up as WIDE: two terms at once,
; more of them in blocks that stay close to the processor.
define internal void @add_NAME(ptr noalias %out, ptr %terms, i32 %count, i64 %n) {
entry:
  %sums = alloca [1024 x WIDE]
  %first = load ptr, ptr %terms
  %second.at = getelementptr inbounds ptr, ptr %terms, i64 1
  %second = load ptr, ptr %second.at
  %nothing = icmp eq i64 %n, 0
  br i1 %nothing, label %done, label %some
some:
  %two = icmp eq i32 %count, 2
  br i1 %two, label %pair, label %block
pair:
  %p = phi i64 [ 0, %some ], [ %p.next, %pair ]
  %p.left.at = getelementptr inbounds KIND, ptr %first, i64 %p
  %p.left = load KIND, ptr %p.left.at
  %p.left.wide = call WIDE @widen_NAME(KIND %p.left)
  %p.right.at = getelementptr inbounds KIND, ptr %second, i64 %p
  %p.right = load KIND, ptr %p.right.at
  %p.right.wide = call WIDE @widen_NAME(KIND %p.right)
  %p.sum.wide = ADD WIDE %p.left.wide, %p.right.wide
  %p.sum = call KIND @narrow_NAME(WIDE %p.sum.wide)
  %p.out = getelementptr inbounds KIND, ptr %out, i64 %p
  store KIND %p.sum, ptr %p.out
  %p.next = add nuw i64 %p, 1
  %p.more = icmp ult i64 %p.next, %n
  br i1 %p.more, label %pair, label %done
block:
  %begin = phi i64 [ 0, %some ], [ %end, %stored ]
  %rest = sub i64 %n, %begin
  %size = call i64 @llvm.umin.i64(i64 %rest, i64 1024)
  %mine = getelementptr inbounds KIND, ptr %first, i64 %begin
  br label %a
a:
  %a.i = phi i64 [ 0, %block ], [ %a.next, %a ]
  %a.at = getelementptr inbounds KIND, ptr %mine, i64 %a.i
  %a.term = load KIND, ptr %a.at
  %a.wide = call WIDE @widen_NAME(KIND %a.term)
  %a.sum = getelementptr inbounds WIDE, ptr %sums, i64 %a.i
  store WIDE %a.wide, ptr %a.sum
  %a.next = add nuw i64 %a.i, 1
  %a.more = icmp ult i64 %a.next, %size
  br i1 %a.more, label %a, label %others
others:
  %k = phi i32 [ 1, %a ], [ %k.next, %added ]
  %other.at = getelementptr inbounds ptr, ptr %terms, i32 %k
  %other = load ptr, ptr %other.at
  %theirs = getelementptr inbounds KIND, ptr %other, i64 %begin
  br label %b
b:
  %b.i = phi i64 [ 0, %others ], [ %b.next, %b ]
  %b.at = getelementptr inbounds KIND, ptr %theirs, i64 %b.i
  %b.term = load KIND, ptr %b.at
  %b.wide = call WIDE @widen_NAME(KIND %b.term)
  %b.sum = getelementptr inbounds WIDE, ptr %sums, i64 %b.i
  %b.before = load WIDE, ptr %b.sum
  %b.after = ADD WIDE %b.before, %b.wide
  store WIDE %b.after, ptr %b.sum
  %b.next = add nuw i64 %b.i, 1
  %b.more = icmp ult i64 %b.next, %size
  br i1 %b.more, label %b, label %added
added:
  %k.next = add i32 %k, 1
  %k.more = icmp slt i32 %k.next, %count
  br i1 %k.more, label %others, label %store
store:
  %to = getelementptr inbounds KIND, ptr %out, i64 %begin
  br label %c
c:
  %c.i = phi i64 [ 0, %store ], [ %c.next, %c ]
  %c.sum = getelementptr inbounds WIDE, ptr %sums, i64 %c.i
  %c.wide = load WIDE, ptr %c.sum
  %c.term = call KIND @narrow_NAME(WIDE %c.wide)
  %c.at = getelementptr inbounds KIND, ptr %to, i64 %c.i
  store KIND %c.term, ptr %c.at
  %c.next = add nuw i64 %c.i, 1
  %c.more = icmp ult i64 %c.next, %size
  br i1 %c.more, label %c, label %stored
stored:
  %end = add i64 %begin, %size
  %more = icmp ult i64 %end, %n
  br i1 %more, label %block, label %done
done:
  ret void
}
