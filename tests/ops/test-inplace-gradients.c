/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Every in-place operation, with the tensor that it changes as another operand, too: values, gradients
 * and second gradients are those of the out-of-place operation. */

#include "config.h"

#include <math.h>

#include "gtorch-ops-private.h"
#include "gtorch/autograd/gtorch-autograd-private.h"
#include "op-values.h"

#define MAX_TENSORS 8

typedef enum
{
  TARGET_WHOLE,
  TARGET_VIEW,     /* a row of a matrix */
  TARGET_DETACHED, /* aliases a leaf, which is the other operand */
  N_TARGETS,
} Target;

typedef enum
{
  OPERAND_SAME,  /* the object itself */
  OPERAND_SHOWN, /* another view of all of it */
  N_OPERANDS,
} Operand;

typedef struct
{
  const GTorchOpClass *op;
  const GTorchOpSample *sample;
  GTorchImpl *inputs[MAX_TENSORS]; /* values; the first input is changed */
  GTorchImpl *rows;                /* values of a matrix whose second row is changed */
  guint mask;                      /* the inputs that are the target */
  Target target;
  Operand operand;
} Case;

static void
case_clear (Case *self)
{
  gtorch_impl_clear (self->inputs, MAX_TENSORS);
  g_clear_pointer (&self->rows, gtorch_impl_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Case, case_clear)

/* The results of one way to compute it. */
typedef struct
{
  /* NULL where there is no gradient; the first belongs to the initial value */
  GTorchImpl *leaves[MAX_TENSORS];
  /* the result alone; gradients; second gradients; NULL stands for zeros */
  GTorchImpl *values[3][MAX_TENSORS];
} Outcome;

static void
outcome_clear (Outcome *self)
{
  guint i;

  gtorch_impl_clear (self->leaves, MAX_TENSORS);
  for (i = 0; i < 3; i++)
    gtorch_impl_clear (self->values[i], MAX_TENSORS);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Outcome, outcome_clear)

static GTorchImpl *
leaf_new (GTorchImpl *values)
{
  GTorchImpl *leaf = gtorch_op_clone (values, NULL);

  gtorch_autograd_ensure (leaf)->requires_grad = TRUE;
  return leaf;
}

static GTorchImpl *
weights (const GTorchImpl *like)
{
  g_autoptr (GTorchImpl) impl =
      gtorch_impl_new (gtorch_device_cpu (), like->dtype, like->shape, like->n_dims, NULL);
  gint64 i;

  for (i = 0; i < impl->numel; i++)
    element_set (impl, i, cos ((gdouble) i + 1));
  return impl_to_test_device (impl);
}

/* Returns the tensor after the call. */
static GTorchImpl *
compute (const Case *self, Outcome *outcome, gboolean in_place, GError **error)
{
  g_autoptr (GTorchImpl) one = gtorch_impl_new_number (1);
  g_autoptr (GTorchImpl) whole = NULL;
  g_autoptr (GTorchImpl) target = NULL;
  g_autoptr (GTorchImpl) shown = NULL;
  g_autoptr (GTorchImpl) result = NULL;
  GTorchImpl *inputs[MAX_TENSORS];
  guint i;

  for (i = 1; i < self->sample->n_tensors; i++)
    if (self->inputs[i] != NULL && self->inputs[i]->dtype == GTORCH_DTYPE_FLOAT64
        && !(self->mask & (1u << i)))
      outcome->leaves[i] = leaf_new (self->inputs[i]);
  outcome->leaves[0] = leaf_new (self->target == TARGET_VIEW ? self->rows : self->inputs[0]);
  if (self->target == TARGET_DETACHED)
    {
      whole = gtorch_impl_ref (outcome->leaves[0]);
      target = gtorch_impl_alias (whole);
    }
  else
    {
      whole = gtorch_op_mul (outcome->leaves[0], one, error);
      target = self->target == TARGET_VIEW ? gtorch_op_select (whole, 0, 1, error)
                                           : gtorch_impl_ref (whole);
    }
  result = gtorch_impl_ref (self->target == TARGET_DETACHED ? whole : target);
  shown = self->operand == OPERAND_SHOWN ? gtorch_op_view_as_is (result, error)
                                         : gtorch_impl_ref (result);
  g_clear_pointer (&result, gtorch_impl_unref);
  for (i = 0; i < self->sample->n_tensors; i++)
    inputs[i] = i == 0                       ? target
                : self->mask & (1u << i)     ? shown
                : outcome->leaves[i] != NULL ? outcome->leaves[i]
                                             : self->inputs[i];

  if (in_place)
    {
      if (!gtorch_op_run_in_place (self->op, inputs, self->sample->n_tensors, self->sample->attrs,
                                   error))
        return NULL;
      return gtorch_impl_ref (self->target == TARGET_VIEW ? whole : target);
    }
  if (!gtorch_op_run (self->op, inputs, self->sample->n_tensors, self->sample->attrs, &result,
                      error))
    return NULL;
  if (!gtorch_impl_same_shape (result, target))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE, "not for in place");
      return NULL;
    }
  if (result->dtype != target->dtype)
    {
      GTorchImpl *cast = gtorch_op_to_dtype (result, target->dtype, error);

      gtorch_impl_unref (result);
      result = cast;
    }
  if (self->target == TARGET_VIEW)
    {
      g_autoptr (GTorchImpl) row = gtorch_op_select (whole, 0, 0, error);

      return gtorch_op_stack ((GTorchImpl *[]){ row, result }, 2, 0, error);
    }
  return g_steal_pointer (&result);
}

