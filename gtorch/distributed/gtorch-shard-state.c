/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Whole parameters from their parts, and the other way round, for files and comparisons. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "autograd/gtorch-tensor-autograd.h"
#include "base/gtorch-error.h"
#include "dispatch/gtorch-grad-mode.h"
#include "distributed/gtorch-engine-private.h"
#include "distributed/gtorch-module-shards-private.h"
#include "gtorch-tensor-ops.h"
#include "tensor/gtorch-tensor-private.h"

/* What a tensor that was adopted is divided as. */
static GQuark
like_quark (void)
{
  return g_quark_from_static_string ("gtorch-module-shards-like");
}

gboolean
gtorch_shards_is_same (GTorchTensor *tensor, GTorchTensor *param)
{
  const GTorchImpl *one = gtorch_tensor_unwrap (tensor), *other = gtorch_tensor_unwrap (param);

  return one->storage != NULL && one->storage == other->storage && one->dtype == other->dtype
         && one->offset == other->offset && one->n_dims == other->n_dims
         && memcmp (one->shape, other->shape, one->n_dims * sizeof (gint64)) == 0;
}

/* --- all of them --- */

static GMutex lock;
static GPtrArray
    *listed; /* GTorchModuleShards, not owned; each takes itself out when it is freed */

void
gtorch_shards_list (GTorchModuleShards *self)
{
  g_mutex_lock (&lock);
  if (listed == NULL)
    listed = g_ptr_array_new ();
  g_ptr_array_add (listed, self);
  g_mutex_unlock (&lock);
}

void
gtorch_shards_unlist (GTorchModuleShards *self)
{
  g_mutex_lock (&lock);
  if (listed != NULL)
    g_ptr_array_remove_fast (listed, self);
  g_mutex_unlock (&lock);
}

typedef gboolean (*IsFunc) (GTorchTensor *tensor, GTorchTensor *param);

static gboolean
is_grad (GTorchTensor *tensor, GTorchTensor *param)
{
  g_autoptr (GTorchTensor) grad = gtorch_tensor_get_grad (param);

  return grad != NULL && gtorch_shards_is_same (tensor, grad);
}

/* Looks for the object, and the parameter, that a tensor belongs to. */
static GTorchModuleShards *
search (GTorchTensor *tensor, IsFunc is, GTorchTensor **param)
{
  GTorchModuleShards *found = NULL;
  guint i, k;

  g_mutex_lock (&lock);
  for (i = 0; listed != NULL && found == NULL && i < listed->len; i++)
    {
      GTorchModuleShards *self = listed->pdata[i];

      for (k = 0; found == NULL && k < self->shards->len; k++)
        if (is (tensor, ((GTorchShard *) self->shards->pdata[k])->param))
          {
            found = self;
            *param = ((GTorchShard *) self->shards->pdata[k])->param;
          }
    }
  g_mutex_unlock (&lock);
  return found;
}

GTorchTensor *
gtorch_shards_of_grad (GTorchTensor *grad)
{
  GTorchTensor *param = NULL;

  search (grad, is_grad, &param);
  return param;
}

/* --- parts --- */

GTorchShard *
gtorch_shards_find (GTorchModuleShards *self, GTorchTensor *param)
{
  GTorchTensor *like = g_object_get_qdata (G_OBJECT (param), like_quark ());
  guint i;

  for (i = 0; i < self->shards->len; i++)
    {
      GTorchShard *shard = self->shards->pdata[i];

      if (shard->param == param || shard->param == like)
        return shard;
    }
  for (i = 0; i < self->shards->len; i++)
    if (gtorch_shards_is_same (param, ((GTorchShard *) self->shards->pdata[i])->param))
      return self->shards->pdata[i];
  return NULL;
}

/**
 * gtorch_module_shards_find:
 * @tensor: a tensor
 *
 * Gets what a parameter, or a tensor that was given to [method@ModuleShards.adopt], is a part of. A tensor
 * that shares its elements with a parameter, as one of a state dict does, is a part as well, and so are the
 * states that an optimizer has for one. A copy is not.
 *
 * Returns: (transfer none) (nullable): the parts, or %NULL if @tensor is not divided
 *
 * Since: 0.1
 */
GTorchModuleShards *
gtorch_module_shards_find (GTorchTensor *tensor)
{
  GTorchModuleShards *found;
  GTorchTensor *like, *param;

  g_return_val_if_fail (GTORCH_IS_TENSOR (tensor), NULL);
  like = g_object_get_qdata (G_OBJECT (tensor), like_quark ());
  found = g_object_get_qdata (G_OBJECT (like != NULL ? like : tensor), gtorch_shards_quark ());
  return found != NULL || GTORCH_IS_PARAMETER (tensor)
             ? found
             : search (tensor, gtorch_shards_is_same, &param);
}

static GTorchShard *
find_shard (GTorchModuleShards *self, GTorchTensor *param, GError **error)
{
  GTorchShard *shard = gtorch_shards_find (self, param);

  if (shard == NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("module_shards: the tensor of shape %s is not one of the parameters that were "
                    "divided"),
                 gtorch_impl_shape_str (gtorch_tensor_unwrap (param)));
  return shard;
}

/**
 * gtorch_module_shards_adopt:
 * @self: parts of parameters
 * @tensor: a tensor of the shape of this rank's part of @param, such as its moments
 * @param: one of the parameters
 * @error: return location for an error
 *
 * Says that a tensor is a part of a whole one, divided as a parameter is: [method@ModuleShards.gather] and
 * [method@ModuleShards.scatter] take it, and [func@safetensors_save_index] writes the parts of all ranks as
 * one tensor.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_SHAPE if @tensor has another shape
 *
 * Since: 0.1
 */
