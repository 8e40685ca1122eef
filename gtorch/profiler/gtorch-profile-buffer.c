/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What is written while a profile is recorded.
 *
 * Each thread has a buffer, a list of pages that only it writes to. A record is written when its event ends,
 * behind the others, and made known by the number of bytes of the page; it never changes. So whoever ends the
 * recording reads without a lock while threads go on. It frees pages that are full and were read, which
 * their thread has left for good; the page that a thread writes to stays.
 *
 * Events that have begun are on a stack of the thread. An operation gets there when it is about to make its
 * result (`prepare`), so that the memory belongs to it, or else when it is launched. If it fails in between,
 * nobody is told: what is pending at the top of the stack is dropped by the next event that it cannot
 * belong to. A recording that begins or ends inside of an event is told of one half of it only. So stacks
 * belong to a recording by its number, and ends are looked for on the stack. */

#include "config.h"

#include "profiler/gtorch-profile-buffer-private.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/gtorch-check-private.h"
#include "base/gtorch-fork-private.h"
#include "base/gtorch-observer-named-private.h"
#include "device/gtorch-backend-private.h"
#include "device/gtorch-device-private.h"
#include "dispatch/gtorch-op-private.h"
#include "memory/gtorch-allocator-private.h"
#include "memory/gtorch-memory-pool-private.h"
#include "memory/gtorch-storage-private.h"
#include "stream/gtorch-capturing-private.h"
#include "stream/gtorch-event.h"
#include "stream/gtorch-stream-private.h"

#define PAGE_SIZE    (64 * 1024 - 64) /* of data; a longer record has a page of its own */
#define THREAD_SHIFT 40               /* ids: the number of the thread, and a counter of it */

typedef struct _Page Page;
struct _Page
{
  Page *next; /* atomic */
  gsize used; /* atomic, written by the thread */
  gsize room;
  guint64 data[];
};

typedef struct
{
  guint64 id, parent; /* parent: once it is off the stack */
  gint64 start;
  gconstpointer what; /* a call, an operation's class, a replay or a name */
  guint8 kind;
  gboolean is_pending, is_pushed;
  guint64 serial;     /* of a module */
  GTorchEvent *event; /* the beginning on the device; owned */
} Frame;

typedef struct _Buffer Buffer;
struct _Buffer
{
  Buffer *next;
  Page *page;  /* that the thread writes to */
  Page *first; /* under the lock: not yet read */
  gsize taken; /* under the lock: bytes of the first page that were read */
  guint number;
  guint64 system_id;
  gchar name[16];
  gboolean is_over; /* under the lock: the thread has ended */
  guint64 n_ids;
  guint64 last_op; /* id of the operation that ended last */
  guint recording; /* that the stack belongs to */
  guint depth, room;
  Frame *frames;
};

const GTorchGpuTracer *gtorch_gpu_tracer;

static GMutex lock;
GTORCH_FORK_LOCK (lock);
static Buffer *buffers; /* under the lock */
static guint n_buffers; /* under the lock */

static guint recording;     /* atomic */
static guint trace_flags;   /* atomic; GTorchTraceFlags, 0: nothing is recorded */
static gboolean has_tracer; /* atomic */
static gboolean has_events; /* atomic */
static guint32 devices;     /* atomic */

static __thread Buffer *own;

gint64
gtorch_profile_now (void)
{
  struct timespec now;

  clock_gettime (CLOCK_MONOTONIC, &now);
  return now.tv_sec * G_GINT64_CONSTANT (1000000000) + now.tv_nsec;
}

/* --- buffers --- */

static void
raw_clear (const GTorchRaw *raw)
{
  if (raw->kind != GTORCH_RECORD_SPAN)
    return;
  g_object_unref (GSIZE_TO_POINTER (raw->a));
  g_object_unref (GSIZE_TO_POINTER (raw->b));
}

static void
buffer_end (gpointer data)
{
  Buffer *self = data;

  own = NULL;
  g_mutex_lock (&lock);
  self->is_over = TRUE;
  g_mutex_unlock (&lock);
}

