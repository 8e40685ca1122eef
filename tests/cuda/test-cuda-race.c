/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* GTORCH_CHECK=streams: it reports races, and does not report correct programs. Tested on the CPU's
 * streams and on a GPU's, with ON_A_REAL_GPU on those of a real one. */

#include "config.h"

#include <dlfcn.h>
#include <gtorch/base/gtorch-check-private.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "race-test.h"

#ifdef ON_A_REAL_GPU
#define HAS_RANDOM_NUMBERS TRUE
#else
#define HAS_RANDOM_NUMBERS (device->type == GTORCH_DEVICE_TYPE_CPU)
#endif

static GTorchDevice *device; /* the device under test */

static void
expect (guint n)
{
  if (n_warnings != n)
    g_test_message ("%u warnings; the last: %s", n_warnings, warning);
  g_assert_cmpuint (n_warnings, ==, n);
  n_warnings = 0;
}

typedef struct
{
  GTorchStream *a, *b;
  GTorchImpl *x; /* [8, 10], written on a */
} Case;

static const gint64 shape[] = { 8, 10 };

static void
on (GTorchStream *stream)
{
  gtorch_stream_set_current (stream);
}

static GTorchImpl *
must (GTorchImpl *impl)
{
  g_assert_nonnull (impl);
  return impl;
}

static void
set_up (Case *c)
{
  gtorch_checks_set (GTORCH_CHECK_STREAMS);
  c->a = gtorch_stream_new (device, 0, NULL);
  c->b = gtorch_stream_new (device, 0, NULL);
  on (c->a);
  c->x = must (gtorch_op_full (shape, 2, 3, GTORCH_DTYPE_FLOAT32, device, NULL));
  expect (0);
}

static void
tear_down (Case *c)
{
  on (gtorch_device_get_default_stream (device));
  g_assert_true (gtorch_device_synchronize (device, NULL, NULL));
  gtorch_impl_unref (c->x);
  g_object_unref (c->a);
  g_object_unref (c->b);
  gtorch_checks_set (0);
}

static void
read_on (GTorchStream *stream, GTorchImpl *x)
{
  g_autoptr (GTorchImpl) y = NULL;

  on (stream);
  y = must (gtorch_op_neg (x, NULL));
}

static void
write_on (GTorchStream *stream, GTorchImpl *x)
{
  on (stream);
  g_assert_true (gtorch_op_fill_inplace (x, 1, NULL));
}

/* --- reported races --- */

/* The sum may start before the numbers are drawn. */
static void
reading_what_another_stream_writes (void)
{
  const gint64 square[] = { 100, 100 };
  g_autoptr (GTorchImpl) a = NULL;
  g_autoptr (GTorchImpl) b = NULL;
  g_autofree gchar *first = NULL;
  g_autofree gchar *second = NULL;
  Case c;

  set_up (&c);
  on (c.a);
  a = must (gtorch_op_empty (square, 2, GTORCH_DTYPE_FLOAT32, device, NULL));
  if (HAS_RANDOM_NUMBERS)
    g_assert_true (gtorch_op_normal_inplace (a, 0, 1, NULL, NULL));
  else
    g_assert_true (gtorch_op_fill_inplace (a, 1, NULL));
  on (c.b);
  expect (0);
  b = must (gtorch_op_sum (a, NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL));
  g_test_message ("%s", warning);
  first =
      g_strdup_printf ("%s on stream %p of %s, which writes to it",
                       HAS_RANDOM_NUMBERS ? "normal_" : "fill_", c.a, gtorch_device_name (device));
  second =
      g_strdup_printf ("sum on stream %p of %s, which reads it", c.b, gtorch_device_name (device));
  g_assert_nonnull (strstr (warning, first));
  g_assert_nonnull (strstr (warning, second));
  g_assert_nonnull (strstr (warning, "[100, 100]"));
  g_assert_nonnull (strstr (warning, "called by "));
  expect (1);
  read_on (c.b, a); /* reported only once */
  expect (0);
  tear_down (&c);
}

