/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Queues of work and the scheduler. Whichever thread waits for work executes it, one item at a time; the
 * next item is random among those that streams and events allow. Host functions run on a thread of the
 * fake, as in the real driver. */

#include "config.h"

#include <string.h>

#include "fake-cuda-private.h"

/* The choice of the next item. */
typedef enum
{
  SOON,   /* everything immediately */
  RANDOM, /* a random stream */
  LATE,   /* only items that are waited for */
  RANKED, /* the stream of the highest rank; ranks change now and then */
  N_ORDERS
} Order;

#define POLL_PAUSE 50 /* microseconds */

static GPtrArray *streams;
static GRand *lot;
static Order order = SOON;
static gboolean held;
static guint n_calls; /* pending host functions */
static gboolean calling;
static GCond progress;
static GThread *thread;
static __thread gboolean is_driver_thread;
static guint seed_shift, jitter;
static gint64 stopped_clock = -1; /* -1 while the clock runs */

gboolean
fake_in_host_function (void)
{
  return is_driver_thread;
}

void
fake_cuda_set_seed (guint32 seed)
{
  g_mutex_lock (&fake_lock);
  if (seed != 0)
    seed += seed_shift * (N_ORDERS - 1);
  g_clear_pointer (&lot, g_rand_free);
  lot = g_rand_new_with_seed (seed);
  order = seed == 0 ? SOON : RANDOM + (seed - 1) % (N_ORDERS - 1);
  g_mutex_unlock (&fake_lock);
}

void
fake_set_variation (guint shift, guint microseconds)
{
  seed_shift = shift;
  jitter = microseconds;
}

/* Must not be called with the lock held. */
void
fake_dawdle (void)
{
  if (jitter > 0 && g_random_int_range (0, 16) == 0)
    g_usleep (g_random_int_range (0, jitter));
}

void
fake_cuda_stop_clock (void)
{
  g_mutex_lock (&fake_lock);
  stopped_clock = g_get_monotonic_time ();
  g_mutex_unlock (&fake_lock);
}

void
fake_cuda_pass_time (gint64 us)
{
  g_mutex_lock (&fake_lock);
  stopped_clock += us;
  g_mutex_unlock (&fake_lock);
}

void
fake_cuda_hold (gboolean hold)
{
  g_mutex_lock (&fake_lock);
  held = hold;
  g_cond_broadcast (&progress);
  g_mutex_unlock (&fake_lock);
}

guint
fake_cuda_get_pending (void)
{
  guint i, n = 0;

  g_mutex_lock (&fake_lock);
  for (i = 0; streams != NULL && i < streams->len; i++)
    n += ((CUstream) streams->pdata[i])->ops.length;
  g_mutex_unlock (&fake_lock);
  return n;
}

guint
fake_draw (guint n)
{
  if (lot == NULL)
    lot = g_rand_new_with_seed (0);
  return n > 1 ? g_rand_int_range (lot, 0, n) : 0;
}

/* --- work items --- */

static void
mark_unref (FakeMark *mark)
{
  if (mark == NULL || --mark->refs > 0)
    return;
  fake_shared_unref (mark->shared);
  g_free (mark);
}

static FakeMark *
mark_new (CUevent event, guint64 number)
{
  FakeMark *mark = g_new0 (FakeMark, 1);

  mark->refs = 1;
  if (event->shared != NULL)
    {
      mark->shared = event->shared;
      mark->shared->refs++;
      mark->number = number;
    }
  return mark;
}

static void
mark_pass (FakeMark *mark)
{
  mark->done = TRUE;
  mark->time_us = stopped_clock < 0 ? g_get_monotonic_time () : stopped_clock++;
  if (mark->shared != NULL
      && __atomic_load_n (&mark->shared->cell->passed, __ATOMIC_ACQUIRE) < mark->number)
    __atomic_store_n (&mark->shared->cell->passed, mark->number, __ATOMIC_RELEASE);
}

/* Another process may have reached it. */
static gboolean
mark_is_done (FakeMark *mark)
{
  if (mark->shared != NULL
      && __atomic_load_n (&mark->shared->cell->passed, __ATOMIC_ACQUIRE) >= mark->number)
    mark->done = TRUE;
  return mark->done;
}

