/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Random programs on several streams of two devices: they wait where they must, in one of the possible
 * ways, and drop tensors, events and streams at any time. Their results are those of the same program run
 * line by line, in whatever order the driver executes the work. The suite runs some hundreds;
 * GTORCH_FUZZ_RUNS=n runs more of them, and GTORCH_FUZZ_SEED=n others. */

#include "config.h"

#include <stdlib.h>

#include "cuda-test.h"

#define N_RUNS    200
#define N_ORDERS  3 /* orders of work tried for each program */
#define N_DEVICES 2
#define N_STREAMS 4 /* on each device */
#define N_SLOTS   7
#define N_STEPS   80

/* A use of a slot by a stream. */
typedef struct
{
  GTorchEvent *event;
  GTorchStream *stream; /* NULL: unknown, it may be freed */
  guint device;
} Mark;

typedef struct
{
  GTorchImpl *x;
  guint device;
  guint64 value;     /* the value of each element when everything is done */
  GPtrArray *writes; /* of Mark */
  GPtrArray *reads;  /* reads since the last write */
} Slot;

typedef struct
{
  GRand *rand;
  GTorchStream *streams[N_DEVICES][N_STREAMS];
  Slot slots[N_SLOTS];
  gint64 n; /* number of elements of a slot */
} Program;

static guint
draw (Program *self, guint n)
{
  return g_rand_int_range (self->rand, 0, n);
}

static void
mark_free (gpointer data)
{
  Mark *mark = data;

  g_clear_object (&mark->event);
  g_clear_object (&mark->stream);
  g_free (mark);
}

/* Uncached memory returns to the driver, which waits for the GPU: that would hang. */
static void
hold (gboolean is_held)
{
  fake_cuda_hold (is_held && gtorch_allocator_get_caching (gpu_allocator ()));
}

static GTorchStream *
new_stream (Program *self, guint device)
{
  GError *error = NULL;
  GTorchStream *stream = gtorch_stream_new (gpu (device), draw (self, 3) == 0 ? -1 : 0, &error);

  g_assert_no_error (error);
  gtorch_stream_set_auto_sync (stream, draw (self, 8) == 0);
  return stream;
}

/* --- waiting --- */

static void
on_done (GObject *object, GAsyncResult *result, gpointer data)
{
  GError *error = NULL;

  gtorch_event_synchronize_finish (GTORCH_EVENT (object), result, &error);
  g_assert_no_error (error);
  *(gboolean *) data = TRUE;
}

static void
wait_in_loop (GTorchEvent *event)
{
  g_autoptr (GMainContext) context = g_main_context_new ();
  gboolean done = FALSE;

  g_main_context_push_thread_default (context);
  gtorch_event_synchronize_async (event, NULL, on_done, &done);
  while (!done)
    g_main_context_iteration (context, TRUE);
  g_main_context_pop_thread_default (context);
}

/* The later work of the stream comes after the mark. */
static void
come_after (Program *self, GTorchStream *stream, const Mark *mark)
{
  GTorchDevice *device = gtorch_stream_get_device (stream);
  guint way = draw (self, 12);
  GError *error = NULL;
  gboolean result = TRUE;

  if (mark->stream == stream
      || (gtorch_stream_get_auto_sync (stream) && device == gpu (mark->device)))
    return;
  if (way >= 8)
    hold (FALSE); /* the program itself waits */
  if (way < 5)
    result = gtorch_stream_wait_event (stream, mark->event, &error);
  else if (way < 8)
    result = mark->stream != NULL ? gtorch_stream_wait_stream (stream, mark->stream, &error)
                                  : gtorch_event_wait (mark->event, stream, &error);
  else if (way == 8)
    result = gtorch_event_synchronize (mark->event, NULL, &error);
  else if (way == 9)
    result = mark->stream != NULL ? gtorch_stream_synchronize (mark->stream, NULL, &error)
                                  : gtorch_device_synchronize (gpu (mark->device), NULL, &error);
  else if (way == 10)
    wait_in_loop (mark->event);
  else
    while (!gtorch_event_query (mark->event))
      ;
  g_assert_no_error (error);
  g_assert_true (result);
}