static void
writing_what_another_stream_reads_or_writes (void)
{
  Case c;

  set_up (&c);
  write_on (c.b, c.x);
  expect (1);
  g_assert_true (gtorch_stream_wait_stream (c.a, c.b, NULL));
  read_on (c.a, c.x);
  expect (0);
  write_on (c.b, c.x);
  g_assert_nonnull (strstr (warning, "neg on "));
  expect (1);
  tear_down (&c);
}

/* A tensor is created like one whose values another stream writes: only its shape is read. */
static void
zeros_like_reads_no_elements (void)
{
  g_autoptr (GPtrArray) made = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  Case c;

  set_up (&c);
  on (c.b);
  g_ptr_array_add (made, must (gtorch_op_empty_like (c.x, GTORCH_DTYPE_NONE, NULL)));
  g_ptr_array_add (made, must (gtorch_op_zeros_like (c.x, GTORCH_DTYPE_NONE, NULL)));
  g_ptr_array_add (made, must (gtorch_op_full_like (c.x, 2, GTORCH_DTYPE_NONE, NULL)));
  g_ptr_array_add (made, must (gtorch_op_new_empty (c.x, shape, 2, GTORCH_DTYPE_NONE, NULL)));
  g_ptr_array_add (made, must (gtorch_op_new_zeros (c.x, shape, 2, GTORCH_DTYPE_NONE, NULL)));
  g_ptr_array_add (made, must (gtorch_op_new_full (c.x, shape, 2, 3, GTORCH_DTYPE_NONE, NULL)));
  g_ptr_array_add (made, must (gtorch_op_fill (c.x, 4, NULL)));
  g_ptr_array_add (made, must (gtorch_op_zero (c.x, NULL)));
  if (HAS_RANDOM_NUMBERS)
    g_ptr_array_add (made, must (gtorch_op_uniform (c.x, 0, 1, NULL, NULL)));
  expect (0);
  read_on (c.a, made->pdata[1]); /* but the new tensor is written */
  expect (1);
  tear_down (&c);
}

/* a waits for b, instead of b for a */
static void
waiting_the_wrong_way_round (void)
{
  Case c;

  set_up (&c);
  g_assert_true (gtorch_stream_wait_stream (c.a, c.b, NULL));
  read_on (c.b, c.x);
  expect (1);
  tear_down (&c);
}

static void
an_event_recorded_too_early (void)
{
  g_autoptr (GTorchEvent) event = NULL;
  Case c;

  set_up (&c);
  event = gtorch_stream_record_event (c.a, NULL);
  write_on (c.a, c.x);
  g_assert_true (gtorch_stream_wait_event (c.b, event, NULL));
  read_on (c.b, c.x);
  expect (1);
  tear_down (&c);
}

static void
fatal_checks_make_it_an_error (void)
{
  g_autoptr (GError) error = NULL;
  Case c;

  set_up (&c);
  gtorch_checks_set (gtorch_checks | GTORCH_CHECK_STREAMS_FATAL);
  on (c.b);
  g_assert_null (gtorch_op_neg (c.x, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, "full on "));
  g_clear_error (&error);
  g_assert_null (gtorch_op_neg (c.x, &error)); /* and it is no more correct the second time */
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_true (gtorch_stream_wait_stream (c.b, c.a, NULL));
  read_on (c.b, c.x);
  expect (0);
  tear_down (&c);
}

static void
a_read_on_the_host_of_another_stream (void)
{
  g_autoptr (GTorchImpl) host = NULL;
  Case c;

  if (device->type == GTORCH_DEVICE_TYPE_CPU)
    return;
  set_up (&c);
  on (c.b);
  host = must (gtorch_op_to_device (c.x, gtorch_device_cpu (), FALSE, NULL));
  g_assert_nonnull (strstr (warning, "copy on "));
  expect (1);
  tear_down (&c);
}

