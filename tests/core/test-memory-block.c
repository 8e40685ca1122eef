/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Memory without a tensor, on the device that GTORCH_TEST_DEVICE names. */

#include "config.h"

#include <gtorch/gtorch.h>

static GTorchDevice *device;

static GTorchAllocator *
allocator (void)
{
  return gtorch_device_get_allocator (device);
}

static void
blocks_are_counted_like_tensors (void)
{
  const guint64 before = gtorch_allocator_get_allocated (allocator ());
  g_autoptr (GTorchStream) stream = gtorch_stream_new (device, 0, NULL);
  g_autoptr (GError) error = NULL;
  GTorchMemoryBlock *block = gtorch_allocator_alloc (allocator (), 100000, stream, &error);
  guint64 address, size;

  g_assert_no_error (error);
  g_assert_true (gtorch_memory_block_get_device (block) == device);
  g_assert_true (gtorch_memory_block_get_stream (block) == stream);
  g_assert_true (gtorch_stream_get_current (device) == gtorch_device_get_default_stream (device));
  g_assert_cmpuint (gtorch_memory_block_get_size (block), ==, 100000);
  g_object_get (block, "address", &address, "size", &size, NULL);
  g_assert_cmpuint (size, ==, 100000);
  g_assert_cmpuint (address, !=, 0);
  g_assert_cmpuint (address, ==, (guintptr) gtorch_memory_block_get_pointer (block));
  g_assert_cmpuint (gtorch_allocator_get_allocated (allocator ()), >=, before + 100000);
  gtorch_memory_block_release (block);
  gtorch_memory_block_release (block);
  g_assert_cmpuint (gtorch_memory_block_get_address (block), ==, 0);
  g_assert_cmpuint (gtorch_allocator_get_allocated (allocator ()), ==, before);
  g_assert_false (gtorch_memory_block_record_stream (block, stream, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED);
  g_object_unref (block);
}

static void
last_unref_frees_it (void)
{
  const guint64 before = gtorch_allocator_get_allocated (allocator ());
  GTorchMemoryBlock *block = gtorch_allocator_alloc (allocator (), 5000, NULL, NULL);
  g_autoptr (GTorchStream) other = gtorch_stream_new (device, 0, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_memory_block_record_stream (block, other, &error));
  g_assert_no_error (error);
  g_object_unref (block);
  g_assert_true (gtorch_stream_synchronize (other, NULL, &error));
  gtorch_allocator_trim (allocator ());
  g_assert_cmpuint (gtorch_allocator_get_allocated (allocator ()), ==, before);
}

static void
impossible_sizes_are_errors (void)
{
  g_autoptr (GError) error = NULL;
  GTorchMemoryBlock *block = gtorch_allocator_alloc (allocator (), (gsize) 1 << 60, NULL, &error);

  g_assert_null (block);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
}

static void
stream_must_be_of_the_device (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchMemoryBlock) block = gtorch_allocator_alloc (allocator (), 100, NULL, NULL);
  g_autofree gchar *name = gtorch_device_to_string (device);
  g_autofree gchar *text = NULL;
  GTorchStream *far;

  if (device == gtorch_device_cpu ())
    {
      g_test_skip ("there is one device");
      return;
    }
  far = gtorch_device_get_default_stream (gtorch_device_cpu ());
  g_assert_null (gtorch_allocator_alloc (allocator (), 100, far, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH);
  text = g_strdup_printf ("allocator: it allocates on %s, the stream is on cpu", name);
  g_assert_cmpstr (error->message, ==, text);
  g_clear_error (&error);
  g_assert_false (gtorch_memory_block_record_stream (block, far, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH);
}

static void
blocks_come_from_pools_too (void)
{
  g_autoptr (GTorchMemoryPool) pool = gtorch_memory_pool_new (device);
  g_autoptr (GTorchMemoryPoolGuard) guard = gtorch_memory_pool_guard_new (pool);
  g_autoptr (GTorchMemoryBlock) block = gtorch_allocator_alloc (allocator (), 4000, NULL, NULL);

  g_assert_cmpuint (gtorch_memory_pool_get_allocated (pool), >=, 4000);
  g_clear_object (&block);
  g_assert_cmpuint (gtorch_memory_pool_get_allocated (pool), ==, 0);
}

int
main (int argc, char **argv)
{
  const gchar *name = g_getenv ("GTORCH_TEST_DEVICE");

  g_test_init (&argc, &argv, NULL);
  device =
      gtorch_device_resolve (gtorch_device_new_from_string (name != NULL ? name : "cpu", NULL));
  g_assert_nonnull (device);
#define ADD(name) g_test_add_func ("/GTorchMemoryBlock/" #name, name)
  ADD (blocks_are_counted_like_tensors);
  ADD (last_unref_frees_it);
  ADD (impossible_sizes_are_errors);
  ADD (stream_must_be_of_the_device);
  ADD (blocks_come_from_pools_too);
#undef ADD
  return g_test_run ();
}
