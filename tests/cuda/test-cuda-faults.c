/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Every call of the driver fails once, in a small program that trains: the program gets an error or does
 * not notice, nothing is lost, and the next run is right. */

#include "config.h"

#include <unistd.h>

#include "cuda-test.h"

#define N 3000

/* --- the program --- */

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

/* sum (relu (x * w) + w) on one stream, w updated on another, the result moved to a second device. */
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
  x = gtorch_op_to_device (host, first, error);
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
  g_clear_pointer (&w, gtorch_impl_unref); /* in use by both streams */
  sum = gtorch_op_sum (active, &dim, 1, FALSE, GTORCH_DTYPE_NONE, error);
  if (sum == NULL)
    return FALSE;
  moved = gtorch_op_to_device (sum, second, error);
  if (moved == NULL)
    return FALSE;
  if (!wait_in_loop (stream, error))
    return FALSE;
  back = gtorch_op_to_device (moved, gtorch_device_cpu (), error);
  if (back == NULL)
    return FALSE;
  *result = *(gdouble *) gtorch_impl_data (back);
  return TRUE;
}

#define RESULT (N * (N - 1.0) + 3.0 * N)

static void
check_run (const gchar *what, guint nth)
{
  g_autoptr (GError) error = NULL;
  gdouble result = 0;

  if (!train (&result, &error))
    {
      g_assert_nonnull (error);
      g_assert_cmpint (strlen (error->message), >, 0);
    }
  else
    {
      g_assert_no_error (error);
      if (result != RESULT)
        g_test_message ("after call %u of %s", nth, what);
      g_assert_cmpfloat (result, ==, RESULT);
    }
}

/* As no real device could be. */
static gboolean
heal (void)
{
  gboolean has_failed = fake_cuda_clear_faults ();

  gtorch_device_forget_failure (gpu (0));
  gtorch_device_forget_failure (gpu (1));
  return has_failed;
}

static void
empty_caches (void)
{
  gtorch_device_empty_cache (gpu (0));
  gtorch_device_empty_cache (gpu (1));
}

static void
check_clean_run (const gchar *what, guint nth)
{
  g_autoptr (GError) error = NULL;
  FakeCudaAccounts accounts;
  gdouble result = 0;
  static gsize lost; /* where cuMemRelease() failed */

  train (&result, &error);
  if (error != NULL || result != RESULT)
    g_test_message ("the run after call %u of %s failed", nth, what);
  g_assert_no_error (error);
  g_assert_cmpfloat (result, ==, RESULT);
  empty_caches ();
  g_assert_cmpuint (gtorch_device_get_memory_allocated (gpu (0)), ==, 0);
  fake_cuda_get_accounts (&accounts);
  g_assert_cmpuint (accounts.misuses, ==, 0);
  if (strcmp (what, "cuMemRelease") == 0)
    lost = accounts.n_bytes;
  if (accounts.n_bytes != lost)
    g_test_message ("memory was lost after call %u of %s: %u handles, %u mapped, %" G_GUINT64_FORMAT
                    " and %" G_GUINT64_FORMAT " bytes cached",
                    nth, what, accounts.handles, accounts.mappings,
                    gtorch_device_get_memory_reserved (gpu (0)),
                    gtorch_device_get_memory_reserved (gpu (1)));
  g_assert_cmpuint (accounts.n_bytes, ==, lost);
}

/* --- faults --- */

static gint
result_for (const gchar *function, guint kind)
{
  if (g_str_has_prefix (function, "cuMem") && kind == 0)
    return CUDA_ERROR_OUT_OF_MEMORY;
  return kind == 1 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_LAUNCH_FAILED;
}

static void
any_call_may_fail (void)
{
  const gchar *const *functions = fake_cuda_get_functions ();
  guint i, nth, kind, n_faults = 0;

  check_clean_run ("nothing", 0);
  for (kind = 0; kind < 2; kind++)
    for (i = 0; functions[i] != NULL; i++)
      {
        gboolean has_failed = TRUE;

        for (nth = 1; has_failed && nth < 200; nth++)
          {
            fake_cuda_set_seed (nth % 5);
            fake_cuda_fail (functions[i], nth, result_for (functions[i], kind));
            check_run (functions[i], nth);
            empty_caches ();
            has_failed = heal ();
            n_faults += has_failed;
            if (has_failed || nth == 1)
              check_clean_run (functions[i], nth);
          }
      }
  g_test_message ("%u faults", n_faults);
  g_assert_cmpuint (n_faults, >, 50);
}