static FakeMark *
mark_ref (FakeMark *mark)
{
  mark->refs++;
  return mark;
}

void
fake_op_clear (FakeOp *op)
{
  if (op->kind == FAKE_KERNEL)
    {
      if (op->launch.kernel->unref != NULL)
        op->launch.kernel->unref (op->launch.parameter);
      g_free (op->launch.parameter);
    }
  else if (op->kind == FAKE_COPY)
    g_free (op->copy.staged);
  else if (op->kind == FAKE_RECORD || op->kind == FAKE_WAIT)
    mark_unref (op->mark);
  else if (op->kind == FAKE_CALL)
    n_calls--;
  else if (op->kind == FAKE_BRANCH)
    fake_branch_clear (op);
}

static void
op_free (FakeOp *op)
{
  fake_op_clear (op);
  g_free (op);
}

void
fake_op_copy (FakeOp *to, const FakeOp *from)
{
  *to = *from;
  if (from->kind == FAKE_BRANCH)
    fake_branch_copy (to, from);
  if (from->kind != FAKE_KERNEL)
    return;
  to->launch.parameter = g_memdup2 (from->launch.parameter, from->launch.kernel->n_bytes);
  if (from->launch.kernel->ref != NULL)
    from->launch.kernel->ref (to->launch.parameter);
}

static CUresult
run_copy (const FakeOp *op, const FakeDevice *device)
{
  const FakeDevice *user = op->copy.peer ? NULL : device;
  gpointer to =
      op->copy.to != 0 ? fake_memory_at (op->copy.to, op->copy.n_bytes, user) : op->copy.to_host;
  gconstpointer from = op->copy.from != 0 ? fake_memory_at (op->copy.from, op->copy.n_bytes, user)
                                          : op->copy.from_host;

  if (to == NULL || from == NULL)
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  memmove (to, from, op->copy.n_bytes);
  return CUDA_SUCCESS;
}

static CUresult
run_set (const FakeOp *op, const FakeDevice *device)
{
  char *to = fake_memory_at (op->set.to, op->set.n * op->set.size, device);
  gsize i;

  if (to == NULL)
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  for (i = 0; i < op->set.n; i++)
    memcpy (to + i * op->set.size, &op->set.value, op->set.size);
  return CUDA_SUCCESS;
}

static CUresult
run (FakeOp *op, FakeDevice *device)
{
  if (op->kind != FAKE_WRITE && device->break_in > 0 && --device->break_in == 0)
    return device->break_result;
  switch (op->kind)
    {
    case FAKE_KERNEL:
      return op->launch.kernel->run (op->launch.kernel, &op->launch.grid, op->launch.parameter,
                                     device);
    case FAKE_COPY:
      return run_copy (op, device);
    case FAKE_SET:
      return run_set (op, device);
    case FAKE_WRITE:
      __atomic_store_n (op->write.to, op->write.value, __ATOMIC_RELEASE);
      return CUDA_SUCCESS;
    case FAKE_FREE:
      fake_memory_free (op->freed);
      return CUDA_SUCCESS;
    case FAKE_RECORD:
      mark_pass (op->mark);
      return CUDA_SUCCESS;
    case FAKE_BRANCH:
      return fake_branch_run (op, device);
    default:
      return CUDA_SUCCESS;
    }
}

CUresult
fake_op_run (FakeOp *op, FakeDevice *device)
{
  const gint64 start = fake_tracer != NULL ? fake_now () : 0;
  FakeCudaWork work = { .correlation = op->correlation, .device = device->index, .start = start };
  CUresult result = run (op, device);

  if (fake_tracer == NULL || result != CUDA_SUCCESS || op->correlation == 0)
    return result;
  work.end = fake_now ();
  if (op->kind == FAKE_KERNEL)
    {
      work.kind = FAKE_CUDA_RAN_KERNEL;
      work.name = op->launch.kernel->name;
      memcpy (work.grid, op->launch.grid.grid, sizeof work.grid);
      memcpy (work.block, op->launch.grid.block, sizeof work.block);
      work.shared = op->launch.shared;
    }
  else if (op->kind == FAKE_COPY)
    {
      work.kind = FAKE_CUDA_RAN_COPY;
      work.n_bytes = op->copy.n_bytes;
      work.from_host = op->copy.from == 0;
      work.to_host = op->copy.to == 0;
    }
  else if (op->kind == FAKE_SET)
    {
      work.kind = FAKE_CUDA_RAN_SET;
      work.n_bytes = op->set.n * op->set.size;
    }
  else
    return result;
  fake_tracer->ran (&work);
  return result;
}

