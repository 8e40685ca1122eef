/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The calls of cuFFT, and the cache of plans. */

#include "config.h"

#include <tests/fake-cuda/fake-cufft.h>

#include "cuda-test.h"

#define FORWARD    (-1)
#define INVERSE    1
#define REAL_32    0
#define COMPLEX_32 4
#define COMPLEX_64 5

static GTorchFFTPlanCache *cache;

static GTorchImpl *
uninitialised (guint dtype, const gint64 *shape, guint n_dims)
{
  GError *error = NULL;
  GTorchImpl *impl = gtorch_impl_new (gpu (0), dtype, shape, n_dims, &error);

  g_assert_no_error (error);
  return impl;
}

#define NEW(dtype, ...)                                                 \
  uninitialised (GTORCH_DTYPE_##dtype, (const gint64[]){ __VA_ARGS__ }, \
                 sizeof ((const gint64[]){ __VA_ARGS__ }) / sizeof (gint64))

/* Runs a transform along the dims that must succeed. */
static void
c2c (GTorchImpl *x, const gint64 *dims, gsize n_dims, gboolean inverse)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchImpl) y = gtorch_op_fft_c2c (x, dims, n_dims, 1, inverse, &error);

  g_assert_no_error (error);
  g_assert_nonnull (y);
}

/* Transforms n elements with a plan of its own. */
static void
transform_line (gint64 n)
{
  g_autoptr (GTorchImpl) x = NEW (COMPLEX64, n);

  c2c (x, (const gint64[]){ 0 }, 1, FALSE);
}

static void
forget (void)
{
  gtorch_fft_plan_cache_clear (cache);
  g_assert_cmpuint (gtorch_fft_plan_cache_get_size (cache), ==, 0);
  g_assert_cmpuint (fake_cufft.n_present, ==, 0);
  fake_cufft.n_plans = fake_cufft.n_executions = 0;
}

#define ASSERT_LAYOUT(rank_, batch_, in_stride_, in_distance_, out_stride_, out_distance_) \
  G_STMT_START                                                                             \
  {                                                                                        \
    const FakeCufftPlan *plan_ = &fake_cufft.last;                                         \
    g_assert_cmpint (plan_->rank, ==, rank_);                                              \
    g_assert_cmpint (plan_->batch, ==, batch_);                                            \
    g_assert_cmpint (plan_->in_stride, ==, in_stride_);                                    \
    g_assert_cmpint (plan_->in_distance, ==, in_distance_);                                \
    g_assert_cmpint (plan_->out_stride, ==, out_stride_);                                  \
    g_assert_cmpint (plan_->out_distance, ==, out_distance_);                              \
    g_assert_false (plan_->is_automatic);                                                  \
  }                                                                                        \
  G_STMT_END

static void
last_dimensions_are_one_plan (void)
{
  g_autoptr (GTorchImpl) x = NEW (COMPLEX128, 2, 3, 4, 5);

  forget ();
  c2c (x, (const gint64[]){ 3, 1, 2 }, 3, TRUE);
  ASSERT_LAYOUT (3, 2, 1, 60, 1, 60);
  g_assert_cmpint (fake_cufft.last.n[0], ==, 3);
  g_assert_cmpint (fake_cufft.last.n[2], ==, 5);
  g_assert_cmpint (fake_cufft.last.in_type, ==, COMPLEX_64);
  g_assert_cmpint (fake_cufft.direction, ==, INVERSE);
  g_assert_true (fake_cufft.in == gtorch_impl_data (x));
  g_assert_cmpuint (fake_cufft.n_executions, ==, 1);
}

static void
first_dimension_is_strided (void)
{
  g_autoptr (GTorchImpl) x = NEW (COMPLEX64, 6, 4, 5);

  forget ();
  c2c (x, (const gint64[]){ 0 }, 1, FALSE);
  ASSERT_LAYOUT (1, 20, 20, 1, 20, 1);
  g_assert_cmpint (fake_cufft.last.n[0], ==, 6);
  g_assert_cmpint (fake_cufft.direction, ==, FORWARD);
  g_assert_true (fake_cufft.in == gtorch_impl_data (x));
}

