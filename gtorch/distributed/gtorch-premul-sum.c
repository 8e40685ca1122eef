/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Sums of numbers that each rank multiplies by a factor: by the engine, or by an operation before it. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-error.h"
#include "dispatch/gtorch-grad-mode.h"
#include "distributed/gtorch-collectives.h"
#include "distributed/gtorch-engine-private.h"
#include "gtorch-tensor-ops.h"
#include "tensor/gtorch-tensor-private.h"

static const GTorchEngine *
check (GTorchProcessGroup *group, const gchar *name, GTorchTensor *tensor, GError **error)
{
  const GTorchEngine *engine = gtorch_process_group_get_engine (group, name, error);
  const guint dtype = gtorch_tensor_get_dtype (tensor);

  if (engine == NULL || gtorch_dtype_kind (dtype) == GTORCH_KIND_FLOAT)
    return engine;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
               _ ("%s: the tensor is of %s; a factor is for floating-point numbers"), name,
               gtorch_dtype_infos[dtype].name);
  return NULL;
}

/**
 * gtorch_process_group_all_reduce_premul:
 * @self: a group
 * @tensor: floating-point numbers of this rank, which become the result
 * @factor: what this rank's numbers are multiplied by before
 * @error: return location for an error
 *
 * Adds up the tensors of all ranks, each multiplied by a factor of its rank, and gives the sum to all of
 * them. With nccl the factor is part of the operation; with mpi @tensor is multiplied first, also if the
 * operation then fails.
 *
 * ```c
 * work = gtorch_process_group_all_reduce_premul (group, grad, 1.0 / n_samples, &error);
 * ```
 *
 * Returns: (transfer full): the work, or %NULL with @error set: %GTORCH_ERROR_DTYPE if @tensor has no
 *   floating-point numbers
 *
 * Since: 0.1
 */
GTorchWork *
gtorch_process_group_all_reduce_premul (GTorchProcessGroup *self, GTorchTensor *tensor,
                                        gdouble factor, GError **error)
{
  const gchar *const name = "all_reduce_premul";
  const GTorchEngine *engine;

  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && GTORCH_IS_TENSOR (tensor), NULL);
  engine = check (self, name, tensor, error);
  if (engine == NULL)
    return NULL;
  if (!engine->klass->has_factor)
    {
      g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();

      return gtorch_tensor_mul_scalar_inplace (tensor, factor, error) == NULL
                 ? NULL
                 : gtorch_process_group_all_reduce (self, tensor, GTORCH_REDUCE_OP_SUM, error);
    }
  return gtorch_collective_begin_scaled (self, GTORCH_COLLECTIVE_ALL_REDUCE, name, tensor, NULL, 0,
                                         factor, error);
}

/**
 * gtorch_process_group_reduce_scatter_tensor_premul:
 * @self: a group
 * @output: the result for this rank
 * @input: a tensor of floating-point numbers with as many elements as @output has, times the number of ranks
 * @factor: what the numbers of @input are multiplied by before
 * @error: return location for an error
 *
 * Adds up the tensors of all ranks, each multiplied by a factor of its rank, and gives each rank its part of
 * the sum.
 *
 * Returns: (transfer full): the work, or %NULL with @error set: %GTORCH_ERROR_DTYPE if @input has no
 *   floating-point numbers
 *
 * Since: 0.1
 */
GTorchWork *
gtorch_process_group_reduce_scatter_tensor_premul (GTorchProcessGroup *self, GTorchTensor *output,
                                                   GTorchTensor *input, gdouble factor,
                                                   GError **error)
{
  const gchar *const name = "reduce_scatter_tensor_premul";
  g_autoptr (GTorchTensor) scaled = NULL;
  g_autoptr (GTorchGradGuard) guard = NULL;
  const GTorchEngine *engine;

  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && GTORCH_IS_TENSOR (output)
                            && GTORCH_IS_TENSOR (input),
                        NULL);
  engine = check (self, name, input, error);
  if (engine == NULL)
    return NULL;
  if (engine->klass->has_factor)
    return gtorch_collective_begin_scaled (self, GTORCH_COLLECTIVE_REDUCE_SCATTER, name, output,
                                           input, 0, factor, error);
  guard = gtorch_no_grad ();
  scaled = gtorch_tensor_mul_scalar (input, factor, error);
  return scaled == NULL ? NULL
                        : gtorch_process_group_reduce_scatter_tensor (self, output, scaled,
                                                                      GTORCH_REDUCE_OP_SUM, error);
}