/* Host functions are not called any more, and events count as complete, so that no thread waits for ever. */
void
fake_device_fail (FakeDevice *device, CUresult result)
{
  guint i;

  device->failure = result;
  for (i = 0; i < streams->len; i++)
    {
      CUstream stream = streams->pdata[i];
      FakeOp *op;

      if (stream->device != device)
        continue;
      while ((op = g_queue_pop_head (&stream->ops)) != NULL)
        {
          if (op->kind == FAKE_RECORD)
            mark_pass (op->mark);
          op_free (op);
        }
    }
  g_cond_broadcast (&progress);
}

/* --- the scheduler --- */

static gboolean
is_ready (CUstream stream, gboolean may_call)
{
  FakeOp *op = g_queue_peek_head (&stream->ops);

  if (op == NULL)
    return FALSE;
  if (op->kind == FAKE_CALL)
    return may_call && !calling;
  return op->kind != FAKE_WAIT || mark_is_done (op->mark);
}

static gboolean
is_recording_of (const FakeOp *op, const FakeMark *mark)
{
  return op->kind == FAKE_RECORD
         && (op->mark == mark
             || (mark->shared != NULL && op->mark->shared == mark->shared
                 && op->mark->number >= mark->number));
}

/* Returns the queue of the recording; NULL if it is complete, or queued in another process. */
static CUstream
find_mark (FakeMark *mark)
{
  GList *l;
  guint i;

  for (i = 0; mark != NULL && !mark_is_done (mark) && i < streams->len; i++)
    for (l = ((CUstream) streams->pdata[i])->ops.head; l != NULL; l = l->next)
      if (is_recording_of (l->data, mark))
        return streams->pdata[i];
  return NULL;
}

/* Other processes do not signal progress. */
static void
wait_for_progress (void)
{
  if (fake_n_shared > 0)
    g_cond_wait_until (&progress, &fake_lock, g_get_monotonic_time () + 1000);
  else
    g_cond_wait (&progress, &fake_lock);
}

/* Returns the stream whose next item must be executed before that of the given one. */
static CUstream
find_needed (CUstream stream, gboolean may_call)
{
  guint depth;

  for (depth = 0; depth < 1000 && stream != NULL && !is_ready (stream, may_call); depth++)
    {
      FakeOp *op = g_queue_peek_head (&stream->ops);

      if (op == NULL || op->kind != FAKE_WAIT)
        return NULL;
      stream = find_mark (op->mark);
    }
  return stream;
}

static CUstream
choose (CUstream wanted, gboolean may_call)
{
  CUstream best = NULL;
  guint i, n = 0;

  if (order == LATE && wanted != NULL)
    return find_needed (wanted, may_call);
  if (order == RANKED && fake_draw (16) == 0 && streams->len > 0)
    ((CUstream) streams->pdata[fake_draw (streams->len)])->rank = fake_draw (1 << 20);
  for (i = 0; i < streams->len; i++)
    {
      CUstream stream = streams->pdata[i];

      if (!is_ready (stream, may_call))
        continue;
      n++;
      if (best == NULL || (order == RANKED ? stream->rank > best->rank : fake_draw (n) == 0))
        best = stream;
    }
  return best;
}

/* Executes one item, of `wanted` or of its dependencies if only those are to run. Returns FALSE if none
 * can run. */