static GPrivate owner = G_PRIVATE_INIT (buffer_end);

static Page *
page_new (gsize room)
{
  Page *self = g_malloc (sizeof *self + room);

  *self = (Page){ .room = room };
  return self;
}

static G_GNUC_NO_INLINE Buffer *
buffer_new (void)
{
  Buffer *self = g_new0 (Buffer, 1);

  self->page = self->first = page_new (PAGE_SIZE);
  self->system_id = syscall (SYS_gettid);
  pthread_getname_np (pthread_self (), self->name, sizeof self->name);
  g_mutex_lock (&lock);
  self->number = n_buffers++;
  self->next = buffers;
  buffers = self;
  g_mutex_unlock (&lock);
  own = self;
  g_private_set (&owner, self);
  return self;
}

/* The buffer of this thread, whose stack belongs to the recording. */
static inline Buffer *
buffer_get (void)
{
  Buffer *self = own;
  const guint current = __atomic_load_n (&recording, __ATOMIC_RELAXED);

  if (G_UNLIKELY (self == NULL))
    self = buffer_new ();
  if (G_UNLIKELY (self->recording != current))
    {
      guint i;

      for (i = 0; i < self->depth; i++)
        g_clear_object (&self->frames[i].event);
      self->depth = 0;
      self->recording = current;
    }
  return self;
}

static inline GTorchRaw *
buffer_reserve (Buffer *self, gsize size)
{
  Page *page = self->page;

  if (G_UNLIKELY (size > page->room - page->used))
    {
      Page *fresh = page_new (MAX (size, PAGE_SIZE));

      __atomic_store_n (&page->next, fresh, __ATOMIC_RELEASE);
      self->page = page = fresh;
    }
  return (GTorchRaw *) (void *) ((char *) page->data + page->used);
}

static inline void
buffer_publish (Buffer *self, const GTorchRaw *raw)
{
  __atomic_store_n (&self->page->used, self->page->used + raw->size, __ATOMIC_RELEASE);
}

static void
take_page (Page *page, gsize from, gsize to, guint thread, GTorchRawFunc func, gpointer data)
{
  while (from < to)
    {
      const GTorchRaw *raw = (const GTorchRaw *) (const void *) ((char *) page->data + from);

      if (func != NULL)
        func (raw, thread, data);
      raw_clear (raw);
      from += raw->size;
    }
}

void
gtorch_profile_buffers_take (GTorchRawFunc func, gpointer data)
{
  Buffer **at, *self;

  g_mutex_lock (&lock);
  for (at = &buffers; (self = *at) != NULL;)
    {
      for (;;)
        {
          Page *page = self->first;
          /* before the number of bytes: what is written before the next page is known is complete */
          Page *next = __atomic_load_n (&page->next, __ATOMIC_ACQUIRE);
          const gsize used = __atomic_load_n (&page->used, __ATOMIC_ACQUIRE);

          take_page (page, self->taken, used, self->number, func, data);
          self->taken = used;
          if (next == NULL)
            break;
          self->first = next;
          self->taken = 0;
          g_free (page);
        }
      at = &self->next;
    }
  g_mutex_unlock (&lock);
}

gsize
gtorch_profile_buffers_count_bytes (void)
{
  gsize result = 0;

  g_mutex_lock (&lock);
  for (Buffer *self = buffers; self != NULL; self = self->next)
    {
      for (Page *page = self->first; page != NULL;
           page = __atomic_load_n (&page->next, __ATOMIC_ACQUIRE))
        result += __atomic_load_n (&page->used, __ATOMIC_RELAXED);
      result -= self->taken;
    }
  g_mutex_unlock (&lock);
  return result;
}

