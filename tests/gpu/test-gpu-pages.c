/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Free memory of one stream moves to another page by page when no more may be reserved; pending work on
 * it does no harm. */

#include "config.h"

#include "gpu-test.h"

#define PAGE    (G_GINT64_CONSTANT (32) << 20)
#define N_PAGES 8
#define N_LEFT  6

static guint64
stat (const gchar *key)
{
  GError *error = NULL;
  guint64 value = gtorch_allocator_get_stat (gtorch_device_get_allocator (gpu), key, &error);

  g_assert_no_error (error);
  return value;
}

static void
fill_pages (GTorchTensor **pages, guint n, gdouble value)
{
  guint i;

  for (i = 0; i < n; i++)
    pages[i] = TRY (gtorch_full (&(gint64){ PAGE }, 1, value + i, GTORCH_DTYPE_UINT8, gpu, &error));
}

static void
clear_pages (GTorchTensor **pages, guint n)
{
  while (n > 0)
    g_clear_object (&pages[--n]);
}

static gdouble
sum_of (GTorchTensor *page)
{
  g_autoptr (GTorchTensor) sum =
      TRY (gtorch_tensor_sum (page, NULL, 0, FALSE, GTORCH_DTYPE_INT64, &error));

  return gtorch_tensor_item_double (sum, NULL);
}

static void
pages_move_between_streams (void)
{
  g_autoptr (GTorchStream) other = gtorch_stream_new (gpu, 0, NULL);
  GTorchAllocator *allocator = gtorch_device_get_allocator (gpu);
  GTorchTensor *pages[N_PAGES] = { NULL };
  GTorchStreamGuard *guard;
  guint64 reserved, created, retries;
  gint64 start, end;
  guint i;

  fill_pages (pages, 1, 1); /* loads the kernel */
  clear_pages (pages, 1);
  gtorch_allocator_trim (allocator);
  reserved = gtorch_allocator_get_reserved (allocator);
  gtorch_allocator_set_memory_fraction (allocator,
                                        (reserved + N_PAGES * PAGE + (1 << 20))
                                            / (gdouble) gtorch_device_get_total_memory (gpu),
                                        NULL);
  created = stat ("num_device_alloc");
  retries = stat ("num_alloc_retries");

  guard = gtorch_stream_guard_new (other);
  fill_pages (pages, N_LEFT, 100);
  gtorch_stream_guard_unref (guard);
  clear_pages (pages, N_LEFT); /* while they are being filled */
  start = g_get_monotonic_time ();
  fill_pages (pages, N_PAGES, 3);
  end = g_get_monotonic_time ();
  g_test_message ("%u pages made, %u moved, in %" G_GINT64_FORMAT " µs", N_PAGES - N_LEFT, N_LEFT,
                  end - start);
  g_assert_cmpuint (stat ("num_device_alloc"), ==, created + N_PAGES);
  g_assert_cmpuint (stat ("num_alloc_retries"), ==, retries);
  gtorch_allocator_set_memory_fraction (allocator, 1, NULL);
  for (i = 0; i < N_PAGES; i++)
    g_assert_cmpfloat (sum_of (pages[i]), ==, (3.0 + i) * PAGE);
  clear_pages (pages, N_PAGES);
  gtorch_allocator_trim (allocator);
}

int
main (int argc, char *argv[])
{
  if (!find_gpu ())
    return 0;
  g_test_init (&argc, &argv, NULL);
  if (!memory_is_cached () || g_strcmp0 (g_getenv ("GTORCH_ALLOC"), "segments") == 0)
    {
      g_print ("1..0 # SKIP no page is kept\n");
      return 0;
    }
  g_test_add_func ("/GTorch/gpu/pages_move_between_streams", pages_move_between_streams);
  return g_test_run ();
}