static gboolean
step (CUstream wanted, gboolean may_call)
{
  CUstream stream;
  FakeDevice *device;
  FakeOp *op;
  CUresult result;

  if (held || streams == NULL)
    return FALSE;
  stream = choose (wanted, may_call);
  if (stream == NULL)
    return FALSE;
  op = g_queue_peek_head (&stream->ops);
  device = op->device != NULL ? op->device : stream->device;
  if (op->kind == FAKE_CALL)
    {
      const FakeOp called = *op;
      gboolean is_over = TRUE;

      calling = TRUE;
      g_mutex_unlock (&fake_lock);
      fake_dawdle ();
      if (called.call.poll != NULL)
        is_over = called.call.poll (called.call.data);
      else
        called.call.func (called.call.data);
      fake_dawdle ();
      if (!is_over)
        g_usleep (POLL_PAUSE);
      g_mutex_lock (&fake_lock);
      calling = FALSE;
      op = g_queue_peek_head (&stream->ops);
      if (is_over && op != NULL
          && op->number == called.number) /* the device has not failed in between */
        op_free (g_queue_pop_head (&stream->ops));
      g_cond_broadcast (&progress);
      return TRUE;
    }
  result = device->failure;
  if (result == CUDA_SUCCESS)
    result = fake_op_run (op, device);
  if (result != CUDA_SUCCESS)
    { /* drops the op, too; a graph fails where it was launched as well */
      if (device != stream->device)
        fake_device_fail (device, result);
      fake_device_fail (stream->device, result);
    }
  else
    op_free (g_queue_pop_head (&stream->ops));
  g_cond_broadcast (&progress);
  return TRUE;
}

static gpointer
drive (gpointer data)
{
  is_driver_thread = TRUE;
  g_mutex_lock (&fake_lock);
  while (TRUE)
    {
      while (n_calls > 0 && step (NULL, TRUE))
        {
          while (order == SOON && step (NULL, FALSE)) /* nobody else does what comes behind it */
            ;
          g_mutex_unlock (&fake_lock);
          g_thread_yield ();
          g_mutex_lock (&fake_lock);
        }
      wait_for_progress ();
    }
  return NULL;
}

/* Waits until the stream is empty, or the recording is complete. */
static CUresult
wait_for (FakeDevice *device, CUstream stream, FakeMark *mark)
{
  if (mark != NULL)
    mark_ref (mark);
  while (device->failure == CUDA_SUCCESS
         && (stream != NULL ? stream->ops.length > 0 : mark != NULL && !mark_is_done (mark)))
    if (!step (stream != NULL ? stream : find_mark (mark), FALSE))
      wait_for_progress ();
  mark_unref (mark);
  return device->failure;
}

CUresult
fake_device_drain (FakeDevice *device)
{
  guint i;

  for (i = 0; i < streams->len; i++)
    if (((CUstream) streams->pdata[i])->device == device)
      wait_for (device, streams->pdata[i], NULL);
  return device->failure;
}

/* Polling advances the work, too. */
static void
go_on (CUstream wanted)
{
  if (order != SOON && fake_draw (2) == 0)
    step (wanted, FALSE);
}

/* --- streams --- */

CUstream
fake_stream_new (FakeDevice *device, gboolean is_counted)
{
  CUstream stream = g_new0 (struct CUstream_st, 1);

  stream->device = device;
  stream->rank = fake_draw (1 << 20);
  stream->is_counted = is_counted;
  g_queue_init (&stream->ops);
  if (streams == NULL)
    streams = g_ptr_array_new ();
  g_ptr_array_add (streams, stream);
  return stream;
}

CUstream
fake_stream_find (CUstream stream)
{
  guint i;

  if (stream == NULL)
    return fake_current () != NULL ? fake_current ()->null_stream : NULL;
  for (i = 0; streams != NULL && i < streams->len; i++)
    if (streams->pdata[i] == stream && !stream->destroyed)
      return stream;
  return NULL;
}

FakeDevice *
fake_stream_device (CUstream stream)
{
  return stream->device;
}

