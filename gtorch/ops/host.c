/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Elements of tensors on the host: waiting for them, copying them there, and reading them. */

#include "config.h"

#include "ops/gtorch-host-private.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-error-private.h"
#include "base/gtorch-text-private.h"
#include "device/gtorch-device-private.h"
#include "gtorch-ops-private.h"
#include "stream/gtorch-capturing-private.h"
#include "stream/gtorch-stream-private.h"
#include "tensor/gtorch-hold-private.h"

GTorchCast (*gtorch_host_cast) (guint dst_dtype, guint src_dtype);

gboolean
gtorch_impl_wait (const gchar *op, GTorchImpl *impl, GError **error)
{
  if (!gtorch_impl_sync (impl, error))
    {
      g_prefix_error (error, "%s: ", op);
      return FALSE;
    }
  if (gtorch_stream_order_storage (NULL, gtorch_impl_device (impl), impl->storage, error))
    return TRUE;
  gtorch_error_set_op (error, op);
  return FALSE;
}

/* What is captured or looked at for a capture is an operation. A capture of the CPU itself must not get the
 * copy to the host, which has to be there at once. */
static gboolean
is_operation (void)
{
  const GTorchStream *host =
      gtorch_captures_exist () ? gtorch_current_stream (gtorch_device_cpu ()) : NULL;

  return gtorch_captures_exist ()
         && (host == NULL || __atomic_load_n (&host->capture, __ATOMIC_RELAXED) == NULL);
}

GTorchImpl *
gtorch_impl_to_host (const gchar *op, GTorchImpl *impl, GError **error)
{
  g_autoptr (GTorchImpl) host = NULL;
  GTORCH_HOLD (impl);

  if (!gtorch_impl_wait (op, impl, error))
    return NULL;
  if (gtorch_device_is_host (gtorch_impl_device (impl)))
    return gtorch_impl_alias (impl); /* release () of the tensor does not reach it */
  if (G_LIKELY (!is_operation ()))
    host = gtorch_copy_to_device (impl, gtorch_device_cpu (), FALSE, NULL, error);
  else
    {
      host = gtorch_impl_new (gtorch_device_cpu (), impl->dtype, impl->shape, impl->n_dims, error);
      if (host != NULL && !gtorch_op_copy_inplace (host, impl, FALSE, error))
        g_clear_pointer (&host, gtorch_impl_unref);
    }
  if (host == NULL)
    gtorch_error_set_op (error, op);
  return g_steal_pointer (&host);
}

gboolean
gtorch_impl_check_not_negative (const gchar *op, const gchar *what, GTorchImpl *impl,
                                gboolean allow_nan, GError **error)
{
  g_autoptr (GTorchImpl) values = gtorch_impl_alias (impl);
  g_autoptr (GTorchImpl) zero = gtorch_impl_new_int (0);
  g_autoptr (GTorchImpl) found =
      allow_nan ? gtorch_op_lt (values, zero, error) : gtorch_op_ge (values, zero, error);
  g_autoptr (GTorchImpl) one = NULL;
  g_autoptr (GTorchImpl) host = NULL;

  if (found != NULL)
    one = allow_nan ? gtorch_op_any (found, NULL, 0, FALSE, error)
                    : gtorch_op_all (found, NULL, 0, FALSE, error);
  host = one != NULL ? gtorch_impl_to_host (op, one, error) : NULL;
  if (host == NULL)
    {
      gtorch_error_set_op (error, op);
      return FALSE;
    }
  if (*(const guint8 *) gtorch_impl_data (host) != allow_nan)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               allow_nan ? _ ("%s: %s of shape %s: none may be negative")
                         : _ ("%s: %s of shape %s: none may be negative or NaN"),
               op, _ (what), gtorch_impl_shape_str (impl));
  return FALSE;
}

static void
keep (GTorchStorage *storage)
{
}

/* Calls the form of the CPU itself: this is no operation of the program. */
void
gtorch_host_copy (GTorchImpl *dst, GTorchImpl *src)
{
  GTorchDevice *cpu = gtorch_device_cpu ();
  GTorchOpCall call = { .device = cpu, .inputs = &src, .n_inputs = 1, .outputs = { dst } };

  cpu->runs[GTORCH_OP_TO_DTYPE](&call, NULL, NULL);
}

void
gtorch_impl_read (GTorchImpl *host, guint dtype, gpointer buffer)
{
  GTorchStorage *storage;
  GTorchImpl *target;

  if (host->numel == 0)
    return;
  if (host->numel == 1)
    {
      gtorch_host_cast (dtype, host->dtype) (buffer, gtorch_dtype_size (dtype),
                                             gtorch_impl_data (host), 0, 1);
      return;
    }
  storage = gtorch_storage_new_foreign (gtorch_device_cpu (), buffer,
                                        host->numel * gtorch_dtype_size (dtype), keep, NULL);
  target = gtorch_impl_new_strided (storage, dtype, 0, host->shape, NULL, host->n_dims);
  gtorch_host_copy (target, host);
  gtorch_impl_unref (target);
  gtorch_storage_unref (storage);
}