GArray *
gtorch_profile_buffers_list_threads (void)
{
  GArray *threads = g_array_new (FALSE, TRUE, sizeof (GTorchTraceThread));
  Buffer **at, *self;

  g_mutex_lock (&lock);
  g_array_set_size (threads, n_buffers);
  for (at = &buffers; (self = *at) != NULL;)
    {
      GTorchTraceThread *thread = &g_array_index (threads, GTorchTraceThread, self->number);

      thread->id = self->system_id;
      thread->name = g_utf8_make_valid (self->name, -1);
      if (!self->is_over)
        {
          at = &self->next;
          continue;
        }
      *at = self->next;
      g_free (self->first);
      g_free (self->frames);
      g_free (self);
    }
  g_mutex_unlock (&lock);
  return threads;
}

/* --- the stack of a thread --- */

static inline Frame *
top_of (Buffer *self)
{
  return self->depth > 0 ? &self->frames[self->depth - 1] : NULL;
}

static inline guint64
parent_of (Buffer *self, guint depth)
{
  return depth == 0 ? 0 : self->frames[depth - 1].id;
}

static void
frame_clear (Frame *frame)
{
  if (frame->is_pushed)
    gtorch_gpu_tracer->pop ();
  g_clear_object (&frame->event);
}

/* Drops an operation that has failed before it began. */
static inline void
drop_pending (Buffer *self)
{
  Frame *top;

  while ((top = top_of (self)) != NULL && top->is_pending)
    self->depth--;
}

static inline Frame *
push (Buffer *self, GTorchRecordKind kind, gconstpointer what)
{
  Frame *frame;

  self->n_ids++;
  if (G_UNLIKELY (self->depth == self->room))
    {
      self->room = MAX (2 * self->room, 64);
      self->frames = g_renew (Frame, self->frames, self->room);
    }
  frame = &self->frames[self->depth++];
  frame->id = ((guint64) (self->number + 1) << THREAD_SHIFT) + self->n_ids;
  frame->what = what;
  frame->kind = kind;
  frame->is_pending = frame->is_pushed = FALSE;
  frame->event = NULL;
  frame->start = gtorch_profile_now ();
  return frame;
}

static inline gboolean
is_range (const Frame *frame)
{
  return frame->kind == GTORCH_RECORD_RANGE || frame->kind == GTORCH_RECORD_STEP
         || frame->kind == GTORCH_RECORD_MODULE;
}

/* Takes the youngest event of this kind off the stack; FALSE if there is none. What has not ended inside of
 * it goes, too, but for ranges: they may overlap, such as those of tasks that take turns in a thread. */
static inline gboolean
pop (Buffer *self, GTorchRecordKind kind, gconstpointer what, Frame *popped)
{
  guint i, j;

  for (i = self->depth; i-- > 0;)
    {
      if (self->frames[i].kind != kind || self->frames[i].what != what)
        continue;
      *popped = self->frames[i];
      popped->parent = parent_of (self, i);
      for (j = i + 1; j < self->depth; j++)
        if (is_range (&self->frames[j]))
          self->frames[i++] = self->frames[j];
        else
          frame_clear (&self->frames[j]);
      self->depth = i;
      if (popped->is_pushed)
        gtorch_gpu_tracer->pop ();
      return TRUE;
    }
  return FALSE;
}

/* --- records --- */

/* Of a frame that is off the stack. */
static inline GTorchRaw *
raw_begin (Buffer *self, gsize size, const Frame *frame, const gchar *name)
{
  GTorchRaw *raw = buffer_reserve (self, size);

  *raw = (GTorchRaw){ .size = size,
                      .kind = frame->kind,
                      .name = name,
                      .start = frame->start,
                      .id = frame->id,
                      .parent = frame->parent };
  return raw;
}

/* What is told of a call at its end. */
typedef struct
{
  const gchar *name;
  GTorchImpl *const *inputs;
  guint n_inputs;
  GTorchDevice *device;
  guint64 flops, sequence;
} Ended;

