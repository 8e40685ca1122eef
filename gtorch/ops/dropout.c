/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Dropout, except for the random numbers, which are in random.c. The mask has a bit for each element, in C
 * order: element i has bit i / 4 % 32 of word i / 128 * 4 + i % 4. This is the order of a warp on a GPU,
 * each of whose threads handles four neighbours. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-pack.h"
#include "gtorch-ops-private.h"

static gint64
mask_length (const GTorchImpl *impl)
{
  return (impl->numel / 128 + (impl->numel % 128 != 0)) * 4;
}

gboolean
gtorch_shape_native_dropout (GTorchOpCall *call, GError **error)
{
  const gint64 length = mask_length (call->inputs[0]);

  return gtorch_shape_same (call, error)
         && gtorch_call_set_output (call, 1, GTORCH_DTYPE_INT32, &length, 1, error);
}

gboolean
gtorch_shape_dropout_backward (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *mask = call->inputs[1];

  if (mask->dtype != GTORCH_DTYPE_INT32 || mask->numel != mask_length (call->inputs[0]))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("a mask of shape %s, dtype %s, is not that of a tensor of shape %s"),
                         gtorch_impl_shape_str (mask), gtorch_dtype_get_name (mask->dtype),
                         gtorch_impl_shape_str (call->inputs[0]));
      return FALSE;
    }
  return gtorch_shape_same (call, error);
}

typedef struct
{
  gpointer result;
  gconstpointer grad;
  const guint32 *mask;
  gint64 n;
  gdouble scale;
  gboolean wide;
} Backward;

static void
choose (gint64 first, gint64 last, gpointer data)
{
  const Backward *self = data;
  gint64 i;

  for (i = first * 128; i < MIN (last * 128, self->n); i++)
    {
      const gboolean keep = self->mask[i / 128 * 4 + i % 4] >> i / 4 % 32 & 1;

      if (self->wide)
        ((gdouble *) self->result)[i] = keep ? ((const gdouble *) self->grad)[i] * self->scale : 0;
      else
        ((gfloat *) self->result)[i] =
            keep ? ((const gfloat *) self->grad)[i] * (gfloat) self->scale : 0;
    }
}

gboolean
gtorch_cpu_dropout_backward (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  const gboolean wide = output->dtype == GTORCH_DTYPE_FLOAT64;
  const guint dtype = wide ? GTORCH_DTYPE_FLOAT64 : GTORCH_DTYPE_FLOAT32;
  g_autoptr (GTorchImpl) grad = gtorch_cpu_pack (call->inputs[0], dtype, error);
  g_autoptr (GTorchImpl) mask =
      grad != NULL ? gtorch_cpu_pack (call->inputs[1], GTORCH_DTYPE_INT32, error) : NULL;
  g_autoptr (GTorchImpl) result =
      mask != NULL ? gtorch_cpu_pack_output (output, dtype, error) : NULL;
  Backward self = { .n = output->numel, .scale = call->attrs[0].d, .wide = wide };

  if (result == NULL)
    return FALSE;
  self.result = gtorch_impl_data (result);
  self.grad = gtorch_impl_data (grad);
  self.mask = gtorch_impl_data (mask);
  gtorch_parallel_for ((self.n + 127) / 128, 64, choose, &self);
  gtorch_cpu_unpack (result, output);
  return TRUE;
}

GTorchImpl *
gtorch_composite_dropout (GTorchImpl *self, gdouble p, gboolean training,
                          GTorchGenerator *generator, GError **error)
{
  GTorchImpl *result, *mask;

  if (!training || p == 0)
    return gtorch_impl_ref (self);
  if (!gtorch_op_native_dropout (self, p, p < 1 ? 1 / (1 - p) : 0, generator, &result, &mask,
                                 error))
    {
      g_prefix_error (error, "dropout: ");
      return NULL;
    }
  gtorch_impl_unref (mask);
  return result;
}
