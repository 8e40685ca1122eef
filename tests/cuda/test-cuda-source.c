/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Memory sources of a program: the library's requests, and that all memory is returned. */

#include "config.h"

#include "cuda-test.h"

#include <dlfcn.h>
#include <string.h>

#include <gtorch/memory/gtorch-memory-source.h>

/* Takes memory from the driver and counts the calls. */
typedef struct
{
  GTorchMemorySource parent_instance;
  gint n_asked, n_held;
  gint n_asked_elsewhere; /* for memory of the second GPU */
  gint64 held;
  gint64 room;            /* the memory that it may give */
  gboolean gives_crooked; /* gives misaligned addresses */
  const gchar *message;   /* the error of a failure */
  GTorchTensor *hoard;    /* dropped during a request: allocators are called recursively */
  GTorchMemoryPool *from; /* gives memory of this pool; unowned */
  GTorchImpl *lent;       /* the block that it gave */
} TestSource;

typedef GTorchMemorySourceClass TestSourceClass;

GType test_source_get_type (void);

G_DEFINE_TYPE (TestSource, test_source, GTORCH_TYPE_MEMORY_SOURCE)

static guint64
test_source_allocate (GTorchMemorySource *source, GTorchDevice *device, guint64 n_bytes,
                      guint64 stream, GError **error)
{
  TestSource *self = (TestSource *) source;
  CUdeviceptr address = 0;

  g_assert_cmpuint (stream, !=, 0);
  self->n_asked++;
  self->n_asked_elsewhere += device == gpu (1);
  g_clear_object (&self->hoard);
  if (self->from != NULL)
    {
      g_autoptr (GTorchMemoryPoolGuard) guard = gtorch_memory_pool_guard_new (self->from);
      const gint64 size = n_bytes;
      GTorchImpl *impl = gtorch_impl_new (device, GTORCH_DTYPE_UINT8, &size, 1, error);

      if (impl == NULL)
        return 0;
      g_clear_pointer (&self->lent, gtorch_impl_unref);
      self->lent = impl;
      return (guintptr) gtorch_impl_data (impl);
    }
  if (self->message != NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, "%s", self->message);
  if (self->message != NULL || self->held + (gint64) n_bytes > self->room)
    return 0;
  g_assert_cmpint (gtorch_cuda.cuMemAlloc (&address, n_bytes), ==, CUDA_SUCCESS);
  self->held += n_bytes;
  self->n_held++;
  return address + (self->gives_crooked ? 8 : 0);
}

static void
test_source_release (GTorchMemorySource *source, GTorchDevice *device, guint64 address,
                     guint64 n_bytes, guint64 stream)
{
  TestSource *self = (TestSource *) source;

  if (self->from != NULL)
    {
      g_clear_pointer (&self->lent, gtorch_impl_unref);
      return;
    }
  g_assert_cmpint (gtorch_cuda.cuMemFree (address / 256 * 256), ==, CUDA_SUCCESS);
  self->held -= n_bytes;
  self->n_held--;
}

static void
test_source_class_init (TestSourceClass *klass)
{
  klass->allocate = test_source_allocate;
  klass->release = test_source_release;
}

static void
test_source_init (TestSource *self)
{
  self->room = 100 * MIB;
}

static GTorchMemorySource *
source_new (void)
{
  return g_object_new (test_source_get_type (), NULL);
}

/* The source of all memory of the first GPU, for the whole program. */
static TestSource *all;

static void
every_tensor_is_requested_from_the_source (void)
{
  g_autoptr (GTorchImpl) x = bytes (1000);
  g_autoptr (GTorchImpl) y = bytes (5 * MIB);
  gdouble *values;

  g_assert_cmpint (all->n_held, ==, 2);
  g_assert_cmpint (all->held, ==, 1024 + 5 * MIB);
  g_assert_cmpuint (gtorch_device_get_memory_allocated (gpu (0)), ==, all->held);
  g_assert_cmpuint (gtorch_device_get_memory_reserved (gpu (0)), ==, all->held);
  gtorch_op_fill_inplace (x, 7, NULL);
  values = read_doubles (x);
  g_assert_cmpfloat (values[999], ==, 7);
  g_free (values);
  g_clear_pointer (&y, gtorch_impl_unref);
  g_assert_cmpint (all->held, ==, 1024);
  g_clear_pointer (&x, gtorch_impl_unref);
  g_assert_cmpint (all->n_held, ==, 0);
  g_assert_cmpuint (gtorch_device_get_memory_reserved (gpu (0)), ==, 0);
}