static inline void
write_call (Buffer *self, const Frame *frame, const Ended *ended, gint64 end, guint flags)
{
  const guint n = (flags & GTORCH_TRACE_SHAPES) ? ended->n_inputs : 0;
  const gsize of_inputs = n > 0 ? gtorch_raw_inputs_size (ended->inputs, n) : 0;
  g_autofree gchar *place = NULL;
  gsize of_place = 0, of_frames;
  guint n_frames = 0;
  GTorchSite site;
  GTorchRaw *raw;
  char *to;

  if (G_UNLIKELY (flags & GTORCH_TRACE_STACK))
    {
      place = gtorch_raw_take_stack (&site, &n_frames);
      of_place = place != NULL ? strlen (place) + 1 : 0;
    }
  of_frames = n_frames * sizeof (gpointer);
  raw = raw_begin (self, (sizeof *raw + of_inputs + of_frames + of_place + 7) & ~(gsize) 7, frame,
                   ended->name);
  raw->end = end;
  raw->device = ended->device;
  raw->sequence = ended->sequence;
  raw->n_inputs = n;
  raw->n_frames = n_frames;
  raw->inputs_size = of_inputs;
  raw->text = of_place;
  raw->a = ended->flops;
  to = (char *) (raw + 1);
  gtorch_raw_write_inputs (to, ended->inputs, n);
  to += of_inputs;
  memcpy (to, site.frames, of_frames);
  to += of_frames;
  if (of_place > 0)
    memcpy (to, place, of_place);
  buffer_publish (self, raw);
}

/* What an event that has just begun was given: its end may find it changed or gone. */
static inline void
write_given (Buffer *self, guint64 id, GTorchImpl *const *inputs, gsize n)
{
  gsize size;
  GTorchRaw *raw;

  if (G_LIKELY (!(__atomic_load_n (&trace_flags, __ATOMIC_RELAXED) & GTORCH_TRACE_SHAPES))
      || n == 0)
    return;
  size = gtorch_raw_inputs_size (inputs, n);
  raw = buffer_reserve (self, sizeof *raw + size);
  *raw = (GTorchRaw){ .size = sizeof *raw + size,
                      .kind = GTORCH_RAW_GIVEN,
                      .id = id,
                      .n_inputs = n,
                      .inputs_size = size };
  gtorch_raw_write_inputs ((char *) (raw + 1), inputs, n);
  buffer_publish (self, raw);
}

/* Of a call of an operation that has ended, or the view that it has made. */
static void
write_op (Buffer *self, const Frame *frame, const GTorchOpCall *call, guint flags)
{
  const gint64 end = gtorch_profile_now ();
  const Ended ended = { .name = call->op->name,
                        .inputs = call->inputs,
                        .n_inputs = call->n_inputs,
                        .device = call->device,
                        .flops = (flags & GTORCH_TRACE_FLOPS) ? gtorch_profile_flops (call) : 0 };

  self->last_op = frame->id;
  write_call (self, frame, &ended, end, flags);
}

static void
write_plain (Buffer *self, const Frame *frame, const gchar *name, guint64 sequence,
             GTorchDevice *device)
{
  GTorchRaw *raw = raw_begin (self, sizeof *raw, frame, name);

  raw->end = gtorch_profile_now ();
  raw->sequence = sequence;
  raw->device = device;
  buffer_publish (self, raw);
}

/* --- timing events, where there is no library of traces --- */

static inline gboolean
is_of_gpu (GTorchDevice *device)
{
  return gtorch_gpu_tracer != NULL && device->type == gtorch_gpu_tracer->device_type;
}

static GTorchEvent *
record_event (GTorchDevice *device, GTorchStream *stream)
{
  g_autoptr (GTorchEvent) event = NULL;

  if (stream == NULL)
    stream = gtorch_device_get_default_stream (device);
  if (__atomic_load_n (&stream->capture, __ATOMIC_RELAXED) != NULL)
    return NULL;
  event = gtorch_event_new (GTORCH_EVENT_TIMING);
  return gtorch_event_record (event, stream, NULL) ? g_steal_pointer (&event) : NULL;
}

