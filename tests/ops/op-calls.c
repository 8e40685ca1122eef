/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "op-calls.h"

#include <math.h>

#include "gtorch-ops-private.h"

void
inputs_clear (Inputs *inputs)
{
  guint i;

  for (i = 0; i < inputs->n; i++)
    g_clear_pointer (&inputs->tensors[i], gtorch_impl_unref);
  inputs->n = 0;
}

static guint
wide_dtype (guint dtype)
{
  switch (gtorch_dtype_kind (dtype))
    {
    case GTORCH_KIND_FLOAT:
      return GTORCH_DTYPE_FLOAT64;
    case GTORCH_KIND_INT:
      return GTORCH_DTYPE_INT64;
    case GTORCH_KIND_COMPLEX:
      return GTORCH_DTYPE_COMPLEX128;
    default:
      return dtype;
    }
}

void
inputs_make (Inputs *inputs, const GTorchOpSample *sample, guint dtype, Layout layout)
{
  g_autoptr (GRand) rand =
      g_rand_new_with_seed (g_str_hash (gtorch_ops[sample->op].name) + sample->index);
  guint i;

  for (i = 0; i < sample->n_tensors; i++)
    {
      const GTorchSampleTensor *spec = &sample->tensors[i];

      inputs->tensors[i] = input_new (spec, spec->dtype != GTORCH_DTYPE_NONE ? spec->dtype : dtype,
                                      layout, sample->low, sample->high, rand);
    }
  inputs->n = sample->n_tensors;
}

void
inputs_widen (Inputs *wide, const Inputs *inputs, const GTorchOpSample *sample, Layout layout)
{
  guint i;

  for (i = 0; i < inputs->n; i++)
    if (inputs->tensors[i] != NULL)
      wide->tensors[i] = input_copy_laid (inputs->tensors[i],
                                          sample->tensors[i].dtype != GTORCH_DTYPE_NONE
                                              ? sample->tensors[i].dtype
                                              : wide_dtype (inputs->tensors[i]->dtype),
                                          layout);
  wide->n = inputs->n;
}

void
inputs_move (Inputs *inputs)
{
  guint i;

  for (i = 0; i < inputs->n; i++)
    {
      GTorchImpl *moved = impl_to_test_device (inputs->tensors[i]);

      g_clear_pointer (&inputs->tensors[i], gtorch_impl_unref);
      inputs->tensors[i] = moved;
    }
}

GPtrArray *
invoke (const GTorchOpSample *sample, const Inputs *inputs, GError **error)
{
  g_autoptr (GPtrArray) results =
      g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);

  if (!gtorch_op_invokers[sample->op](inputs->tensors, inputs->n, sample->attrs, results, error))
    return NULL;
  return g_steal_pointer (&results);
}

gboolean
has_values (const GTorchOpClass *op)
{
  static const gchar *const random[] = { "dropout", NULL }; /* random because of their parts */

  return !(op->flags & (GTORCH_OP_FLAG_RANDOM | GTORCH_OP_FLAG_UNSET))
         && !g_strv_contains (random, op->name);
}

/* Returns TRUE if a sample whose operation computes in integers has fractions as numbers. */
static gboolean
has_fraction (const GTorchOpSample *sample)
{
  const GTorchOpClass *op = &gtorch_ops[sample->op];
  guint i, n_attrs = 0;

  for (i = 0; i < op->n_args; i++)
    if (op->args[i].kind > GTORCH_ARG_TENSORS)
      {
        const GTorchAttr *attr = &sample->attrs[n_attrs++];

        if (op->args[i].kind == GTORCH_ARG_DOUBLE && attr->d != trunc (attr->d))
          return (op->flags & GTORCH_OP_FLAG_FACTORS) != 0;
      }
  return FALSE;
}

/* Divisors between 0 and 1 are zeros as integers. */
static gboolean
divides_by_zero (const GTorchOpSample *sample)
{
  return (gtorch_ops[sample->op].flags & GTORCH_OP_FLAG_DIVIDES) != 0 && sample->low < 1;
}

gboolean
is_for (const GTorchOpSample *sample, guint dtype)
{
  return (gtorch_ops[sample->op].dtypes & (1u << dtype)) != 0
         && (gtorch_dtype_kind (dtype) != GTORCH_KIND_INT
             || (!has_fraction (sample) && !divides_by_zero (sample)));
}

void
sample_resize (Resized *resized, const GTorchOpSample *sample, gint64 old, gint64 length)
{
  const GTorchOpClass *op = &gtorch_ops[sample->op];
  const gboolean alone = op->shape == gtorch_shape_pointwise;
  guint i, n_attrs = 0;
  gsize k;

  resized->sample = *sample;
  resized->sample.tensors = resized->tensors;
  resized->sample.attrs = resized->attrs;
  resized->most = 0;
  for (i = 0; i < sample->n_tensors; i++)
    {
      gint64 numel = 1;

      resized->tensors[i] = sample->tensors[i];
      for (k = 0; (gint) k < resized->tensors[i].n_dims; k++)
        {
          gint64 *size = &resized->tensors[i].shape[k];

          *size = *size == old ? length : alone ? 1 : *size;
          numel *= *size;
        }
      resized->most = MAX (resized->most, numel);
    }
  for (i = 0; i < op->n_args; i++)
    {
      GTorchAttr *attr = &resized->attrs[n_attrs];

      if (op->args[i].kind <= GTORCH_ARG_TENSORS)
        continue;
      *attr = sample->attrs[n_attrs++];
      if (op->args[i].kind != GTORCH_ARG_INTS
          || (!g_str_equal (op->args[i].name, "size") && !g_str_equal (op->args[i].name, "shape")))
        continue;
      for (k = 0; k < attr->list.n; k++)
        resized->sizes[k] = attr->list.data[k] == old ? length : attr->list.data[k];
      attr->list.data = resized->sizes;
    }
}
