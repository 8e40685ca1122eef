/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Which processes share the statistics of a batch normalisation, and their sums. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "base/gtorch-error.h"
#include "distributed/gtorch-distributed-module-private.h"
#include "distributed/gtorch-engine-private.h"
#include "distributed/gtorch-group-compare-private.h"
#include "distributed/gtorch-parallel.h"
#include "nn/gtorch-module-members.h"
#include "nn/gtorch-module-private.h"
#include "nn/gtorch-nn.h"
#include "nn/gtorch-sync-norm-private.h"
#include "tensor/gtorch-tensor-private.h"

static GQuark
group_quark (void)
{
  return g_quark_from_static_string ("gtorch-sync-group");
}

/* Of the parts whose group it is, if nothing else named it. */
static GQuark
shards_quark (void)
{
  return g_quark_from_static_string ("gtorch-sync-shards");
}

static GQuark
compared_quark (void)
{
  return g_quark_from_static_string ("gtorch-sync-compared");
}

/* When the layer is called first: a layer of another size would exchange other sums. */
static gboolean
compare (GTorchModule *module, GTorchProcessGroup *group, GError **error)
{
  g_auto (GTorchGroupFacts) facts;
  GTorchTensor *mean = gtorch_module_get_buffer (module, "running_mean", NULL);
  gint64 n_features = 0;
  gdouble eps = 0;

  g_object_get (module, "num-features", &n_features, "eps", &eps, NULL);
  gtorch_group_facts_init (&facts);
  facts.device = mean == NULL ? NULL : gtorch_tensor_get_device (mean);
  gtorch_group_facts_add (&facts, "num_features", "%" PRId64, n_features);
  gtorch_group_facts_add_number (&facts, "eps", eps);
  g_clear_object (&mean);
  if (!gtorch_group_facts_compare (&facts, group, "sync_batch_norm", error))
    return FALSE;
  g_object_set_qdata (G_OBJECT (module), compared_quark (), group);
  return TRUE;
}

static gboolean
sync_find (GTorchModule *module, gpointer *processes, GError **error)
{
  GTorchProcessGroup *group = g_object_get_qdata (G_OBJECT (module), group_quark ());
  GTorchModuleShards *shards = g_object_get_qdata (G_OBJECT (module), shards_quark ());

  if (shards != NULL && gtorch_module_shards_get_replicas (shards) != NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("sync_batch_norm: the module around has parts and replicas, and the batch is "
                      "divided among both: set the process group of all of them"));
      return FALSE;
    }
  *processes = group != NULL && gtorch_process_group_get_size (group) > 1 ? group : NULL;
  if (*processes != NULL && g_object_get_qdata (G_OBJECT (module), compared_quark ()) != *processes
      && !compare (module, group, error))
    return FALSE;
  if (group != NULL || gtorch_process_group_count_several () == 0)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("sync_batch_norm: there is a group of several processes, and nothing tells "
                  "whether they train this layer together: set its process group, or give it to a "
                  "distributed module"));
  return FALSE;
}

/* The backward pass of the copy sums up, that of the sum does nothing. */
static GTorchImpl *
sync_sum (gpointer processes, GTorchImpl *tensor, GError **error)
{
  GTORCH_GROUP_CALL ("sync_batch_norm");
  g_autoptr (GTorchTensor) own = gtorch_tensor_wrap (gtorch_impl_ref (tensor));
  g_autoptr (GTorchTensor) sum = gtorch_parallel_sum (processes, own, error);
  g_autoptr (GTorchTensor) all = sum == NULL ? NULL : gtorch_parallel_copy (processes, sum, error);

  return all == NULL ? NULL : gtorch_impl_ref (gtorch_tensor_unwrap (all));
}

static const GTorchSync sync_table = { sync_find, sync_sum };

static void __attribute__ ((constructor)) gtorch_sync_register (void) { gtorch_sync = &sync_table; }

static void
put_group (GTorchModule *layer, GTorchProcessGroup *group, GTorchModuleShards *shards)
{
  g_object_set_qdata_full (G_OBJECT (layer), group_quark (),
                           group == NULL ? NULL : g_object_ref (group), g_object_unref);
  g_object_set_qdata (G_OBJECT (layer), compared_quark (), NULL);
  g_object_set_qdata_full (G_OBJECT (layer), shards_quark (),
                           shards == NULL ? NULL : g_object_ref (shards), g_object_unref);
}

