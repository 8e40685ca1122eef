/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Attention of 16-bit dtypes by cuDNN, which computes it in one kernel, without storing the matrix of
 * weights. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>
#include <string.h>

#include "cuda/ops/gtorch-cuda-attention-private.h"
#include "cuda/graph/gtorch-cuda-capture-private.h"
#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "cuda/driver/gtorch-cuda-private.h"
#include "dispatch/gtorch-attention-private.h"
#include "gtorch-ops-private.h"

#define MIN_VERSION  90600
#define ANY_COLUMNS  91600 /* version from which on the backward pass takes any number of columns */
#define MAX_ELEMENTS G_MAXINT32

/* --- plans --- */

static GTorchCudnnPlan
look_for_plan (const GTorchAttentionForm *form, gpointer handle)
{
  GTorchCudnnPlan plan = { NULL };
  gpointer ops[GTORCH_ATTENTION_MAX_OPS];
  GPtrArray *graph;
  guint n_ops;

  if (gtorch_cudnn_version () < MIN_VERSION
      || (form->backward && form->columns % 128 != 0 && gtorch_cudnn_version () < ANY_COLUMNS))
    return plan;
  graph = gtorch_cuda_attention_describe (form, ops, &n_ops);
  if (graph != NULL)
    gtorch_cudnn_find (handle, ops, n_ops, NULL, NULL, G_MAXINT64, &plan, 1);
  g_clear_pointer (&graph, g_ptr_array_unref);
  if (plan.plan == NULL)
    g_debug ("cuDNN has no engine for attention of %" G_GINT64_FORMAT " by %" G_GINT64_FORMAT
             ", %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT " elements%s",
             form->rows, form->columns, form->depth, form->width,
             form->backward ? ", backward" : "");
  return plan;
}

/* Finds or makes a plan; returns NULL if cuDNN has none. Must be called between gtorch_cudnn_begin () and
 * gtorch_cudnn_end (). */
static const GTorchCudnnPlan *
find_plan (const GTorchAttentionForm *form, gpointer handle)
{
  const GTorchCudnnPlan *plan = gtorch_cudnn_lookup (form->device, form, sizeof *form);
  GTorchCudnnPlan found;

  if (plan == NULL)
    {
      found = look_for_plan (form, handle);
      plan = gtorch_cudnn_keep (form->device, form, sizeof *form, &found);
    }
  return plan->plan != NULL ? plan : NULL;
}

/* --- operands --- */

/* Returns whether cuDNN can take the tensor as it is. Batch and heads are the two dimensions before the
 * last two; if there are more dimensions, the tensor must be contiguous. */
static gboolean
is_laid_out (const GTorchImpl *impl)
{
  guint n = impl->n_dims, i;

  if ((guintptr) gtorch_impl_data (impl) % GTORCH_ATTENTION_ALIGNMENT != 0)
    return FALSE;
  if (impl->is_contiguous)
    return TRUE;
  if (n > 4 || (impl->shape[n - 1] > 1 && impl->strides[n - 1] != 1))
    return FALSE;
  for (i = 0; i + 1 < n; i++)
    if (impl->shape[i] > 1
        && (impl->strides[i] <= 0 || impl->strides[i] * 2 % GTORCH_ATTENTION_ALIGNMENT != 0))
      return FALSE;
  return TRUE;
}

static void
layout_of (const GTorchImpl *impl, gint64 *strides)
{
  gint64 shape[] = { 1, 1, 1, 1 };
  guint n = impl->n_dims, i;

  for (i = 0; i < MIN (n, 4); i++)
    shape[3 - i] = impl->shape[n - 1 - i];
  gtorch_contiguous_strides (shape, 4, strides);
  if (is_laid_out (impl) && !impl->is_contiguous)
    for (i = 0; i < n; i++)
      if (impl->shape[n - 1 - i] > 1)
        strides[3 - i] = impl->strides[n - 1 - i];
}