static void
write_span (Buffer *self, Frame *frame, const gchar *name, GTorchDevice *device,
            GTorchStream *stream)
{
  g_autoptr (GTorchEvent) end = record_event (device, stream);
  GTorchRaw *raw;

  if (end == NULL)
    {
      g_clear_object (&frame->event);
      return;
    }
  raw = raw_begin (self, sizeof *raw, frame, name);
  raw->kind = GTORCH_RECORD_SPAN;
  raw->parent = frame->id;
  raw->device = device;
  raw->a = GPOINTER_TO_SIZE (g_steal_pointer (&frame->event));
  raw->b = GPOINTER_TO_SIZE (g_steal_pointer (&end));
  buffer_publish (self, raw);
}

static inline void
begin_on_device (Frame *frame, GTorchDevice *device, GTorchStream *stream)
{
  const guint32 bit = 1u << device->slot;

  if (!(__atomic_load_n (&devices, __ATOMIC_RELAXED) & bit))
    __atomic_or_fetch (&devices, bit, __ATOMIC_RELAXED);
  if (__atomic_load_n (&has_tracer, __ATOMIC_RELAXED))
    {
      gtorch_gpu_tracer->push (frame->id);
      frame->is_pushed = TRUE;
    }
  else if (__atomic_load_n (&has_events, __ATOMIC_RELAXED) && is_of_gpu (device))
    frame->event = record_event (device, stream);
}

/* --- the observer --- */

static void
profile_prepare (GTorchOpCall *call)
{
  Buffer *self = buffer_get ();
  Frame *top = top_of (self), *frame;

  if (top != NULL && top->is_pending)
    {
      if (top->what == call)
        return; /* a further result */
      drop_pending (self);
    }
  frame = push (self, GTORCH_RECORD_OP, call);
  frame->is_pending = TRUE;
}

static gboolean
profile_call_begin (GTorchStream *stream, GTorchOpCall *call, GError **error)
{
  Buffer *self = buffer_get ();
  Frame *frame = top_of (self);

  if (frame == NULL || !frame->is_pending || frame->what != call)
    {
      drop_pending (self);
      frame = push (self, GTORCH_RECORD_OP, call);
    }
  frame->is_pending = FALSE;
  if (!gtorch_device_is_host (call->device) || (call->op->flags & GTORCH_OP_FLAG_DEVICES))
    begin_on_device (frame, call->device, stream);
  return TRUE;
}

static void
profile_call_end (GTorchStream *stream, GTorchOpCall *call, gboolean result)
{
  const guint flags = __atomic_load_n (&trace_flags, __ATOMIC_RELAXED);
  Buffer *self = buffer_get ();
  Frame frame;

  if (!pop (self, GTORCH_RECORD_OP, call, &frame))
    return;
  if (G_LIKELY (result && flags != 0))
    {
      write_op (self, &frame, call, flags);
      if (G_UNLIKELY (frame.event != NULL))
        write_span (self, &frame, call->op->name, call->device, stream);
    }
  g_clear_object (&frame.event);
}

static void
profile_view (GTorchOpCall *call)
{
  const guint flags = __atomic_load_n (&trace_flags, __ATOMIC_RELAXED);
  Buffer *self = buffer_get ();
  Frame *top = top_of (self);
  Frame frame;

  if (top == NULL || !top->is_pending || top->what != call)
    {
      drop_pending (self);
      push (self, GTORCH_RECORD_OP, call);
    }
  if (pop (self, GTORCH_RECORD_OP, call, &frame) && flags != 0)
    write_op (self, &frame, call, flags);
}

static void
profile_composite_begin (const GTorchOpClass *op, GTorchImpl *const *inputs, gsize n_inputs)
{
  Buffer *self = buffer_get ();

  drop_pending (self);
  write_given (self, push (self, GTORCH_RECORD_OP, op)->id, inputs, n_inputs);
}

static void
profile_composite_end (const GTorchOpClass *op)
{
  const guint flags = __atomic_load_n (&trace_flags, __ATOMIC_RELAXED);
  const Ended ended = { .name = op->name };
  Buffer *self = buffer_get ();
  Frame frame;

  if (pop (self, GTORCH_RECORD_OP, op, &frame) && flags != 0)
    write_call (self, &frame, &ended, gtorch_profile_now (), flags);
}

