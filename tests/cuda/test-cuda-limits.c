/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Limits of memory, the callbacks when they are reached, and configuration. The devices have 256 MiB. */

#include "config.h"

#include <gtorch/memory/gtorch-allocator-private.h>

#include "cuda-test.h"

static GTorchAllocator *
allocator (guint index)
{
  return gtorch_device_get_allocator (gpu (index));
}

static GTorchImpl *
bytes_on (guint index, gint64 n_bytes, GError **error)
{
  return gtorch_impl_new (gpu (index), GTORCH_DTYPE_UINT8, &n_bytes, 1, error);
}

static void
a_fraction_is_not_exceeded (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchImpl) x = NULL;

  gtorch_allocator_trim (allocator (0));
  g_assert_true (gtorch_allocator_set_memory_fraction (allocator (0), 0.5, &error));
  x = bytes (100 * MIB);
  g_assert_null (bytes_on (0, 64 * MIB, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
  g_assert_nonnull (strstr (error->message, "; this process may reserve 128.0"));
  g_clear_error (&error);
  /* with a page of 32 MiB this would be too much if it were kept separately */
  gtorch_impl_unref (bytes (28 * MIB - 4 * MIB));
  gtorch_allocator_set_memory_fraction (allocator (0), 1, NULL);
  gtorch_impl_unref (bytes (64 * MIB));
  g_assert_cmpint (allocator (0)->promised, ==, 0);
}

static void
excess_free_memory_is_returned_before_more_is_taken (void)
{
  gint64 freed;

  gtorch_allocator_trim (allocator (0));
  gtorch_allocator_set_gc_threshold (allocator (0), 0.5, NULL);
  gtorch_impl_unref (bytes (100 * MIB));
  freed = gpu_stat (0, "num_device_free");
  gtorch_impl_unref (bytes (110 * MIB));
  g_assert_cmpint (gpu_stat (0, "num_device_free"), ==, freed + 1);
  g_assert_cmpint (gpu_stat (0, "reserved_bytes.all.current"), ==, 110 * MIB);
  gtorch_allocator_set_gc_threshold (allocator (0), 0, NULL);
}

static void
without_a_cache_all_comes_from_the_driver (void)
{
  gint64 n;
  GTorchImpl *x, *kept = bytes (100);

  g_assert_true (gtorch_allocator_set_caching (allocator (0), FALSE, NULL));
  n = gpu_stat (0, "num_device_alloc");
  x = bytes (1000);
  g_assert_cmpint (gpu_stat (0, "num_device_alloc"), ==, n + 1);
  gtorch_op_fill_inplace (x, 3, NULL);
  gtorch_impl_unref (x);
  x = bytes (3 * MIB);
  gtorch_impl_unref (x);
  g_assert_cmpint (gpu_stat (0, "num_device_alloc"), ==, n + 2);
  gtorch_impl_unref (kept);
  gtorch_allocator_trim (allocator (0));
  g_assert_cmpint (gpu_stat (0, "reserved_bytes.all.current"), ==, 0);
  g_assert_cmpint (gpu_stat (0, "allocation.all.current"), ==, 0);
  g_assert_true (gtorch_allocator_set_caching (allocator (0), TRUE, NULL));
}

/* Runs before the second device has allocated; later it cannot be set. */
static void
segments_have_the_sizes_that_pytorch_takes (void)
{
  static const struct
  {
    gint64 n_bytes, segment, block;
  } cases[] = {
    { 1, 2 * MIB, 512 },
    { MIB, 2 * MIB, MIB },
    { MIB + 1, 20 * MIB, MIB + 512 },
    { 10 * MIB - 512, 20 * MIB, 10 * MIB - 512 },
    { 10 * MIB, 10 * MIB, 10 * MIB },
    { 11 * MIB + 1, 12 * MIB, 12 * MIB }, /* the rest is too small to be split off */
    { 63 * MIB, 64 * MIB, 64 * MIB },
  };
  g_autoptr (GError) error = NULL;
  g_autofree gchar *text = NULL;
  guint i;

  g_assert_true (gtorch_allocator_configure (allocator (1), "backend:segments", &error));
  for (i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      GTorchImpl *x = bytes_on (1, cases[i].n_bytes, &error);

      g_assert_no_error (error);
      g_assert_cmpint (gpu_stat (1, "reserved_bytes.all.current"), ==, cases[i].segment);
      g_assert_cmpint (gpu_stat (1, "allocated_bytes.all.current"), ==, cases[i].block);
      gtorch_impl_unref (x);
      gtorch_allocator_trim (allocator (1));
      g_assert_cmpint (gpu_stat (1, "reserved_bytes.all.current"), ==, 0);
    }
  text = gtorch_allocator_get_configuration (allocator (1));
  g_assert_cmpstr (text, ==, "backend:segments");
  g_assert_false (gtorch_allocator_configure (allocator (1), "backend:native", &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "allocator: the backend of cuda:1 cannot be changed after it has allocated");
}

static void
large_blocks_are_not_split (void)
{
  g_autoptr (GError) error = NULL;
  GTorchImpl *x, *y, *z;

  gtorch_allocator_trim (allocator (1));
  g_assert_true (gtorch_allocator_configure (allocator (1), "max_split_size_mb:32", &error));
  x = bytes_on (1, 64 * MIB, &error);
  g_assert_cmpint (gpu_stat (1, "oversize_allocations.current"), ==, 1);
  g_assert_cmpint (gpu_stat (1, "oversize_segments.current"), ==, 1);
  gtorch_impl_unref (x);
  y = bytes_on (1, 12 * MIB, &error); /* does not get a part of it */
  g_assert_cmpint (gpu_stat (1, "reserved_bytes.all.current"), ==, 76 * MIB);
  z = bytes_on (1, 50 * MIB, &error); /* gets it as a whole */
  g_assert_cmpint (gpu_stat (1, "reserved_bytes.all.current"), ==, 76 * MIB);
  g_assert_cmpint (gpu_stat (1, "allocated_bytes.all.current"), ==, 76 * MIB);
  gtorch_impl_unref (z);
  z = bytes_on (1, 40 * MIB, &error); /* would waste more than 20 MiB */
  g_assert_cmpint (gpu_stat (1, "reserved_bytes.all.current"), ==, 116 * MIB);
  gtorch_impl_unref (y);
  gtorch_impl_unref (z);
  g_assert_no_error (error);
  gtorch_allocator_set_max_split_size (allocator (1), G_MAXUINT64, NULL);
  gtorch_allocator_trim (allocator (1));
  g_assert_cmpint (gpu_stat (1, "oversize_segments.current"), ==, 0);
}

/* --- signals --- */

static GPtrArray *order;
static GTorchImpl *victim;

static void
on_pressure (GTorchAllocator *self, guint64 n_bytes, gpointer data)
{
  g_assert_cmpuint (n_bytes, ==, 150 * MIB);
  g_assert_true (g_thread_self () == data);
  g_ptr_array_add (order, (gpointer) "pressure");
}

static gboolean
on_oom (GTorchAllocator *self, guint64 n_bytes, gpointer data)
{
  g_assert_true (g_thread_self () == data);
  g_ptr_array_add (order, (gpointer) "oom");
  if (victim == NULL || order->len < 3)
    return victim != NULL;
  g_clear_pointer (&victim, gtorch_impl_unref);
  return TRUE;
}

static void
the_program_is_asked_twice_and_may_ask_again (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchImpl) x = NULL;
  gint64 retries, ooms;
  gulong ids[2];

  gtorch_allocator_trim (allocator (0));
  order = g_ptr_array_new ();
  victim = bytes (180 * MIB);
  ids[0] = g_signal_connect (allocator (0), "memory-pressure", G_CALLBACK (on_pressure),
                             g_thread_self ());
  ids[1] = g_signal_connect (allocator (0), "out-of-memory", G_CALLBACK (on_oom), g_thread_self ());
  retries = gpu_stat (0, "num_alloc_retries");
  ooms = gpu_stat (0, "num_ooms");
  x = bytes (150 * MIB);
  g_assert_cmpuint (order->len, ==, 3); /* pressure, without success, with success */
  g_assert_cmpstr (order->pdata[0], ==, "pressure");
  g_assert_cmpstr (order->pdata[1], ==, "oom");
  g_assert_cmpint (gpu_stat (0, "num_alloc_retries"), ==, retries + 4);
  g_assert_cmpint (gpu_stat (0, "num_ooms"), ==, ooms);

  g_assert_null (bytes_on (0, 150 * MIB, &error)); /* no handler has anything to drop */
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
  g_assert_cmpint (gpu_stat (0, "num_ooms"), ==, ooms + 1);
  g_signal_handler_disconnect (allocator (0), ids[0]);
  g_signal_handler_disconnect (allocator (0), ids[1]);
  g_clear_pointer (&order, g_ptr_array_unref);
}

typedef struct
{
  GMainLoop *loop;
  GTorchImpl *result;
  GError *error;
} Other;

static gboolean
quit (gpointer data)
{
  g_main_loop_quit (data);
  return G_SOURCE_REMOVE;
}

static gpointer
allocate_elsewhere (gpointer data)
{
  Other *self = data;

  self->result = bytes_on (0, 150 * MIB, &self->error);
  if (self->loop != NULL)
    g_idle_add (quit, self->loop);
  return NULL;
}

static void
signals_are_emitted_in_the_main_loop_of_the_owner (void)
{
  Other other = { g_main_loop_new (NULL, FALSE), NULL, NULL };
  const gint64 patience = gtorch_allocator_patience;
  GThread *thread;
  gulong id;

  gtorch_allocator_trim (allocator (0));
  order = g_ptr_array_new ();
  g_ptr_array_add (order, (gpointer) "");
  g_ptr_array_add (order, (gpointer) "");
  victim = bytes (180 * MIB);
  id = g_signal_connect (allocator (0), "out-of-memory", G_CALLBACK (on_oom), g_thread_self ());
  gtorch_allocator_patience = 60 * G_USEC_PER_SEC;
  thread = g_thread_new ("other", allocate_elsewhere, &other);
  g_main_loop_run (other.loop);
  g_thread_join (thread);
  gtorch_allocator_patience = patience;
  g_assert_no_error (other.error);
  g_assert_cmpuint (order->len, ==, 3);
  gtorch_impl_unref (other.result);

  /* The owner does not run its loop: the other thread stops waiting. */
  victim = bytes (180 * MIB);
  g_clear_pointer (&other.loop, g_main_loop_unref);
  thread = g_thread_new ("other", allocate_elsewhere, &other);
  g_thread_join (thread);
  g_assert_null (other.result);
  g_assert_error (other.error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
  g_assert_cmpuint (order->len, ==, 3);
  g_clear_error (&other.error);
  g_clear_pointer (&victim, gtorch_impl_unref);
  while (g_main_context_iteration (NULL, FALSE))
    ;
  g_assert_cmpuint (order->len, ==, 3);
  g_signal_handler_disconnect (allocator (0), id);
  g_clear_pointer (&order, g_ptr_array_unref);
}

static void
the_message_has_matching_hints (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchImpl) x = NULL;

  gtorch_allocator_trim (allocator (0));
  x = bytes (180 * MIB);
  g_assert_null (bytes_on (0, 100 * MIB, &error));
  g_assert_nonnull (strstr (error->message, "; smaller batches, gradient accumulation"));
  g_assert_null (strstr (error->message, "memory-fraction"));
  g_assert_null (strstr (error->message, "other programs"));
  g_clear_error (&error);
  gtorch_set_grad_enabled (FALSE);
  g_assert_null (bytes_on (0, 100 * MIB, &error));
  g_assert_null (strstr (error->message, "; smaller batches"));
  gtorch_set_grad_enabled (TRUE);
}

#define TEST(name) g_test_add_func ("/GTorchAllocator/" #name, name)

gint
main (gint argc, gchar **argv)
{
  gint result;

  g_test_init (&argc, &argv, NULL);
  TEST (a_fraction_is_not_exceeded);
  TEST (excess_free_memory_is_returned_before_more_is_taken);
  TEST (without_a_cache_all_comes_from_the_driver);
  TEST (segments_have_the_sizes_that_pytorch_takes);
  TEST (large_blocks_are_not_split);
  TEST (the_program_is_asked_twice_and_may_ask_again);
  TEST (signals_are_emitted_in_the_main_loop_of_the_owner);
  TEST (the_message_has_matching_hints);
  result = g_test_run ();
  gtorch_device_empty_cache (gpu (0));
  gtorch_device_empty_cache (gpu (1));
  assert_no_misuse ();
  return result;
}
