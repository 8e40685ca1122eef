/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Pinned memory on a real GPU. */

#include "config.h"

#include "gpu-test.h"

#define N (32 << 20)

static GTorchTensor *
pinned_full (gdouble value)
{
  g_autoptr (GTorchTensor) x = TRY (
      gtorch_full (GTORCH_SHAPE (N), value, GTORCH_DTYPE_FLOAT32, gtorch_device_cpu (), &error));

  return TRY (gtorch_tensor_pin_memory (x, &error));
}

static gdouble
last_of (GTorchTensor *x)
{
  g_autoptr (GTorchTensor) last = TRY (gtorch_tensor_slice (x, 0, N - 1, N, 1, &error));

  return gtorch_tensor_item_double (last, NULL);
}

static void
there_and_back (void)
{
  guint i;

  for (i = 0; i < 20; i++)
    {
      g_autoptr (GTorchTensor) there = pinned_full (i);
      g_autoptr (GTorchTensor) back = pinned_full (-1);
      g_autoptr (GTorchTensor) x =
          TRY (gtorch_empty (GTORCH_SHAPE (N), GTORCH_DTYPE_FLOAT32, gpu, &error));
      g_autoptr (GTorchTensor) y = NULL;

      TRY (gtorch_tensor_copy_inplace (x, there, TRUE, &error));
      g_clear_object (&there);
      there = pinned_full (1000); /* not in the same memory, as long as that is being read */
      y = TRY (gtorch_tensor_add (x, x, 1, &error));
      TRY (gtorch_tensor_copy_inplace (back, y, TRUE, &error));
      TRY (gtorch_tensor_copy_inplace (x, there, TRUE, &error));
      TRY (gtorch_tensor_fill_inplace (there, 7, &error));
      g_assert_cmpfloat (last_of (back), ==, 2 * i);
      g_assert_cmpfloat (last_of (x), ==, 1000);
    }
}

/* Copies of 128 MiB take milliseconds. */
static void
copies_do_not_block_the_host (void)
{
  g_autoptr (GTorchTensor) host = pinned_full (3);
  g_autoptr (GTorchTensor) x =
      TRY (gtorch_empty (GTORCH_SHAPE (N), GTORCH_DTYPE_FLOAT32, gpu, &error));
  gint64 start, enqueued, done;
  guint i, direction;

  for (direction = 0; direction < 2; direction++)
    {
      GTorchTensor *to = direction == 0 ? x : host, *from = direction == 0 ? host : x;

      TRY (gtorch_tensor_copy_inplace (to, from, TRUE, &error));
      g_assert_true (gtorch_device_synchronize (gpu, NULL, NULL));
      start = g_get_monotonic_time ();
      for (i = 0; i < 10; i++)
        TRY (gtorch_tensor_copy_inplace (to, from, TRUE, &error));
      enqueued = g_get_monotonic_time () - start;
      g_assert_true (gtorch_device_synchronize (gpu, NULL, NULL));
      done = g_get_monotonic_time () - start;
      g_test_message ("%s: enqueued in %d µs, done after %d µs, %.1f GB/s",
                      direction == 0 ? "to the GPU" : "from the GPU", (int) enqueued, (int) done,
                      10 * 4e-3 * N / done);
      g_assert_cmpint (enqueued, <, done / 2);
    }
}

static void
memory_is_kept (void)
{
  GTorchHostAllocator *allocator = gtorch_host_allocator_get_default ();
  guint64 before;
  guint i;

  g_object_unref (pinned_full (1));
  before = gtorch_host_allocator_get_num_allocs (allocator);
  for (i = 0; i < 5; i++)
    g_object_unref (pinned_full (i));
  g_assert_cmpuint (gtorch_host_allocator_get_num_allocs (allocator), ==, before);
  g_assert_cmpuint (gtorch_host_allocator_get_allocated (allocator), ==, 0);
  gtorch_host_allocator_trim (allocator);
  g_assert_cmpuint (gtorch_host_allocator_get_reserved (allocator), ==, 0);
}

#define TEST(name) g_test_add_func ("/GTorchGpuPinned/" #name, name)

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
  if (!find_gpu ())
    return 0;
  TEST (there_and_back);
  TEST (copies_do_not_block_the_host);
  TEST (memory_is_kept);
  return g_test_run ();
}
