/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Moves to factory.c together with the rows. */

#include "config.h"

#include <string.h>

#include "cpu/gtorch-cpu-cast.h"
#include "gtorch-ops-private.h"

static gboolean
shape (GTorchOpCall *call, GError **error)
{
  return gtorch_call_set_output (call, 0, call->inputs[0]->dtype, call->inputs[0]->shape,
                                 call->inputs[0]->n_dims, error);
}

gboolean
gtorch_shape_zeros_like (GTorchOpCall *call, GError **error)
{
  return shape (call, error);
}

gboolean
gtorch_shape_ones_like (GTorchOpCall *call, GError **error)
{
  return shape (call, error);
}

gboolean
gtorch_shape_zeros (GTorchOpCall *call, GError **error)
{
  guint dtype =
      call->attrs[1].i != GTORCH_DTYPE_NONE ? call->attrs[1].i : gtorch_get_default_dtype ();

  return gtorch_shape_check ("zeros", call->attrs[0].list.data, call->attrs[0].list.n, dtype, error)
         && gtorch_call_set_output (call, 0, dtype, call->attrs[0].list.data, call->attrs[0].list.n,
                                    error);
}

gboolean
gtorch_cpu_zeros_like (GTorchOpCall *call, GError **error)
{
  memset (gtorch_impl_data (call->outputs[0]), 0, gtorch_impl_n_bytes (call->outputs[0]));
  return TRUE;
}

gboolean
gtorch_cpu_ones_like (GTorchOpCall *call, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  const guint8 one = 1;

  gtorch_cpu_cast (output->dtype, GTORCH_DTYPE_BOOL) (gtorch_impl_data (output),
                                                      gtorch_dtype_size (output->dtype),
                                                      (const char *) &one, 0, output->numel);
  return TRUE;
}

gboolean
gtorch_cpu_zeros (GTorchOpCall *call, GError **error)
{
  return gtorch_cpu_zeros_like (call, error);
}
