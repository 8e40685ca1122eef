/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The programs that test-cuda-faults.c repeats while the driver fails. */

#include "config.h"

#include "fault-programs.h"

#include <math.h>

#include <gtorch/stream/gtorch-stream-private.h>
#include <kernels/gtorch-kernel-params.h>
#include <tests/fake-cuda/fake-cublaslt.h>
#include <tests/fake-cuda/fake-cufft.h>

#include "cuda-test.h"

#define N 3000

/* --- streams, a main loop and two devices --- */

typedef struct
{
  GMainLoop *loop;
  gboolean result;
  GError **error;
} Waiting;

static void
on_done (GObject *object, GAsyncResult *result, gpointer data)
{
  Waiting *waiting = data;

  waiting->result =
      gtorch_stream_synchronize_finish (GTORCH_STREAM (object), result, waiting->error);
  g_main_loop_quit (waiting->loop);
}

static gboolean
wait_in_loop (GTorchStream *stream, GError **error)
{
  g_autoptr (GMainLoop) loop = g_main_loop_new (NULL, FALSE);
  Waiting waiting = { loop, FALSE, error };

  gtorch_stream_synchronize_async (stream, NULL, on_done, &waiting);
  g_main_loop_run (loop);
  return waiting.result;
}

/* Computes sum (relu (x * w) + w) on one stream, with w updated on another, and moves the result to a
 * second device. */
static gboolean
train (gdouble *result, GError **error)
{
  g_autoptr (GTorchImpl) host = ramp_1d (gtorch_device_cpu (), GTORCH_DTYPE_FLOAT64, N);
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) w = NULL;
  g_autoptr (GTorchImpl) product = NULL;
  g_autoptr (GTorchImpl) active = NULL;
  g_autoptr (GTorchImpl) moved = NULL;
  g_autoptr (GTorchImpl) sum = NULL;
  g_autoptr (GTorchImpl) back = NULL;
  g_autoptr (GTorchStream) stream = NULL;
  g_autoptr (GTorchStreamGuard) guard = NULL;
  g_autoptr (GTorchEvent) event = NULL;
  const gint64 shape[] = { N }, dim = 0;
  GTorchDevice *first = gtorch_device_cuda (0, error);
  GTorchDevice *second = first != NULL ? gtorch_device_cuda (1, error) : NULL;

  if (second == NULL)
    return FALSE;
  x = gtorch_op_to_device (host, first, FALSE, error);
  if (x == NULL)
    return FALSE;
  w = gtorch_op_full (shape, 1, 2, GTORCH_DTYPE_FLOAT64, first, error);
  if (w == NULL)
    return FALSE;
  product = gtorch_op_mul (x, w, error);
  if (product == NULL || !gtorch_op_add_inplace (product, w, 1, error))
    return FALSE;
  active = gtorch_op_relu (product, error);
  if (active == NULL)
    return FALSE;
  stream = gtorch_stream_new (first, 0, error);
  if (stream == NULL)
    return FALSE;
  event = gtorch_stream_record_event (gtorch_device_get_default_stream (first), error);
  if (event == NULL || !gtorch_stream_wait_event (stream, event, error))
    return FALSE;
  guard = gtorch_stream_guard_new (stream);
  if (!gtorch_op_fill_inplace (w, 1, error) || !gtorch_op_add_inplace (active, w, 1, error))
    return FALSE;
  g_clear_pointer (&w, gtorch_impl_unref); /* both streams still use it */
  sum = gtorch_op_sum (active, &dim, 1, FALSE, GTORCH_DTYPE_NONE, error);
  if (sum == NULL)
    return FALSE;
  moved = gtorch_op_to_device (sum, second, FALSE, error);
  if (moved == NULL)
    return FALSE;
  if (!wait_in_loop (stream, error))
    return FALSE;
  back = gtorch_op_to_device (moved, gtorch_device_cpu (), FALSE, error);
  if (back == NULL)
    return FALSE;
  *result = *(gdouble *) gtorch_impl_data (back);
  return TRUE;
}

#define TRAINED (N * (N - 1.0) + 3.0 * N)

static gboolean
read_first (GTorchImpl *x, gdouble *result, GError **error)
{
  g_autoptr (GTorchImpl) host = gtorch_op_to_device (x, gtorch_device_cpu (), FALSE, error);

  if (host == NULL)
    return FALSE;
  *result = *(gdouble *) gtorch_impl_data (host);
  return TRUE;
}