static GTorchRecordKind
kind_of (const GTorchNamed *named)
{
  return named->kind == GTORCH_NAMED_TRANSFER ? GTORCH_RECORD_TRANSFER : GTORCH_RECORD_OP;
}

/* What NCCL launches belongs to the collective. */
static void
profile_named_begin (const GTorchNamed *named)
{
  Buffer *self = buffer_get ();
  Frame *frame;

  drop_pending (self);
  frame = push (self, kind_of (named), named);
  if (named->device != NULL && is_of_gpu (named->device)
      && __atomic_load_n (&has_tracer, __ATOMIC_RELAXED))
    {
      gtorch_gpu_tracer->push (frame->id);
      frame->is_pushed = TRUE;
    }
}

static void
profile_named_end (const GTorchNamed *named)
{
  const guint flags = __atomic_load_n (&trace_flags, __ATOMIC_RELAXED);
  const Ended ended = { named->name, named->inputs,  named->n_inputs, named->device,
                        0,           named->sequence };
  Buffer *self = buffer_get ();
  Frame frame;

  drop_pending (self);
  if (pop (self, kind_of (named), named, &frame) && flags != 0)
    write_call (self, &frame, &ended, gtorch_profile_now (), flags);
}

static void
profile_recorded (guint64 sequence)
{
  Buffer *self = buffer_get ();
  GTorchRaw *raw = buffer_reserve (self, sizeof *raw);

  *raw = (GTorchRaw){
    .size = sizeof *raw, .kind = GTORCH_RAW_LINK, .id = self->last_op, .sequence = sequence
  };
  buffer_publish (self, raw);
}

static void
profile_backward_begin (const gchar *name, guint64 sequence, GTorchImpl *const *grads,
                        gsize n_grads)
{
  Buffer *self = buffer_get ();

  drop_pending (self);
  write_given (self, push (self, GTORCH_RECORD_BACKWARD, name)->id, grads, n_grads);
}

static void
profile_backward_end (const gchar *name, guint64 sequence)
{
  Buffer *self = buffer_get ();
  Frame frame;

  if (pop (self, GTORCH_RECORD_BACKWARD, name, &frame))
    write_plain (self, &frame, name, sequence, NULL);
}

static gboolean
profile_replay_begin (GTorchReplay *replay, GError **error)
{
  Buffer *self = buffer_get ();
  Frame *frame;

  drop_pending (self);
  frame = push (self, GTORCH_RECORD_REPLAY, replay);
  begin_on_device (frame, replay->stream->device, replay->stream);
  return TRUE;
}

static gboolean
profile_replay_end (GTorchReplay *replay, gboolean result, GError **error)
{
  Buffer *self = buffer_get ();
  GTorchDevice *device = replay->stream->device;
  Frame frame;

  if (!pop (self, GTORCH_RECORD_REPLAY, replay, &frame))
    return TRUE;
  write_plain (self, &frame, "graph replay", 0, device);
  if (G_UNLIKELY (frame.event != NULL))
    write_span (self, &frame, "graph replay", device, replay->stream);
  g_clear_object (&frame.event);
  return TRUE;
}

/* Only of operations that are recorded: others are queued by the checks, say. */
static void
profile_saved (const GTorchOpCall *call, guint64 *number)
{
  Buffer *self = buffer_get ();
  const Frame *top = top_of (self);

  if (top != NULL && top->what == call && top->kind == GTORCH_RECORD_OP && !top->is_pending)
    *number = top->id;
}

static void
profile_run_begin (guint64 number, const GTorchOpCall *call)
{
  Buffer *self = buffer_get ();

  drop_pending (self);
  push (self, GTORCH_RECORD_RUN, call);
}

static void
profile_run_end (guint64 number, const GTorchOpCall *call)
{
  Buffer *self = buffer_get ();
  Frame frame;
  GTorchRaw *raw;

  drop_pending (self);
  if (!pop (self, GTORCH_RECORD_RUN, call, &frame))
    return;
  raw = raw_begin (self, sizeof *raw, &frame, call->op->name);
  raw->end = gtorch_profile_now ();
  raw->device = call->device;
  raw->a = number;
  buffer_publish (self, raw);
}