/* Returns what a mask must be made of. */
static guint
mask_dtype (const GTorchImpl *mask, const GTorchImpl *q)
{
  return q->dtype == GTORCH_DTYPE_BFLOAT16 && mask->dtype != GTORCH_DTYPE_FLOAT32
             ? GTORCH_DTYPE_BFLOAT16
             : GTORCH_DTYPE_FLOAT32;
}

static gint64
mask_batch (const GTorchAttentionForm *form, const GTorchImpl *mask)
{
  guint i;

  for (i = 0; i + 3 < mask->n_dims; i++)
    if (mask->shape[i] != 1)
      return form->batch;
  return 1;
}

static gboolean
has_same_rows (const GTorchImpl *mask)
{
  guint n = mask->n_dims;

  return n < 2 || mask->shape[n - 2] == 1 || mask->strides[n - 2] == 0;
}

/* Fills in the form of the attention; returns FALSE if cuDNN cannot compute it. */
static gboolean
form_init (GTorchAttentionForm *form, const GTorchImpl *q, const GTorchImpl *k, const GTorchImpl *v,
           const GTorchImpl *mask, gboolean is_causal, gdouble dropout_p, GTorchDevice *device)
{
  guint n = q->n_dims, i;

  memset (form, 0, sizeof *form);
  if ((q->dtype != GTORCH_DTYPE_FLOAT16 && q->dtype != GTORCH_DTYPE_BFLOAT16) || q->numel == 0
      || k->numel == 0 || v->numel == 0 || dropout_p >= 1)
    return FALSE;
  form->dtype = q->dtype;
  form->device = device->index;
  form->is_causal = is_causal;
  form->dropout = dropout_p;
  form->batch = 1;
  for (i = 0; i + 3 < n; i++)
    form->batch *= q->shape[i];
  form->heads = n > 2 ? q->shape[n - 3] : 1;
  form->key_heads = n > 2 ? k->shape[n - 3] : 1;
  form->rows = q->shape[n - 2];
  form->depth = q->shape[n - 1];
  form->columns = k->shape[n - 2];
  form->width = v->shape[n - 1];
  layout_of (q, form->q);
  layout_of (k, form->k);
  layout_of (v, form->v);
  if (mask != NULL)
    {
      form->mask[0] = mask_batch (form, mask);
      form->mask[1] = mask->n_dims > 2 ? mask->shape[mask->n_dims - 3] : 1;
      form->mask_rows = has_same_rows (mask) ? 1 : form->rows;
      form->mask_type = gtorch_cudnn_data_type (mask_dtype (mask, q));
    }
  return form->depth % 8 == 0 && form->width % 8 == 0 && q->numel <= MAX_ELEMENTS
         && k->numel <= MAX_ELEMENTS && v->numel <= MAX_ELEMENTS && form->rows <= G_MAXINT32 / 8
         && form->columns <= G_MAXINT32 / 8
         && (mask == NULL
             || form->rows * form->columns <= MAX_ELEMENTS / (form->mask[0] * form->mask[1]));
}

/* Turns the form into that of the backward pass. There, cuDNN needs the mask of every row: with one row for
 * all, it computes wrong gradients. */
static void
turn_back (GTorchAttentionForm *form, GTorchDevice *device)
{
  form->backward = TRUE;
  if (form->mask_rows > 0)
    form->mask_rows = form->rows;
  form->deterministic = g_atomic_int_get (&device->deterministic);
}

/* Returns whether cuDNN has a plan. If all rows share one row of the mask, a plan with one row is tried
 * first, then one with the mask of every row. */
static gboolean
has_plan (GTorchAttentionForm *form)
{
  gpointer handle = gtorch_cudnn_begin (form->device);
  gboolean result;

  if (handle == NULL)
    return FALSE;
  result = find_plan (form, handle) != NULL;
  if (!result && form->mask_rows == 1 && form->rows > 1)
    {
      form->mask_rows = form->rows;
      result = find_plan (form, handle) != NULL;
    }
  gtorch_cudnn_end ();
  return result;
}