gboolean
gtorch_module_shards_adopt (GTorchModuleShards *self, GTorchTensor *tensor, GTorchTensor *param,
                            GError **error)
{
  const GTorchImpl *own, *impl;
  GTorchShard *shard;

  g_return_val_if_fail (GTORCH_IS_MODULE_SHARDS (self) && GTORCH_IS_TENSOR (tensor)
                            && GTORCH_IS_TENSOR (param),
                        FALSE);
  shard = find_shard (self, param, error);
  if (shard == NULL)
    return FALSE;
  own = gtorch_tensor_unwrap (tensor);
  impl = gtorch_tensor_unwrap (shard->param);
  if (own->n_dims != impl->n_dims
      || memcmp (own->shape, impl->shape, own->n_dims * sizeof (gint64)) != 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("module_shards: the tensor has the shape %s, and this rank's part of “%s” "
                      "another one, %s"),
                   gtorch_impl_shape_str (own),
                   gtorch_parameter_get_name (GTORCH_PARAMETER (shard->param)),
                   gtorch_impl_shape_str (impl));
      return FALSE;
    }
  if (tensor != shard->param)
    g_object_set_qdata_full (G_OBJECT (tensor), like_quark (), g_object_ref (shard->param),
                             g_object_unref);
  return TRUE;
}

/**
 * gtorch_module_shards_gather:
 * @self: parts of parameters
 * @param: one of the parameters
 * @error: return location for an error
 *
 * Collects the parts of a parameter, for files and for comparisons. All ranks call this.
 *
 * Returns: (transfer full): a new tensor with the whole parameter, of its dtype, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_module_shards_gather (GTorchModuleShards *self, GTorchTensor *param, GError **error)
{
  GTORCH_GROUP_CALL ("module_shards_gather");
  g_autoptr (GTorchGradGuard) guard = NULL;
  g_autoptr (GTorchTensor) own = NULL, all = NULL, flat = NULL, to = NULL, rows = NULL;
  g_autoptr (GTorchWork) work = NULL;
  const GTorchShard *shard;
  GTorchDevice *device;
  guint dtype;
  gint64 n, n_all, minus = -1;

  g_return_val_if_fail (GTORCH_IS_MODULE_SHARDS (self) && GTORCH_IS_TENSOR (param), NULL);
  shard = find_shard (self, param, error);
  if (shard == NULL)
    return NULL;
  guard = gtorch_no_grad ();
  dtype = gtorch_tensor_get_dtype (param);
  device = self->device;
  n = shard->per * shard->row;
  n_all = n * gtorch_process_group_get_size (self->group);
  own = gtorch_zeros (&n, 1, dtype, device, error);
  all = own == NULL ? NULL : gtorch_zeros (&n_all, 1, dtype, device, error);
  flat = all == NULL ? NULL : gtorch_tensor_reshape (param, &minus, 1, error);
  to = flat == NULL ? NULL : gtorch_tensor_narrow (own, 0, 0, shard->n_rows * shard->row, error);
  if (to == NULL || gtorch_tensor_copy_inplace (to, flat, FALSE, error) == NULL)
    return NULL;
  work = gtorch_process_group_all_gather_into_tensor (self->group, all, own, error);
  rows = work == NULL || !gtorch_work_join (work, error)
             ? NULL
             : gtorch_tensor_narrow (all, 0, 0, shard->shape[0] * shard->row, error);
  return rows == NULL ? NULL : gtorch_tensor_view (rows, shard->shape, shard->n_dims, error);
}

/**
 * gtorch_module_shards_scatter:
 * @self: parts of parameters
 * @param: one of the parameters
 * @full: the whole parameter, of any dtype
 * @error: return location for an error
 *
 * Sets this rank's part of a parameter. The other ranks do so themselves.
 *
 * Returns: %TRUE, or %FALSE with @error set: %GTORCH_ERROR_SHAPE if @full has another shape
 *
 * Since: 0.1
 */
gboolean
gtorch_module_shards_scatter (GTorchModuleShards *self, GTorchTensor *param, GTorchTensor *full,
                              GError **error)
{
  g_autoptr (GTorchGradGuard) guard = NULL;
  g_autoptr (GTorchTensor) rows = NULL, to = NULL;
  const GTorchImpl *impl;
  const GTorchShard *shard;

  g_return_val_if_fail (GTORCH_IS_MODULE_SHARDS (self) && GTORCH_IS_TENSOR (param)
                            && GTORCH_IS_TENSOR (full),
                        FALSE);
  shard = find_shard (self, param, error);
  if (shard == NULL)
    return FALSE;
  impl = gtorch_tensor_unwrap (full);
  if (impl->n_dims != shard->n_dims
      || memcmp (impl->shape, shard->shape, impl->n_dims * sizeof (gint64)) != 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("module_shards: the tensor has the shape %s, and “%s” has %u dimensions, of "
                      "which the "
                      "first has the length %" PRId64),
                   gtorch_impl_shape_str (impl),
                   gtorch_parameter_get_name (GTORCH_PARAMETER (shard->param)), shard->n_dims,
                   shard->shape[0]);
      return FALSE;
    }
  guard = gtorch_no_grad ();
  rows = gtorch_tensor_narrow (full, 0, shard->first, shard->n_rows, error);
  to = rows == NULL ? NULL : gtorch_tensor_detach (param, error);
  return to != NULL && gtorch_tensor_copy_inplace (to, rows, FALSE, error) != NULL;
}
