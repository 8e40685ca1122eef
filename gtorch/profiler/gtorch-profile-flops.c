/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* How many floating-point operations an operation takes. A multiplication and an addition are two; of attention
 * masks save nothing. */

#include "config.h"

#include "dispatch/gtorch-op-private.h"
#include "gtorch-ops-private.h"
#include "profiler/gtorch-profiler-private.h"

typedef guint64 (*Formula) (const GTorchOpCall *call);

static guint64
last_dim (const GTorchImpl *impl)
{
  return impl->n_dims > 0 ? impl->shape[impl->n_dims - 1] : 1;
}

/* One for each element of the result. */
static guint64
flops_of_elements (const GTorchOpCall *call)
{
  return call->outputs[0]->numel;
}

/* Each element of the result is a sum over the last dimension of the first factor. */
static guint64
flops_of_product (const GTorchOpCall *call)
{
  return 2 * (guint64) call->outputs[0]->numel * last_dim (call->inputs[0]);
}

static guint64
flops_of_added_product (const GTorchOpCall *call)
{
  return 2 * (guint64) call->outputs[0]->numel * last_dim (call->inputs[1]);
}

/* Each element of the gradient meets each element of a row of the input. */
static guint64
flops_of_linear_grad (const GTorchOpCall *call)
{
  return 2 * (guint64) call->inputs[0]->numel * last_dim (call->inputs[1]);
}

/* The numbers that each element of a convolution is a sum of. */
static guint64
filter_size (const GTorchImpl *weight)
{
  return weight->n_dims > 0 && weight->shape[0] > 0 ? weight->numel / weight->shape[0] : 0;
}

static guint64
flops_of_convolve (const GTorchOpCall *call)
{
  return 2 * (guint64) call->outputs[0]->numel * filter_size (call->inputs[1]);
}

static guint64
flops_of_convolve_input (const GTorchOpCall *call)
{
  return 2 * (guint64) call->inputs[0]->numel * filter_size (call->inputs[1]);
}

static guint64
flops_of_convolve_weight (const GTorchOpCall *call)
{
  return 2 * (guint64) call->inputs[0]->numel * filter_size (call->outputs[0]);
}

/* The product of the queries and the length of the keys: so many scores there are. */
static guint64
n_scores (const GTorchImpl *query, const GTorchImpl *key)
{
  const guint64 width = last_dim (query);

  return width > 0 && key->n_dims > 1 ? query->numel / width * key->shape[key->n_dims - 2] : 0;
}

static guint64
flops_of_attention (const GTorchOpCall *call)
{
  return 2 * n_scores (call->inputs[0], call->inputs[1])
         * (last_dim (call->inputs[0]) + last_dim (call->inputs[2]));
}

/* The scores again, and four products. */
static guint64
flops_of_attention_backward (const GTorchOpCall *call)
{
  return 2 * n_scores (call->inputs[1], call->inputs[2])
         * (3 * last_dim (call->inputs[1]) + 2 * last_dim (call->inputs[3]));
}

/* clang-format off */
static const struct
{
  guint op;
  Formula formula;
} formulas[] = {
  { GTORCH_OP_ADD,                flops_of_elements },
  { GTORCH_OP_ADDMM,              flops_of_added_product },
  { GTORCH_OP_ATTENTION,          flops_of_attention },
  { GTORCH_OP_ATTENTION_BACKWARD, flops_of_attention_backward },
  { GTORCH_OP_BADDBMM,            flops_of_added_product },
  { GTORCH_OP_BMM,                flops_of_product },
  { GTORCH_OP_CONVOLVE,           flops_of_convolve },
  { GTORCH_OP_CONVOLVE_INPUT,     flops_of_convolve_input },
  { GTORCH_OP_CONVOLVE_WEIGHT,    flops_of_convolve_weight },
  { GTORCH_OP_DIV,                flops_of_elements },
  { GTORCH_OP_DOT,                flops_of_product },
  { GTORCH_OP_LINEAR,             flops_of_product },
  { GTORCH_OP_LINEAR_GRADS,       flops_of_linear_grad },
  { GTORCH_OP_LINEAR_GRAD_WEIGHT, flops_of_linear_grad },
  { GTORCH_OP_MATMUL,             flops_of_product },
  { GTORCH_OP_MM,                 flops_of_product },
  { GTORCH_OP_MUL,                flops_of_elements },
  { GTORCH_OP_MV,                 flops_of_product },
  { GTORCH_OP_SUB,                flops_of_elements },
};
/* clang-format on */

guint64
gtorch_profile_flops (const GTorchOpCall *call)
{
  guint i;

  for (i = 0; i < G_N_ELEMENTS (formulas); i++)
    if (formulas[i].op == call->op->id)
      return formulas[i].formula (call);
  return 0;
}