/* Whether cuDNN knows how to do this, with the gradient if that is wanted. */
static gboolean
has_form (const GTorchOpCall *call)
{
  GTorchImpl *q = call->inputs[0], *k = call->inputs[1], *v = call->inputs[2];
  GTorchImpl *mask = call->inputs[3];
  GTorchDevice *device = call->device;
  gdouble dropout_p = call->attrs[2].d;
  GTorchCudaLane *lane;
  GTorchAttentionForm form;

  if (gtorch_impl_device (k) != device || gtorch_impl_device (v) != device
      || (mask != NULL && (gtorch_impl_device (mask) != device || mask->n_dims == 0))
      || !form_init (&form, q, k, v, mask, call->attrs[0].i, dropout_p, device)
      || !gtorch_cuda_device_activate (GTORCH_CUDA_DEVICE (device), NULL) || !has_plan (&form))
    return FALSE;
  /* Refuse dropout in captures: the graph would drop the same elements in every replay. */
  if (dropout_p > 0
      && ((lane = gtorch_cuda_current_lane (device, NULL)) == NULL
          || gtorch_cuda_lane_may_capture (lane)))
    return FALSE;
  turn_back (&form, device);
  return !gtorch_autograd_wanted (call->inputs, 3) || has_plan (&form);
}

gboolean
gtorch_cuda_query_attention (GTorchOpCall *call, gint64 *answers, GError **error)
{
  const GTorchImpl *mask = call->inputs[3];

  answers[GTORCH_ATTENTION_FITS] = has_form (call);
  answers[GTORCH_ATTENTION_BIAS] =
      mask != NULL ? mask_dtype (mask, call->inputs[0]) : GTORCH_DTYPE_NONE;
  return TRUE;
}

/* --- running --- */

static GTorchImpl *
lay_out (GTorchImpl *impl, gboolean without_gaps, GTorchCudaLane *lane, GError **error)
{
  g_autoptr (GTorchImpl) copy = NULL;

  if (is_laid_out (impl) && (impl->is_contiguous || !without_gaps))
    return gtorch_impl_ref (impl);
  copy = gtorch_impl_new (gtorch_cuda_lane_device (lane), impl->dtype, impl->shape, impl->n_dims,
                          error);
  return copy != NULL && gtorch_cuda_copy_here (copy, impl, lane, error) ? g_steal_pointer (&copy)
                                                                         : NULL;
}

static GTorchImpl *
lay_out_mask (const GTorchAttentionForm *form, GTorchImpl *mask, GTorchCudaLane *lane,
              GError **error)
{
  gint64 shape[GTORCH_MAX_DIMS];
  g_autoptr (GTorchImpl) row = NULL;

  if (form->mask_rows != 1)
    return lay_out (mask, TRUE, lane, error);
  memcpy (shape, mask->shape, mask->n_dims * sizeof (gint64));
  shape[mask->n_dims - 2] = 1;
  row = gtorch_impl_new_view (mask, mask->offset, shape, mask->strides, mask->n_dims);
  return lay_out (row, TRUE, lane, error);
}

static gint64
round_up (gint64 n_bytes)
{
  return (n_bytes + 255) / 256 * 256;
}

/* Executes the plan. `pointers` are indexed by tensor ID; those of tensors that the graph does not have are
 * NULL. */
