/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Joining, repeating and reordering. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

/* Tells whether impl is an empty row, which joins tensors of any shape, as in PyTorch. */
static gboolean
is_nothing (const GTorchImpl *impl)
{
  return impl->n_dims == 1 && impl->shape[0] == 0;
}

static const GTorchImpl *
model (GTorchOpCall *call)
{
  guint i;

  for (i = 0; i < call->n_inputs; i++)
    if (!is_nothing (call->inputs[i]))
      return call->inputs[i];
  return call->inputs[0];
}

gboolean
gtorch_shape_cat (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *first;
  gint64 shape[GTORCH_MAX_DIMS];
  guint dim, dtype, i, d;

  if (call->n_inputs == 0)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID, _ ("the list of tensors is empty"));
      return FALSE;
    }
  first = model (call);
  for (i = 0; i < call->n_inputs; i++)
    if (call->inputs[i]->n_dims == 0)
      {
        gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                           _ ("tensor %u has no dimensions and cannot be joined: use stack"), i);
        return FALSE;
      }
  if (!gtorch_normalize_dim (call->op->name, call->attrs[0].i, first->n_dims, &dim, error))
    return FALSE;
  memcpy (shape, first->shape, first->n_dims * sizeof (gint64));
  shape[dim] = 0;
  for (i = 0; i < call->n_inputs; i++)
    {
      const GTorchImpl *input = call->inputs[i];
      gboolean fits = input->n_dims == first->n_dims;

      if (is_nothing (input))
        continue;
      for (d = 0; fits && d < first->n_dims; d++)
        fits = d == dim || input->shape[d] == shape[d];
      if (!fits)
        {
          gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                             _ ("tensor %u of shape %s does not fit one of shape %s: all "
                                "dimensions but dim %u must be the same"),
                             i, gtorch_impl_shape_str (input), gtorch_impl_shape_str (first), dim);
          return FALSE;
        }
      if (__builtin_add_overflow (shape[dim], input->shape[dim], &shape[dim]))
        shape[dim] = G_MAXINT64; /* refused by gtorch_shape_check () */
    }
  dtype = gtorch_call_common_dtype (call, 0, call->n_inputs);
  return gtorch_shape_check (call->op->name, shape, first->n_dims, dtype, error)
         && gtorch_call_set_output (call, 0, dtype, shape, first->n_dims, error);
}

gboolean
gtorch_grad_cat (GTorchGradContext *context, GError **error)
{
  gint64 start = 0;
  guint dim, i;

  gtorch_normalize_dim ("cat", context->attrs[0].i, context->output_metas[0].n_dims, &dim, NULL);
  for (i = 0; i < context->n_inputs; i++)
    {
      const GTorchMeta *meta = &context->input_metas[i];

      if (meta->n_dims == 1 && meta->shape[0] == 0)
        {
          if (context->needs[i])
            context->result[i] =
                gtorch_op_new_zeros (context->grads[0], meta->shape, 1, GTORCH_DTYPE_NONE, error);
        }
      else
        {
          if (context->needs[i])
            context->result[i] =
                gtorch_op_slice (context->grads[0], dim, start, start + meta->shape[dim], 1, error);
          start += meta->shape[dim];
        }
      if (context->needs[i] && context->result[i] == NULL)
        return FALSE;
    }
  return TRUE;
}

/* Joins the parts and releases them. */
static GTorchImpl *
cat_parts (GTorchImpl **parts, gsize n, gint64 dim, GError **error)
{
  GTorchImpl *result = NULL;
  gsize i;

  for (i = 0; i < n && parts[i] != NULL; i++)
    ;
  if (i == n)
    result = gtorch_op_cat (parts, n, dim, error);
  gtorch_impl_clear (parts, n);
  return result;
}

GTorchImpl *
gtorch_composite_stack (GTorchImpl *const *tensors, gsize n, gint64 wanted, GError **error)
{
  g_autofree GTorchImpl **parts = g_new0 (GTorchImpl *, MAX (n, 1));
  guint dim;
  gsize i;

  if (n == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("stack: the list of tensors is empty"));
      return NULL;
    }
  if (!gtorch_normalize_dim ("stack", wanted, tensors[0]->n_dims + 1, &dim, error))
    return NULL;
  for (i = 1; i < n; i++)
    if (!gtorch_impl_same_shape (tensors[0], tensors[i]))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                     _ ("stack: tensor %u has shape %s, the first one %s: all must be the same"),
                     (guint) i, gtorch_impl_shape_str (tensors[i]),
                     gtorch_impl_shape_str (tensors[0]));
        return NULL;
      }
  for (i = 0; i < n; i++)
    if ((parts[i] = gtorch_op_unsqueeze (tensors[i], dim, error)) == NULL)
      break;
  return cat_parts (parts, n, dim, error);
}