/* --- pinned memory --- */

static gboolean
copy_pinned (gdouble *result, GError **error)
{
  g_autoptr (GTorchTensor) host =
      gtorch_full (GTORCH_SHAPE (N), 3, GTORCH_DTYPE_FLOAT64, gtorch_device_cpu (), NULL);
  g_autoptr (GTorchTensor) from = gtorch_tensor_pin_memory (host, error);
  g_autoptr (GTorchTensor) to = NULL;
  g_autoptr (GTorchTensor) x = NULL;
  GTorchDevice *device = gtorch_device_cuda (0, error);

  if (from == NULL || device == NULL)
    return FALSE;
  to = gtorch_tensor_pin_memory (host, error);
  if (to == NULL)
    return FALSE;
  x = gtorch_zeros (GTORCH_SHAPE (N), GTORCH_DTYPE_FLOAT64, device, error);
  if (x == NULL || !gtorch_tensor_copy_inplace (x, from, TRUE, error)
      || !gtorch_tensor_add_inplace (x, x, 1, error)
      || !gtorch_tensor_copy_inplace (to, x, TRUE, error)
      || !gtorch_device_synchronize (device, NULL, error))
    return FALSE;
  *result = *(gdouble *) gtorch_impl_data (gtorch_tensor_get_impl (to));
  g_clear_object (&from);
  g_clear_object (&to);
  gtorch_host_allocator_trim (gtorch_host_allocator_get_default ());
  return TRUE;
}

/* Memory of the system, allocated by two threads. */
static gboolean
copy_registered (gdouble *result, GError **error)
{
  GTorchDevice *device = gtorch_device_cuda (0, error);
  GTorchAllocator *allocator;
  gboolean done;

  if (device == NULL)
    return FALSE;
  allocator = gtorch_device_get_allocator (device);
  if (!gtorch_allocator_configure (allocator, "pinned_use_cuda_host_register:True", error)
      || !gtorch_allocator_configure (allocator, "pinned_num_register_threads:2", error))
    return FALSE;
  done = copy_pinned (result, error);
  gtorch_allocator_configure (allocator, "pinned_use_cuda_host_register:False", NULL);
  return done;
}

/* --- events, queried and waited for; work that takes longer than any query lasts --- */

static gpointer
let_go (gpointer data)
{
  g_usleep (1000);
  fake_cuda_hold (FALSE);
  return NULL;
}

static gboolean
read_late (GTorchImpl *x, gdouble *result, GError **error)
{
  g_autoptr (GTorchImpl) copy = NULL;
  g_autoptr (GTorchImpl) beginning = NULL;
  const gint64 n = 10; /* the driver itself would wait for more */
  GThread *thread;
  gboolean done;

  fake_cuda_hold (TRUE);
  thread = g_thread_new (NULL, let_go, NULL);
  copy = gtorch_op_clone (x, error);
  if (copy != NULL)
    beginning = gtorch_impl_new_view (copy, 0, &n, NULL, 1);
  done = beginning != NULL && read_first (beginning, result, error);
  g_thread_join (thread);
  return done;
}

typedef struct
{
  guint n_before; /* number of calls */
  gint is_over;
} Sleep;

static gpointer
let_go_asleep (gpointer data)
{
  Sleep *self = data;

  while (!g_atomic_int_get (&self->is_over)
         && fake_cuda_get_calls ("cuEventSynchronize") == self->n_before)
    g_thread_yield ();
  fake_cuda_hold (FALSE);
  return NULL;
}

static gboolean
wait_asleep (GTorchEvent *event, GTorchStream *stream, GError **error)
{
  Sleep self = { fake_cuda_get_calls ("cuEventSynchronize"), FALSE };
  GThread *thread;
  gboolean done;

  fake_cuda_hold (TRUE);
  thread = g_thread_new (NULL, let_go_asleep, &self);
  done =
      gtorch_event_record (event, stream, error) && gtorch_event_synchronize (event, NULL, error);
  g_atomic_int_set (&self.is_over, TRUE);
  g_thread_join (thread);
  return done;
}