static void
middle_dimension_is_moved (void)
{
  g_autoptr (GTorchImpl) x = NEW (COMPLEX64, 6, 4, 5);

  forget ();
  c2c (x, (const gint64[]){ 1 }, 1, FALSE);
  ASSERT_LAYOUT (1, 30, 1, 4, 1, 4);
  g_assert_true (fake_cufft.in != gtorch_impl_data (x));
  g_assert_true (fake_cufft.in == fake_cufft.out);
}

static void
five_dimensions_are_two_plans (void)
{
  g_autoptr (GTorchImpl) x = NEW (COMPLEX64, 2, 3, 4, 5, 6);

  forget ();
  c2c (x, (const gint64[]){ 0, 1, 2, 3, 4 }, 5, FALSE);
  g_assert_cmpuint (fake_cufft.n_executions, ==, 2);
  ASSERT_LAYOUT (2, 120, 1, 6, 1, 6);
}

static void
real_lines_have_half_as_many_results (void)
{
  g_autoptr (GTorchImpl) x = NEW (FLOAT32, 3, 7);
  g_autoptr (GTorchImpl) odd = gtorch_op_slice (x, 0, 1, 3, 1, NULL);
  g_autoptr (GTorchImpl) half = gtorch_op_fft_r2c (x, 1, 1, NULL);
  g_autoptr (GTorchImpl) of_odd = NULL;
  g_autoptr (GTorchImpl) back = NULL;

  g_assert_nonnull (half);
  ASSERT_LAYOUT (1, 3, 1, 7, 1, 4);
  g_assert_cmpint (fake_cufft.last.n[0], ==, 7);
  g_assert_cmpint (fake_cufft.last.in_type, ==, REAL_32);
  g_assert_cmpint (fake_cufft.last.out_type, ==, COMPLEX_32);
  g_assert_true (fake_cufft.in == gtorch_impl_data (x));

  /* an address that is not aligned for a complex number */
  of_odd = gtorch_op_fft_r2c (odd, 1, 1, NULL);
  g_assert_nonnull (of_odd);
  g_assert_cmpint ((guintptr) fake_cufft.in % 8, ==, 0);
  g_assert_true (fake_cufft.in != gtorch_impl_data (odd));

  /* this one writes to its input */
  back = gtorch_op_fft_c2r (half, 1, 6, 1, NULL);
  g_assert_nonnull (back);
  ASSERT_LAYOUT (1, 3, 1, 4, 1, 6);
  g_assert_cmpint (fake_cufft.last.n[0], ==, 6);
  g_assert_cmpint (fake_cufft.direction, ==, INVERSE);
  g_assert_true (fake_cufft.in != gtorch_impl_data (half));
}

static void
plans_are_made_once (void)
{
  guint i;

  forget ();
  for (i = 0; i < 6; i++)
    transform_line (100 + i % 2);
  g_assert_cmpuint (fake_cufft.n_plans, ==, 2);
  g_assert_cmpuint (fake_cufft.n_executions, ==, 6);
  g_assert_cmpuint (gtorch_fft_plan_cache_get_size (cache), ==, 2);
}

static void
least_recently_used_plan_is_evicted (void)
{
  g_assert_cmpuint (gtorch_fft_plan_cache_get_max_size (cache), ==, 4096);
  forget ();
  gtorch_fft_plan_cache_set_max_size (cache, 3);
  transform_line (10);
  transform_line (11);
  transform_line (12);
  transform_line (10);
  transform_line (13); /* instead of 11 */
  g_assert_cmpuint (fake_cufft.n_present, ==, 3);
  g_assert_cmpuint (fake_cufft.n_plans, ==, 4);
  transform_line (10);
  transform_line (12);
  g_assert_cmpuint (fake_cufft.n_plans, ==, 4);
  transform_line (11);
  g_assert_cmpuint (fake_cufft.n_plans, ==, 5);
  gtorch_fft_plan_cache_set_max_size (cache, 1);
  g_assert_cmpuint (fake_cufft.n_present, ==, 1);
  transform_line (11);
  g_assert_cmpuint (fake_cufft.n_plans, ==, 5);
  gtorch_fft_plan_cache_set_max_size (cache, 0);
  transform_line (11);
  g_assert_cmpuint (fake_cufft.n_plans, ==, 6);
  g_assert_cmpuint (fake_cufft.n_present, ==, 0);
  gtorch_fft_plan_cache_set_max_size (cache, 4096);
}