static void
note_memory (GTorchStorage *storage, GTorchRecordKind kind, guint flags)
{
  Buffer *self;
  GTorchRaw *raw;

  if (!(__atomic_load_n (&trace_flags, __ATOMIC_RELAXED) & GTORCH_TRACE_MEMORY)
      || storage->n_bytes == 0)
    return;
  self = buffer_get ();
  raw = buffer_reserve (self, sizeof *raw);
  *raw = (GTorchRaw){ .size = sizeof *raw,
                      .kind = kind,
                      .flags = flags,
                      .name = "[memory]",
                      .start = gtorch_profile_now (),
                      .parent = parent_of (self, self->depth),
                      .id = ((guint64) (self->number + 1) << THREAD_SHIFT) + ++self->n_ids,
                      .device = storage->device,
                      .a = GPOINTER_TO_SIZE (storage->data),
                      .b = storage->n_bytes };
  raw->end = raw->start;
  buffer_publish (self, raw);
}

static void
profile_storage_new (GTorchStorage *storage)
{
  note_memory (storage, GTORCH_RECORD_ALLOC, 0);
}

/* Memory that others have allocated, as NumPy has, was never told of. */
static void
profile_storage_free (GTorchStorage *storage)
{
  if (storage->free_func != NULL && !gtorch_pool_has_given (storage))
    return;
  note_memory (storage, GTORCH_RECORD_FREE, storage->free_func == NULL ? GTORCH_RAW_NATIVE : 0);
}

/* Told of beginnings after the checks, which may refuse them. */
static const GTorchObserver observer = {
  .rank = 100,
  .prepare = profile_prepare,
  .call_begin = profile_call_begin,
  .call_end = profile_call_end,
  .view = profile_view,
  .composite_begin = profile_composite_begin,
  .composite_end = profile_composite_end,
  .named_begin = profile_named_begin,
  .named_end = profile_named_end,
  .saved = profile_saved,
  .run_begin = profile_run_begin,
  .run_end = profile_run_end,
  .recorded = profile_recorded,
  .backward_begin = profile_backward_begin,
  .backward_end = profile_backward_end,
  .replay_begin = profile_replay_begin,
  .replay_end = profile_replay_end,
  .storage_new = profile_storage_new,
  .storage_free = profile_storage_free,
};

void
gtorch_profile_buffers_set_flags (guint flags, gboolean uses_tracer, gboolean uses_events)
{
  if (flags != 0)
    {
      __atomic_add_fetch (&recording, 1, __ATOMIC_RELAXED);
      __atomic_store_n (&devices, 0, __ATOMIC_RELAXED);
    }
  __atomic_store_n (&has_tracer, uses_tracer, __ATOMIC_RELAXED);
  __atomic_store_n (&has_events, uses_events, __ATOMIC_RELAXED);
  __atomic_store_n (&trace_flags, flags, __ATOMIC_RELAXED);
  if (flags != 0)
    {
      __atomic_or_fetch (&gtorch_memory_wants_ops, GTORCH_WANTS_OPS_PROFILE, __ATOMIC_RELAXED);
      gtorch_observer_add (&observer);
    }
  else
    {
      gtorch_observer_remove (&observer);
      __atomic_and_fetch (&gtorch_memory_wants_ops, ~(guint) GTORCH_WANTS_OPS_PROFILE,
                          __ATOMIC_RELAXED);
    }
}

gboolean
gtorch_trace_is_running (void)
{
  return __atomic_load_n (&trace_flags, __ATOMIC_RELAXED) != 0;
}

gboolean
gtorch_trace_wants_modules (void)
{
  return (__atomic_load_n (&trace_flags, __ATOMIC_RELAXED) & GTORCH_TRACE_MODULES) != 0;
}

guint32
gtorch_profile_buffers_get_devices (void)
{
  return __atomic_load_n (&devices, __ATOMIC_RELAXED);
}

/* --- ranges --- */