static gboolean
run (GTorchOpCall *call, const GTorchAttentionForm *form, GTorchCudaLane *lane, gpointer *pointers,
     GError **error)
{
  const gdouble rest = 1 - form->dropout;
  gfloat scale = call->attrs[1].d, one = rest, kept = 1 / rest, nothing = -INFINITY;
  const gint64 numbers[] = { call->attrs[3].i, 0 }; /* the seed and the offset */
  gint64 drawing = form->dropout > 0 ? round_up (sizeof numbers) : 0;
  gint64 dots = form->backward ? round_up (form->batch * form->heads * form->rows * 4) : 0;
  gint64 wide = form->backward && !form->deterministic
                    ? round_up (form->batch * form->heads * form->rows * form->depth * 4)
                    : 0;
  gint64 space = -1, ids[GTORCH_ATTENTION_N_IDS];
  g_autoptr (GTorchImpl) workspace = NULL;
  gpointer given[GTORCH_ATTENTION_N_IDS], handle;
  gboolean ok = TRUE;
  char *end = NULL;
  guint n = 0, i;
  const GTorchCudnnPlan *plan;

  handle = gtorch_cudnn_begin (form->device);
  plan = handle != NULL ? find_plan (form, handle) : NULL;
  /* The lock is released while memory is allocated, as that may call the application. */
  while (plan != NULL && dots + wide + drawing + plan->workspace > MAX (space, 0))
    {
      space = dots + wide + drawing + plan->workspace;
      gtorch_cudnn_end ();
      g_clear_pointer (&workspace, gtorch_impl_unref);
      workspace = gtorch_cuda_scratch (lane, space, error);
      if (workspace == NULL)
        return FALSE;
      gtorch_cudnn_begin (form->device);
      plan = find_plan (form, handle);
    }
  if (plan == NULL)
    {
      if (handle != NULL)
        gtorch_cudnn_end ();
      gtorch_call_error (call, error, GTORCH_ERROR_NOT_SUPPORTED,
                         _ ("cuDNN does not support query %s and key %s of dtype %s"),
                         gtorch_impl_shape_str (call->inputs[form->backward ? 1 : 0]),
                         gtorch_impl_shape_str (call->inputs[form->backward ? 2 : 1]),
                         gtorch_dtype_get_name (call->compute));
      return FALSE;
    }
  pointers[GTORCH_ATTENTION_SCALE] = &scale;
  if (form->is_causal)
    pointers[GTORCH_ATTENTION_NOTHING] = &nothing;
  if (workspace != NULL)
    {
      char *start = gtorch_impl_data (workspace);

      if (form->backward)
        {
          pointers[GTORCH_ATTENTION_ONE] = &one;
          pointers[GTORCH_ATTENTION_DOTS] = start;
          if (wide > 0)
            pointers[GTORCH_ATTENTION_WIDE] = start + dots;
        }
      end = start + dots + wide;
      if (drawing > 0)
        {
          pointers[GTORCH_ATTENTION_SEED] = end;
          pointers[GTORCH_ATTENTION_OFFSET] = end + sizeof (gint64);
          pointers[GTORCH_ATTENTION_KEPT] = &kept;
          ok = gtorch_cuda_check (gtorch_cuda.cuMemcpyHtoDAsync ((CUdeviceptr) (guintptr) end,
                                                                 numbers, sizeof numbers,
                                                                 lane->handle),
                                  "cuMemcpyHtoDAsync", error);
          end += drawing;
        }
    }
  for (i = 0; i < GTORCH_ATTENTION_N_IDS; i++)
    if (pointers[i] != NULL)
      {
        ids[n] = i;
        given[n++] = pointers[i];
      }
  ok = ok && gtorch_cudnn_execute (handle, plan->plan, lane, n, ids, given, end, error);
  gtorch_cudnn_use (plan, lane);
  gtorch_cudnn_end ();
  return ok;
}

/* Returns whether the mask, as make_bias () returns it, can be used. */
static gboolean
is_usable_mask (const GTorchImpl *mask, const GTorchImpl *q, const GTorchImpl *k)
{
  guint n = q->n_dims, i;
  gboolean all = TRUE, none = TRUE;

  if (mask->n_dims != n || mask->dtype != mask_dtype (mask, q)
      || mask->shape[n - 2] != q->shape[n - 2] || mask->shape[n - 1] != k->shape[n - 2])
    return FALSE;
  for (i = 0; i + 3 < n; i++)
    {
      all = all && mask->shape[i] == q->shape[i];
      none = none && mask->shape[i] == 1;
    }
  return all || none;
}