/* Computes the gradients of the weighted sum of the roots. */
static gboolean
differentiate (GTorchImpl *const *roots, Outcome *outcome, GTorchImpl **grads, gboolean again,
               GError **error)
{
  GTorchImpl *used[MAX_TENSORS], *seeds[MAX_TENSORS], *wanted[MAX_TENSORS];
  GTorchImpl *found[MAX_TENSORS] = { NULL };
  GTorchBackward backward = {
    .roots = used, .grads = seeds, .inputs = wanted, .results = found, .create_graph = again
  };
  gboolean success = TRUE;
  guint i, n = 0;

  for (i = 0; i < MAX_TENSORS; i++)
    {
      if (roots[i] != NULL && gtorch_impl_requires_grad (roots[i]))
        {
          used[backward.n_roots] = roots[i];
          seeds[backward.n_roots++] = weights (roots[i]);
        }
      if (outcome->leaves[i] != NULL)
        wanted[backward.n_inputs++] = outcome->leaves[i];
    }
  if (backward.n_roots > 0)
    success = gtorch_engine_run (&backward, error);
  gtorch_impl_clear (seeds, backward.n_roots);
  for (i = 0; i < MAX_TENSORS; i++)
    if (outcome->leaves[i] != NULL)
      grads[i] = found[n++];
  return success;
}

static gboolean
run (const Case *self, Outcome *outcome, gboolean in_place, GError **error)
{
  outcome->values[0][0] = compute (self, outcome, in_place, error);
  return outcome->values[0][0] != NULL
         && differentiate (outcome->values[0], outcome, outcome->values[1], TRUE, error)
         && differentiate (outcome->values[1], outcome, outcome->values[2], FALSE, error);
}

static gdouble
element_or_zero (const GTorchImpl *impl, gint64 i)
{
  return impl != NULL ? creal (element_get (impl, i)) : 0;
}

static void
compare (const Case *self, const Outcome *a, const Outcome *b)
{
  static const gchar *const names[] = { "value", "gradient", "second gradient" };
  guint order, i;
  gint64 k;

  for (order = 0; order < 3; order++)
    for (i = 0; i < MAX_TENSORS; i++)
      {
        const GTorchImpl *x = a->values[order][i], *y = b->values[order][i];
        gint64 n = x != NULL ? x->numel : y != NULL ? y->numel : 0;

        for (k = 0; k < n; k++)
          {
            gdouble got = element_or_zero (x, k), expected = element_or_zero (y, k);

            if (got == expected || (isnan (got) && isnan (expected))
                || fabs (got - expected) <= 1e-12 * MAX (1, fabs (expected)))
              continue;
            g_test_message ("%s, sample %u, operands 0x%x, target %d, operand %d: the %s of tensor "
                            "%u is %.17g at %" G_GINT64_FORMAT ", %.17g out of place",
                            self->op->name, self->sample->index, self->mask, self->target,
                            self->operand, names[order], i, got, k, expected);
            g_test_fail ();
            return;
          }
      }
}

