/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The allocator of the CPU, as an object. */

#include "config.h"

#include <gtorch/gtorch.h>

#define MIB ((gint64) 1 << 20)

static GTorchAllocator *
allocator (void)
{
  return gtorch_device_get_allocator (gtorch_device_cpu ());
}

static GTorchTensor *
bytes (gint64 n)
{
  GError *error = NULL;
  GTorchTensor *x = gtorch_empty (&n, 1, GTORCH_DTYPE_UINT8, NULL, &error);

  g_assert_no_error (error);
  return x;
}

static gint64
stat (const gchar *key)
{
  GError *error = NULL;
  guint64 value = gtorch_allocator_get_stat (allocator (), key, &error);

  g_assert_no_error (error);
  return value;
}

static void
there_is_one_for_the_cpu (void)
{
  g_autoptr (GTorchAllocator) same = g_object_new (GTORCH_TYPE_ALLOCATOR, NULL);

  g_assert_true (same == allocator ());
  g_assert_true (gtorch_allocator_get_device (same) == gtorch_device_cpu ());
}

static void
tensors_are_counted (void)
{
  gint64 n = stat ("allocation.small_pool.current"), large = stat ("allocation.large_pool.current");
  gint64 requested = stat ("requested_bytes.all.current");
  gint64 added = stat ("allocation.all.allocated"), freed = stat ("allocation.all.freed");
  GTorchTensor *x = bytes (1000), *y = bytes (3 * MIB);
  gint64 peak;

  g_assert_cmpint (stat ("allocation.small_pool.current"), ==, n + 1);
  g_assert_cmpint (stat ("allocation.large_pool.current"), ==, large + 1);
  g_assert_cmpint (stat ("requested_bytes.all.current"), ==, requested + 1000 + 3 * MIB);
  g_assert_cmpint (stat ("allocated_bytes.all.current"), ==,
                   gtorch_device_get_memory_allocated (gtorch_device_cpu ()));
  g_assert_cmpint (stat ("reserved_bytes.all.current"), >=, 3 * MIB + 1000);
  g_assert_cmpint (stat ("segment.large_pool.current"), >=, 1);
  g_object_unref (y);
  g_object_unref (x);
  g_assert_cmpint (stat ("allocation.all.allocated"), ==, added + 2);
  g_assert_cmpint (stat ("allocation.all.freed"), ==, freed + 2);
  g_assert_cmpint (stat ("requested_bytes.all.current"), ==, requested);
  peak = stat ("allocated_bytes.all.peak");
  g_assert_cmpint (peak, >=, 3 * MIB);
  gtorch_allocator_reset_peak (allocator ());
  g_assert_cmpint (stat ("allocated_bytes.all.peak"), <=, peak - 3 * MIB + 65536);
  gtorch_allocator_reset_accumulated (allocator ());
  g_assert_cmpint (stat ("allocation.all.allocated"), ==, 0);
  g_assert_cmpint (stat ("allocation.all.freed"), ==, 0);
}

static void
what_is_kept_can_be_given_back (void)
{
  guint64 reserved;

  g_object_unref (bytes (5 * MIB));
  gtorch_allocator_trim (allocator ());
  reserved = gtorch_allocator_get_reserved (allocator ());
  g_object_unref (bytes (5 * MIB));
  g_assert_cmpuint (gtorch_allocator_get_peak_reserved (allocator ()), >=, reserved + 5 * MIB);
  gtorch_allocator_trim (allocator ());
  g_assert_cmpuint (gtorch_allocator_get_reserved (allocator ()), ==, reserved);
}

static gpointer
make_some (gpointer data)
{
  GTorchTensor *kept = bytes (100);
  guint i;

  for (i = 0; i < 1000; i++)
    g_object_unref (bytes (i));
  return kept;
}

static void
threads_that_are_over_stay_counted (void)
{
  gint64 n = stat ("allocation.all.current"), added = stat ("allocation.all.allocated");
  GThread *thread = g_thread_new ("some", make_some, NULL);
  GTorchTensor *kept = g_thread_join (thread);

  g_assert_cmpint (stat ("allocation.all.current"), ==, n + 1);
  g_assert_cmpint (stat ("allocation.all.allocated"), ==, added + 1001);
  g_object_unref (kept);
  g_assert_cmpint (stat ("allocation.all.current"), ==, n);
}

static void
the_table_names_the_device (void)
{
  g_autofree gchar *text = gtorch_allocator_to_summary (allocator (), TRUE);
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  guint i;

  g_assert_nonnull (strstr (text, "GTorch memory summary, device cpu "));
  for (i = 0; lines[i + 1] != NULL; i++)
    g_assert_cmpuint (strlen (lines[i]), ==, 77);
}

static void
a_wrong_key_is_an_error (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_cmpuint (gtorch_allocator_get_stat (allocator (), "", &error), ==, 0);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
  g_assert_cmpstr (error->message, ==,
                   "allocator: “” is not a statistic; they are as “allocated_bytes.all.peak” and "
                   "“num_ooms”");
}

#define TEST(name) g_test_add_func ("/GTorch/Allocator/" #name, name)

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
  TEST (there_is_one_for_the_cpu);
  TEST (tensors_are_counted);
  TEST (what_is_kept_can_be_given_back);
  TEST (threads_that_are_over_stay_counted);
  TEST (the_table_names_the_device);
  TEST (a_wrong_key_is_an_error);
  return g_test_run ();
}
