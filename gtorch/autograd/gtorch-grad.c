/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Gradients of tensors: conversion to the form of their tensor, and accumulation into its grad. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "autograd/gtorch-autograd-private.h"
#include "graph/gtorch-capture-private.h"
#include "stream/gtorch-stream-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "base/gtorch-observer-private.h"
#include "tensor/gtorch-hold-private.h"
#include "gtorch-ops-private.h"

GTorchImpl *
gtorch_grad_fit (GTorchImpl *grad, const GTorchMeta *meta, GError **error)
{
  g_autoptr (GTorchImpl) current = grad;
  GTorchImpl *next;
  gint64 dims[GTORCH_MAX_DIMS];
  gsize n = 0;
  guint lead, i;

  if (current->n_dims < meta->n_dims)
    goto wrong;
  lead = current->n_dims - meta->n_dims;
  for (i = 0; i < current->n_dims; i++)
    if (i < lead || (meta->shape[i - lead] == 1 && current->shape[i] != 1))
      dims[n++] = i;
    else if (current->shape[i] != meta->shape[i - lead])
      goto wrong;
  if (n > 0)
    {
      next = gtorch_op_sum (current, dims, n, TRUE, GTORCH_DTYPE_NONE, error);
      if (next == NULL)
        return NULL;
      gtorch_impl_unref (current);
      current = next;
      if (lead > 0)
        {
          next = gtorch_op_reshape (current, meta->shape, meta->n_dims, error);
          if (next == NULL)
            return NULL;
          gtorch_impl_unref (current);
          current = next;
        }
    }
  if (current->dtype != meta->dtype)
    {
      next = gtorch_op_to_dtype (current, meta->dtype, error);
      if (next == NULL)
        return NULL;
      gtorch_impl_unref (current);
      current = next;
    }
  if (gtorch_impl_device (current) != meta->device)
    {
      next = gtorch_op_to_device (current, meta->device, FALSE, error);
      if (next == NULL)
        return NULL;
      gtorch_impl_unref (current);
      current = next;
    }
  return g_steal_pointer (&current);

wrong:
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
               _ ("the gradient has shape %s, the input %s"), gtorch_impl_shape_str (current),
               gtorch_shape_str (meta->shape, meta->n_dims));
  return NULL;
}

/* Sums the elements of grad into memory with layout `from`, and returns a view of that memory with layout
 * `to`. */
static GTorchImpl *
relay (GTorchImpl *grad, const GTorchLayout *from, const GTorchLayout *to, GError **error)
{
  return gtorch_op_strided_view_backward (grad, to->shape, to->n_dims, from->strides, from->n_dims,
                                          from->offset, to->strides, to->n_dims, to->offset, error);
}

GTorchImpl *
gtorch_grad_of_view (GTorchImpl *grad, const GTorchLayout *view, const GTorchLayout *base,
                     GError **error)
{
  g_autoptr (GTorchImpl) sum = relay (grad, view, base, error);
  g_autoptr (GTorchImpl) ones = NULL;
  g_autoptr (GTorchImpl) counts = NULL;

  if (sum == NULL || !gtorch_strides_overlap (base->shape, base->strides, base->n_dims))
    return g_steal_pointer (&sum);
  ones = gtorch_op_ones (base->shape, base->n_dims, sum->dtype, gtorch_impl_device (sum), error);
  counts = ones != NULL ? relay (ones, base, base, error) : NULL;
  return counts != NULL ? gtorch_op_div (sum, counts, error) : NULL;
}

GTorchImpl *
gtorch_grad_in_view (GTorchImpl *grad, const GTorchLayout *view, const GTorchLayout *base,
                     GError **error)
{
  return relay (grad, base, view, error);
}

gboolean
gtorch_grad_strided_view (GTorchGradContext *context, GError **error)
{
  const GTorchMeta *self = &context->input_metas[0];
  const GTorchLayout view = { context->output_metas[0].shape, context->attrs[1].list.data,
                              context->output_metas[0].n_dims, context->attrs[2].i };
  const GTorchLayout base = { self->shape, context->attrs[3].list.data, self->n_dims,
                              context->attrs[4].i };

  context->result[0] = gtorch_grad_of_view (context->grads[0], &view, &base, error);
  return context->result[0] != NULL;
}