static gboolean
measure (gdouble *result, GError **error)
{
  g_autoptr (GTorchEvent) start = gtorch_event_new (GTORCH_EVENT_TIMING);
  g_autoptr (GTorchEvent) end = gtorch_event_new (GTORCH_EVENT_TIMING);
  g_autoptr (GTorchEvent) plain = gtorch_event_new (GTORCH_EVENT_NONE);
  g_autoptr (GTorchStream) stream = NULL;
  g_autoptr (GTorchStream) same = NULL;
  g_autoptr (GTorchStreamGuard) guard = NULL;
  g_autoptr (GTorchImpl) x = NULL;
  GTorchDevice *device = gtorch_device_cuda (0, error);
  const gint64 shape[] = { N };
  guint i;

  if (device == NULL)
    return FALSE;
  stream = gtorch_stream_new (device, 0, error);
  if (stream == NULL)
    return FALSE;
  same = gtorch_stream_new_external (device, gtorch_stream_get_handle (stream), error);
  if (same == NULL || !gtorch_event_record (start, stream, error))
    return FALSE;
  guard = gtorch_stream_guard_new (stream);
  x = gtorch_op_full (shape, 1, 2, GTORCH_DTYPE_FLOAT64, device, error);
  if (x == NULL || !gtorch_event_record (plain, stream, error)
      || !gtorch_event_record (end, stream, error))
    return FALSE;
  for (i = 0; i < 1000 && !gtorch_event_query (plain); i++)
    gtorch_stream_is_idle (stream);
  if (!gtorch_event_synchronize (plain, NULL, error) || !gtorch_event_synchronize (end, NULL, error)
      || !gtorch_stream_synchronize (stream, NULL, error)
      || isnan (gtorch_event_get_elapsed_ms (start, end, error)))
    return FALSE;
  return wait_asleep (plain, stream, error) && read_late (x, result, error);
}

/* --- allocations that exceed the memory, some of it in use by two streams --- */

static gboolean
fill_some_memory (GTorchDevice *device, GTorchStream *stream, GError **error)
{
  g_autoptr (GPtrArray) blocks =
      g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  g_autoptr (GError) full = NULL;
  const gint64 n = 10 * MIB, few = 10;
  guint i;

  for (i = 0; i < 8; i++)
    {
      GTorchImpl *block = gtorch_op_empty (&n, 1, GTORCH_DTYPE_UINT8, device, &full);

      if (block == NULL)
        break;
      g_ptr_array_add (blocks, block);
      if (i == 0)
        {
          g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);
          g_autoptr (GTorchImpl) beginning = gtorch_impl_new_view (block, 0, &few, NULL, 1);

          if (!gtorch_op_fill_inplace (beginning, 2, error))
            return FALSE;
          g_ptr_array_set_size (blocks, 0); /* the stream still uses it */
        }
    }
  if (full == NULL)
    g_set_error_literal (&full, GTORCH_ERROR, GTORCH_ERROR_FAILED, "there was memory");
  if (full->code == GTORCH_ERROR_OUT_OF_MEMORY)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&full));
  return FALSE;
}

static gboolean
fill_memory (gdouble *result, GError **error)
{
  g_autoptr (GTorchStream) stream = NULL;
  g_autoptr (GTorchImpl) x = NULL;
  GTorchDevice *device = gtorch_device_cuda (0, error);
  FakeCudaAccounts accounts;
  const gint64 n = N;
  gboolean done;

  if (device == NULL)
    return FALSE;
  stream = gtorch_stream_new (device, 0, error);
  if (stream == NULL)
    return FALSE;
  gtorch_device_empty_cache (device);
  fake_cuda_get_accounts (&accounts);
  fake_cuda_set_memory (0, accounts.n_bytes + 48 * MIB);
  done = fill_some_memory (device, stream, error);
  if (done)
    {
      x = gtorch_op_full (&n, 1, 5, GTORCH_DTYPE_FLOAT64, device, error);
      done = x != NULL && read_first (x, result, error);
    }
  fake_cuda_set_memory (0, 1024 * MIB);
  return done;
}

/* --- a private pool that is freed with its last block --- */

static gboolean
use_pool (gdouble *result, GError **error)
{
  g_autoptr (GTorchMemoryPool) pool = NULL;
  g_autoptr (GTorchMemoryPoolGuard) guard = NULL;
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) twice = NULL;
  GTorchDevice *device = gtorch_device_cuda (0, error);
  const gint64 n = N;

  if (device == NULL)
    return FALSE;
  pool = gtorch_memory_pool_new (device);
  guard = gtorch_memory_pool_guard_new (pool);
  x = gtorch_op_full (&n, 1, 3, GTORCH_DTYPE_FLOAT64, device, error);
  if (x == NULL)
    return FALSE;
  twice = gtorch_op_add (x, x, 1, error);
  return twice != NULL && read_first (twice, result, error);
}

