// What must come before what: an item waits for those before it in its stream, for
// events, and for the legacy default stream. Memory that is used or freed without
// being ordered after its allocation or its other uses is a violation, even where
// this run happens to do them in the right order. So is work that is not ordered with other
// work on the same bytes, if either writes.
#include "emulator.h"

#include <stdlib.h>

void forget_earlier(struct item *item) {
  for (int i = 0; i < item->after_count; i++)
    release_item(item->after[i]);
  free(item->after);
  item->after = NULL;
  item->after_count = 0;
}

void wait_after(struct item *item, struct item *earlier) {
  if (!earlier || earlier->done)
    return;
  size_t count = (size_t)item->after_count + 1;
  item->after = realloc(item->after, count * sizeof *item->after);
  item->after[item->after_count++] = hold_item(earlier);
}

// The legacy default stream and the blocking streams of its context wait for
// each other.
void keep_legacy_order(struct item *item) {
  struct stream *own = item->stream, *legacy = own->context->legacy;
  if (!own->blocking)
    return;
  if (own != legacy) {
    wait_after(item, legacy->last);
    return;
  }
  for (struct stream *s = streams; s; s = s->next)
    if (s != own && s->context == own->context && s->blocking)
      wait_after(item, s->last);
}

static unsigned long visit;

static void visit_before(struct item *item);

static void visit_item(struct item *item) {
  if (item->visit == visit)
    return;
  item->visit = visit;
  for (int i = 0; i < item->after_count; i++)
    if (!item->after[i]->done)
      visit_before(item->after[i]);
}

// Marks what is pending and runs before item, and item itself.
static void visit_before(struct item *item) {
  if (item->visit == visit)
    return;
  for (struct item *i = item->stream->first; i != item; i = i->next)
    visit_item(i);
  visit_item(item);
}

static int touches(const struct item *item, unsigned long block) {
  return item->target.number == block || item->source.number == block;
}

static void check_uses(const struct stream *stream, const struct item *freeing) {
  for (const struct item *i = stream->first; i; i = i->next)
    if (i->visit != visit && touches(i, freeing->target.number))
      violate("%#llx is freed without waiting for work on another stream",
              freeing->target.address);
}

static void check_birth(const struct span *span) {
  const struct item *birth = span->block ? span->block->birth : NULL;
  if (birth && !birth->done && birth->visit != visit)
    violate("%#llx is used without waiting for the stream of its allocation", span->address);
}

static int overlaps(const struct span *a, const struct span *b) {
  return a->number && a->number == b->number && a->address < b->address + b->size && b->address < a->address + a->size;
}

// Work that has not run and that nothing orders before item.
static void check_others(const struct item *item) {
  if (item->frees_on)
    return; // check_uses sees to that
  for (const struct stream *s = streams; s; s = s->next)
    for (const struct item *i = s->first; i; i = i->next) {
      if (i->visit == visit || i->frees_on)
        continue;
      if (overlaps(&i->target, &item->target) || overlaps(&i->target, &item->source) ||
          overlaps(&i->source, &item->target))
        violate("work on %#llx and %#llx is not in order with work on %#llx and %#llx that is pending",
                item->target.address, item->source.address, i->target.address, i->source.address);
    }
}

// Without which nothing can be out of order: looking costs time for each item that is pending.
static int others_work(const struct stream *own) {
  for (const struct stream *s = streams; s; s = s->next)
    if (s != own && s->first)
      return 1;
  return 0;
}

static int is_pool_memory(const struct span *span) {
  return span->block && span->block->kind == POOL_MEMORY;
}

// Called when item has been queued.
void check_order(struct item *item) {
  int pooled = is_pool_memory(&item->target) || is_pool_memory(&item->source);
  if (!pooled && !((item->target.number || item->source.number) && others_work(item->stream)))
    return;
  visit++;
  visit_before(item);
  check_others(item);
  if (!pooled)
    return;
  check_birth(&item->target);
  check_birth(&item->source);
  for (struct stream *s = streams; s && item->frees_on; s = s->next)
    check_uses(s, item);
}
