/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "distributed/gtorch-grad-bucket.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "base/gtorch-error.h"
#include "base/gtorch-field-private.h"
#include "distributed/gtorch-distributed-module-private.h"
#include "distributed/gtorch-engine-private.h"
#include "gtorch-tensor-ops.h"
#include "tensor/gtorch-impl-private.h"
#include "tensor/gtorch-tensor-private.h"

/**
 * GTorchGradBucket:
 *
 * Gradients that a [class@DistributedModule] exchanges together.
 *
 * A function for [method@DistributedModule.register_comm_hook] gets one: its buffer has the gradients of this
 * rank, one behind the other in one dimension, and the function returns a tensor with the mean of all ranks.
 *
 * ```c
 * static GTorchTensor *
 * send_as_bfloat16 (GTorchGradBucket *bucket, gpointer user_data, GError **error)
 * {
 *   return gtorch_grad_bucket_average (bucket, GTORCH_DTYPE_BFLOAT16, error);
 * }
 * ```
 *
 * Since: 0.1
 */

struct _GTorchGradBucket
{
  GObject parent_instance;
  guint index;
  gboolean is_last;
  GTorchProcessGroup *group;
  GTorchTensor *buffer;
  GPtrArray *parameters;
};

G_DEFINE_TYPE (GTorchGradBucket, gtorch_grad_bucket, G_TYPE_OBJECT)

typedef GTorchGradBucket Self;

static const GTorchField fields[] = {
  /**
   * GTorchGradBucket:index:
   *
   * Its position: buckets are exchanged in the order of these.
   *
   * Since: 0.1
   */
  { "index", GTORCH_PROPERTY_UINT (gtorch_grad_bucket_get_index, NULL) },
  /**
   * GTorchGradBucket:group:
   *
   * The processes that exchange it.
   *
   * Since: 0.1
   */
  { "group", GTORCH_PROPERTY_OBJECT (GTorchProcessGroup, gtorch_process_group_get_type,
                                     gtorch_grad_bucket_get_group, NULL) },
  /**
   * GTorchGradBucket:buffer:
   *
   * The gradients, one behind the other.
   *
   * Since: 0.1
   */
  { "buffer",
    GTORCH_PROPERTY_OBJECT (GTorchTensor, gtorch_tensor_get_type, gtorch_grad_bucket_get_buffer,
                            gtorch_grad_bucket_set_buffer) },
};

static void
gtorch_grad_bucket_finalize (GObject *object)
{
  GTorchGradBucket *self = GTORCH_GRAD_BUCKET (object);

  g_clear_object (&self->group);
  g_clear_object (&self->buffer);
  g_ptr_array_unref (self->parameters);
  G_OBJECT_CLASS (gtorch_grad_bucket_parent_class)->finalize (object);
}

static void
gtorch_grad_bucket_class_init (GTorchGradBucketClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_grad_bucket_finalize;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_grad_bucket_init (GTorchGradBucket *self)
{
  self->parameters = g_ptr_array_new_with_free_func (g_object_unref);
}

GTorchGradBucket *
gtorch_grad_bucket_new (guint index, GTorchProcessGroup *group, GTorchTensor *buffer)
{
  GTorchGradBucket *self = g_object_new (GTORCH_TYPE_GRAD_BUCKET, NULL);

  self->index = index;
  self->group = g_object_ref (group);
  self->buffer = g_object_ref (buffer);
  return self;
}

void
gtorch_grad_bucket_add (GTorchGradBucket *self, GTorchTensor *parameter)
{
  g_ptr_array_add (self->parameters, g_object_ref (parameter));
}

void
gtorch_grad_bucket_prepare (GTorchGradBucket *self, GTorchTensor *buffer, gboolean is_last)
{
  g_set_object (&self->buffer, buffer);
  self->is_last = is_last;
}

/**
 * gtorch_grad_bucket_get_index:
 * @self: a bucket
 *
 * Gets the position of the bucket among those of its module.
 *
 * Returns: the position, from 0
 *
 * Since: 0.1
 */
guint
gtorch_grad_bucket_get_index (GTorchGradBucket *self)
{
  g_return_val_if_fail (GTORCH_IS_GRAD_BUCKET (self), 0);
  return self->index;
}

/**
 * gtorch_grad_bucket_is_last:
 * @self: a bucket
 *
 * Tells whether this is the last bucket of a backward pass.
 *
 * Returns: %TRUE if it is
 *
 * Since: 0.1
 */
gboolean
gtorch_grad_bucket_is_last (GTorchGradBucket *self)
{
  g_return_val_if_fail (GTORCH_IS_GRAD_BUCKET (self), FALSE);
  return self->is_last;
}

/**
 * gtorch_grad_bucket_get_group:
 * @self: a bucket
 *
 * Gets the processes that exchange the bucket.
 *
 * Returns: (transfer none) (nullable): the group
 *
 * Since: 0.1
 */
GTorchProcessGroup *
gtorch_grad_bucket_get_group (GTorchGradBucket *self)
{
  g_return_val_if_fail (GTORCH_IS_GRAD_BUCKET (self), NULL);
  return self->group;
}

/**
 * gtorch_grad_bucket_get_buffer:
 * @self: a bucket
 *
 * Gets the gradients of this rank, in one dimension.
 *
 * Returns: (transfer none) (nullable): the tensor
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_grad_bucket_get_buffer (GTorchGradBucket *self)
{
  g_return_val_if_fail (GTORCH_IS_GRAD_BUCKET (self), NULL);
  return self->buffer;
}

/**
 * gtorch_grad_bucket_set_buffer:
 * @self: a bucket
 * @buffer: a tensor of one dimension, with as many elements as the present buffer
 * @error: return location for an error
 *
 * Sets another tensor in place of the gradients, for as long as the function that got the bucket runs: one
 * that converts them sets what another function is to exchange.
 *
 * Returns: %TRUE, or %FALSE with @error set: %GTORCH_ERROR_SHAPE if @buffer has other elements
 *
 * Since: 0.1
 */
gboolean
gtorch_grad_bucket_set_buffer (GTorchGradBucket *self, GTorchTensor *buffer, GError **error)
{
  const GTorchImpl *impl;
  gint64 numel;

  g_return_val_if_fail (GTORCH_IS_GRAD_BUCKET (self) && GTORCH_IS_TENSOR (buffer), FALSE);
  impl = gtorch_tensor_unwrap (buffer);
  numel = self->buffer == NULL ? 0 : gtorch_tensor_get_numel (self->buffer);
  if (impl->n_dims != 1 || impl->numel != numel)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("grad_bucket: the buffer has the shape %s; its only dimension has the length "
                      "%" PRId64),
                   gtorch_impl_shape_str (impl), numel);
      return FALSE;
    }
  if (g_set_object (&self->buffer, buffer))
    g_object_notify (G_OBJECT (self), "buffer");
  return TRUE;
}

