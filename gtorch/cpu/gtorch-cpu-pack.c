/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <string.h>

#include "cpu/gtorch-cpu-cast.h"
#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-pack.h"

static void
cast_part (char *const *data, const gint64 *strides, gint64 n, gpointer user_data)
{
  GTorchCast *cast = user_data;

  (*cast) (data[0], strides[0], data[1], strides[1], n);
}

void
gtorch_cpu_assign (GTorchImpl *to, GTorchImpl *from)
{
  GTorchImpl *operands[] = { to, from };
  GTorchCast cast = gtorch_cpu_cast (to->dtype, from->dtype);
  GTorchIter iter;

  if (to->numel == 0)
    return;
  gtorch_iter_init (&iter, operands, 2, to->shape, to->n_dims);
  iter.any_order = TRUE;
  gtorch_iter_run (&iter, GTORCH_CPU_GRAIN, cast_part, &cast);
}

GTorchImpl *
gtorch_cpu_pack (GTorchImpl *impl, guint dtype, GError **error)
{
  GTorchImpl *copy;

  if (impl->is_contiguous && impl->dtype == dtype)
    return gtorch_impl_ref (impl);
  copy = gtorch_impl_new (gtorch_impl_device (impl), dtype, impl->shape, impl->n_dims, error);
  if (copy != NULL)
    gtorch_cpu_assign (copy, impl);
  return copy;
}

GTorchImpl *
gtorch_cpu_move_last (GTorchImpl *impl, guint64 mask)
{
  gint64 shape[GTORCH_MAX_DIMS], strides[GTORCH_MAX_DIMS];
  guint n = 0, pass, i;

  for (pass = 0; pass < 2; pass++)
    for (i = 0; i < impl->n_dims; i++)
      if (((mask >> i) & 1) == pass)
        {
          shape[n] = impl->shape[i];
          strides[n++] = impl->strides[i];
        }
  return gtorch_impl_new_view (impl, impl->offset, shape, strides, n);
}

GTorchImpl *
gtorch_cpu_pack_rows (GTorchImpl *impl, guint64 mask, guint dtype, GError **error)
{
  g_autoptr (GTorchImpl) moved = gtorch_cpu_move_last (impl, mask);

  return gtorch_cpu_pack (moved, dtype, error);
}

GTorchImpl *
gtorch_cpu_pack_output (GTorchImpl *output, guint dtype, GError **error)
{
  if (output->is_contiguous && output->dtype == dtype)
    return gtorch_impl_ref (output);
  return gtorch_impl_new (gtorch_impl_device (output), dtype, output->shape, output->n_dims, error);
}

void
gtorch_cpu_unpack (GTorchImpl *packed, GTorchImpl *output)
{
  if (packed != output)
    gtorch_cpu_assign (output, packed);
}