static gboolean
call_form (GTorchAttentionForm *form, GTorchOpCall *call, guint first, guint mask_at,
           GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *const *inputs = call->inputs + first, *mask = call->inputs[mask_at];

  if ((mask == NULL || is_usable_mask (mask, inputs[0], inputs[1]))
      && form_init (form, inputs[0], inputs[1], inputs[2], mask, call->attrs[0].i, call->attrs[2].d,
                    &lane->device->parent_instance))
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_NOT_SUPPORTED,
                     _ ("there is no kernel for this dtype, these sizes or this mask"));
  return FALSE;
}

gboolean
gtorch_cuda_attention (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  static const guint ids[] = { GTORCH_ATTENTION_Q, GTORCH_ATTENTION_K, GTORCH_ATTENTION_V,
                               GTORCH_ATTENTION_MASK };
  gpointer pointers[GTORCH_ATTENTION_N_IDS] = { NULL };
  GTorchImpl *operands[G_N_ELEMENTS (ids)] = { NULL };
  gboolean ok = TRUE;
  GTorchAttentionForm form;
  guint i;

  if (call->outputs[0]->numel == 0 && call->outputs[1]->numel == 0)
    return TRUE;
  if (!call_form (&form, call, 0, 3, lane, error)
      || !gtorch_cuda_device_activate (lane->device, error))
    return FALSE;
  /* If there is no plan with one row of the mask, this changes the form; run () reports if there is none at
   * all. */
  if (form.mask_rows == 1)
    has_plan (&form);
  for (i = 0; i < G_N_ELEMENTS (ids) && ok; i++)
    if (call->inputs[i] != NULL)
      {
        operands[i] = i == 3 ? lay_out_mask (&form, call->inputs[i], lane, error)
                             : lay_out (call->inputs[i], FALSE, lane, error);
        ok = operands[i] != NULL;
        pointers[ids[i]] = ok ? gtorch_impl_data (operands[i]) : NULL;
      }
  pointers[GTORCH_ATTENTION_OUTPUT] = gtorch_impl_data (call->outputs[0]);
  pointers[GTORCH_ATTENTION_STATS] = gtorch_impl_data (call->outputs[1]);
  ok = ok && run (call, &form, lane, pointers, error);
  gtorch_impl_clear (operands, G_N_ELEMENTS (ids));
  return ok;
}

gboolean
gtorch_cuda_attention_backward (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  static const guint ids[] = { GTORCH_ATTENTION_UPPER,  GTORCH_ATTENTION_Q,
                               GTORCH_ATTENTION_K,      GTORCH_ATTENTION_V,
                               GTORCH_ATTENTION_OUTPUT, GTORCH_ATTENTION_STATS,
                               GTORCH_ATTENTION_MASK };
  gpointer pointers[GTORCH_ATTENTION_N_IDS] = { NULL };
  GTorchImpl *operands[G_N_ELEMENTS (ids)] = { NULL };
  gboolean ok = TRUE;
  GTorchAttentionForm form;
  guint i;

  if (!call_form (&form, call, 1, 6, lane, error)
      || !gtorch_cuda_device_activate (lane->device, error))
    return FALSE;
  turn_back (&form, &lane->device->parent_instance);
  for (i = 0; i < G_N_ELEMENTS (ids) && ok; i++)
    if (call->inputs[i] != NULL)
      {
        operands[i] = lay_out (call->inputs[i], i < 1 || i > 3, lane, error);
        ok = operands[i] != NULL;
        pointers[ids[i]] = ok ? gtorch_impl_data (operands[i]) : NULL;
      }
  for (i = 0; i < 3; i++)
    pointers[GTORCH_ATTENTION_GRAD_Q + i] = gtorch_impl_data (call->outputs[i]);
  ok = ok && run (call, &form, lane, pointers, error);
  gtorch_impl_clear (operands, G_N_ELEMENTS (ids));
  return ok;
}
