/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Where parts of parameters are, and among which processes: what is set after they were divided. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "autograd/gtorch-tensor-autograd.h"
#include "base/gtorch-error.h"
#include "dispatch/gtorch-grad-mode.h"
#include "distributed/gtorch-engine-private.h"
#include "distributed/gtorch-group-compare-private.h"
#include "distributed/gtorch-module-shards-private.h"
#include "gtorch-tensor-ops.h"
#include "tensor/gtorch-tensor-private.h"

/**
 * gtorch_module_shards_get_replicas:
 * @self: parts of parameters
 *
 * Gets the processes that have the same parts as this one.
 *
 * Returns: (transfer none) (nullable): the group, or %NULL if there are none
 *
 * Since: 0.1
 */
GTorchProcessGroup *
gtorch_module_shards_get_replicas (GTorchModuleShards *self)
{
  g_return_val_if_fail (GTORCH_IS_MODULE_SHARDS (self), NULL);
  return self->replicas;
}

static gboolean
check_idle (GTorchModuleShards *self, GError **error)
{
  if (self->depth == 0 && !self->is_open && self->group != NULL)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("module_shards: this cannot be changed while the parameters are whole, or "
                  "without "
                  "any"));
  return FALSE;
}

static gboolean
compare_replicas (GTorchModuleShards *self, GTorchProcessGroup *replicas, GError **error)
{
  g_autoptr (GPtrArray) params = g_ptr_array_new ();
  g_auto (GTorchGroupFacts) facts;
  guint i;

  gtorch_group_facts_init (&facts);
  facts.device = self->device;
  gtorch_group_facts_add (&facts, "the rank in the group of the parts", "%d of %d",
                          gtorch_process_group_get_rank (self->group),
                          gtorch_process_group_get_size (self->group));
  for (i = 0; i < self->shards->len; i++)
    g_ptr_array_add (params, ((GTorchShard *) self->shards->pdata[i])->param);
  gtorch_group_facts_add_tensors (&facts, NULL, (GTorchTensor **) params->pdata, params->len);
  return gtorch_group_facts_compare (&facts, replicas, "module_shards", error);
}

/**
 * gtorch_module_shards_set_replicas:
 * @self: parts of parameters
 * @replicas: (nullable): processes that have the same parts as this one, which is one of them: each has the
 *   same rank in its group of parts; %NULL for none
 * @error: return location for an error
 *
 * Sets the processes among which gradients are averaged after they were averaged among those of
 * [property@ModuleShards:group]: on a mesh of two dimensions, the parts are spread along one, as within a
 * host, and replicated along the other.
 *
 * ```c
 * const gint64 shape[] = { 2, 4 }; // two hosts with four GPUs each
 * mesh = gtorch_device_mesh_new (world, shape, 2, NULL, &error);
 * shards = gtorch_module_shards_new (module, gtorch_device_mesh_get_group (mesh, 1, NULL), TRUE, …);
 * gtorch_module_shards_set_replicas (shards, gtorch_device_mesh_get_group (mesh, 0, NULL), &error);
 * ```
 *
 * All of them call this.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if this process has no rank in @replicas,
 *   %GTORCH_ERROR_SHAPE if the parts of the ranks differ, as they do in the group of the parts itself
 *
 * Since: 0.1
 */
gboolean
gtorch_module_shards_set_replicas (GTorchModuleShards *self, GTorchProcessGroup *replicas,
                                   GError **error)
{
  g_return_val_if_fail (GTORCH_IS_MODULE_SHARDS (self), FALSE);
  g_return_val_if_fail (replicas == NULL || GTORCH_IS_PROCESS_GROUP (replicas), FALSE);
  if (!check_idle (self, error))
    return FALSE;
  if (replicas != NULL && gtorch_process_group_get_rank (replicas) < 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("module_shards: this process has no rank in the group of replicas"));
      return FALSE;
    }
  if (replicas != NULL && !compare_replicas (self, replicas, error))
    return FALSE;
  g_set_object (&self->replicas, replicas);
  return TRUE;
}

/**
 * gtorch_module_shards_set_nearby:
 * @self: parts of parameters
 * @nearby: (nullable): some ranks of the group that follow each other, among them this process; %NULL for
 *   none
 * @error: return location for an error
 *
 * Keeps the whole parameters spread over fewer ranks, such as those of a host, from the end of a forward pass
 * to the backward pass, which then gathers them from these. It takes more memory than
 * [property@ModuleShards:reshard-after-forward] alone, and less than without. The size of @nearby divides
 * that of the group; ranks 0 to n - 1 are the first such group, and so on.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if these are not such ranks
 *
 * Since: 0.1
 */