/* Returns FALSE if the sample has no in-place call. */
static gboolean
case_init (Case *self, const GTorchOpSample *sample, guint mask)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (g_str_hash (self->op->name) + sample->index);
  GTorchSampleTensor spec;
  g_autoptr (GTorchImpl) values = NULL;
  guint i;

  self->sample = sample;
  self->mask = mask;
  for (i = 0; i < sample->n_tensors; i++)
    {
      /* in element-wise operations, broadcast operands get the shape of the target */
      spec =
          sample->tensors[self->mask & (1u << i) && self->op->shape == gtorch_shape_pointwise ? 0
                                                                                              : i];
      if (self->mask & (1u << i)
          && (spec.dtype != GTORCH_DTYPE_NONE || spec.n_dims != sample->tensors[0].n_dims
              || memcmp (spec.shape, sample->tensors[0].shape, spec.n_dims * sizeof (gint64)) != 0))
        return FALSE;
      values =
          input_new (&spec, spec.dtype != GTORCH_DTYPE_NONE ? spec.dtype : GTORCH_DTYPE_FLOAT64,
                     LAYOUT_CONTIGUOUS, sample->low, sample->high, rand);
      self->inputs[i] = values != NULL ? impl_to_test_device (values) : NULL;
      g_clear_pointer (&values, gtorch_impl_unref);
    }
  if (self->inputs[0] == NULL || self->inputs[0]->dtype != GTORCH_DTYPE_FLOAT64)
    return FALSE;
  self->rows = gtorch_op_stack ((GTorchImpl *[]){ self->inputs[0], self->inputs[0] }, 2, 0, NULL);
  return TRUE;
}

static guint
check (const GTorchOpClass *op, const GTorchOpSample *sample, guint mask)
{
  guint target, operand, n = 0;

  for (target = 0; target < N_TARGETS; target++)
    for (operand = 0; operand < N_OPERANDS; operand++)
      {
        g_auto (Case) self = { .op = op, .target = target, .operand = operand };
        g_auto (Outcome) expected = { { NULL } };
        g_auto (Outcome) outcome = { { NULL } };
        g_autoptr (GError) error = NULL;

        if ((mask == 0 && (operand != OPERAND_SAME || target == TARGET_DETACHED))
            || !case_init (&self, sample, mask))
          continue;
        if (!run (&self, &expected, FALSE, &error))
          {
            if (is_lacking (error))
              return 0;
            continue;
          }
        if (!run (&self, &outcome, TRUE, &error))
          {
            g_test_message ("%s, sample %u, operands 0x%x, target %u, operand %u: %s", op->name,
                            sample->index, mask, target, operand, error->message);
            g_test_fail ();
            continue;
          }
        compare (&self, &outcome, &expected);
        n++;
      }
  return n;
}

static void
operands_may_be_the_target (gconstpointer data)
{
  const GTorchOpClass *op = data;
  guint s, mask, n = 0;

  for (s = 0; s < gtorch_n_op_samples; s++)
    if (gtorch_op_samples[s].op == op->id && gtorch_op_samples[s].n_tensors <= MAX_TENSORS)
      for (mask = 0; mask < 1u << gtorch_op_samples[s].n_tensors; mask += 2)
        n += check (op, &gtorch_op_samples[s], mask);
  g_test_message ("%u cases", n);
}

int
main (int argc, char *argv[])
{
  guint i;

  g_test_init (&argc, &argv, NULL);
  for (i = 0; i < gtorch_n_ops; i++)
    {
      const GTorchOpClass *op = &gtorch_ops[i];
      g_autofree gchar *path =
          g_strdup_printf ("/GTorch/inplace-gradients/%s/operands_may_be_the_target", op->name);

      if ((op->flags & GTORCH_OP_FLAG_INPLACE_OK) && op_computes (op) && op->n_outputs == 1
          && !(op->flags & GTORCH_OP_FLAG_RANDOM) && (op->dtypes & GTORCH_DTYPES (FLOAT64)))
        g_test_add_data_func (path, op, operands_may_be_the_target);
    }
  return g_test_run ();
}