/* --- cuFFT, which here only claims to have run --- */

static gboolean
transform (gdouble *result, GError **error)
{
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) lines = NULL;
  GTorchDevice *device = gtorch_device_cuda (0, error);
  const gint64 shape[] = { 32, 32 }, dim = 1;

  if (device == NULL)
    return FALSE;
  fake_cufft.works = TRUE;
  fake_cufft.work_size = 1 << 20;
  gtorch_fft_plan_cache_clear (gtorch_device_get_fft_plan_cache (device));
  x = gtorch_op_zeros (shape, 2, GTORCH_DTYPE_COMPLEX64, device, error);
  if (x == NULL)
    return FALSE;
  lines = gtorch_op_fft_c2c (x, &dim, 1, 1, FALSE, error);
  if (lines == NULL || !gtorch_device_synchronize (device, NULL, error))
    return FALSE;
  *result = 0;
  return TRUE;
}

/* --- events for other processes --- */

static gboolean
name_events (gdouble *result, GError **error)
{
  GTorchDevice *device = gtorch_device_cuda (0, error);
  guint i;

  if (device == NULL)
    return FALSE;
  for (i = 0; i < 2; i++) /* the second waits for the first to complete */
    {
      g_autoptr (GTorchEvent) event = gtorch_event_new (GTORCH_EVENT_INTERPROCESS);
      g_autoptr (GBytes) handle = gtorch_event_get_ipc_handle (event, device, error);

      if (handle == NULL)
        return FALSE;
      g_assert_null (gtorch_event_new_from_ipc_handle (device, handle, NULL)); /* in this process */
    }
  *result = 0;
  return TRUE;
}

/* --- peer access --- */

static void
keep_memory (GTorchStorage *storage)
{
}

static gboolean
share (gdouble *result, GError **error)
{
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) same = NULL;
  g_autoptr (GTorchImpl) twice = NULL;
  GTorchDevice *first = gtorch_device_cuda (0, error);
  GTorchDevice *second = first != NULL ? gtorch_device_cuda (1, error) : NULL;
  GTorchStorage *storage;
  const gint64 n = N;

  if (second == NULL)
    return FALSE;
  x = gtorch_op_full (&n, 1, 4, GTORCH_DTYPE_FLOAT64, second, error);
  if (x == NULL || !gtorch_device_synchronize (second, NULL, error))
    return FALSE;
  if (!gtorch_device_enable_peer (first, second, error))
    return FALSE;
  storage = gtorch_storage_new_foreign (first, gtorch_impl_data (x), gtorch_impl_n_bytes (x),
                                        keep_memory, NULL);
  same = gtorch_impl_new_strided (storage, x->dtype, 0, x->shape, NULL, x->n_dims);
  gtorch_storage_unref (storage);
  twice = gtorch_op_add (same, same, 1, error);
  return twice != NULL && read_first (twice, result, error);
}

/* Access is enabled before the memory is allocated. */
static gboolean
share_new (gdouble *result, GError **error)
{
  GTorchDevice *first = gtorch_device_cuda (0, error);
  GTorchDevice *second = first != NULL ? gtorch_device_cuda (1, error) : NULL;

  return second != NULL && gtorch_device_enable_peer (first, second, error)
         && share (result, error);
}

/* --- a graph on two streams, with random numbers --- */

static gboolean
fork_and_join (GTorchImpl *x, GTorchStream *side, GTorchImpl **z, GError **error)
{
  GTorchStream *main = gtorch_stream_get_current (gpu (0));
  const gint64 n = N;
  g_autoptr (GTorchImpl) y = NULL;
  g_autoptr (GTorchImpl) noise = NULL;
  GTorchChange change;

  if (!gtorch_stream_wait_stream (side, main, error))
    return FALSE;
  gtorch_change_to_stream (&change, gpu (0), side);
  y = gtorch_op_add (x, x, 1, error);
  gtorch_change_end (&change);
  if (y == NULL)
    return FALSE;
  noise = gtorch_op_rand (&n, 1, GTORCH_DTYPE_FLOAT64, gpu (0), NULL, error);
  if (noise == NULL || !gtorch_stream_wait_stream (main, side, error))
    return FALSE;
  *z = gtorch_op_add (y, noise, 0, error); /* only its kernel uses the noise */
  return *z != NULL;
}