static struct
{
  Case *c;
  GThread *thread;
  gint may_begin, id;
} loading;

static gpointer
read_meanwhile (gpointer data)
{
  while (!g_atomic_int_get (&loading.may_begin))
    g_thread_yield ();
  g_atomic_int_set (&loading.id, syscall (SYS_gettid));
  read_on (loading.c->b, loading.c->x);
  on (gtorch_device_get_default_stream (device));
  return NULL;
}

static gboolean
is_asleep (gint id)
{
  g_autofree gchar *path = g_strdup_printf ("/proc/self/task/%d/stat", id);
  g_autofree gchar *text = NULL;

  return !g_file_get_contents (path, &text, NULL, NULL) || strstr (text, ") S ") != NULL;
}

/* Runs with the loader's lock, which the other thread needs to find the names of its call site. */
static void
on_load (void)
{
  gint64 end = g_get_monotonic_time () + 2 * G_USEC_PER_SEC;

  g_atomic_int_set (&loading.may_begin, TRUE);
  while (g_get_monotonic_time () < end
         && (g_atomic_int_get (&loading.id) == 0 || !is_asleep (g_atomic_int_get (&loading.id))))
    g_thread_yield ();
  read_on (loading.c->a, loading.c->x);
}

/* The other thread works with tensors meanwhile, as constructors and destructors of a library may do. */
static void
while_a_library_is_loaded (void)
{
  g_autofree gchar *address = g_strdup_printf ("%" G_GINTPTR_MODIFIER "x", (gsize) on_load);
  const gchar *path = g_getenv ("GTORCH_TEST_PLUGGABLE");
  gpointer library;
  Case c;

  if (path == NULL)
    {
      g_test_skip ("no library to load");
      return;
    }
  set_up (&c);
  memset (&loading, 0, sizeof loading);
  loading.c = &c;
  loading.thread = g_thread_new ("reads", read_meanwhile, NULL);
  g_setenv ("GTORCH_TEST_ON_LOAD", address, TRUE);
  library = dlopen (path, RTLD_NOW | RTLD_LOCAL);
  g_unsetenv ("GTORCH_TEST_ON_LOAD");
  g_assert_nonnull (library);
  g_thread_join (loading.thread);
  dlclose (library);
  expect (1);
  tear_down (&c);
}

#define MANY 300

/* The checker distinguishes a limited number of streams. */
static void
too_many_streams_are_reported (void)
{
  GTorchStream *streams[MANY];
  g_autoptr (GTorchImpl) x = NULL;
  guint i;

  if (!g_test_subprocess ())
    {
      g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
      g_test_trap_assert_passed ();
      return;
    }
  gtorch_checks_set (GTORCH_CHECK_STREAMS);
  x = must (gtorch_op_full (shape, 2, 3, GTORCH_DTYPE_FLOAT32, gtorch_device_cpu (), NULL));
  for (i = 0; i < MANY; i++)
    {
      streams[i] = gtorch_stream_new (gtorch_device_cpu (), 0, NULL);
      g_assert_nonnull (streams[i]);
      read_on (streams[i], x);
    }
  g_assert_nonnull (warning);
  g_assert_nonnull (strstr (warning, "streams: more than 256 "));
  expect (1);
  device = gtorch_device_cpu ();
  on (gtorch_device_get_default_stream (device));
  g_assert_true (gtorch_device_synchronize (device, NULL, NULL));
  for (i = 0; i < MANY; i++)
    g_object_unref (streams[i]);
  gtorch_checks_set (0);
}

/* --- no races --- */

static gboolean
set_flag (gpointer data)
{
  *(gboolean *) data = TRUE;
  return G_SOURCE_REMOVE;
}