CUresult
fake_stream_push (CUstream stream, const FakeOp *op)
{
  static guint64 last_number;
  FakeOp *copy;
  guint n;

  if (stream->capture != NULL)
    return fake_capture_push (stream, op);
  if (stream->is_default && fake_capture_blocks (stream->device))
    {
      FakeOp refused = *op;

      if (op->kind != FAKE_CALL) /* which is not counted yet */
        fake_op_clear (&refused);
      return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
  copy = g_memdup2 (op, sizeof *op);
  copy->number = ++last_number;
  copy->correlation = fake_correlation ();
  if (op->kind == FAKE_CALL)
    n_calls++;
  if (stream->device->failure != CUDA_SUCCESS)
    {
      op_free (copy);
      return stream->device->failure;
    }
  g_queue_push_tail (&stream->ops, copy);
  if (order == SOON)
    while (step (NULL, FALSE))
      ;
  else if (order != LATE && fake_draw (4) == 0)
    for (n = fake_draw (4); n > 0 && step (NULL, FALSE); n--)
      ;
  if (n_calls > 0)
    {
      if (thread == NULL)
        thread = g_thread_new ("fake-cuda", drive, NULL);
      g_cond_broadcast (&progress);
    }
  return CUDA_SUCCESS;
}

#define FIND(stream)                       \
  do                                       \
    {                                      \
      stream = fake_stream_find (stream);  \
      if (stream == NULL)                  \
        LEAVE (CUDA_ERROR_INVALID_HANDLE); \
    }                                      \
  while (0)

CUresult
cuStreamCreateWithPriority (CUstream *stream, unsigned int flags, int priority)
{
  FakeDevice *device;

  ENTER_CURRENT (cuStreamCreateWithPriority, device);
  *stream = fake_stream_new (device, TRUE);
  (*stream)->is_blocking = (flags & CU_STREAM_NON_BLOCKING) == 0;
  fake_accounts.streams++;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuStreamDestroy (CUstream stream)
{
  ENTER (cuStreamDestroy);
  FIND (stream);
  if (stream->capture != NULL)
    LEAVE (fake_capture_spoil (stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
  wait_for (stream->device, stream, NULL); /* the real driver executes it asynchronously */
  g_ptr_array_remove (streams, stream);
  g_clear_pointer (&stream->before, g_ptr_array_unref);
  g_free (stream);
  fake_accounts.streams--;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuStreamQuery (CUstream stream)
{
  ENTER (cuStreamQuery);
  FIND (stream);
  if (stream->capture != NULL)
    LEAVE (fake_capture_spoil (stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
  go_on (stream);
  if (stream->device->failure != CUDA_SUCCESS)
    LEAVE (stream->device->failure);
  LEAVE (stream->ops.length > 0 ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS);
}

CUresult
cuStreamSynchronize (CUstream stream)
{
  ENTER (cuStreamSynchronize);
  FIND (stream);
  if (stream->capture != NULL)
    LEAVE (fake_capture_spoil (stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
  LEAVE (wait_for (stream->device, stream, NULL));
}

CUresult
cuStreamGetCtx (CUstream stream, CUcontext *context)
{
  ENTER (cuStreamGetCtx);
  FIND (stream);
  *context = stream->device;
  LEAVE (CUDA_SUCCESS);
}

/* Another process may have recorded it since. */
static void
take_last_recording (CUevent event)
{
  guint64 number;

  if (event->shared == NULL)
    return;
  number = __atomic_load_n (&event->shared->cell->recorded, __ATOMIC_ACQUIRE);
  if (number == 0 || (event->mark != NULL && event->mark->number == number))
    return;
  mark_unref (event->mark);
  event->mark = mark_new (event, number);
}

CUresult
cuStreamWaitEvent (CUstream stream, CUevent event, unsigned int flags)
{
  ENTER (cuStreamWaitEvent);
  FIND (stream);
  if (event == NULL || flags != 0)
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  if (event->capture != NULL || (event->mark != NULL && stream->capture != NULL))
    LEAVE (fake_capture_wait (stream, event));
  take_last_recording (event);
  if (event->mark == NULL || mark_is_done (event->mark))
    LEAVE (stream->device->failure);
  LEAVE (fake_stream_push (stream, &(FakeOp){ .kind = FAKE_WAIT, .mark = mark_ref (event->mark) }));
}

CUresult
cuStreamWriteValue32 (CUstream stream, CUdeviceptr address, uint32_t value, unsigned int flags)
{
  guint32 *to = (guint32 *) (guintptr) address;

  ENTER (cuStreamWriteValue32);
  FIND (stream);
  if (address % 4 != 0 || flags != 0)
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  if (!fake_memory_is_pinned (to))
    to = fake_memory_at (address, 4, stream->device);
  if (to == NULL)
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  LEAVE (fake_stream_push (stream, &(FakeOp){ .kind = FAKE_WRITE, .write = { to, value } }));
}

CUresult
cuLaunchHostFunc (CUstream stream, CUhostFn func, void *user_data)
{
  ENTER (cuLaunchHostFunc);
  FIND (stream);
  LEAVE (fake_stream_push (stream, &(FakeOp){ .kind = FAKE_CALL, .call = { func, user_data } }));
}

gint
fake_cuda_enqueue (gpointer stream, void (*func) (gpointer data), gpointer data)
{
  return cuLaunchHostFunc (stream, func, data);
}

gint
fake_cuda_enqueue_poll (gpointer handle, gboolean (*func) (gpointer data), gpointer data)
{
  CUstream stream = handle;

  ENTER (cuLaunchHostFunc);
  FIND (stream);
  LEAVE (fake_stream_push (stream,
                           &(FakeOp){ .kind = FAKE_CALL, .call = { .data = data, .poll = func } }));
}

/* --- events --- */

CUresult
cuEventCreate (CUevent *event, unsigned int flags)
{
  FakeDevice *device;

  ENTER_CURRENT (cuEventCreate, device);
  if (flags & CU_EVENT_INTERPROCESS && !(flags & CU_EVENT_DISABLE_TIMING))
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  *event = g_new0 (struct CUevent_st, 1);
  (*event)->device = device;
  (*event)->flags = flags;
  if (flags & CU_EVENT_INTERPROCESS)
    (*event)->shared = fake_shared_new ();
  fake_accounts.events++;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuEventDestroy (CUevent event)
{
  ENTER (cuEventDestroy);
  mark_unref (event->mark);
  fake_capture_unref (event->capture);
  g_clear_pointer (&event->before, g_ptr_array_unref);
  fake_shared_unref (event->shared);
  g_free (event);
  fake_accounts.events--;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuEventRecord (CUevent event, CUstream stream)
{
  ENTER (cuEventRecord);
  FIND (stream);
  if (event == NULL || event->device != stream->device)
    LEAVE (CUDA_ERROR_INVALID_HANDLE);
  if (stream->device->failure != CUDA_SUCCESS)
    LEAVE (stream->device->failure);
  mark_unref (event->mark);
  event->mark = NULL;
  fake_capture_unref (event->capture);
  event->capture = NULL;
  g_clear_pointer (&event->before, g_ptr_array_unref);
  if (stream->capture != NULL)
    LEAVE (fake_capture_record (stream, event));
  event->mark =
      mark_new (event, event->shared != NULL ? __atomic_add_fetch (&event->shared->cell->recorded,
                                                                   1, __ATOMIC_ACQ_REL)
                                             : 0);
  LEAVE (
      fake_stream_push (stream, &(FakeOp){ .kind = FAKE_RECORD, .mark = mark_ref (event->mark) }));
}

/* There is no such point in time. */
static CUresult
refuse_captured (CUevent event)
{
  if (!fake_capture_is_over (event->capture))
    fake_capture_spoil (event->capture, CUDA_SUCCESS);
  return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult
cuEventQuery (CUevent event)
{
  ENTER (cuEventQuery);
  if (event->capture != NULL)
    LEAVE (refuse_captured (event));
  REFUSE_IN_CAPTURE ();
  take_last_recording (event);
  if (event->mark != NULL && !mark_is_done (event->mark))
    go_on (find_mark (event->mark));
  if (event->device->failure != CUDA_SUCCESS)
    LEAVE (event->device->failure);
  LEAVE (event->mark != NULL && !mark_is_done (event->mark) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS);
}

CUresult
cuEventSynchronize (CUevent event)
{
  ENTER (cuEventSynchronize);
  if (event->capture != NULL)
    LEAVE (refuse_captured (event));
  REFUSE_IN_CAPTURE ();
  take_last_recording (event);
  LEAVE (wait_for (event->device, NULL, event->mark));
}

CUresult
cuEventElapsedTime (float *milliseconds, CUevent start, CUevent end)
{
  ENTER (cuEventElapsedTime);
  if ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING || start->device != end->device
      || start->mark == NULL || end->mark == NULL)
    LEAVE (CUDA_ERROR_INVALID_HANDLE);
  if (!start->mark->done || !end->mark->done)
    LEAVE (CUDA_ERROR_NOT_READY);
  *milliseconds = (end->mark->time_us - start->mark->time_us) / 1e3;
  LEAVE (CUDA_SUCCESS);
}

/* --- copies --- */

static CUresult
push_copy (CUstream stream, FakeOp *op, gsize n_bytes)
{
  FakeDevice *device = fake_current ();

  if (device == NULL)
    return CUDA_ERROR_INVALID_CONTEXT;
  stream = fake_stream_find (stream);
  if (stream == NULL)
    return CUDA_ERROR_INVALID_HANDLE;
  op->copy.n_bytes = n_bytes;
  return n_bytes > 0 ? fake_stream_push (stream, op) : CUDA_SUCCESS;
}

CUresult
cuMemcpyHtoDAsync (CUdeviceptr dst, const void *src, size_t n_bytes, CUstream stream)
{
  FakeOp op = { .kind = FAKE_COPY, .copy = { .to = dst, .from_host = src } };

  ENTER (cuMemcpyHtoDAsync);
  if (!fake_memory_is_pinned (src) && fake_current () != NULL && fake_stream_find (stream) != NULL
      && fake_stream_find (stream)->capture == NULL) /* a graph reads it when it is launched */
    op.copy.from_host = op.copy.staged = g_memdup2 (src, n_bytes);
  LEAVE (push_copy (stream, &op, n_bytes));
}

CUresult
cuMemcpyDtoHAsync (void *dst, CUdeviceptr src, size_t n_bytes, CUstream stream)
{
  FakeOp op = { .kind = FAKE_COPY, .copy = { .to_host = dst, .from = src } };

  CUresult result;

  ENTER (cuMemcpyDtoHAsync);
  result = push_copy (stream, &op, n_bytes);
  stream = fake_stream_find (stream);
  if (result == CUDA_SUCCESS && stream->capture == NULL
      && !fake_memory_is_pinned (dst)) /* returns when the copy is complete */
    result = wait_for (stream->device, stream, NULL);
  LEAVE (result);
}

CUresult
cuMemcpyDtoDAsync (CUdeviceptr dst, CUdeviceptr src, size_t n_bytes, CUstream stream)
{
  FakeOp op = { .kind = FAKE_COPY, .copy = { .to = dst, .from = src } };

  ENTER (cuMemcpyDtoDAsync);
  LEAVE (push_copy (stream, &op, n_bytes));
}

CUresult
cuMemcpyPeerAsync (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context,
                   size_t n_bytes, CUstream stream)
{
  FakeOp op = { .kind = FAKE_COPY, .copy = { .to = dst, .from = src, .peer = TRUE } };
  CUstream own;

  ENTER (cuMemcpyPeerAsync);
  if (dst_context == NULL || src_context == NULL
      || fake_memory_at (dst, n_bytes, dst_context) == NULL
      || fake_memory_at (src, n_bytes, src_context) == NULL)
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  own = fake_stream_find (stream);
  if (own != NULL
      && own->capture != NULL) /* the real driver captures only copies without contexts */
    LEAVE (fake_capture_spoil (own->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
  LEAVE (push_copy (stream, &op, n_bytes));
}

static CUresult
push_set (CUdeviceptr address, guint32 value, guint size, gsize n, CUstream stream)
{
  FakeOp op = { .kind = FAKE_SET, .set = { address, value, size, n } };

  if (fake_current () == NULL)
    return CUDA_ERROR_INVALID_CONTEXT;
  stream = fake_stream_find (stream);
  if (stream == NULL)
    return CUDA_ERROR_INVALID_HANDLE;
  return fake_stream_push (stream, &op);
}

CUresult
cuMemsetD8Async (CUdeviceptr address, unsigned char value, size_t n, CUstream stream)
{
  ENTER (cuMemsetD8Async);
  LEAVE (push_set (address, value, 1, n, stream));
}

CUresult
cuMemsetD32Async (CUdeviceptr address, unsigned int value, size_t n, CUstream stream)
{
  ENTER (cuMemsetD32Async);
  LEAVE (push_set (address, value, 4, n, stream));
}
