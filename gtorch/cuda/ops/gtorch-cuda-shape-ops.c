/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Operations on GPUs that move whole parts of tensors, choose by truth values, or compute elements from
 * their position. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "dispatch/gtorch-run-private.h"
#include "cpu/gtorch-cpu-iter.h"
#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "cuda/driver/gtorch-cuda-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

/* --- copies through views --- */

gboolean
gtorch_cuda_flip (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  g_autoptr (GTorchImpl) mirrored = NULL;

  if (call->outputs[0]->numel == 0)
    return TRUE;
  mirrored = gtorch_flip_view (call);
  return gtorch_cuda_copy_here (call->outputs[0], mirrored, lane, error);
}

/* Fills the output with zeros, and makes the view of it that the forward operation would make. Copies the
 * gradient to the view, or if `shown` is not NULL returns the view there. */
static gboolean
fill_view (GTorchOpCall *call, GTorchCudaLane *lane, guint op,
           gboolean (*shape) (GTorchOpCall *, GError **), const GTorchAttr *attrs,
           GTorchImpl **shown, GError **error)
{
  GTorchOpCall view = {
    .op = &gtorch_ops[op],
    .inputs = &call->outputs[0],
    .n_inputs = 1,
    .attrs = attrs,
    .n_outputs = 1,
    .device = call->device,
  };
  gboolean result;

  if (!gtorch_cuda_clear (call->outputs[0], lane, error) || !shape (&view, error))
    return FALSE;
  if (shown != NULL)
    {
      *shown = view.outputs[0];
      return TRUE;
    }
  result = gtorch_cuda_copy_here (view.outputs[0], call->inputs[0], lane, error);
  gtorch_impl_unref (view.outputs[0]);
  return result;
}

gboolean
gtorch_cuda_select_backward (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return fill_view (call, lane, GTORCH_OP_SELECT, gtorch_shape_select, call->attrs + 1, NULL,
                    error);
}

gboolean
gtorch_cuda_slice_backward (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return fill_view (call, lane, GTORCH_OP_SLICE, gtorch_shape_slice, call->attrs + 1, NULL, error);
}

gboolean
gtorch_cuda_diagonal_backward (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return fill_view (call, lane, GTORCH_OP_DIAGONAL, gtorch_shape_diagonal, call->attrs + 1, NULL,
                    error);
}

gboolean
gtorch_cuda_diag_embed (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return fill_view (call, lane, GTORCH_OP_DIAGONAL, gtorch_shape_diagonal, call->attrs, NULL,
                    error);
}

gboolean
gtorch_cuda_unfold_backward (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  g_autoptr (GTorchImpl) view = NULL;

  return fill_view (call, lane, GTORCH_OP_UNFOLD, gtorch_shape_unfold, call->attrs + 1, &view,
                    error)
         && gtorch_unfold_add_windows (call, lane, view, error);
}

/* --- where --- */

/* Returns whether all tensors are contiguous, of one shape and aligned for vectors. The two choices may
 * also have one element, which sets their bits in *single. */
static gboolean
all_flat (GTorchImpl *const *impls, guint n, guint32 *single)
{
  guint i;

  *single = 0;
  for (i = 0; i < n; i++)
    if (i >= 2 && impls[i]->numel == 1 && impls[0]->numel > 1)
      *single |= 1u << i;
    else if (!impls[i]->is_contiguous || ((guintptr) gtorch_impl_data (impls[i]) & 15) != 0
             || !gtorch_impl_same_shape (impls[i], impls[0]))
      return FALSE;
  return TRUE;
}

static gboolean
choose (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *condition, GTorchImpl *a,
        GTorchImpl *b, GError **error)
{
  static GTorchCudaKernel kernels[5], flat[4], rows[4];
  GTorchImpl *output = call->outputs[0];
  const guint size = gtorch_dtype_size (output->dtype), sizes[] = { size, 1, size, size };
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  GTorchImpl *operands[4];
  GtRows in_rows = { 0 };
  GtStrided strided = { .n_dims = 0 };
  GTorchIter iter;
  gchar name[24];
  guint32 single;
  guint i;

  if (output->numel == 0)
    return TRUE;
  x = a->dtype == output->dtype && a->storage->device == call->device
          ? gtorch_impl_ref (a)
          : gtorch_cuda_pack (a, output->dtype, lane, error);
  if (x == NULL)
    return FALSE;
  y = b->dtype == output->dtype && b->storage->device == call->device
          ? gtorch_impl_ref (b)
          : gtorch_cuda_pack (b, output->dtype, lane, error);
  if (y == NULL)
    return FALSE;
  operands[0] = output;
  operands[1] = condition;
  operands[2] = x;
  operands[3] = y;
  if (size < 16 && all_flat (operands, 4, &single))
    {
      GtContiguous p = { .n = output->numel, .numbers = single };
      guint64 pieces = MAX (p.n / (16 / size), 1);

      for (i = 0; i < 4; i++)
        p.data[i] = gtorch_impl_data (operands[i]);
      g_snprintf (name, sizeof name, "gt_where_flat_%u", size);
      return gtorch_cuda_kernel_run (&flat[g_bit_storage (size) - 1], &gtorch_cuda_family_shape_ops,
                                     name, lane, (pieces + 2 * GT_THREADS - 1) / (2 * GT_THREADS),
                                     GT_THREADS, &p, error);
    }
  gtorch_iter_init (&iter, operands, 4, output->shape, output->n_dims);
  if (size < 16 && gtorch_cuda_as_rows (&iter, sizes, 16 / size, &in_rows))
    {
      for (i = 0; i < 4; i++)
        in_rows.base.data[i] = iter.data[i];
      in_rows.base.numbers = (x == output ? 4 : 0) | (y == output ? 8 : 0);
      g_snprintf (name, sizeof name, "gt_where_rows_%u", size);
      return gtorch_cuda_kernel_run (&rows[g_bit_storage (size) - 1], &gtorch_cuda_family_shape_ops,
                                     name, lane,
                                     (in_rows.base.n + 2 * GT_THREADS - 1) / (2 * GT_THREADS),
                                     GT_THREADS, &in_rows, error);
    }
  g_snprintf (name, sizeof name, "gt_where_%u", size);
  return gtorch_cuda_run_strided (&gtorch_cuda_family_shape_ops, &kernels[g_bit_storage (size) - 1],
                                  name, &iter, &strided, lane, error);
}