static void
every_way_of_waiting_counts (void)
{
  guint way;

  for (way = 0; way < 11; way++)
    {
      g_autoptr (GTorchEvent) event = NULL;
      g_autoptr (GTorchStream) third = NULL;
      gboolean is_done = FALSE;
      Case c;

      set_up (&c);
      third = gtorch_stream_new (device, 0, NULL);
      event = gtorch_stream_record_event (c.a, NULL);
      if (way == 0)
        gtorch_stream_wait_stream (c.b, c.a, NULL);
      else if (way == 1)
        gtorch_stream_wait_event (c.b, event, NULL);
      else if (way == 2)
        gtorch_event_wait (event, c.b, NULL);
      else if (way == 3)
        gtorch_stream_synchronize (c.a, NULL, NULL);
      else if (way == 4)
        gtorch_event_synchronize (event, NULL, NULL);
      else if (way == 5)
        gtorch_device_synchronize (device, NULL, NULL);
      else if (way == 6)
        while (!gtorch_event_query (event))
          ;
      else if (way == 7)
        while (!gtorch_stream_is_idle (c.a))
          ;
      else if (way == 8) /* through another stream */
        {
          gtorch_stream_wait_stream (third, c.a, NULL);
          gtorch_stream_wait_stream (c.b, third, NULL);
        }
      else if (way == 9)
        {
          GSource *source = gtorch_event_create_source (event, NULL);

          g_source_set_callback (source, set_flag, &is_done, NULL);
          g_source_attach (source, NULL);
          while (!is_done)
            g_main_context_iteration (NULL, TRUE);
          g_source_unref (source);
        }
      else
        {
          gtorch_stream_wait_stream (third, c.a, NULL);
          gtorch_stream_synchronize (third, NULL, NULL);
        }
      read_on (c.b, c.x);
      write_on (c.b, c.x);
      if (n_warnings > 0)
        g_test_message ("way %u", way);
      expect (0);
      tear_down (&c);
    }
}

static void
concurrent_reads_are_no_race (void)
{
  Case c;

  set_up (&c);
  gtorch_stream_synchronize (c.a, NULL, NULL);
  read_on (c.a, c.x);
  read_on (c.b, c.x);
  expect (0);
  tear_down (&c);
}

static void
disjoint_views_are_no_race (void)
{
  GTorchImpl *views[5];
  Case c;

  set_up (&c);
  gtorch_stream_synchronize (c.a, NULL, NULL);
  views[0] = must (gtorch_op_narrow (c.x, 0, 0, 4, NULL)); /* rows */
  views[1] = must (gtorch_op_narrow (c.x, 0, 4, 4, NULL));
  views[2] = must (gtorch_op_narrow (c.x, 1, 0, 5, NULL)); /* columns */
  views[3] = must (gtorch_op_narrow (c.x, 1, 5, 5, NULL));
  views[4] = must (gtorch_op_narrow (c.x, 1, 4, 3, NULL)); /* overlaps both halves */
  write_on (c.a, views[0]);
  write_on (c.b, views[1]);
  expect (0);
  gtorch_device_synchronize (device, NULL, NULL);
  write_on (c.a, views[2]);
  write_on (c.b, views[3]);
  expect (0);
  write_on (c.a, views[4]);
  expect (1);
  gtorch_impl_clear (views, G_N_ELEMENTS (views));
  tear_down (&c);
}

/* Both streams write at once: is it a race? The views alias x. */
static void
expect_of_views (Case *c, GTorchImpl *first, GTorchImpl *second, gboolean is_race)
{
  gtorch_device_synchronize (device, NULL, NULL);
  write_on (c->a, first);
  write_on (c->b, second);
  expect (is_race);
  gtorch_device_synchronize (device, NULL, NULL);
  write_on (c->b, second);
  write_on (c->a, first);
  expect (is_race);
}