/* Finds the dimensions by descending stride, if the elements are dense in some order of dimensions. */
static gboolean
dense_order (const GTorchImpl *impl, gint64 *order)
{
  gint64 expected = impl->numel;
  guint i, j;

  for (i = 0; i < impl->n_dims; i++)
    {
      for (j = i; j > 0 && impl->strides[order[j - 1]] < impl->strides[i]; j--)
        order[j] = order[j - 1];
      order[j] = i;
    }
  for (i = 0; i < impl->n_dims; i++)
    {
      gint64 size = impl->shape[order[i]];

      if (size == 0)
        return FALSE;
      expected /= size;
      if (size != 1 && impl->strides[order[i]] != expected)
        return FALSE;
    }
  return TRUE;
}

gboolean
gtorch_grad_is_ours (const GTorchImpl *impl)
{
  GTorchStorage *storage = impl->storage;
  gint64 order[GTORCH_MAX_DIMS];

  return g_atomic_int_get (&impl->ref_count) == 1 && storage != NULL
         && g_atomic_int_get (&storage->ref_count) == 1 && storage->free_func == NULL
         && impl->autograd == NULL && !impl->is_number
         && (impl->is_contiguous || dense_order (impl, order));
}

/* Tells whether impl is dense but not contiguous, so that its grad takes on the order of its dimensions. */
static gboolean
wants_order (const GTorchImpl *impl, gint64 *order)
{
  return !impl->is_contiguous && dense_order (impl, order);
}

/* Tells whether grad has the layout that copy_like () would give it. */
static gboolean
is_like (const GTorchImpl *impl, const GTorchImpl *grad)
{
  gint64 order[GTORCH_MAX_DIMS];
  guint i;

  if (!wants_order (impl, order))
    return grad->is_contiguous;
  for (i = 0; i < impl->n_dims; i++)
    if (impl->shape[i] != 1 && grad->strides[i] != impl->strides[i])
      return FALSE;
  return TRUE;
}

/* Copies grad, with the strides of impl if that is dense, so that an optimizer can iterate over both with
 * the same strides. */
static GTorchImpl *
copy_like (const GTorchImpl *impl, GTorchImpl *grad, GError **error)
{
  gint64 order[GTORCH_MAX_DIMS], back[GTORCH_MAX_DIMS];
  g_autoptr (GTorchImpl) memory = NULL;
  g_autoptr (GTorchImpl) permuted = NULL;
  g_autoptr (GTorchImpl) result = NULL;
  guint i;

  if (!wants_order (impl, order))
    return gtorch_op_clone (grad, error);
  for (i = 0; i < impl->n_dims; i++)
    back[order[i]] = i;
  /* a copy with its dimensions in that order, permuted to the order of impl */
  permuted = gtorch_op_permute (grad, order, impl->n_dims, error);
  memory = permuted != NULL ? gtorch_op_clone (permuted, error) : NULL;
  result = memory != NULL ? gtorch_op_permute (memory, back, impl->n_dims, error) : NULL;
  return g_steal_pointer (&result);
}

GTorchImpl *
gtorch_grad_show (GTorchImpl *grad, gboolean may_take, GError **error)
{
  if (gtorch_is_grad_enabled ())
    return gtorch_impl_ref (grad);
  if (!may_take || !gtorch_grad_is_ours (grad))
    return gtorch_op_clone (grad, error);
  grad->is_silent_view = FALSE; /* nothing else uses the memory */
  return gtorch_impl_ref (grad);
}

/* Makes the current stream wait for the last stream that wrote to grad. Passes of several threads, or
 * successive passes of one thread, may accumulate on different streams. */
static gboolean
follow_stream (GTorchAutograd *autograd, GTorchDevice *device, GError **error)
{
  GTorchStream *last = autograd->grad_stream, *current = gtorch_current_stream (device);
  gboolean success = TRUE;

  if (G_LIKELY (last == current))
    return TRUE;
  if (autograd->grad != NULL)
    {
      GTorchStream *next = current != NULL ? current : gtorch_device_get_default_stream (device);
      g_autoptr (GTorchCapture) own = gtorch_stream_dup_capture (next);
      g_autoptr (GTorchCapture) others = NULL;

      if (last == NULL)
        last = gtorch_device_get_default_stream (device);
      others = gtorch_stream_dup_capture (last);
      /* There is no order between work inside and outside of a capture: the stream of the replay decides. */
      success = own != others || gtorch_stream_wait_stream (next, last, error);
    }
  g_set_object (&autograd->grad_stream, current);
  return success;
}