static void
come_after_all (Program *self, GTorchStream *stream, Slot *slot, gboolean writes)
{
  guint i;

  for (i = 0; i < slot->writes->len; i++)
    come_after (self, stream, slot->writes->pdata[i]);
  for (i = 0; writes && i < slot->reads->len; i++)
    come_after (self, stream, slot->reads->pdata[i]);
}

static void
add_mark (Program *self, GPtrArray *marks, GTorchStream *stream)
{
  const GTorchEventFlags flags[] = { GTORCH_EVENT_NONE, GTORCH_EVENT_TIMING,
                                     GTORCH_EVENT_BLOCKING };
  Mark *mark = g_new0 (Mark, 1);
  GError *error = NULL;

  mark->event = gtorch_event_new (flags[draw (self, 3)]);
  if (draw (self, 4) == 0) /* only the last recording counts */
    gtorch_event_record (mark->event, self->streams[0][draw (self, N_STREAMS)], &error);
  g_assert_no_error (error);
  gtorch_event_record (mark->event, stream, &error);
  g_assert_no_error (error);
  if (draw (self, 2) == 0)
    mark->stream = g_object_ref (stream);
  mark->device = gtorch_stream_get_device (stream) == gpu (0) ? 0 : 1;
  g_ptr_array_add (marks, mark);
}

/* Does not change the marks: they may concern the previous tensor. */
static void
slot_set (Slot *slot, GTorchImpl *x, guint device, guint64 value)
{
  g_assert_nonnull (x);
  if (slot->x != NULL && slot->x != x)
    gtorch_impl_unref (slot->x); /* work on it may be pending */
  slot->x = x;
  slot->device = device;
  slot->value = value;
  g_ptr_array_set_size (slot->writes, 0);
  g_ptr_array_set_size (slot->reads, 0);
}

static void
assert_value (Program *self, GTorchImpl *host, guint64 value)
{
  GError *error = NULL;
  const gint64 *values;

  gtorch_impl_sync (host, &error);
  g_assert_no_error (error);
  values = gtorch_impl_data (host);
  g_assert_cmpint (values[0], ==, (gint64) value);
  g_assert_cmpint (values[self->n - 1], ==, (gint64) value);
}

/* --- steps --- */

static GTorchImpl *
full (Program *self, gint64 value, GTorchDevice *device)
{
  GError *error = NULL;
  GTorchImpl *x = gtorch_op_full_int (&self->n, 1, value, GTORCH_DTYPE_INT64, device, &error);

  g_assert_no_error (error);
  return x;
}

static void
make (Program *self, Slot *to, guint device, GTorchStream *stream)
{
  gint64 value = (gint64) draw (self, 2001) - 1000;

  slot_set (to, full (self, value, gpu (device)), device, value);
  add_mark (self, to->writes, stream);
}

static void
add (Program *self, Slot *to, Slot *a, Slot *b, GTorchStream *stream)
{
  const guint64 value = a->value + b->value;
  GError *error = NULL;
  GTorchImpl *x;

  come_after_all (self, stream, a, FALSE);
  come_after_all (self, stream, b, FALSE);
  x = gtorch_op_add (a->x, b->x, 1, &error);
  g_assert_no_error (error);
  add_mark (self, a->reads, stream);
  add_mark (self, b->reads, stream);
  slot_set (to, x, a->device, value);
  add_mark (self, to->writes, stream);
}

static void
change (Program *self, Slot *to, Slot *a, GTorchStream *stream)
{
  const guint64 value = a->value;
  GError *error = NULL;

  come_after_all (self, stream, to, TRUE);
  if (to->device == a->device && draw (self, 2) == 0)
    {
      come_after_all (self, stream, a, FALSE);
      gtorch_op_add_inplace (to->x, a->x, 1, &error);
      add_mark (self, a->reads, stream);
      slot_set (to, to->x, to->device, to->value + value);
    }
  else
    {
      gtorch_op_neg_inplace (to->x, &error);
      slot_set (to, to->x, to->device, -to->value);
    }
  g_assert_no_error (error);
  add_mark (self, to->writes, stream);
}