/* Rows, columns and parts of them, where the memory of one lies between the elements of the other. */
static void
parts_of_other_shapes (void)
{
  GTorchImpl *views[7];
  Case c;

  set_up (&c);
  views[0] = must (gtorch_op_narrow (c.x, 1, 0, 1, NULL));      /* the first column */
  views[1] = must (gtorch_op_narrow (c.x, 1, 1, 9, NULL));      /* the others */
  views[2] = must (gtorch_op_narrow (c.x, 0, 3, 1, NULL));      /* a row */
  views[3] = must (gtorch_op_narrow (views[2], 1, 1, 5, NULL)); /* a part of the row */
  views[4] = must (gtorch_op_narrow (c.x, 0, 3, 2, NULL));      /* two rows */
  views[5] = must (gtorch_op_narrow (views[0], 0, 0, 3, NULL)); /* overlaps them */
  views[6] = must (gtorch_op_narrow (views[0], 0, 3, 5, NULL)); /* does not */
  expect_of_views (&c, views[0], views[1], FALSE);
  expect_of_views (&c, views[0], views[3], FALSE);
  expect_of_views (&c, views[5], views[4], FALSE);
  expect_of_views (&c, views[5], views[6], FALSE);
  expect_of_views (&c, views[0], views[2], TRUE);
  expect_of_views (&c, views[1], views[3], TRUE);
  expect_of_views (&c, views[6], views[4], TRUE);
  expect_of_views (&c, views[1], views[4], TRUE);
  gtorch_impl_clear (views, G_N_ELEMENTS (views));
  tear_down (&c);
}

/* The allocator is responsible for the safe reuse of memory. */
static void
reused_memory_is_no_race (void)
{
  Case c;
  guint i;

  set_up (&c);
  for (i = 0; i < 50; i++)
    {
      g_autoptr (GTorchImpl) x = NULL;
      g_autoptr (GTorchImpl) y = NULL;

      on (i % 2 ? c.a : c.b);
      x = must (gtorch_op_full (shape, 2, 3, GTORCH_DTYPE_FLOAT32, device, NULL));
      y = must (gtorch_op_neg (x, NULL));
    }
  expect (0);
  tear_down (&c);
}

/* --- gradients --- */

/* A use of gradients on another stream than that of backward () needs a wait, or it is a race. */
static void
backward_is_one_operation_on_the_current_stream (void)
{
  guint waits;

  for (waits = 0; waits < 2; waits++)
    {
      g_autoptr (GTorchTensor) x = NULL;
      g_autoptr (GTorchTensor) y = NULL;
      g_autoptr (GTorchTensor) z = NULL;
      g_autoptr (GTorchTensor) loss = NULL;
      g_autoptr (GTorchTensor) grad = NULL;
      g_autoptr (GTorchTensor) used = NULL;
      g_autoptr (GError) error = NULL;
      Case c;

      set_up (&c);
      on (c.a);
      x = gtorch_ones (shape, 2, GTORCH_DTYPE_FLOAT32, device, &error);
      g_assert_no_error (error);
      gtorch_tensor_set_requires_grad (x, TRUE, NULL);
      y = gtorch_tensor_mul (x, x, NULL);
      gtorch_stream_wait_stream (c.b, c.a, NULL);
      on (c.b); /* each step of backward runs on the stream of its forward */
      z = gtorch_tensor_exp (y, NULL);
      loss = gtorch_tensor_sum (z, NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL);
      g_assert_true (gtorch_tensor_backward (loss, NULL, FALSE, FALSE, &error));
      expect (0);
      grad = gtorch_tensor_get_grad (x);
      used = gtorch_tensor_neg (grad, NULL);
      expect (0); /* on the same stream */
      g_clear_object (&used);
      if (waits)
        gtorch_stream_wait_stream (c.a, c.b, NULL);
      on (c.a);
      used = gtorch_tensor_neg (grad, NULL);
      g_test_message ("%u: %s", n_warnings, warning);
      /* The gradient of x was computed on the stream of its first use: that stream is ordered with
       * itself. */
      expect (0);
      g_clear_object (&used);
      on (gtorch_device_get_default_stream (device));
      if (waits)
        gtorch_stream_wait_stream (gtorch_device_get_default_stream (device), c.b, NULL);
      used = gtorch_tensor_neg (grad, NULL);
      expect (waits || device->type == GTORCH_DEVICE_TYPE_CPU ? 0 : 1);
      tear_down (&c);
    }
}

