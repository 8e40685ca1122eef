/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "test-device.h"

#include "backend/plain-device.h"

#include <stdlib.h>

#include <gtorch/cuda/driver/gtorch-cuda-private.h>
#include <gtorch/device/gtorch-device-private.h>

static GTorchDevice *device;

static void __attribute__ ((constructor)) choose_device (void)
{
  const gchar *name = g_getenv ("GTORCH_TEST_DEVICE");
  g_autoptr (GTorchTensor) x = NULL;
  g_autoptr (GError) error = NULL;

  if (name == NULL || name[0] == '\0')
    return;
  if (g_str_has_prefix (name, "plain"))
    plain_backend_add ();
  device = gtorch_device_new_from_string (name, &error);
  if (device != NULL)
    device = gtorch_device_resolve (device); /* the devices are singletons */
  if (device != NULL && gtorch_device_set_current (device, &error))
    x = gtorch_full (GTORCH_SHAPE (5), 2, GTORCH_DTYPE_FLOAT32, device, &error);
  if (x == NULL) /* no such device, or no kernels for it */
    {
      g_print ("1..0 # SKIP %s\n", error->message);
      exit (0);
    }
  gtorch_set_default_device (device);
}

/* Where the processor supports only the baseline, a run for a level would repeat the normal one. */
static void __attribute__ ((constructor)) need_levels (void)
{
#ifdef GTORCH_HAVE_ISA_V3
  if (g_getenv ("GTORCH_CPU_ISA") != NULL && !__builtin_cpu_supports ("avx2"))
    {
      g_print ("1..0 # SKIP the processor has no AVX2\n");
      exit (0);
    }
#endif
}

GTorchDevice *
test_device (void)
{
  return device != NULL ? device : gtorch_device_cpu ();
}

gboolean
test_is_elsewhere (const gchar *why)
{
  if (test_device () == gtorch_device_cpu ())
    return FALSE;
  g_test_skip (why);
  return TRUE;
}

gboolean
test_computes_on_host (void)
{
  return test_device ()->in_caller;
}

gboolean
test_can_capture (void)
{
  g_autoptr (GTorchStream) stream = NULL;
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) x = NULL;
  g_autoptr (GError) error = NULL;
  GTorchGraphCapture *capture;

  if (test_device () == gtorch_device_cpu ())
    return TRUE;
  stream = gtorch_stream_new (NULL, 0, &error);
  g_assert_no_error (error);
  capture =
      gtorch_graph_capture_new (graph, stream, NULL, GTORCH_CAPTURE_MODE_THREAD_LOCAL, &error);
  if (capture == NULL)
    {
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
      g_test_skip (error->message);
      return FALSE;
    }
  x = gtorch_full (GTORCH_SHAPE (5), 2, GTORCH_DTYPE_FLOAT32, test_device (), &error);
  g_assert_no_error (error);
  gtorch_graph_capture_end (capture, &error);
  g_assert_no_error (error);
  gtorch_graph_capture_unref (capture);
  return TRUE;
}

gboolean
test_fails (GTorchTensor *result, GError **error)
{
  if (result == NULL)
    return TRUE;
  g_object_unref (result);
  return !gtorch_device_synchronize (test_device (), NULL, error);
}

/* Moves the whole storage, so that strides and offset do not change. */
static GTorchImpl *
move (GTorchImpl *impl, GTorchDevice *to)
{
  gint64 n_bytes;
  GTorchImpl *bytes, *moved, *result;
  GError *error = NULL;

  if (impl == NULL)
    return NULL;
  if (impl->storage == NULL || impl->storage->device == to)
    return gtorch_impl_ref (impl);
  n_bytes = impl->storage->n_bytes;
  bytes = gtorch_impl_new_strided (impl->storage, GTORCH_DTYPE_UINT8, 0, &n_bytes, NULL, 1);
  moved = gtorch_copy_to_device (bytes, to, FALSE, NULL, &error);
  g_assert_no_error (error);
  result = gtorch_impl_new_strided (moved->storage, impl->dtype, impl->offset, impl->shape,
                                    impl->strides, impl->n_dims);
  gtorch_impl_unref (bytes);
  gtorch_impl_unref (moved);
  return result;
}

GTorchImpl *
impl_to_test_device (GTorchImpl *impl)
{
  return move (impl, test_device ());
}

GTorchImpl *
impl_to_host (GTorchImpl *impl)
{
  return move (impl, gtorch_device_cpu ());
}

gdouble
test_element (GTorchTensor *tensor, gint64 i)
{
  g_autoptr (GError) error = NULL;
  g_autofree gdouble *values = NULL;
  gsize n;

  values = gtorch_tensor_to_doubles (tensor, &n, &error);
  g_assert_no_error (error);
  g_assert_cmpint (i, >=, 0);
  g_assert_cmpint (i, <, (gint64) n);
  return values[i];
}

gpointer
test_dup_elements (GTorchTensor *tensor, gsize *n_bytes)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = gtorch_tensor_get_bytes (tensor, &error);
  gsize size;
  gpointer elements;

  g_assert_no_error (error);
  elements = g_bytes_unref_to_data (g_steal_pointer (&bytes), &size);
  if (n_bytes != NULL)
    *n_bytes = size;
  return elements;
}

gchar *
test_to_string (GTorchTensor *tensor)
{
  g_autofree gchar *text = gtorch_tensor_to_string (tensor);
  g_autofree gchar *name = gtorch_device_to_string (test_device ());
  g_autofree gchar *place = g_strdup_printf (", device='%s'", name);
  g_auto (GStrv) parts = g_strsplit (text, place, -1);

  return g_strjoinv ("", parts);
}

/* --- streams --- */

typedef struct
{
  void (*func) (gpointer data);
  gpointer data;
} Call;

static gboolean
run_call (gpointer data, GError **error)
{
  const Call *call = data;

  call->func (call->data);
  return TRUE;
}

static void
run_call_and_free (void *data)
{
  run_call (data, NULL);
  g_free (data);
}

void
test_enqueue (GTorchStream *stream, void (*func) (gpointer data), gpointer data)
{
  Call *call = g_new (Call, 1);
  g_autoptr (GError) error = NULL;

  *call = (Call){ func, data };
  if (test_device ()->type != GTORCH_DEVICE_TYPE_CUDA)
    GTORCH_STREAM_GET_CLASS (stream)->enqueue (stream, run_call, call, g_free);
  else if (gtorch_cuda_device_activate (GTORCH_CUDA_DEVICE (test_device ()), &error))
    gtorch_cuda_check (gtorch_cuda.cuLaunchHostFunc (gtorch_stream_get_handle (stream),
                                                     run_call_and_free, call),
                       "cuLaunchHostFunc", &error);
  g_assert_no_error (error);
}