static void
the_source_cannot_be_changed_later (void)
{
  GTorchAllocator *allocator = gpu_allocator ();
  g_autoptr (GError) error = NULL;

  gtorch_impl_unref (bytes (1));
  g_assert_false (gtorch_allocator_set_source (allocator, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "allocator: the source of memory of cuda:0 cannot be changed after it has "
                   "allocated");
  g_assert_true (gtorch_allocator_get_source (allocator) == (GTorchMemorySource *) all);
}

/* The graph's pool has the source: so has its memory on a second GPU. */
static void
graphs_have_memory_of_the_source_on_all_gpus (void)
{
  g_autoptr (GTorchMemorySource) source = source_new ();
  TestSource *own = (TestSource *) source;
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchMemoryPool) pool = gtorch_memory_pool_new_with_source (gpu (0), source, &error);
  g_autoptr (GTorchStream) s = gtorch_stream_new (gpu (0), 0, NULL);
  g_autoptr (GTorchStream) t = gtorch_stream_new (gpu (1), 0, NULL);
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchImpl) x = bytes (10), y = NULL;
  g_autofree gdouble *values = NULL;
  guint i;

  g_assert_true (gtorch_op_fill_inplace (x, 3, NULL));
  for (i = 0; i < 2; i++)
    g_assert_true (gtorch_device_synchronize (gpu (i), NULL, NULL));
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (t);
    g_autoptr (GTorchGraphCapture) capture =
        gtorch_graph_capture_new (graph, s, pool, GTORCH_CAPTURE_MODE_THREAD_LOCAL, &error);

    g_assert_true (gtorch_stream_wait_stream (t, s, NULL));
    y = gtorch_op_to_device (x, gpu (1), FALSE, &error);
    g_assert_no_error (error);
    g_assert_true (gtorch_stream_wait_stream (s, t, NULL));
    g_assert_true (gtorch_graph_capture_end (capture, &error));
  }
  g_assert_cmpint (own->n_asked_elsewhere, >, 0);
  g_assert_true (gtorch_cuda_graph_replay (graph, &error));
  values = read_doubles (y);
  g_assert_cmpfloat (values[9], ==, 3);
  g_clear_object (&graph);
  g_clear_object (&pool);
  g_clear_pointer (&y, gtorch_impl_unref);
  for (i = 0; i < 2; i++)
    gtorch_device_empty_cache (gpu (i));
  g_assert_cmpint (own->n_held, ==, 0);
}