gboolean
gtorch_module_shards_set_nearby (GTorchModuleShards *self, GTorchProcessGroup *nearby,
                                 GError **error)
{
  g_return_val_if_fail (GTORCH_IS_MODULE_SHARDS (self), FALSE);
  g_return_val_if_fail (nearby == NULL || GTORCH_IS_PROCESS_GROUP (nearby), FALSE);
  if (!check_idle (self, error))
    return FALSE;
  if (nearby != NULL)
    {
      const gint n = gtorch_process_group_get_size (nearby);
      const gint size = gtorch_process_group_get_size (self->group);
      const gint rank = gtorch_process_group_get_rank (self->group);

      if (n < 1 || size % n != 0 || gtorch_process_group_get_rank (nearby) != rank % n)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("module_shards: this is rank %d of %d, and rank %d of the %d nearby "
                          "ones, "
                          "whose number divides the other, and which follow each other"),
                       rank, size, gtorch_process_group_get_rank (nearby), n);
          return FALSE;
        }
    }
  gtorch_shards_drop (self);
  g_clear_object (&self->piece);
  g_set_object (&self->nearby, nearby);
  return TRUE;
}

static GTorchTensor *
move_to_host (GTorchTensor *param, gboolean pin, GError **error)
{
  g_autoptr (GTorchTensor) plain = gtorch_tensor_detach (param, error);
  g_autoptr (GTorchTensor) host = NULL;
  const GTorchImpl *impl;

  if (plain == NULL || !pin || gtorch_tensor_get_device (plain) == gtorch_device_cpu ())
    return plain == NULL ? NULL
                         : gtorch_tensor_to_device (plain, gtorch_device_cpu (), FALSE, error);
  impl = gtorch_tensor_unwrap (plain);
  host =
      gtorch_tensor_wrap (gtorch_impl_new_pinned (impl->dtype, impl->shape, impl->n_dims, error));
  return host == NULL || gtorch_tensor_copy_inplace (host, plain, FALSE, error) == NULL
             ? NULL
             : g_steal_pointer (&host);
}

/**
 * gtorch_module_shards_offload:
 * @self: parts of parameters
 * @pin: whether the memory is one from which a GPU copies by itself
 * @error: return location for an error
 *
 * Moves the parts to the memory of the CPU. They are copied to the device when they are gathered, and
 * gradients are copied back. An optimizer that is made afterwards updates them on the CPU, with its states
 * there. Gradients are dropped. Where the module is on the CPU, nothing changes.
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_module_shards_offload (GTorchModuleShards *self, gboolean pin, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = NULL;
  g_autoptr (GPtrArray) parts = g_ptr_array_new_with_free_func (g_object_unref);
  guint i;

  g_return_val_if_fail (GTORCH_IS_MODULE_SHARDS (self), FALSE);
  if (!check_idle (self, error))
    return FALSE;
  guard = gtorch_no_grad ();
  gtorch_shards_drop (self);
  for (i = 0; i < self->shards->len; i++)
    {
      GTorchTensor *part =
          move_to_host (((GTorchShard *) self->shards->pdata[i])->param, pin, error);

      if (part == NULL)
        return FALSE;
      g_ptr_array_add (parts, part);
    }
  for (i = 0; i < self->shards->len; i++)
    {
      GTorchTensor *param = ((GTorchShard *) self->shards->pdata[i])->param;

      if (!gtorch_tensor_set_grad (param, NULL, error)
          || !gtorch_tensor_set_data (param, parts->pdata[i], error))
        return FALSE;
    }
  self->is_offloaded = TRUE;
  return TRUE;
}

/**
 * gtorch_module_shards_is_offloaded:
 * @self: parts of parameters
 *
 * Tells whether the parts are in the memory of the CPU.
 *
 * Returns: %TRUE if they are
 *
 * Since: 0.1
 */
gboolean
gtorch_module_shards_is_offloaded (GTorchModuleShards *self)
{
  g_return_val_if_fail (GTORCH_IS_MODULE_SHARDS (self), FALSE);
  return self->is_offloaded;
}
