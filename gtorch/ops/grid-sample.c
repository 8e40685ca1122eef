/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Sampling images at positions, and maps that give positions. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "base/gtorch-text-private.h"
#include "ops/gtorch-formula-private.h"
#include "ops/gtorch-op-parts-private.h"
#include "tensor/gtorch-recorder-private.h"

static gboolean
check (const GTorchImpl *input, const GTorchImpl *grid, GTorchGridMode mode,
       GTorchGridPadding padding, GError **error)
{
  const guint n = input->n_dims;

  if ((guint) mode > GTORCH_GRID_MODE_BICUBIC || (guint) padding > GTORCH_GRID_PADDING_REFLECTION)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("grid_sample: %d is no GTorchGridMode, or %d no GTorchGridPadding"),
                   (int) mode, (int) padding);
      return FALSE;
    }
  if ((n != 4 && n != 5) || grid->n_dims != n || grid->shape[0] != input->shape[0]
      || grid->shape[n - 1] != n - 2)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("grid_sample: images of shape %s and a grid of shape %s: they must have 4 or "
                      "5 dimensions, the first the same, and the grid's last one must hold a "
                      "position"),
                   gtorch_impl_shape_str (input), gtorch_impl_shape_str (grid));
      return FALSE;
    }
  if (input->numel == 0 && input->shape[0] > 0 && input->shape[1] > 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("grid_sample: images of shape %s have no elements"),
                   gtorch_impl_shape_str (input));
      return FALSE;
    }
  if (mode == GTORCH_GRID_MODE_BICUBIC && n == 5)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("grid_sample: bicubic is for images with 4 dimensions, the input has shape "
                      "%s"),
                   gtorch_impl_shape_str (input));
      return FALSE;
    }
  if (input->dtype == grid->dtype && gtorch_dtype_kind (grid->dtype) == GTORCH_KIND_FLOAT)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
               _ ("grid_sample: images of dtype %s and a grid of dtype %s: both must be of the "
                  "same floating-point dtype"),
               gtorch_dtype_get_name (input->dtype), gtorch_dtype_get_name (grid->dtype));
  return FALSE;
}

GTorchImpl *
gtorch_op_grid_sample (GTorchImpl *input, GTorchImpl *grid, GTorchGridMode mode,
                       GTorchGridPadding padding_mode, gboolean align_corners, GError **error)
{
  if (!check (input, grid, mode, padding_mode, error))
    return NULL;
  return gtorch_op_native_grid_sample (input, grid, mode, padding_mode, align_corners, error);
}

/* --- the operations that it consists of --- */

void
gtorch_grid_sampling_init (GTorchGridSampling *self, const gint64 *images, const GTorchImpl *grid,
                           const GTorchAttr *attrs)
{
  const guint dims = grid->n_dims - 2;
  guint d;

  *self = (GTorchGridSampling){ .dims = dims,
                                .mode = attrs[0].i,
                                .padding = attrs[1].i,
                                .align_corners = attrs[2].i,
                                .n_images = images[0],
                                .n_channels = images[1],
                                .n_in = 1,
                                .n_out = 1,
                                .size = { 1, 1, 1 } };
  for (d = 3 - dims; d < 3; d++)
    {
      self->size[d] = images[d + dims - 1];
      self->n_in *= self->size[d];
    }
  for (d = 1; d <= dims; d++)
    self->n_out *= grid->shape[d];
  self->n_line = self->mode == GTORCH_GRID_MODE_BICUBIC    ? 4
                 : self->mode == GTORCH_GRID_MODE_BILINEAR ? 2
                                                           : 1;
  self->n_taps = self->n_line * self->n_line * (dims == 3 ? self->n_line : 1);
}

gboolean
gtorch_shape_native_grid_sample (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *input = call->inputs[0], *grid = call->inputs[1];
  gint64 shape[5] = { input->shape[0], input->shape[1] };
  guint d;

  for (d = 2; d < input->n_dims; d++)
    shape[d] = grid->shape[d - 1];
  call->compute = input->dtype;
  return gtorch_call_check_dtype (call, input->dtype, error)
         && gtorch_shape_check (call->op->name, shape, input->n_dims, input->dtype, error)
         && gtorch_call_set_output (call, 0, input->dtype, shape, input->n_dims, error);
}