static gboolean
capture_and_replay (gdouble *result, GError **error)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu (0), 0, error);
  g_autoptr (GTorchStream) side = stream != NULL ? gtorch_stream_new (gpu (0), 0, error) : NULL;
  const gint64 n = N;
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) z = NULL;
  gboolean captured;

  if (side == NULL)
    return FALSE;
  x = gtorch_op_full (&n, 1, 3, GTORCH_DTYPE_FLOAT64, gpu (0), error);
  if (x == NULL || !gtorch_device_synchronize (gpu (0), NULL, error))
    return FALSE;
  {
    g_autoptr (GTorchGraphCapture) capture =
        gtorch_graph_capture_new (graph, stream, NULL, GTORCH_CAPTURE_MODE_THREAD_LOCAL, error);

    if (capture == NULL)
      return FALSE;
    captured = fork_and_join (x, side, &z, error);
    if (!captured || !gtorch_graph_capture_end (capture, error))
      return FALSE;
  }
  return gtorch_cuda_graph_replay_on (graph, side, error)
         && gtorch_cuda_graph_replay_on (graph, stream, error)
         && gtorch_stream_synchronize (stream, NULL, error) && read_first (z, result, error);
}

/* --- a graph on two devices --- */

/* Computes 2 x + 0 noise on the second device, in memory that two queues share, and brings it back. */
static gboolean
compute_on_both (GTorchImpl *x, GTorchStream *side, GTorchStream *more, GTorchImpl **z,
                 GError **error)
{
  GTorchStream *main = gtorch_stream_get_current (gpu (0));
  const gint64 n = N;
  g_autoptr (GTorchImpl) moved = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  g_autoptr (GTorchImpl) noise = NULL;
  g_autoptr (GTorchImpl) sum = NULL;

  if (!gtorch_stream_wait_stream (side, main, error))
    return FALSE;
  moved = gtorch_op_to_device (x, gpu (1), FALSE, error);
  if (moved == NULL || !gtorch_stream_wait_stream (more, side, error))
    return FALSE;
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (more);

    y = gtorch_op_add (moved, moved, 1, error);
  }
  g_clear_pointer (&moved, gtorch_impl_unref);
  if (y == NULL || !gtorch_stream_wait_stream (side, more, error))
    return FALSE;
  noise = gtorch_op_rand (&n, 1, GTORCH_DTYPE_FLOAT64, gpu (1), NULL, error);
  if (noise == NULL)
    return FALSE;
  sum = gtorch_op_add (y, noise, 0, error);
  if (sum == NULL)
    return FALSE;
  *z = gtorch_op_to_device (sum, gpu (0), FALSE, error);
  return *z != NULL && gtorch_stream_wait_stream (main, side, error);
}

static gboolean
capture_on_both (gdouble *result, GError **error)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu (0), 0, error);
  g_autoptr (GTorchStream) side = stream != NULL ? gtorch_stream_new (gpu (1), 0, error) : NULL;
  g_autoptr (GTorchStream) more = side != NULL ? gtorch_stream_new (gpu (1), 0, error) : NULL;
  g_autoptr (GTorchStreamGuard) guard = NULL;
  const gint64 n = N;
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) z = NULL;

  if (more == NULL)
    return FALSE;
  x = gtorch_op_full (&n, 1, 3, GTORCH_DTYPE_FLOAT64, gpu (0), error);
  if (x == NULL || !gtorch_device_synchronize (gpu (0), NULL, error))
    return FALSE;
  guard = gtorch_stream_guard_new (side);
  {
    g_autoptr (GTorchGraphCapture) capture =
        gtorch_graph_capture_new (graph, stream, NULL, GTORCH_CAPTURE_MODE_THREAD_LOCAL, error);

    if (capture == NULL || !compute_on_both (x, side, more, &z, error)
        || !gtorch_graph_capture_end (capture, error))
      return FALSE;
  }
  return gtorch_cuda_graph_replay (graph, error)
         && gtorch_cuda_graph_replay_on (graph, stream, error)
         && gtorch_stream_synchronize (stream, NULL, error) && read_first (z, result, error);
}

/* --- a graph with nested branches --- */