gboolean
gtorch_cuda_where (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  g_autoptr (GTorchImpl) condition =
      gtorch_cuda_pack (call->inputs[0], call->inputs[0]->dtype, lane, error);

  return condition != NULL
         && choose (call, lane, condition, call->inputs[1], call->inputs[2], error);
}

gboolean
gtorch_cuda_masked_fill (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *mask = call->inputs[1];
  g_autoptr (GTorchImpl) here = mask->storage->device == call->device
                                    ? gtorch_impl_ref (mask)
                                    : gtorch_cuda_pack (mask, mask->dtype, lane, error);

  return here != NULL && choose (call, lane, here, call->inputs[2], call->inputs[0], error);
}

/* --- elements computed from their position --- */

static gboolean
progression (GTorchOpCall *call, GTorchCudaLane *lane, gdouble start, gdouble step,
             const gdouble *last, const gdouble *base, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  const GtProgression p = {
    .y = gtorch_impl_data (output),
    .n = output->numel,
    .has_last = last != NULL,
    .has_base = base != NULL,
    .start = start,
    .step = step,
    .last = last != NULL ? *last : 0,
    .base = base != NULL ? *base : 0,
  };

  return gtorch_cuda_run (&gtorch_kernels_progression, output->dtype, lane, output->numel, &p,
                          error);
}

gboolean
gtorch_cuda_arange (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  const GtProgression p = {
    .y = gtorch_impl_data (output),
    .n = output->numel,
    .is_integer = TRUE,
    .first = call->attrs[0].number.i,
    .by = call->attrs[2].number.i,
  };

  if (!gtorch_call_has_ints (call, 3))
    return progression (call, lane, gtorch_progression_number (call, 0),
                        gtorch_progression_number (call, 2), NULL, NULL, error);
  return gtorch_cuda_run (&gtorch_kernels_progression, output->dtype, lane, output->numel, &p,
                          error);
}

static gdouble
step_of (GTorchOpCall *call)
{
  gint64 n = call->outputs[0]->numel;
  gdouble start = gtorch_progression_number (call, 0), end = gtorch_progression_number (call, 1);

  return n > 1 ? (end - start) / (gdouble) (n - 1) : 0;
}

gboolean
gtorch_cuda_linspace (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  const gdouble end = gtorch_progression_number (call, 1);

  return progression (call, lane, gtorch_progression_number (call, 0), step_of (call), &end, NULL,
                      error);
}

gboolean
gtorch_cuda_logspace (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  const gdouble end = gtorch_progression_number (call, 1);

  return progression (call, lane, gtorch_progression_number (call, 0), step_of (call), &end,
                      &call->attrs[3].d, error);
}

gboolean
gtorch_cuda_eye (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  const GtEye p = {
    .y = gtorch_impl_data (output),
    .n = MIN (output->shape[0], output->shape[1]),
    .columns = output->shape[1],
  };

  return gtorch_cuda_clear (output, lane, error)
         && gtorch_cuda_run (&gtorch_kernels_eye, output->dtype, lane, p.n, &p, error);
}