static void
count (GObject *object, GParamSpec *pspec, gpointer user_data)
{
  ++*(guint *) user_data;
}

static void
max_size_is_a_property (void)
{
  guint n = 0, max_size, size;
  gulong handler = g_signal_connect (cache, "notify::max-size", G_CALLBACK (count), &n);

  forget ();
  transform_line (10);
  g_object_set (cache, "max-size", 7, NULL);
  g_object_set (cache, "max-size", 7, NULL);
  g_object_get (cache, "max-size", &max_size, "size", &size, NULL);
  g_assert_cmpuint (max_size, ==, 7);
  g_assert_cmpuint (size, ==, 1);
  g_assert_cmpuint (n, ==, 1);
  g_signal_handler_disconnect (cache, handler);
  g_object_set (cache, "max-size", 4096, NULL);
}

static void
each_device_has_its_own_plans (void)
{
  const gint64 n = 10, dim = 0;
  GTorchFFTPlanCache *other = gtorch_device_get_fft_plan_cache (gpu (1));
  GTorchFFTPlanCache *host = gtorch_device_get_fft_plan_cache (gtorch_device_cpu ());
  g_autoptr (GTorchImpl) x = gtorch_impl_new (gpu (1), GTORCH_DTYPE_COMPLEX64, &n, 1, NULL);
  g_autoptr (GTorchImpl) y = NULL;

  forget ();
  g_assert_true (other != cache && host != cache && host != other);
  g_assert_true (gtorch_device_get_fft_plan_cache (gpu (1)) == other);
  y = gtorch_op_fft_c2c (x, &dim, 1, 1, FALSE, NULL);
  g_assert_nonnull (y);
  g_assert_cmpuint (gtorch_fft_plan_cache_get_size (other), ==, 1);
  g_assert_cmpuint (gtorch_fft_plan_cache_get_size (cache), ==, 0);
  gtorch_fft_plan_cache_clear (other);
}

/* The plan's work area comes from our allocator, and is freed. */
static void
work_area_comes_from_the_allocator (void)
{
  g_autoptr (GTorchImpl) x = NEW (COMPLEX64, 1000);
  const gint64 dim = 0;
  guint64 before;

  forget ();
  fake_cufft.work_size = 3 << 20;
  gtorch_device_reset_peak_memory (gpu (0));
  before = gtorch_device_get_memory_allocated (gpu (0));
  c2c (x, &dim, 1, FALSE);
  g_assert_nonnull (fake_cufft.last.work_area);
  g_assert_cmpuint (gtorch_device_get_peak_memory_allocated (gpu (0)), >=, before + (3 << 20));
  g_assert_cmpuint (gtorch_device_get_memory_allocated (gpu (0)), ==, before);
  fake_cufft.work_size = 0;
  forget ();
  c2c (x, &dim, 1, FALSE);
  g_assert_null (fake_cufft.last.work_area);
  fake_cufft.work_size = 1000;
}

static void
plans_get_the_stream (void)
{
  g_autoptr (GTorchImpl) x = NEW (COMPLEX64, 1000);
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu (0), 0, NULL);
  g_autoptr (GTorchStreamGuard) guard = NULL;
  const gint64 dim = 0;
  gpointer before;

  forget ();
  c2c (x, &dim, 1, FALSE);
  before = fake_cufft.last.stream;
  guard = gtorch_stream_guard_new (stream);
  c2c (x, &dim, 1, FALSE);
  g_assert_true (fake_cufft.last.stream != before);
  g_assert_cmpuint (fake_cufft.n_plans, ==, 1);
}

