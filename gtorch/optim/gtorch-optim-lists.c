/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Steps over many parameters in one operation. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "gtorch-ops-private.h"
#include "optim/gtorch-optimizer-private.h"
#include "tensor/gtorch-tensor-private.h"

typedef struct
{
  const char *begin, *end;
} Range;

static Range
range_of (const GTorchImpl *impl)
{
  gint64 size = gtorch_dtype_size (impl->dtype), low = 0, high = 0;
  const char *data = gtorch_impl_data (impl);
  guint i;

  for (i = 0; i < impl->n_dims; i++)
    {
      gint64 reach = (impl->shape[i] - 1) * impl->strides[i];

      *(reach < 0 ? &low : &high) += reach;
    }
  return (Range){ data + low * size, data + (high + (impl->numel > 0)) * size };
}

static gint
by_address (gconstpointer a, gconstpointer b)
{
  const Range *x = a, *y = b;

  return x->begin < y->begin ? -1 : x->begin > y->begin;
}

gboolean
gtorch_optim_are_apart (GTorchImpl *const *impls, guint n)
{
  g_autofree Range *ranges = g_new (Range, n);
  guint i, n_ranges = 0;

  for (i = 0; i < n; i++)
    if (impls[i]->storage == NULL)
      return FALSE; /* the operation reports the fault */
    else if (impls[i]->numel > 0)
      ranges[n_ranges++] = range_of (impls[i]);
  if (n_ranges > 1)
    qsort (ranges, n_ranges, sizeof (Range), by_address);
  for (i = 1; i < n_ranges; i++)
    if (ranges[i].begin < ranges[i - 1].end)
      return FALSE;
  return TRUE;
}

gboolean
gtorch_optim_run (const GTorchOptimStep *step, GTorchImpl *const *operands, guint kinds,
                  GTorchOptimFunc func, gpointer data, GError **error)
{
  g_autofree GTorchImpl **one = NULL;
  guint i, kind;

  if (gtorch_optim_are_apart (operands, step->n))
    return func (step, operands, step->n, kinds, data, error);
  one = g_new (GTorchImpl *, kinds);
  for (i = 0; i < step->n; i++)
    {
      for (kind = 0; kind < kinds; kind++)
        one[kind] = operands[kind * step->n + i];
      if (!func (step, one, 1, kinds, data, error))
        return FALSE;
    }
  return TRUE;
}

GTorchTensor *
gtorch_optim_ensure_state (GTorchOptimizer *self, GTorchTensor *param, const gchar *name,
                           gboolean is_number, gdouble value, GError **error)
{
  GTorchTensor *state = gtorch_optimizer_get_state (self, param, name);
  g_autoptr (GTorchTensor) made = NULL;

  if (state != NULL)
    return state;
  made = gtorch_optim_new_filled (is_number ? NULL : param, gtorch_tensor_get_device (param), value,
                                  error);
  if (made == NULL)
    return NULL;
  gtorch_optimizer_set_state (self, param, name, made);
  return gtorch_optimizer_get_state (self, param, name);
}