/**
 * gtorch_grad_bucket_get_parameters:
 * @self: a bucket
 *
 * Gets the parameters whose gradients these are, in the order of the buffer.
 *
 * Returns: (transfer container) (element-type GTorchTensor): the parameters
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_grad_bucket_get_parameters (GTorchGradBucket *self)
{
  GPtrArray *found;
  guint i;

  g_return_val_if_fail (GTORCH_IS_GRAD_BUCKET (self), NULL);
  found = g_ptr_array_new_with_free_func (g_object_unref);
  for (i = 0; i < self->parameters->len; i++)
    g_ptr_array_add (found, g_object_ref (self->parameters->pdata[i]));
  return found;
}

/**
 * gtorch_grad_bucket_get_gradients:
 * @self: a bucket
 * @error: return location for an error
 *
 * Gets views of the buffer, each with the gradient of a parameter, in its shape.
 *
 * Returns: (transfer container) (element-type GTorchTensor): the views, or %NULL with @error set
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_grad_bucket_get_gradients (GTorchGradBucket *self, GError **error)
{
  g_autoptr (GPtrArray) found = NULL;
  gint64 start = 0;
  guint i;

  g_return_val_if_fail (GTORCH_IS_GRAD_BUCKET (self), NULL);
  found = g_ptr_array_new_with_free_func (g_object_unref);
  for (i = 0; i < self->parameters->len; i++)
    {
      GTorchTensor *parameter = self->parameters->pdata[i];
      GTorchTensor *view = gtorch_ddp_make_slice (self->buffer, start, parameter, error);

      if (view == NULL)
        return NULL;
      g_ptr_array_add (found, view);
      start += gtorch_tensor_get_numel (parameter);
    }
  return g_steal_pointer (&found);
}

/**
 * gtorch_grad_bucket_average:
 * @self: a bucket
 * @dtype: the dtype in which numbers go to the other ranks, such as %GTORCH_DTYPE_BFLOAT16;
 *   %GTORCH_DTYPE_NONE for that of the buffer
 * @error: return location for an error
 *
 * Begins to compute the mean of the buffers of all ranks. All ranks call this for the same bucket. The buffer
 * itself becomes the mean if it has the dtype already, and a new tensor otherwise. As with all operations
 * of a group, reading the result waits for it.
 *
 * Numbers are divided by the number of ranks before they are converted, so that sums in float16 stay in its
 * range.
 *
 * Returns: (transfer full): a tensor of @dtype with the mean, or %NULL with @error set: %GTORCH_ERROR_DTYPE
 *   if @dtype is not one of floating-point numbers
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_grad_bucket_average (GTorchGradBucket *self, GTorchDType dtype, GError **error)
{
  GTORCH_GROUP_CALL ("grad_bucket_average");
  g_autoptr (GTorchTensor) sent = NULL, scaled = NULL;
  g_autoptr (GTorchWork) work = NULL;
  gboolean is_converted;

  g_return_val_if_fail (GTORCH_IS_GRAD_BUCKET (self), NULL);
  if (self->buffer == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("grad_bucket: the bucket is not one of a module"));
      return NULL;
    }
  if (dtype != GTORCH_DTYPE_NONE
      && (dtype < 0 || dtype >= GTORCH_N_DTYPES || gtorch_dtype_kind (dtype) != GTORCH_KIND_FLOAT))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("grad_bucket: the dtype %d is not one of floating-point numbers"), dtype);
      return NULL;
    }
  is_converted = dtype != GTORCH_DTYPE_NONE && dtype != gtorch_tensor_get_dtype (self->buffer);
  if (!is_converted)
    sent = g_object_ref (self->buffer);
  else
    {
      scaled = gtorch_tensor_div_scalar (self->buffer, gtorch_process_group_get_size (self->group),
                                         error);
      sent = scaled == NULL ? NULL : gtorch_tensor_to_dtype (scaled, dtype, error);
    }
  work = sent == NULL ? NULL
                      : gtorch_process_group_all_reduce (self->group, sent,
                                                         is_converted ? GTORCH_REDUCE_OP_SUM
                                                                      : GTORCH_REDUCE_OP_AVG,
                                                         error);
  return work == NULL || !gtorch_work_join (work, error) ? NULL : g_steal_pointer (&sent);
}