static void
several_calls_may_fail (void)
{
  guint32 seed;

  for (seed = 1; seed <= 150; seed++)
    {
      fake_cuda_set_seed (seed);
      fake_cuda_fail_randomly (seed % 2 ? 0.02 : 0.15, seed,
                               seed % 3 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_LAUNCH_FAILED);
      check_run ("random faults", seed);
      heal ();
      check_clean_run ("cuMemRelease", seed);
    }
}

/* An error of work under way comes up in a later call, and stays. */
static void
work_may_fail (void)
{
  guint nth;
  gboolean has_failed = TRUE;

  for (nth = 1; nth < 60 && has_failed; nth++)
    {
      g_autoptr (GError) error = NULL;
      gdouble result = 0;

      fake_cuda_set_seed (nth % 7);
      fake_cuda_break (0, nth, CUDA_ERROR_ILLEGAL_ADDRESS);
      has_failed = !train (&result, &error);
      if (has_failed)
        {
          g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_LOST);
          g_assert_nonnull (strstr (error->message, "CUDA_ERROR_ILLEGAL_ADDRESS"));
        }
      else
        g_assert_cmpfloat (result, ==, RESULT);
      heal ();
      check_clean_run ("cuMemRelease", nth);
    }
  g_assert_cmpuint (nth, >, 8);
}

/* --- at the beginning, each in a process of its own --- */

static void
the_beginning_may_fail (void)
{
  static const struct
  {
    const gchar *function;
    guint n; /* calls of it worth failing */
    gboolean is_final;
  } cases[] = {
    { "cuInit", 1, TRUE },
    { "cuDriverGetVersion", 1, TRUE },
    { "cuDeviceGetCount", 1, TRUE },
    { "cuDeviceGet", 2, FALSE },
    { "cuDeviceGetName", 1, FALSE },
    { "cuDeviceGetUuid", 1, FALSE },
    { "cuDeviceGetPCIBusId", 1, FALSE },
    { "cuDevicePrimaryCtxRetain", 2, FALSE },
    { "cuDevicePrimaryCtxGetState", 1, FALSE },
    { "cuDevicePrimaryCtxSetFlags", 1, FALSE },
    { "cuCtxSetCurrent", 2, FALSE },
    { "cuCtxGetStreamPriorityRange", 2, FALSE },
    { "cuMemAddressReserve", 3, FALSE },
    { "cuStreamCreateWithPriority", 4, FALSE },
    { "cuEventCreate", 3, FALSE },
    { "cuLibraryLoadData", 3, FALSE },
    { "cuLibraryGetKernel", 5, FALSE },
  };
  guint i, nth;

  if (g_test_subprocess ())
    {
      g_auto (GStrv) parts = g_strsplit (g_getenv ("FAULT"), ":", 3);

      nth = g_ascii_strtoull (parts[1], NULL, 10);
      fake_cuda_fail (parts[0], nth, CUDA_ERROR_LAUNCH_FAILED);
      check_run (parts[0], nth);
      fake_cuda_clear_faults ();
      if (parts[2][0] == '1')
        {
          g_autoptr (GError) error = NULL;
          gdouble result;

          g_assert_false (train (&result, &error));
          g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE);
        }
      else
        check_clean_run (parts[0], nth);
      return;
    }
  for (i = 0; i < G_N_ELEMENTS (cases); i++)
    for (nth = 1; nth <= cases[i].n; nth++)
      {
        g_autofree gchar *fault =
            g_strdup_printf ("%s:%u:%d", cases[i].function, nth, cases[i].is_final);

        g_test_message ("%s", fault);
        g_setenv ("FAULT", fault, TRUE);
        g_test_trap_subprocess (NULL, 20 * G_USEC_PER_SEC, 0);
        g_test_trap_assert_passed ();
      }
}

#define TEST(name) g_test_add_func ("/GTorchCudaFaults/" #name, name)

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
  TEST (the_beginning_may_fail);
  TEST (any_call_may_fail);
  TEST (several_calls_may_fail);
  TEST (work_may_fail);
  return g_test_run ();
}
