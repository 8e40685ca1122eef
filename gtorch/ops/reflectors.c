/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Gradients of products of Householder reflectors. The operations compute them in one call of LAPACK or
 * cuSOLVER; a gradient is that of the same product composed of one reflector after the other. */

#include "config.h"

#include "dispatch/gtorch-grad-mode.h"
#include "ops/gtorch-linalg-private.h"
#include "tensor/gtorch-recorder-private.h"

#define N_INPUTS      3
#define OP(name, ...) GTORCH_FORMULA_OP (f, name, __VA_ARGS__)

/* Returns the vectors of the reflectors: columns with 1 on the diagonal and 0 above it. */
static GTorchImpl *
vectors_of (GTorchFormula *f, GTorchImpl *a, gint64 n)
{
  GTorchImpl *below = OP (slice, a, -1, 0, n, 1), *diagonal;

  below = OP (tril, below, -1);
  diagonal = f->failed ? NULL
                       : OP (eye, below->shape[below->n_dims - 2], n, below->dtype,
                             gtorch_impl_device (below));
  return OP (add, below, diagonal, 1);
}

/* Returns (I - tau v v^H) x for column i of the vectors. */
static GTorchImpl *
reflect (GTorchImpl *vectors, GTorchImpl *tau, gint64 i, GTorchImpl *x, GError **error)
{
  g_auto (GTorchFormula) formula = GTORCH_FORMULA_INIT (error);
  GTorchFormula *f = &formula;
  GTorchImpl *v = OP (slice, vectors, -1, i, i + 1, 1), *row, *factor;

  row = gtorch_formula_adjoint (f, v);
  row = OP (matmul, row, x);
  factor = OP (slice, tau, -1, i, i + 1, 1);
  factor = OP (unsqueeze, factor, -1);
  v = OP (mul, v, factor);
  row = OP (matmul, v, row);
  return gtorch_formula_take (f, OP (sub, x, row, 1));
}

/* Returns Q x, or Q^H x, where Q is the product of the reflectors in order. */
static GTorchImpl *
apply (GTorchFormula *f, GTorchImpl *a, GTorchImpl *tau, GTorchImpl *x, gboolean adjoint)
{
  const gint64 n = tau->shape[tau->n_dims - 1];
  GTorchImpl *vectors = vectors_of (f, a, n), *result;
  gint64 step;

  tau = adjoint ? OP (conj, tau) : tau;
  if (f->failed)
    return NULL;
  result = gtorch_impl_ref (x);
  for (step = 0; step < n && result != NULL; step++)
    {
      g_autoptr (GTorchImpl) before = result;

      result = reflect (vectors, tau, adjoint ? step : n - 1 - step, before, f->error);
    }
  return gtorch_formula_keep (f, result);
}

static GTorchImpl *
product (GTorchFormula *f, GTorchImpl *const *inputs)
{
  GTorchImpl *a = inputs[0], *x;

  x = OP (eye, a->shape[a->n_dims - 2], a->shape[a->n_dims - 1], a->dtype, gtorch_impl_device (a));
  x = OP (expand, x, a->shape, a->n_dims);
  return apply (f, a, inputs[1], x, FALSE);
}

static GTorchImpl *
multiplied (GTorchFormula *f, GTorchImpl *const *inputs, gboolean left, gboolean transpose)
{
  GTorchImpl *x = inputs[2];

  if (left)
    return apply (f, inputs[0], inputs[1], x, transpose);
  /* x Q is the adjoint of Q^H x^H */
  x = gtorch_formula_adjoint (f, x);
  x = f->failed ? NULL : apply (f, inputs[0], inputs[1], x, !transpose);
  return gtorch_formula_adjoint (f, x);
}

/* The composition is recorded, whether or not its gradients are. Views of the inputs, or aliases that require
 * a gradient, stand for these, since several may be one tensor. */
static gboolean
differentiate (GTorchGradContext *context, GTorchImpl **own, GTorchImpl **results, GError **error)
{
  const gboolean is_recorded = gtorch_autograd_is_differentiated ();
  g_autoptr (GTorchGradGuard) guard = gtorch_is_grad_enabled () ? NULL : gtorch_enable_grad ();
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *wanted[N_INPUTS], *output;
  guint n = 0, i;

  for (i = 0; i < context->n_inputs; i++)
    {
      if (!context->needs[i])
        own[i] = gtorch_impl_ref (context->inputs[i]);
      else if (is_recorded)
        own[i] = gtorch_op_view_as_is (context->inputs[i], error);
      else
        gtorch_recorder->require (own[i] = gtorch_impl_alias (context->inputs[i]));
      if (own[i] == NULL)
        return FALSE;
      if (context->needs[i])
        wanted[n++] = own[i];
    }
  output = context->n_inputs == 2
               ? product (&f, own)
               : multiplied (&f, own, context->attrs[0].i != 0, context->attrs[1].i != 0);
  if (f.failed)
    return FALSE;
  if (gtorch_impl_requires_grad (output)
      && !gtorch_recorder->differentiate (&output, context->grads, 1, wanted, n, results, error))
    return FALSE;
  for (i = n = 0; i < context->n_inputs; i++)
    if (context->needs[i])
      {
        GTorchImpl *result = results[n++];

        if (result != NULL)
          context->result[i] = is_recorded ? gtorch_impl_ref (result) : gtorch_impl_alias (result);
      }
  return TRUE;
}

static gboolean
gradients (GTorchGradContext *context, GError **error)
{
  GTorchImpl *own[N_INPUTS] = { NULL }, *results[N_INPUTS] = { NULL };
  gboolean ok = context->grads[0] == NULL || differentiate (context, own, results, error);

  gtorch_impl_clear (own, N_INPUTS);
  gtorch_impl_clear (results, N_INPUTS);
  return ok;
}

gboolean
gtorch_grad_linalg_householder_product (GTorchGradContext *context, GError **error)
{
  return gradients (context, error);
}

gboolean
gtorch_grad_ormqr (GTorchGradContext *context, GError **error)
{
  return gradients (context, error);
}
