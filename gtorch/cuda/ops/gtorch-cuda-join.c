/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Concatenation of tensors on a GPU, of many of them with one kernel. */

#include "config.h"

#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"

#define PER_BLOCK 1024
#define LARGE     (1 << 20) /* bytes from which on a copy by the driver is as fast */

typedef struct
{
  GTorchCudaLane *lane;
  gint64 outer, row; /* number of rows, and bytes of a row of the output */
  GtJoin p;
  GTorchImpl *packed[GT_MAX_JOINED];                   /* the inputs, made contiguous */
  gint64 starts[GT_MAX_JOINED], widths[GT_MAX_JOINED]; /* in bytes of a row */
} Join;

static gboolean
join_flush (Join *join, GError **error)
{
  guint64 bits = (guintptr) join->p.dst | join->row | 16, blocks = 0;
  gboolean result = TRUE;
  gint64 size;
  guint i;

  for (i = 0; i < join->p.n_inputs; i++)
    bits |= (guintptr) join->p.inputs[i].src | join->starts[i] | join->widths[i];
  size = bits & -bits;
  join->p.pitch = join->row / size;
  for (i = 0; i < join->p.n_inputs; i++)
    {
      GtJoined *in = &join->p.inputs[i];

      in->start = join->starts[i] / size;
      in->width = gt_divider (join->widths[i] / size);
      in->n = join->outer * join->widths[i] / size;
      in->first_block = blocks;
      blocks += (in->n + PER_BLOCK - 1) / PER_BLOCK;
    }
  if (blocks > 0)
    result = gtorch_cuda_run_sized_blocks (&gtorch_kernels_join, size, join->lane, blocks, &join->p,
                                           error);
  gtorch_impl_clear (join->packed, join->p.n_inputs);
  join->p.n_inputs = 0;
  return result;
}

static gboolean
join_add (Join *join, GTorchImpl *packed, gint64 start, gint64 width, GError **error)
{
  guint i = join->p.n_inputs++;

  join->packed[i] = gtorch_impl_ref (packed);
  join->p.inputs[i].src = gtorch_impl_data (packed);
  join->starts[i] = start;
  join->widths[i] = width;
  return join->p.n_inputs < GT_MAX_JOINED || join_flush (join, error);
}

/* Returns whether the input is copied separately: that is as fast if there is one large row, and it is
 * needed if there are more bytes than the kernel can count. */
static gboolean
goes_alone (const Join *join, const GTorchImpl *input, gint64 n_bytes)
{
  return n_bytes >= G_MAXINT32 || (join->outer == 1 && n_bytes >= LARGE && input->is_contiguous);
}

gboolean
gtorch_cuda_cat (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  gint64 size = gtorch_dtype_size (output->dtype), inner = size, start = 0;
  Join join = { .lane = lane, .outer = 1 };
  gboolean result = TRUE;
  guint dim, d, k;

  if (output->numel == 0)
    return TRUE;
  gtorch_normalize_dim (call->op->name, call->attrs[0].i, output->n_dims, &dim, NULL);
  for (d = 0; d < output->n_dims; d++)
    if (d < dim)
      join.outer *= output->shape[d];
    else if (d > dim)
      inner *= output->shape[d];
  join.row = inner * output->shape[dim];
  join.p.dst = gtorch_impl_data (output);
  for (k = 0; k < call->n_inputs && result; k++)
    {
      GTorchImpl *input = call->inputs[k];

      if (input->numel == 0)
        continue;
      if (!output->is_contiguous || goes_alone (&join, input, input->numel * size))
        {
          g_autoptr (GTorchImpl) part =
              gtorch_impl_new_view (output, output->offset + start * output->strides[dim],
                                    input->shape, output->strides, output->n_dims);

          result = gtorch_cuda_copy_here (part, input, lane, error);
        }
      else
        {
          g_autoptr (GTorchImpl) packed = gtorch_cuda_pack (input, output->dtype, lane, error);

          result = packed != NULL
                   && join_add (&join, packed, start * inner, input->shape[dim] * inner, error);
        }
      start += input->shape[dim];
    }
  if (result)
    return join_flush (&join, error);
  gtorch_impl_clear (join.packed, join.p.n_inputs);
  return FALSE;
}