/* The current streams of both devices take part in the move. */
static void
move (Program *self, Slot *to, Slot *a, GTorchStream *stream)
{
  const guint device = 1 - a->device;
  GTorchStream *there = self->streams[device][draw (self, N_STREAMS)];
  g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (there);
  const guint64 value = a->value;
  GError *error = NULL;
  GTorchImpl *x;

  come_after_all (self, stream, a, FALSE);
  if (to->device == device && to != a && draw (self, 2) == 0)
    { /* into memory that is in use */
      come_after_all (self, there, to, TRUE);
      gtorch_op_copy_inplace (to->x, a->x, draw (self, 2), &error);
      x = to->x;
    }
  else
    x = gtorch_op_to_device (a->x, gpu (device), draw (self, 2), &error);
  g_assert_no_error (error);
  if (to != a)
    add_mark (self, a->reads, stream);
  slot_set (to, x, device, value);
  add_mark (self, to->writes, there);
}

static void
look (Program *self, Slot *a, GTorchStream *stream)
{
  g_autoptr (GTorchImpl) host = NULL;
  GError *error = NULL;

  hold (FALSE);
  come_after_all (self, stream, a, FALSE);
  host = gtorch_op_to_device (a->x, gtorch_device_cpu (), draw (self, 2), &error);
  g_assert_no_error (error);
  add_mark (self, a->reads, stream);
  assert_value (self, host, a->value);
}

/* Copies to the host and back through pinned memory, which is overwritten and dropped while it is being
 * read. */
static void
pass_through_host (Program *self, Slot *to, Slot *a, GTorchStream *stream)
{
  g_autoptr (GTorchImpl) plain = full (self, 1, gtorch_device_cpu ());
  g_autoptr (GTorchTensor) source = gtorch_tensor_wrap (gtorch_impl_ref (plain));
  g_autoptr (GTorchTensor) pinned = gtorch_tensor_pin_memory (source, NULL);
  g_autoptr (GTorchImpl) host = gtorch_impl_ref (gtorch_tensor_get_impl (pinned));
  const guint64 value = a->value;
  const guint device = a->device;
  GTorchImpl *x;
  GError *error = NULL;

  come_after_all (self, stream, a, FALSE);
  gtorch_op_copy_inplace (host, a->x, TRUE, &error);
  g_assert_no_error (error);
  add_mark (self, a->reads, stream);
  x = full (self, 0, gpu (device));
  gtorch_op_copy_inplace (x, host, TRUE, &error);
  g_assert_no_error (error);
  if (draw (self, 2) == 0)
    {
      hold (FALSE); /* the host's own work waits for the copies */
      assert_value (self, host, value);
      gtorch_op_neg_inplace (host, &error);
      g_assert_no_error (error);
    }
  slot_set (to, x, device, value);
  add_mark (self, to->writes, stream);
}

/* Another library works on the stream. */
static void
copy_by_others (Program *self, Slot *to, Slot *a, GTorchStream *stream)
{
  GTorchDevice *device = gpu (a->device);
  const guint64 value = a->value;
  const guint where = a->device;
  GTorchImpl *x;
  GError *error = NULL;

  come_after_all (self, stream, a, FALSE);
  x = full (self, 0, device);
  gtorch_cuda_device_activate (GTORCH_CUDA_DEVICE (device), &error);
  g_assert_no_error (error);
  g_assert_cmpint (gtorch_cuda.cuMemcpyDtoDAsync ((CUdeviceptr) (guintptr) gtorch_impl_data (x),
                                                  (CUdeviceptr) (guintptr) gtorch_impl_data (a->x),
                                                  self->n * sizeof (gint64),
                                                  gtorch_stream_get_handle (stream)),
                   ==, CUDA_SUCCESS);
  GTORCH_DEVICE_GET_CLASS (device)->record_stream (device, a->x->storage, stream, &error);
  g_assert_no_error (error);
  add_mark (self, a->reads, stream);
  slot_set (to, x, where, value);
  add_mark (self, to->writes, stream);
}