gboolean
gtorch_cuda_triangle (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  guint n = output->n_dims;
  const gsize size = gtorch_dtype_size (output->dtype);
  g_autoptr (GTorchImpl) x = gtorch_cuda_pack (call->inputs[0], output->dtype, lane, error);
  g_autoptr (GTorchImpl) y =
      x != NULL ? gtorch_cuda_pack_output (output, output->dtype, error) : NULL;
  GtTriangle p = {
    .n = output->numel,
    .rows = output->shape[n - 2],
    .columns = output->shape[n - 1],
    .diagonal = CLAMP (call->attrs[0].i, -output->shape[n - 2] - 1, output->shape[n - 1] + 1),
    .is_lower = call->op->id == GTORCH_OP_TRIL,
  };

  if (y == NULL)
    return FALSE;
  p.x = gtorch_impl_data (x);
  p.y = gtorch_impl_data (y);
  p.is_wide = p.columns % (16 / (gint64) size) == 0 && ((guintptr) p.x | (guintptr) p.y) % 16 == 0;
  return gtorch_cuda_run_sized (&gtorch_kernels_triangle, size, lane,
                                p.is_wide ? output->numel / (16 / (gint64) size) : output->numel,
                                &p, error)
         && gtorch_cuda_unpack (y, output, lane, error);
}

gboolean
gtorch_cuda_one_hot (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  g_autoptr (GTorchImpl) index =
      gtorch_cuda_pack (call->inputs[0], GTORCH_DTYPE_INT64, lane, error);
  GtOneHot p = {
    .y = gtorch_impl_data (output),
    .classes = output->shape[output->n_dims - 1],
    .op = gtorch_cuda_report_op (call, output->n_dims - 1),
  };

  if (index == NULL || !gtorch_cuda_clear (output, lane, error))
    return FALSE;
  p.n = index->numel;
  p.index = gtorch_impl_data (index);
  p.report = gtorch_cuda_report (lane, error);
  return p.report != NULL
         && gtorch_cuda_run (&gtorch_kernels_one_hot, GTORCH_DTYPE_INT64, lane, p.n, &p, error);
}

gboolean
gtorch_cuda_triangle_indices (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  gint64 rows = call->attrs[0].i, columns = call->attrs[1].i;
  const GtTriangleIndices p = {
    .y = gtorch_impl_data (output),
    .n = output->shape[1],
    .rows = rows,
    .columns = columns,
    .diagonal = CLAMP (call->attrs[2].i, -rows - 1, columns + 1),
    .is_lower = call->op->id == GTORCH_OP_TRIL_INDICES,
  };

  return gtorch_cuda_run (&gtorch_kernels_triangle_indices, GTORCH_DTYPE_INT64, lane, p.n, &p,
                          error);
}

/* --- nonzero --- */

#define PART 4096

/* Counts the true elements. Unless they are NULL, *count becomes their number, and *sums the numbers before
 * each part. */
static gboolean
count_flags (GTorchCudaLane *lane, GTorchImpl *flags, GTorchImpl **sums, gint64 *count,
             GError **error)
{
  gint64 n_parts = (flags->numel + PART - 1) / PART;
  g_autoptr (GTorchImpl) before = gtorch_cuda_scratch (lane, (n_parts + 1) * 8, error);
  GtCountFlags c = { .n = flags->numel, .part = PART };
  GtSumBefore s = { .n = n_parts };

  if (before == NULL)
    return FALSE;
  c.flags = gtorch_impl_data (flags);
  c.counts = s.x = gtorch_impl_data (before);
  if (!gtorch_cuda_run_blocks (&gtorch_kernels_count_flags, GTORCH_DTYPE_BOOL, lane, n_parts, &c,
                               error))
    return FALSE;
  if (!gtorch_cuda_run_blocks (&gtorch_kernels_sum_before, GTORCH_DTYPE_INT64, lane, 1, &s, error)
      || (count != NULL && !gtorch_cuda_read (lane, count, s.x + n_parts, 8, error)))
    return FALSE;
  if (sums != NULL)
    *sums = g_steal_pointer (&before);
  return TRUE;
}

static gboolean
count_true (GTorchOpCall *call, GTorchCudaLane *lane, gpointer data, GError **error)
{
  g_autoptr (GTorchImpl) flags = gtorch_cuda_pack (call->inputs[0], GTORCH_DTYPE_BOOL, lane, error);

  return flags != NULL && count_flags (lane, flags, NULL, data, error);
}

/* Counts the elements that are not zero. */
gboolean
gtorch_cuda_query_nonzero (GTorchOpCall *call, gint64 *answers, GError **error)
{
  return gtorch_cuda_run_early (call, count_true, answers, error);
}

gboolean
gtorch_cuda_nonzero (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  g_autoptr (GTorchImpl) flags = NULL;
  g_autoptr (GTorchImpl) sums = NULL;
  GtFindFlags p = { .n = self->numel, .part = PART, .n_dims = self->n_dims };
  guint d;

  if (call->outputs[0]->numel == 0)
    return TRUE;
  flags = gtorch_cuda_pack (self, GTORCH_DTYPE_BOOL, lane, error);
  if (flags == NULL || !count_flags (lane, flags, &sums, NULL, error))
    return FALSE;
  for (d = 0; d < self->n_dims; d++)
    p.shape[d] = self->shape[d];
  p.flags = gtorch_impl_data (flags);
  p.before = gtorch_impl_data (sums);
  p.y = gtorch_impl_data (call->outputs[0]);
  return gtorch_cuda_run (&gtorch_kernels_find_flags, GTORCH_DTYPE_BOOL, lane,
                          (self->numel + PART - 1) / PART * 32, &p, error);
}
