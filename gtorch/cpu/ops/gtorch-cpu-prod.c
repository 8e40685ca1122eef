/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The gradient of a product. The error of each factor counts, so products of float32 are computed in
 * float64. */

#include "config.h"

#include <complex.h>

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-pack.h"
#include "cpu/ops/gtorch-cpu-reduce.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

typedef struct
{
  gpointer input, output;
  gint64 n;
  guint dtype;
} Others;

/* T: dtype of the elements; A: dtype of the products */
#define OTHERS_OF(T, A)                                   \
  for (; begin < end; begin++)                            \
    {                                                     \
      const T *x = (const T *) others->input + begin * n; \
      T *y = (T *) others->output + begin * n;            \
      A product = 1;                                      \
      for (i = 0; i < n; i++)                             \
        {                                                 \
          y[i] = product;                                 \
          product *= x[i];                                \
        }                                                 \
      for (product = 1; i-- > 0;)                         \
        {                                                 \
          y[i] *= product;                                \
          product *= x[i];                                \
        }                                                 \
    }

static void
others_of_rows (gint64 begin, gint64 end, gpointer user_data)
{
  const Others *others = user_data;
  gint64 n = others->n, i;

  if (others->dtype == GTORCH_DTYPE_FLOAT32)
    OTHERS_OF (float, double)
  else if (others->dtype == GTORCH_DTYPE_FLOAT64)
    OTHERS_OF (double, double)
  else if (others->dtype == GTORCH_DTYPE_COMPLEX64)
    OTHERS_OF (float _Complex, double _Complex)
  else
    OTHERS_OF (double _Complex, double _Complex)
}

gboolean
gtorch_cpu_prod_others (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  guint dtype = gtorch_dtype_infos[call->compute].compute;
  g_autoptr (GTorchImpl) input = NULL;
  g_autoptr (GTorchImpl) target = NULL;
  g_autoptr (GTorchImpl) output = NULL;
  gboolean keepdim;
  guint64 mask;
  guint ignored, i;
  Others others = { .n = 1, .dtype = dtype };

  if (self->numel == 0)
    return TRUE;
  if (!gtorch_reduce_parse (call, &mask, &keepdim, &ignored, error))
    return FALSE;
  for (i = 0; i < self->n_dims; i++)
    if (mask & (G_GUINT64_CONSTANT (1) << i))
      others.n *= self->shape[i];
  target = gtorch_cpu_move_last (call->outputs[0], mask);
  input = gtorch_cpu_pack_rows (self, mask, dtype, error);
  output = input != NULL ? gtorch_cpu_pack_output (target, dtype, error) : NULL;
  if (output == NULL)
    return FALSE;
  others.input = gtorch_impl_data (input);
  others.output = gtorch_impl_data (output);
  gtorch_parallel_for (self->numel / others.n, 1 + GTORCH_CPU_GRAIN / others.n, others_of_rows,
                       &others);
  gtorch_cpu_unpack (output, target);
  return TRUE;
}