gboolean
gtorch_trace_wants_ranges (void)
{
  return gtorch_trace_is_running () || gtorch_profile_sinks_want_ranges ();
}

static void
write_range (Buffer *self, const Frame *frame, guint kind, const GTorchRangeText *text,
             guint64 serial)
{
  const gsize of_name = strlen (text->name) + 1;
  const gsize of_args = text->args != NULL ? strlen (text->args) + 1 : 0;
  const gsize length = of_name + of_args;
  GTorchRaw *raw = raw_begin (self, (sizeof *raw + length + 7) & ~(gsize) 7, frame, NULL);

  raw->kind = kind;
  raw->flags = frame->kind;
  raw->a = serial;
  raw->end = kind == GTORCH_RAW_OPEN ? frame->start : gtorch_profile_now ();
  raw->text = length;
  memcpy (raw + 1, text->name, of_name);
  if (of_args > 0)
    memcpy ((char *) (raw + 1) + of_name, text->args, of_args);
  buffer_publish (self, raw);
}

static void
write_closed (Buffer *self, guint64 id)
{
  GTorchRaw *raw = buffer_reserve (self, sizeof *raw);

  *raw = (GTorchRaw){
    .size = sizeof *raw, .kind = GTORCH_RAW_CLOSED, .id = id, .end = gtorch_profile_now ()
  };
  buffer_publish (self, raw);
}

guint64
gtorch_trace_range_begin (GTorchRecordKind kind, const GTorchRangeText *text, guint64 serial)
{
  const gboolean is_told =
      G_UNLIKELY (gtorch_profile_sinks_want_ranges ()) && kind != GTORCH_RECORD_MODULE;
  Buffer *self;
  Frame *frame;

  if (G_LIKELY (__atomic_load_n (&trace_flags, __ATOMIC_RELAXED) == 0 && !is_told))
    return 0;
  self = buffer_get ();
  if (is_told)
    gtorch_profile_sinks_tell_begin (((guint64) (self->number + 1) << THREAD_SHIFT) + self->n_ids
                                         + 1,
                                     text->name);
  if (__atomic_load_n (&trace_flags, __ATOMIC_RELAXED) == 0)
    return ((guint64) (self->number + 1) << THREAD_SHIFT) + ++self->n_ids;
  drop_pending (self);
  frame = push (self, kind, NULL);
  frame->what = GSIZE_TO_POINTER (frame->id);
  frame->parent = parent_of (self, self->depth - 1);
  frame->serial = serial;
  write_range (self, frame, GTORCH_RAW_OPEN, text, serial);
  return frame->id;
}

void
gtorch_trace_range_end (guint64 id, GTorchRecordKind kind, const GTorchRangeText *text)
{
  Buffer *self;
  Frame frame;

  if (id == 0)
    return;
  if (G_UNLIKELY (gtorch_profile_sinks_want_ranges ()) && kind != GTORCH_RECORD_MODULE)
    gtorch_profile_sinks_tell_end (id);
  if (__atomic_load_n (&trace_flags, __ATOMIC_RELAXED) == 0)
    return;
  self = buffer_get ();
  if (id >> THREAD_SHIFT != self->number + 1)
    write_closed (self, id);
  else if (pop (self, kind, GSIZE_TO_POINTER (id), &frame))
    write_range (self, &frame, kind, text, frame.serial);
}

guint64
gtorch_trace_wait_begin (const gchar *name)
{
  Buffer *self;
  Frame frame = { .kind = GTORCH_RECORD_WAIT };

  if (G_LIKELY (!gtorch_trace_is_running ()))
    return 0;
  self = buffer_get ();
  frame.id = ((guint64) (self->number + 1) << THREAD_SHIFT) + ++self->n_ids;
  frame.start = gtorch_profile_now ();
  write_range (self, &frame, GTORCH_RAW_OPEN, &(GTorchRangeText){ name }, 0);
  return frame.id;
}

void
gtorch_trace_wait_end (guint64 id)
{
  if (G_UNLIKELY (id != 0 && gtorch_trace_is_running ()))
    write_closed (buffer_get (), id);
}