/* Joins the tensors after giving each at least n_dims dimensions; one-dimensional tensors become rows. */
static GTorchImpl *
stack_at_least (GTorchImpl *const *tensors, gsize n, guint n_dims, gint64 dim, GError **error)
{
  g_autofree GTorchImpl **parts = g_new0 (GTorchImpl *, MAX (n, 1));
  gsize i;

  for (i = 0; i < n; i++)
    {
      GTorchImpl *tensor = tensors[i];

      if (tensor->n_dims >= n_dims)
        parts[i] = gtorch_impl_ref (tensor);
      else
        parts[i] =
            gtorch_op_reshape (tensor, (const gint64[]){ n_dims == 2 ? 1 : -1, -1 }, n_dims, error);
      if (parts[i] == NULL)
        break;
    }
  return cat_parts (parts, n, dim, error);
}

GTorchImpl *
gtorch_op_hstack (GTorchImpl *const *tensors, gsize n, GError **error)
{
  return stack_at_least (tensors, n, 1, n > 0 && tensors[0]->n_dims > 1 ? 1 : 0, error);
}

GTorchImpl *
gtorch_op_vstack (GTorchImpl *const *tensors, gsize n, GError **error)
{
  return stack_at_least (tensors, n, 2, 0, error);
}

/* --- reordering --- */

gboolean
gtorch_shape_flip (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  guint64 mask;

  return gtorch_normalize_dims (call->op->name, call->attrs[0].list.data, call->attrs[0].list.n,
                                self->n_dims, &mask, error)
         && gtorch_call_set_output (call, 0, self->dtype, self->shape, self->n_dims, error);
}

GTorchImpl *
gtorch_flip_view (const GTorchOpCall *call)
{
  GTorchImpl *self = call->inputs[0];
  const GTorchAttr *dims = &call->attrs[0];
  guint64 mask = 0;

  if (dims->list.n > 0)
    gtorch_normalize_dims ("flip", dims->list.data, dims->list.n, self->n_dims, &mask, NULL);
  return gtorch_impl_new_mirrored (self, mask);
}

static GTorchImpl *
roll_one (GTorchImpl *self, gint64 shift, gint64 wanted, GError **error)
{
  g_autoptr (GTorchImpl) front = NULL;
  g_autoptr (GTorchImpl) back = NULL;
  gint64 size;
  guint dim;

  if (!gtorch_normalize_dim ("roll", wanted, self->n_dims, &dim, error))
    return NULL;
  size = self->n_dims > 0 ? self->shape[dim] : 1;
  if (self->numel == 0 || size == 1)
    return gtorch_op_clone (self, error);
  shift %= size;
  if (shift < 0)
    shift += size;
  back = gtorch_op_slice (self, dim, size - shift, size, 1, error);
  front = back != NULL ? gtorch_op_slice (self, dim, 0, size - shift, 1, error) : NULL;
  return front != NULL ? gtorch_op_cat ((GTorchImpl *[]){ back, front }, 2, dim, error) : NULL;
}

GTorchImpl *
gtorch_op_roll (GTorchImpl *self, const gint64 *shifts, gsize n_shifts, const gint64 *dims,
                gsize n_dims, GError **error)
{
  g_autoptr (GTorchImpl) result = NULL;
  gsize i;

  if (n_shifts == 0 || (n_dims != n_shifts && (n_dims != 0 || n_shifts != 1)))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("roll: shifts %s and dims %s must be of one length"),
                   gtorch_shape_str (shifts, n_shifts), gtorch_shape_str (dims, n_dims));
      return NULL;
    }
  if (n_dims == 0)
    {
      g_autoptr (GTorchImpl) row = gtorch_op_reshape (self, (const gint64[]){ -1 }, 1, error);

      if (row != NULL)
        result = roll_one (row, shifts[0], 0, error);
      return result != NULL ? gtorch_op_reshape (result, self->shape, self->n_dims, error) : NULL;
    }
  for (i = 0; i < n_shifts; i++)
    {
      GTorchImpl *rolled = roll_one (i == 0 ? self : result, shifts[i], dims[i], error);

      if (rolled == NULL)
        return NULL;
      g_clear_pointer (&result, gtorch_impl_unref);
      result = rolled;
    }
  return g_steal_pointer (&result);
}