gboolean
gtorch_grad_accumulate (GTorchImpl *impl, GTorchImpl *grad, gboolean may_take, GError **error)
{
  GTorchAutograd *autograd = gtorch_autograd_ensure (impl);
  gboolean success;
  GTorchImpl *sum;
  GTORCH_HOLD (impl);

  if (G_UNLIKELY (impl->dtype != grad->dtype || impl->device != grad->device))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("backward: the gradient for a tensor of shape %s is %s on %s, the tensor %s "
                      "on "
                      "%s by now: it was moved or converted after the forward pass"),
                   gtorch_impl_shape_str (impl), gtorch_dtype_get_name (grad->dtype),
                   gtorch_device_name (grad->device), gtorch_dtype_get_name (impl->dtype),
                   gtorch_device_name (impl->device));
      return FALSE;
    }

  g_mutex_lock (&autograd->lock);
  success = follow_stream (autograd, gtorch_impl_device (impl), error);
  if (success && autograd->grad == NULL)
    {
      if (may_take && gtorch_grad_is_ours (grad) && is_like (impl, grad))
        autograd->grad = gtorch_impl_ref (grad);
      else
        autograd->grad = copy_like (impl, grad, error);
      success = autograd->grad != NULL;
      if (success)
        autograd->grad->is_silent_view = FALSE; /* nothing else uses the memory */
    }
  else if (success && !gtorch_impl_is_released (autograd->grad) && !gtorch_is_grad_enabled ()
           && !gtorch_impl_requires_grad (autograd->grad))
    {
      gtorch_observe_grad (autograd->grad);
      success = gtorch_op_add_inplace (autograd->grad, grad, 1.0, error);
    }
  else if (success)
    {
      /* A new sum is allocated, since the former grad may be part of a graph. If the grad has a graph that
       * leads back to the tensor, that is a cycle; without create_graph the sum has none. */
      sum = gtorch_op_add (autograd->grad, grad, 1.0, error);
      success = sum != NULL;
      if (success)
        {
          gtorch_impl_unref (autograd->grad);
          autograd->grad = sum;
        }
    }
  g_mutex_unlock (&autograd->lock);
  if (success)
    gtorch_grad_notify (impl);
  return success;
}

gboolean
gtorch_grad_set_zero (GTorchImpl *impl, GError **error)
{
  GTorchAutograd *autograd = impl->autograd;
  GTorchImpl *former = NULL, *zeros = NULL;
  gboolean success = TRUE;
  GTorchChange mode;

  if (autograd == NULL)
    return TRUE;
  gtorch_change_to_grad (&mode, FALSE);
  g_mutex_lock (&autograd->lock);
  if (autograd->grad != NULL && gtorch_impl_requires_grad (autograd->grad))
    {
      zeros = gtorch_op_zeros_like (autograd->grad, GTORCH_DTYPE_NONE, error);
      success = zeros != NULL;
      if (success)
        {
          former = autograd->grad;
          autograd->grad = zeros;
        }
    }
  else if (autograd->grad != NULL)
    success = gtorch_op_zero_inplace (autograd->grad, error);
  g_mutex_unlock (&autograd->lock);
  gtorch_change_end (&mode);
  g_clear_pointer (&former, gtorch_impl_unref);
  if (success)
    gtorch_grad_notify (impl);
  return success;
}

void
gtorch_grad_drop_graph (GTorchImpl *impl)
{
  GTorchAutograd *autograd = impl->autograd;
  GTorchImpl *former = NULL;

  g_mutex_lock (&autograd->lock);
  if (autograd->grad != NULL && gtorch_impl_requires_grad (autograd->grad))
    former = g_steal_pointer (&autograd->grad);
  g_mutex_unlock (&autograd->lock);
  g_clear_pointer (&former, gtorch_impl_unref);
}