static void
an_initial_gradient_of_another_stream (void)
{
  guint waits;

  for (waits = 0; waits < 2; waits++)
    {
      g_autoptr (GTorchTensor) x = NULL;
      g_autoptr (GTorchTensor) y = NULL;
      g_autoptr (GTorchTensor) initial = NULL;
      Case c;

      set_up (&c);
      on (c.b);
      x = gtorch_ones (shape, 2, GTORCH_DTYPE_FLOAT32, device, NULL);
      gtorch_tensor_set_requires_grad (x, TRUE, NULL);
      y = gtorch_tensor_mul (x, x, NULL);
      on (c.a);
      initial = gtorch_ones (shape, 2, GTORCH_DTYPE_FLOAT32, device, NULL);
      if (waits)
        gtorch_stream_wait_stream (c.b, c.a, NULL);
      on (c.b);
      g_assert_true (gtorch_tensor_backward (y, initial, FALSE, FALSE, NULL));
      if (waits)
        expect (0);
      else
        {
          g_assert_cmpuint (n_warnings, >=, 1);
          n_warnings = 0;
        }
      tear_down (&c);
    }
}

#define TEST(name)                                                \
  do                                                              \
    {                                                             \
      g_test_add_func ("/GTorchRace/cpu/" #name, name##_on_cpu);  \
      g_test_add_func ("/GTorchRace/cuda/" #name, name##_on_gpu); \
    }                                                             \
  while (0)

RACING (reading_what_another_stream_writes)
RACING (writing_what_another_stream_reads_or_writes)
RACING (zeros_like_reads_no_elements)
RACING (waiting_the_wrong_way_round)
RACING (an_event_recorded_too_early)
ON_BOTH (fatal_checks_make_it_an_error)
RACING (while_a_library_is_loaded)
ON_BOTH (a_read_on_the_host_of_another_stream)
ON_BOTH (every_way_of_waiting_counts)
ON_BOTH (concurrent_reads_are_no_race)
RACING (disjoint_views_are_no_race)
RACING (parts_of_other_shapes)
ON_BOTH (reused_memory_is_no_race)
ON_BOTH (backward_is_one_operation_on_the_current_stream)
RACING (an_initial_gradient_of_another_stream)

gint
main (gint argc, gchar **argv)
{
  gint result;

  if (skips_without_gpu ())
    return 0;
  g_test_init (&argc, &argv, NULL);
  count_warnings ();
  TEST (reading_what_another_stream_writes);
  TEST (writing_what_another_stream_reads_or_writes);
  TEST (zeros_like_reads_no_elements);
  TEST (waiting_the_wrong_way_round);
  TEST (an_event_recorded_too_early);
  TEST (fatal_checks_make_it_an_error);
  TEST (while_a_library_is_loaded);
  TEST (a_read_on_the_host_of_another_stream);
  g_test_add_func ("/GTorchRace/too_many_streams_are_reported", too_many_streams_are_reported);
  TEST (every_way_of_waiting_counts);
  TEST (concurrent_reads_are_no_race);
  TEST (disjoint_views_are_no_race);
  TEST (parts_of_other_shapes);
  TEST (reused_memory_is_no_race);
  TEST (backward_is_one_operation_on_the_current_stream);
  TEST (an_initial_gradient_of_another_stream);
  result = g_test_run ();
#ifndef ON_A_REAL_GPU
  assert_no_misuse ();
#endif
  g_free (warning);
  return result;
}