/* The captured kernels read the tables of the plan. */
static void
graph_keeps_its_plans (void)
{
  g_autoptr (GTorchImpl) x = NEW (COMPLEX64, 1000);
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu (0), 0, NULL);
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchGraphCapture) capture = NULL;
  const gint64 dim = 0;
  g_autoptr (GError) error = NULL;
  guint i;

  forget ();
  capture =
      gtorch_graph_capture_new (graph, stream, NULL, GTORCH_CAPTURE_MODE_THREAD_LOCAL, &error);
  g_assert_no_error (error);
  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchImpl) y = gtorch_op_fft_c2c (x, &dim, 1, 0.5, FALSE, &error);

      g_assert_no_error (error);
    }
  gtorch_fft_plan_cache_clear (cache);
  g_assert_cmpuint (fake_cufft.n_present, ==, 1); /* the capture refers to it */
  gtorch_graph_capture_end (capture, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (fake_cufft.n_present, ==, 1); /* the graph refers to it */
  g_assert_true (gtorch_cuda_graph_replay (graph, NULL));
  g_assert_true (gtorch_cuda_graph_reset (graph, NULL)); /* the replay may still be running */
  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  gtorch_device_empty_cache (gpu (0));
  g_assert_cmpuint (fake_cufft.n_present, ==, 0);

  gtorch_graph_capture_unref (capture);
  capture =
      gtorch_graph_capture_new (graph, stream, NULL, GTORCH_CAPTURE_MODE_THREAD_LOCAL, &error);
  g_assert_no_error (error);
  c2c (x, &dim, 1, FALSE);
  g_clear_pointer (&capture, gtorch_graph_capture_unref); /* the capture is abandoned */
  g_assert_cmpuint (fake_cufft.n_present, ==, 1);
  forget ();
}

static void
failures_are_errors (void)
{
  g_autoptr (GTorchImpl) x = NEW (COMPLEX64, 1000);
  const gint64 dim = 0;
  g_autoptr (GError) error = NULL;

  forget ();
  fake_cufft.plan_status = 2;
  g_assert_null (gtorch_op_fft_c2c (x, &dim, 1, 1, FALSE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
  g_assert_nonnull (strstr (error->message, "cufftXtMakePlanMany failed with status 2"));
  g_clear_error (&error);
  fake_cufft.plan_status = 5;
  g_assert_null (gtorch_op_fft_c2c (x, &dim, 1, 1, FALSE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CUDA);
  g_clear_error (&error);
  fake_cufft.plan_status = 0;
  g_assert_cmpuint (fake_cufft.n_present, ==, 0);
  fake_cufft.works = FALSE;
  g_assert_null (gtorch_op_fft_c2c (x, &dim, 1, 1, FALSE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  fake_cufft.works = TRUE;
}

#define TEST(name) g_test_add_func ("/GTorchCudaFft/" #name, name)

gint
main (gint argc, gchar **argv)
{
  gint result;

  g_test_init (&argc, &argv, NULL);
  fake_cufft.works = TRUE;
  cache = gtorch_device_get_fft_plan_cache (gpu (0));
  TEST (last_dimensions_are_one_plan);
  TEST (first_dimension_is_strided);
  TEST (middle_dimension_is_moved);
  TEST (five_dimensions_are_two_plans);
  TEST (real_lines_have_half_as_many_results);
  TEST (plans_are_made_once);
  TEST (least_recently_used_plan_is_evicted);
  TEST (max_size_is_a_property);
  TEST (each_device_has_its_own_plans);
  TEST (work_area_comes_from_the_allocator);
  TEST (plans_get_the_stream);
  TEST (graph_keeps_its_plans);
  TEST (failures_are_errors);
  result = g_test_run ();
  g_assert_cmpuint (fake_cufft.n_misuses, ==, 0);
  assert_no_misuse ();
  return result;
}