static void
the_cpu_has_no_source (void)
{
  g_autoptr (GTorchMemorySource) source = source_new ();
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_allocator_set_source (gtorch_device_get_allocator (gtorch_device_cpu ()),
                                               source, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_clear_error (&error);
  g_assert_null (gtorch_memory_pool_new_with_source (gtorch_device_cpu (), source, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
}

static GTorchImpl *
try_bytes (gint64 n_bytes, GError **error)
{
  return gtorch_impl_new (gpu (0), GTORCH_DTYPE_UINT8, &n_bytes, 1, error);
}

static void
an_exhausted_source_is_out_of_memory (void)
{
  g_autoptr (GError) error = NULL;
  gint before = all->n_asked;

  g_assert_null (try_bytes (101 * MIB, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
  g_assert_cmpint (all->n_asked - before, >=, 2); /* asked again after everything was returned */
}

static void
errors_of_the_source_are_passed_on (void)
{
  g_autoptr (GError) error = NULL;

  all->message = "the shelf is locked";
  g_assert_null (try_bytes (1000, &error));
  all->message = NULL;
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
  g_assert_cmpstr (error->message, ==, "the shelf is locked");
  g_clear_error (&error);

  all->gives_crooked = TRUE;
  g_assert_null (try_bytes (1000, &error));
  all->gives_crooked = FALSE;
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, "which is not a multiple of 256"));
  g_assert_cmpint (all->n_held, ==, 0);
}

static void
the_source_may_use_tensors (void)
{
  all->hoard = gtorch_ones (GTORCH_SHAPE (1000), GTORCH_DTYPE_FLOAT32, gpu (0), NULL);
  gtorch_impl_unref (bytes (1000));
  g_assert_null (all->hoard);
  g_assert_cmpint (all->n_held, ==, 0);
}

/* Memory that another stream uses is not returned before its work is done. */
static void
other_streams_are_waited_for (void)
{
  g_autoptr (GTorchStream) other = gtorch_stream_new (gpu (0), 0, NULL);
  GTorchStreamGuard *guard;
  GTorchImpl *x = bytes (1000);

  fake_cuda_hold (TRUE);
  guard = gtorch_stream_guard_new (other);
  gtorch_op_fill_inplace (x, 1, NULL);
  gtorch_stream_guard_unref (guard);
  gtorch_impl_unref (x);
  g_assert_cmpint (all->n_held, ==, 1);
  fake_cuda_hold (FALSE);
  gtorch_device_empty_cache (gpu (0));
  g_assert_cmpint (all->n_held, ==, 0);
}

static void
pools_cache_and_split (void)
{
  g_autoptr (GTorchMemorySource) source = source_new ();
  TestSource *own = (TestSource *) source;
  g_autoptr (GTorchMemoryPool) pool = gtorch_memory_pool_new_with_source (gpu (0), source, NULL);
  GTorchMemoryPoolGuard *guard = gtorch_memory_pool_guard_new (pool);
  GTorchImpl *x = bytes (1000);
  GTorchImpl *y = bytes (1000);

  g_assert_true (gtorch_memory_pool_get_source (pool) == source);
  g_assert_cmpint (own->n_asked, ==, 1);
  g_assert_cmpint (own->held, ==, 2 * MIB);
  g_assert_cmpint (all->n_held, ==, 0);
  g_assert_cmpuint (gtorch_memory_pool_get_reserved (pool), ==, 2 * MIB);
  g_assert_cmpuint (gtorch_memory_pool_get_allocated (pool), ==, 2048);
  gtorch_impl_unref (x);
  gtorch_impl_unref (y);
  gtorch_memory_pool_guard_unref (guard);
  g_assert_cmpint (own->n_held, ==, 1);
  gtorch_memory_pool_trim (pool);
  g_assert_cmpint (own->n_held, ==, 0);

  guard = gtorch_memory_pool_guard_new (pool);
  x = bytes (1000);
  gtorch_memory_pool_guard_unref (guard);
  g_clear_object (&pool);
  gtorch_impl_unref (x);
  g_assert_cmpint (own->n_held, ==, 0);
  g_assert_finalize_object (g_steal_pointer (&source)); /* there is no other reference */
}

static void
a_source_cannot_use_itself (void)
{
  guint how;

  for (how = 0; how < 3; how++)
    {
      g_autoptr (GTorchMemorySource) source = source_new ();
      g_autoptr (GTorchMemorySource) other = source_new ();
      g_autoptr (GTorchMemoryPool) pool =
          gtorch_memory_pool_new_with_source (gpu (0), source, NULL);
      g_autoptr (GTorchMemoryPool) second =
          gtorch_memory_pool_new_with_source (gpu (0), other, NULL);
      g_autoptr (GError) error = NULL;
      const gint64 size = 1000;
      GTorchImpl *x;

      ((TestSource *) source)->from = how == 0 ? pool : second;
      ((TestSource *) other)->from = how == 1 ? pool : NULL;
      {
        g_autoptr (GTorchMemoryPoolGuard) guard = gtorch_memory_pool_guard_new (pool);

        x = gtorch_impl_new (gpu (0), GTORCH_DTYPE_UINT8, &size, 1, &error);
      }
      if (how == 2) /* one source may use another */
        {
          g_assert_no_error (error);
          gtorch_impl_unref (x);
          gtorch_memory_pool_trim (pool);
          gtorch_memory_pool_trim (second);
          g_assert_cmpint (((TestSource *) other)->held, ==, 0);
          continue;
        }
      g_assert_null (x);
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
      g_assert_nonnull (strstr (error->message, "allocator: TestSource asks itself for"));
    }
}

/* A segment must be splittable for the block that it was allocated for. */
static void
limits_of_splitting_are_kept (void)
{
  g_autoptr (GTorchMemorySource) source = source_new ();
  g_autoptr (GTorchMemoryPool) pool = gtorch_memory_pool_new_with_source (gpu (0), source, NULL);
  g_autoptr (GTorchMemoryPoolGuard) guard = gtorch_memory_pool_guard_new (pool);
  GTorchImpl *x;

  g_assert_true (gtorch_allocator_set_max_split_size (gpu_allocator (), 41 * MIB, NULL));
  x = bytes (40 * MIB + MIB / 2);
  g_assert_cmpint (((TestSource *) source)->held, ==, 40 * MIB + MIB / 2);
  gtorch_impl_unref (x);
  g_assert_true (gtorch_allocator_set_max_split_size (gpu_allocator (), G_MAXUINT64, NULL));
}

static void
libraries_are_sources (void)
{
  const gchar *path = g_getenv ("GTORCH_TEST_PLUGGABLE");
  g_autoptr (GTorchMemorySource) source = NULL;
  g_autoptr (GError) error = NULL;
  const gint64 small = 1000, large = 101 * MIB;
  GTorchImpl *x;
  glong (*held) (void);

  g_assert_nonnull (path);
  g_assert_null (gtorch_memory_source_load ("libnowhere.so", "a", "b", &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
  g_clear_error (&error);
  g_assert_null (gtorch_memory_source_load (path, "pluggable_malloc", "pluggable_fee", &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
  g_assert_nonnull (strstr (error->message, "there is no function “pluggable_fee” in "));
  g_clear_error (&error);

  source = gtorch_memory_source_load (path, "pluggable_malloc", "pluggable_free", &error);
  g_assert_no_error (error);
  *(void **) &held = dlsym (dlopen (path, RTLD_NOW), "pluggable_held");
  g_assert_true (
      gtorch_allocator_set_source (gtorch_device_get_allocator (gpu (1)), source, &error));
  x = gtorch_impl_new (gpu (1), GTORCH_DTYPE_UINT8, &small, 1, &error);
  g_assert_no_error (error);
  g_assert_cmpint (held (), ==, 1024);
  gtorch_impl_unref (x);
  g_assert_cmpint (held (), ==, 0);
  g_assert_null (gtorch_impl_new (gpu (1), GTORCH_DTYPE_UINT8, &large, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
}

int
main (int argc, char **argv)
{
  GTorchMemorySource *source;
  int result;

  g_test_init (&argc, &argv, NULL);
  source = source_new ();
  all = (TestSource *) source;
  g_assert_true (gtorch_allocator_set_source (gpu_allocator (), source, NULL));
  g_object_unref (source); /* the allocator has a reference */
#define ADD(name) g_test_add_func ("/GTorchMemorySource/" #name, name)
  ADD (every_tensor_is_requested_from_the_source);
  ADD (the_source_cannot_be_changed_later);
  ADD (the_cpu_has_no_source);
  ADD (an_exhausted_source_is_out_of_memory);
  ADD (errors_of_the_source_are_passed_on);
  ADD (the_source_may_use_tensors);
  ADD (other_streams_are_waited_for);
  ADD (pools_cache_and_split);
  ADD (a_source_cannot_use_itself);
  ADD (limits_of_splitting_are_kept);
  ADD (libraries_are_sources);
  ADD (graphs_have_memory_of_the_source_on_all_gpus);
#undef ADD
  result = g_test_run ();
  assert_no_misuse ();
  return result;
}