static void
set_group (GTorchModule *module, const gchar *path, gpointer group)
{
  if (GTORCH_IS_SYNC_BATCH_NORM (module))
    put_group (module, group, NULL);
}

typedef struct
{
  GTorchProcessGroup *group;
  GTorchModuleShards *shards;
} Default;

static void
set_default (GTorchModule *module, const gchar *path, gpointer data)
{
  const Default *found = data;

  if (GTORCH_IS_SYNC_BATCH_NORM (module)
      && g_object_get_qdata (G_OBJECT (module), group_quark ()) == NULL)
    put_group (module, found->group, found->shards);
}

void
gtorch_sync_set_default (GTorchModule *module, GTorchProcessGroup *group,
                         GTorchModuleShards *shards)
{
  gtorch_module_visit (module, TRUE, set_default, &(Default){ group, shards });
}

gboolean
gtorch_sync_has_group (GTorchModule *module)
{
  GTorchProcessGroup *group = g_object_get_qdata (G_OBJECT (module), group_quark ());

  return group != NULL && gtorch_process_group_get_size (group) > 1;
}

static gboolean
check_rank (const gchar *name, GTorchProcessGroup *group, GError **error)
{
  if (group == NULL || gtorch_process_group_get_rank (group) >= 0)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: this process has no rank in the group"), name);
  return FALSE;
}

/**
 * gtorch_synchronize_batch_norm:
 * @module: a module
 * @group: processes, each of which has the module
 * @error: return location for an error
 *
 * Lets each [class@SyncBatchNorm] in a module normalise by the mean and the variance of the batches of all
 * processes of a group together. All of them call the module in training mode, and go backward.
 *
 * A [class@DistributedModule] and [class@ModuleShards] do this for their own group, where nothing else was
 * said before.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if this process has no rank in @group
 *
 * Since: 0.1
 */
gboolean
gtorch_synchronize_batch_norm (GTorchModule *module, GTorchProcessGroup *group, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_MODULE (module) && GTORCH_IS_PROCESS_GROUP (group), FALSE);
  if (!check_rank ("synchronize_batch_norm", group, error))
    return FALSE;
  gtorch_module_visit (module, TRUE, set_group, group);
  return TRUE;
}

/**
 * gtorch_sync_batch_norm_get_process_group:
 * @self: a layer
 *
 * Gets the processes that share the statistics.
 *
 * Returns: (transfer none) (nullable): the group, or %NULL if none was named
 *
 * Since: 0.1
 */
GTorchProcessGroup *
gtorch_sync_batch_norm_get_process_group (GTorchSyncBatchNorm *self)
{
  g_return_val_if_fail (GTORCH_IS_SYNC_BATCH_NORM (self), NULL);
  return g_object_get_qdata (G_OBJECT (self), group_quark ());
}

/**
 * gtorch_sync_batch_norm_set_process_group:
 * @self: a layer
 * @group: (nullable): processes, each of which has the layer, or %NULL to leave it to the module around it
 * @error: return location for an error
 *
 * Names the processes whose batches are normalised together. All of them call the layer in training mode, and
 * go backward. [func@synchronize_batch_norm] does this for all layers of a module.
 *
 * ```c
 * gtorch_sync_batch_norm_set_process_group (layer, group, &error);
 * ```
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if this process has no rank in @group
 *
 * Since: 0.1
 */
gboolean
gtorch_sync_batch_norm_set_process_group (GTorchSyncBatchNorm *self, GTorchProcessGroup *group,
                                          GError **error)
{
  g_return_val_if_fail (GTORCH_IS_SYNC_BATCH_NORM (self), FALSE);
  g_return_val_if_fail (group == NULL || GTORCH_IS_PROCESS_GROUP (group), FALSE);
  if (!check_rank ("sync_batch_norm", group, error))
    return FALSE;
  put_group (GTORCH_MODULE (self), group, NULL);
  return TRUE;
}