static gboolean
begin_if (GTorchCUDAGraph *graph, GTorchImpl *predicate, GError **error)
{
  g_autoptr (GTorchTensor) tensor = gtorch_tensor_wrap (gtorch_impl_ref (predicate));

  return gtorch_cuda_graph_begin_if (graph, tensor, error);
}

static gboolean
add_in_branches (GTorchCUDAGraph *graph, GTorchImpl *x, GTorchStream *side, GTorchImpl **z,
                 GError **error)
{
  g_autoptr (GTorchImpl) flag = gtorch_op_max (x, error);

  return flag != NULL && begin_if (graph, flag, error) && fork_and_join (x, side, z, error)
         && begin_if (graph, flag, error) && gtorch_op_add_inplace (*z, x, 1, error)
         && gtorch_cuda_graph_end_if (graph, error) && gtorch_cuda_graph_end_if (graph, error);
}

static gboolean
capture_branches (gdouble *result, GError **error)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu (0), 0, error);
  g_autoptr (GTorchStream) side = stream != NULL ? gtorch_stream_new (gpu (0), 0, error) : NULL;
  const gint64 n = N;
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) z = NULL;

  if (side == NULL)
    return FALSE;
  x = gtorch_op_full (&n, 1, 3, GTORCH_DTYPE_FLOAT64, gpu (0), error);
  if (x == NULL || !gtorch_device_synchronize (gpu (0), NULL, error))
    return FALSE;
  {
    g_autoptr (GTorchGraphCapture) capture =
        gtorch_graph_capture_new (graph, stream, NULL, GTORCH_CAPTURE_MODE_THREAD_LOCAL, error);

    if (capture == NULL || !add_in_branches (graph, x, side, &z, error)
        || !gtorch_graph_capture_end (capture, error))
      return FALSE;
  }
  return gtorch_cuda_graph_replay_on (graph, stream, error)
         && gtorch_stream_synchronize (stream, NULL, error) && read_first (z, result, error);
}

/* --- a graph with the program's own work, and kernels that are loaded in the capture --- */

#define DO(call) gtorch_cuda_check (gtorch_cuda.call, "the program", error)

/* Captures a driver graph as a child of the graph that the stream captures. */
static gboolean
fill_by_graph (CUstream stream, CUstream side, CUdeviceptr to, GError **error)
{
  CUgraph graph = NULL;
  CUgraphExec exec = NULL;
  gboolean result;
  guint i;

  if (!DO (cuStreamBeginCapture (side, CU_STREAM_CAPTURE_MODE_RELAXED)))
    return FALSE;
  result = DO (cuMemsetD8Async (to, 0, 8, side));
  for (i = 0; i < 50 && graph == NULL; i++) /* it must not go on */
    gtorch_cuda.cuStreamEndCapture (side, &graph);
  result = result
           && gtorch_cuda_check (graph != NULL ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED,
                                 "the program", error)
           && DO (cuGraphInstantiateWithFlags (&exec, graph, 0))
           && DO (cuGraphLaunch (exec, stream));
  if (exec != NULL)
    gtorch_cuda.cuGraphExecDestroy (exec);
  if (graph != NULL)
    gtorch_cuda.cuGraphDestroy (graph);
  return result;
}

static gboolean
negate (CUstream stream, CUdeviceptr to, CUdeviceptr x, GError **error)
{
  static const gint64 image;
  static CUlibrary library;
  /* the third is not a pointer, but its bits could be an address of the device */
  GtContiguous parameters = {
    .data = { (void *) (guintptr) to, (void *) (guintptr) x, (void *) &image }, .n = 1
  };
  void *pointers[] = { &parameters };
  CUkernel kernel;

  if (library == NULL && !DO (cuLibraryLoadData (&library, &image, NULL, NULL, 0, NULL, NULL, 0)))
    return FALSE;
  return DO (cuLibraryGetKernel (&kernel, library, "gt_neg_f64"))
         && DO (
             cuLaunchKernel ((CUfunction) kernel, 1, 1, 1, 128, 1, 1, 0, stream, pointers, NULL));
}