/* --- repeating --- */

GTorchImpl *
gtorch_op_repeat (GTorchImpl *self, const gint64 *repeats, gsize n, GError **error)
{
  gint64 seen[2 * GTORCH_MAX_DIMS], grown[2 * GTORCH_MAX_DIMS], final[GTORCH_MAX_DIMS];
  g_autoptr (GTorchImpl) split = NULL;
  g_autoptr (GTorchImpl) expanded = NULL;
  g_autoptr (GTorchImpl) copy = NULL;
  gsize i, lead, m = 0;

  if (n < self->n_dims || n > GTORCH_MAX_DIMS)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("repeat: %u repeats do not fit a tensor of shape %s"), (guint) n,
                   gtorch_impl_shape_str (self));
      return NULL;
    }
  lead = n - self->n_dims;
  for (i = 0; i < n; i++)
    {
      gint64 size = i < lead ? 1 : self->shape[i - lead];

      if (repeats[i] < 0 || __builtin_mul_overflow (size, repeats[i], &final[i]))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                       _ ("repeat: repeats %s of shape %s are negative or too many"),
                       gtorch_shape_str (repeats, n), gtorch_impl_shape_str (self));
          return NULL;
        }
      if (repeats[i] != 1 && size != 1)
        {
          seen[m] = 1;
          grown[m++] = repeats[i];
          grown[m] = seen[m] = size;
          m++;
        }
      else
        {
          seen[m] = size;
          grown[m++] = final[i];
        }
    }
  split = gtorch_op_reshape (self, seen, m, error);
  expanded = split != NULL ? gtorch_op_expand (split, grown, m, error) : NULL;
  copy = expanded != NULL ? gtorch_op_clone (expanded, error) : NULL;
  return copy != NULL ? gtorch_op_view (copy, final, n, error) : NULL;
}

GTorchImpl *
gtorch_op_tile (GTorchImpl *self, const gint64 *dims, gsize n, GError **error)
{
  gint64 repeats[GTORCH_MAX_DIMS];
  guint i, lead;

  if (n >= self->n_dims || n > GTORCH_MAX_DIMS)
    return gtorch_op_repeat (self, dims, n, error);
  lead = self->n_dims - n;
  for (i = 0; i < self->n_dims; i++)
    repeats[i] = i < lead ? 1 : dims[i - lead];
  return gtorch_op_repeat (self, repeats, self->n_dims, error);
}

GTorchImpl *
gtorch_op_repeat_interleave (GTorchImpl *self, gint64 repeats, const gint64 *dims, gsize n,
                             GError **error)
{
  gint64 shape[GTORCH_MAX_DIMS + 1];
  g_autoptr (GTorchImpl) row = NULL;
  g_autoptr (GTorchImpl) split = NULL;
  g_autoptr (GTorchImpl) expanded = NULL;
  g_autoptr (GTorchImpl) copy = NULL;
  guint dim = 0;

  row = n == 0 || self->n_dims == 0 ? gtorch_op_reshape (self, (const gint64[]){ -1 }, 1, error)
                                    : gtorch_impl_ref (self);
  if (row == NULL
      || (n > 0 && !gtorch_normalize_dim ("repeat_interleave", dims[0], self->n_dims, &dim, error)))
    return NULL;
  memcpy (shape, row->shape, row->n_dims * sizeof (gint64));
  if (n > 1 || repeats < 0 || __builtin_mul_overflow (shape[dim], repeats, &shape[dim]))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("repeat_interleave: %" PRId64 " repeats along dims %s of shape %s "
                      "are not possible"),
                   repeats, gtorch_shape_str (dims, n), gtorch_impl_shape_str (self));
      return NULL;
    }
  split = gtorch_op_unsqueeze (row, dim + 1, error);
  if (split == NULL)
    return NULL;
  {
    gint64 grown[GTORCH_MAX_DIMS + 1];

    memcpy (grown, split->shape, split->n_dims * sizeof (gint64));
    grown[dim + 1] = repeats;
    expanded = gtorch_op_expand (split, grown, split->n_dims, error);
  }
  copy = expanded != NULL ? gtorch_op_clone (expanded, error) : NULL;
  return copy != NULL ? gtorch_op_view (copy, shape, row->n_dims, error) : NULL;
}