gboolean
gtorch_shape_grid_sample_input_grad (GTorchOpCall *call, GError **error)
{
  const GTorchAttr *size = &call->attrs[3];

  call->compute = call->inputs[0]->dtype;
  return gtorch_call_check_dtype (call, call->compute, error)
         && gtorch_shape_check (call->op->name, size->list.data, size->list.n, call->compute, error)
         && gtorch_call_set_output (call, 0, call->compute, size->list.data, size->list.n, error);
}

gboolean
gtorch_shape_grid_sample_grid_grad (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *grid = call->inputs[2];

  call->compute = grid->dtype;
  return gtorch_call_check_dtype (call, call->compute, error)
         && gtorch_call_set_output (call, 0, grid->dtype, grid->shape, grid->n_dims, error);
}

/* Computes the gradients of the composition, which can be differentiated. Views of the inputs stand for them,
 * since both may be one tensor. */
static gboolean
gradients_of_composition (GTorchGradContext *context, GError **error)
{
  GTorchImpl *wanted[2], *results[2] = { NULL };
  guint places[2], n = 0, i;
  g_autoptr (GTorchImpl) input = gtorch_op_view_as_is (context->inputs[0], error);
  g_autoptr (GTorchImpl) grid =
      input != NULL ? gtorch_op_view_as_is (context->inputs[1], error) : NULL;
  g_autoptr (GTorchImpl) output =
      grid != NULL ? gtorch_grid_sample_composed (input, grid, context->attrs, error) : NULL;

  if (output == NULL)
    return FALSE;
  for (i = 0; i < 2; i++)
    if (context->needs[i])
      {
        wanted[n] = i == 0 ? input : grid;
        places[n++] = i;
      }
  if (n > 0 && gtorch_impl_requires_grad (output)
      && !gtorch_recorder->differentiate (&output, context->grads, 1, wanted, n, results, error))
    return FALSE;
  for (i = 0; i < n; i++)
    context->result[places[i]] = results[i];
  return TRUE;
}

gboolean
gtorch_grad_native_grid_sample (GTorchGradContext *context, GError **error)
{
  GTorchImpl *grad = context->grads[0], *input = context->inputs[0], *grid = context->inputs[1];
  GTorchImpl *const sources[] = { grad, input, grid };
  const GTorchAttr *attrs = context->attrs;

  if (grad == NULL)
    return TRUE;
  if (gtorch_autograd_wanted (sources, 3))
    return gradients_of_composition (context, error);
  if (context->needs[0])
    {
      context->result[0] =
          gtorch_op_grid_sample_input_grad (grad, grid, attrs[0].i, attrs[1].i, attrs[2].i,
                                            input->shape, input->n_dims, error);
      if (context->result[0] == NULL)
        return FALSE;
    }
  if (context->needs[1])
    context->result[1] = gtorch_op_grid_sample_grid_grad (grad, input, grid, attrs[0].i, attrs[1].i,
                                                          attrs[2].i, error);
  return !context->needs[1] || context->result[1] != NULL;
}

/* --- affine_grid --- */

/* Returns n positions from border to border, as a view that has them along dimension d of a shape. */
static GTorchImpl *
positions (GTorchFormula *f, GTorchImpl *theta, const gint64 *shape, guint dims, guint d,
           gboolean align_corners)
{
  const gint64 n = shape[d];
  const gdouble end = align_corners ? 1 : (gdouble) (n - 1) / (gdouble) n;
  gint64 wide[3] = { 1, 1, 1 };
  GTorchImpl *line =
      n > 1 ? GTORCH_FORMULA_OP (f, linspace, -end, end, n, theta->dtype, theta->device)
            : GTORCH_FORMULA_OP (f, new_zeros, theta, &n, 1, GTORCH_DTYPE_NONE);

  wide[d] = n;
  line = GTORCH_FORMULA_OP (f, reshape, line, wide, dims);
  return GTORCH_FORMULA_OP (f, expand, line, shape, dims);
}