static gpointer
step (gpointer data)
{
  Program *self = data;
  Slot *to = &self->slots[draw (self, N_SLOTS)], *a = &self->slots[draw (self, N_SLOTS)];
  Slot *b = &self->slots[draw (self, N_SLOTS)];
  guint kind = draw (self, 20), device = kind == 0 ? draw (self, N_DEVICES) : a->device;
  GTorchStream **place, *stream;
  GTorchStreamGuard *guard;

  if (kind > 2 && kind < 8)
    device = to->device;
  place = &self->streams[device][draw (self, N_STREAMS)];
  stream = *place;
  guard = gtorch_stream_guard_new (stream);
  if (kind == 0)
    make (self, to, device, stream);
  else if (kind <= 2 && a->device == b->device)
    add (self, to, a, b, stream);
  else if (kind < 8)
    {
      if (kind > 2)
        change (self, to, a, stream);
    }
  else if (kind < 11)
    move (self, to, a, stream);
  else if (kind == 11)
    look (self, a, stream);
  else if (kind < 14)
    pass_through_host (self, to, a, stream);
  else if (kind < 16)
    copy_by_others (self, to, a, stream);
  gtorch_stream_guard_unref (guard);
  if (kind == 16 && place != &self->streams[device][0]) /* with pending work */
    {
      g_object_unref (stream);
      *place = new_stream (self, device);
    }
  else if (kind == 17)
    hold (TRUE);
  else if (kind == 18)
    hold (FALSE);
  return NULL;
}

static void
run_program (guint32 seed, guint32 order)
{
  Program self = { g_rand_new_with_seed (seed), { { NULL } }, { { NULL } }, 0 };
  guint i, j;

  fake_cuda_set_seed (order);
  self.n = 1 + draw (&self, 700);
  for (i = 0; i < N_DEVICES; i++)
    for (j = 0; j < N_STREAMS; j++)
      self.streams[i][j] = j == 0 ? g_object_ref (gtorch_device_get_default_stream (gpu (i)))
                                  : new_stream (&self, i);
  for (i = 0; i < N_SLOTS; i++)
    {
      GTorchStream *stream = self.streams[i % 2][draw (&self, N_STREAMS)];
      g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);

      self.slots[i].writes = g_ptr_array_new_with_free_func (mark_free);
      self.slots[i].reads = g_ptr_array_new_with_free_func (mark_free);
      make (&self, &self.slots[i], i % 2, stream);
    }
  for (i = 0; i < N_STEPS; i++)
    if (draw (&self, 8) == 0) /* each thread has its own cache */
      g_thread_join (g_thread_new ("step", step, &self));
    else
      step (&self);
  hold (FALSE);
  for (i = 0; i < N_SLOTS; i++)
    {
      Slot *slot = &self.slots[i];
      GTorchStream *stream = self.streams[slot->device][draw (&self, N_STREAMS)];
      g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);

      look (&self, slot, stream);
    }
  for (i = 0; i < N_SLOTS; i++)
    {
      gtorch_impl_unref (self.slots[i].x);
      g_ptr_array_unref (self.slots[i].writes);
      g_ptr_array_unref (self.slots[i].reads);
    }
  for (i = 0; i < N_DEVICES; i++)
    for (j = 0; j < N_STREAMS; j++)
      g_object_unref (self.streams[i][j]);
  g_rand_free (self.rand);
}

static void
results_do_not_depend_on_the_order_of_work (void)
{
  const gchar *runs = g_getenv ("GTORCH_FUZZ_RUNS"), *seed = g_getenv ("GTORCH_FUZZ_SEED");
  guint n = runs != NULL ? atoi (runs) : N_RUNS, first = seed != NULL ? atoi (seed) : 1, i, order;

  for (i = first; i < first + n; i++)
    {
      g_test_message ("program %u", i);
      for (order = 0; order < N_ORDERS; order++)
        run_program (i, N_ORDERS * i + order);
    }
  for (i = 0; i < N_DEVICES; i++)
    {
      g_assert_true (gtorch_device_synchronize (gpu (i), NULL, NULL));
      g_assert_cmpuint (gtorch_device_get_memory_allocated (gpu (i)), ==, 0);
    }
}

gint
main (gint argc, gchar **argv)
{
  gint result;

  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorchCudaStreamPrograms/"
                   "results_do_not_depend_on_the_order_of_work",
                   results_do_not_depend_on_the_order_of_work);
  result = g_test_run ();
  assert_no_misuse ();
  return result;
}