static gboolean
capture_with_others (gdouble *result, GError **error)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu (0), 0, error);
  g_autoptr (GTorchStream) side = stream != NULL ? gtorch_stream_new (gpu (0), 0, error) : NULL;
  const gint64 n = N;
  g_autoptr (GTorchImpl) x = NULL;

  if (side == NULL)
    return FALSE;
  x = gtorch_op_full (&n, 1, 3, GTORCH_DTYPE_FLOAT64, gpu (0), error);
  if (x == NULL || !gtorch_device_synchronize (gpu (0), NULL, error))
    return FALSE;
  fake_cuda_unload_kernels ();
  {
    const CUdeviceptr address = (CUdeviceptr) (guintptr) gtorch_impl_data (x);
    CUstream queue = gtorch_stream_get_handle (stream), other = gtorch_stream_get_handle (side);
    g_autoptr (GTorchGraphCapture) capture = NULL;

    /* this loads the kernel */
    if (queue == NULL || other == NULL || !negate (other, address, address, error)
        || !gtorch_device_synchronize (gpu (0), NULL, error))
      return FALSE;
    capture =
        gtorch_graph_capture_new (graph, stream, NULL, GTORCH_CAPTURE_MODE_THREAD_LOCAL, error);
    if (capture == NULL || !gtorch_op_exp_inplace (x, error)
        || !DO (cuMemsetD8Async (address, 0, 8, queue))
        || !DO (cuMemcpyDtoDAsync (address, address + 8, 8, queue))
        || !fill_by_graph (queue, other, address + 8, error)
        || !negate (queue, address, address, error) || !gtorch_graph_capture_end (capture, error))
      return FALSE;
  }
  if (!gtorch_cuda_graph_replay_on (graph, stream, error)
      || !gtorch_stream_synchronize (stream, NULL, error) || !read_first (x, result, error))
    return FALSE;
  *result = round (*result);
  return TRUE;
}

/* --- products of cublasLt, whose launches are recorded --- */

static int
negate_instead (void *stream, unsigned algorithm)
{
  return !negate (stream, (guintptr) fake_cublaslt.last.c, (guintptr) fake_cublaslt.last.a, NULL);
}

static gboolean
multiply_often (gdouble *result, GError **error)
{
  static gint64 n_columns;
  const gint64 left[] = { 8, 300 }, right[] = { 300, ++n_columns * 2 }; /* other shapes each time */
  g_autoptr (GTorchImpl) x = gtorch_op_full (left, 2, 1, GTORCH_DTYPE_FLOAT64, gpu (0), error);
  g_autoptr (GTorchImpl) y =
      x != NULL ? gtorch_op_full (right, 2, 3, GTORCH_DTYPE_FLOAT64, gpu (0), error) : NULL;
  g_autoptr (GTorchImpl) z = NULL;
  guint i;

  fake_cublaslt.multiply = negate_instead;
  for (i = 0; y != NULL && i < 10; i++)
    {
      g_clear_pointer (&z, gtorch_impl_unref);
      z = gtorch_op_mm (x, y, error);
      if (z == NULL)
        return FALSE;
    }
  return z != NULL && read_first (z, result, error);
}

/* clang-format off */
const FaultProgram fault_programs[] = {
  { "train",           train,           TRAINED },
  { "copy-pinned",     copy_pinned,     6 },
  { "copy-registered", copy_registered, 6 },
  { "measure",         measure,         2 },
  { "fill-memory",     fill_memory,     5 },
  { "use-pool",        use_pool,        6 },
  { "transform",       transform,       0 },
  { "name-events",     name_events,     0 },
  { "graph",           capture_and_replay, 6 },
  { "graph-devices",   capture_on_both,    6 },
  { "graph-branches",  capture_branches,   9 },
  { "graph-of-others", capture_with_others, -20 }, /* -exp (3) */
  { NULL },
};

#define DRIVER_POOL NULL, "GTORCH_ALLOC_CONF", "backend:cudaMallocAsync"

const FaultProgram fault_programs_once[] = {
  { "begin",             train,       TRAINED },
  { "begin-checked",     train,       TRAINED, NULL,    "GTORCH_CHECK", "errors" },
  { "begin-segments",    fill_memory, 5,       "vmm=0" },
  { "begin-driver-pool", fill_memory, 5,       DRIVER_POOL },
  { "multiply-often",    multiply_often, -3,   "borrow=0" },
  { "share",             share,       8 },
  { "share-segments",    share,       8,       "vmm=0" },
  { "share-driver-pool", share,       8,       DRIVER_POOL },
  { "share-new-memory",  share_new,   8,       DRIVER_POOL },
  { "borrow",            fault_borrow, 8 },
  { "borrow-segments",   fault_borrow, 8,      "vmm=0" },
  { NULL },
};
/* clang-format on */