GTorchImpl *
gtorch_op_affine_grid (GTorchImpl *theta, const gint64 *size, gsize n, gboolean align_corners,
                       GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  const guint dims = n == 5 ? 3 : 2;
  GTorchImpl *parts[4], *base, *maps, *made;
  gint64 shape[5], rows = -1;
  gsize i;

  for (i = 0; i < n && (n == 4 || n == 5) && size[i] > 0; i++)
    ;
  if (i < n || (n != 4 && n != 5))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("affine_grid: size %s must hold 4 or 5 positive numbers"),
                   gtorch_shape_str (size, MIN (n, GTORCH_MAX_DIMS)));
      return NULL;
    }
  if (theta->n_dims != 3 || theta->shape[0] != size[0] || theta->shape[1] != dims
      || theta->shape[2] != dims + 1)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("affine_grid: maps of shape %s, for images of shape %s they must have "
                      "[%" PRId64 ", %u, %u]"),
                   gtorch_impl_shape_str (theta), gtorch_shape_str (size, n), size[0], dims,
                   dims + 1);
      return NULL;
    }
  if (gtorch_dtype_kind (theta->dtype) != GTORCH_KIND_FLOAT)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("affine_grid: maps must be of a floating-point dtype, they are of %s"),
                   gtorch_dtype_get_name (theta->dtype));
      return NULL;
    }
  for (i = 0; i < dims; i++)
    parts[dims - 1 - i] = positions (&f, theta, size + 2, dims, i, align_corners);
  parts[dims] = GTORCH_FORMULA_OP (&f, new_ones, theta, size + 2, dims, GTORCH_DTYPE_NONE);
  base = f.failed ? NULL : gtorch_formula_keep (&f, gtorch_op_stack (parts, dims + 1, -1, error));
  base = GTORCH_FORMULA_OP (&f, reshape, base, ((const gint64[]){ rows, dims + 1 }), 2);
  maps = GTORCH_FORMULA_OP (&f, transpose, theta, 1, 2);
  made = GTORCH_FORMULA_OP (&f, matmul, base, maps);
  shape[0] = size[0];
  for (i = 0; i < dims; i++)
    shape[1 + i] = size[2 + i];
  shape[1 + dims] = dims;
  made = GTORCH_FORMULA_OP (&f, reshape, made, shape, dims + 2);
  return gtorch_formula_take (&f, made);
}

/* Samples images of `dims` dimensions, with modes that are given as numbers. */
static GTorchImpl *
sample_by_numbers (const gchar *op, guint dims, GTorchImpl *input, GTorchImpl *grid, gint64 mode,
                   gint64 padding_mode, gboolean align_corners, GError **error)
{
  if (input->n_dims != dims + 2)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: an input of shape %s must have %u dimensions"), op,
                   gtorch_impl_shape_str (input), dims + 2);
      return NULL;
    }
  if (mode < 0 || mode > GTORCH_GRID_MODE_BICUBIC || padding_mode < 0
      || padding_mode > GTORCH_GRID_PADDING_REFLECTION)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: interpolation_mode %" PRId64 " and padding_mode %" PRId64
                      " must be from 0 to 2"),
                   op, mode, padding_mode);
      return NULL;
    }
  return gtorch_op_grid_sample (input, grid, mode, padding_mode, align_corners, error);
}

GTorchImpl *
gtorch_op_grid_sampler_2d (GTorchImpl *input, GTorchImpl *grid, gint64 interpolation_mode,
                           gint64 padding_mode, gboolean align_corners, GError **error)
{
  return sample_by_numbers ("grid_sampler_2d", 2, input, grid, interpolation_mode, padding_mode,
                            align_corners, error);
}

GTorchImpl *
gtorch_op_grid_sampler_3d (GTorchImpl *input, GTorchImpl *grid, gint64 interpolation_mode,
                           gint64 padding_mode, gboolean align_corners, GError **error)
{
  return sample_by_numbers ("grid_sampler_3d", 3, input, grid, interpolation_mode, padding_mode,
                            align_corners, error);
}
