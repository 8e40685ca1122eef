/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Matrix and vector products, of batches of matrices. */

#include "config.h"

#include "cpu/gtorch-cpu-pack.h"
#include "cpu/ops/gtorch-cpu-gemm.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

gboolean
gtorch_cpu_multiply (GTorchOpCall *call, GTorchImpl *a, GTorchImpl *b, GTorchImpl *c, gdouble alpha,
                     gdouble beta, GError **error)
{
  guint dtype = gtorch_dtype_infos[call->compute].compute;
  g_autoptr (GTorchImpl) x =
      a->dtype == dtype ? gtorch_impl_ref (a) : gtorch_cpu_pack (a, dtype, error);
  g_autoptr (GTorchImpl) y = x == NULL           ? NULL
                             : b->dtype == dtype ? gtorch_impl_ref (b)
                                                 : gtorch_cpu_pack (b, dtype, error);
  g_autoptr (GTorchImpl) z = y != NULL ? gtorch_cpu_pack_output (c, dtype, error) : NULL;

  if (z == NULL)
    return FALSE;
  if (beta != 0 && z != c)
    gtorch_cpu_assign (z, c);
  gtorch_cpu_gemm_batches (dtype, x, y, z, alpha, beta);
  gtorch_cpu_unpack (z, c);
  return TRUE;
}

gboolean
gtorch_cpu_product (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  g_auto (GTorchProduct) product = { NULL };

  gtorch_product_init (&product, call);
  if (product.beta != 0)
    gtorch_cpu_assign (call->outputs[0], call->inputs[0]);
  return gtorch_cpu_multiply (call, product.a, product.b, product.c, product.alpha, product.beta,
                              error);
}
