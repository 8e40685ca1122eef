/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Dropout. The mask has a bit for each element, in C order: element i has bit i / 4 % 32 of word
 * i / 128 * 4 + i % 4. This is the order of a warp on a GPU, each of whose threads handles four
 * neighbours. */

#include "config.h"

#include <glib/gi18n-lib.h>

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
                         _ ("a mask of shape %s, dtype %s, does not belong to a tensor of shape "
                            "%s"),
                         gtorch_impl_shape_str (mask), gtorch_dtype_get_name (mask->dtype),
                         gtorch_impl_shape_str (call->inputs[0]));
      return FALSE;
    }
  return gtorch_shape_same (call, error);
}

/* Complex numbers are dropped as a whole: by real factors. */
static GTorchImpl *
drop_complex (GTorchImpl *self, gdouble p, GTorchGenerator *generator, GError **error)
{
  g_autoptr (GTorchImpl) ones =
      gtorch_op_ones_like (self, gtorch_dtype_infos[self->dtype].real, error);
  g_autoptr (GTorchImpl) factors =
      ones != NULL ? gtorch_op_dropout (ones, p, TRUE, generator, error) : NULL;

  return factors != NULL ? gtorch_op_mul (self, factors, error) : NULL;
}

GTorchImpl *
gtorch_composite_dropout (GTorchImpl *self, gdouble p, gboolean training,
                          GTorchGenerator *generator, GError **error)
{
  GTorchImpl *result, *mask;

  if (!training || p == 0)
    return gtorch_impl_ref (self);
  if (gtorch_dtype_kind (self->dtype) == GTORCH_KIND_COMPLEX)
    return drop_complex (self, p, generator, error);
  if (!gtorch_op_native_dropout (self, p, p < 1 ? 1 / (1 - p) : 0, generator, &result, &mask,
                                 error))
    {
      g_prefix_error (error, "dropout: ");
      return NULL;
    }
  gtorch_impl_unref (mask);
  return result;
}
