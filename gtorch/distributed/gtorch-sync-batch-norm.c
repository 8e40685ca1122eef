/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Which processes share the statistics of a batch normalisation, and their sums. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-error.h"
#include "distributed/gtorch-distributed-module-private.h"
#include "distributed/gtorch-engine-private.h"
#include "distributed/gtorch-parallel.h"
#include "nn/gtorch-module-private.h"
#include "nn/gtorch-nn.h"
#include "nn/gtorch-sync-norm-private.h"
#include "tensor/gtorch-tensor-private.h"

static GQuark
group_quark (void)
{
  return g_quark_from_static_string ("gtorch-sync-group");
}

static gboolean
sync_find (GTorchModule *module, gpointer *processes, GError **error)
{
  GTorchProcessGroup *group = g_object_get_qdata (G_OBJECT (module), group_quark ());

  *processes = group != NULL && gtorch_process_group_get_size (group) > 1 ? group : NULL;
  if (group != NULL || gtorch_process_group_count_several () == 0)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("sync_batch_norm: there is a group of several processes, and nothing tells "
                  "whether they train this layer together: give it to a distributed module, or "
                  "call synchronize_batch_norm ()"));
  return FALSE;
}

/* The backward pass of the copy sums up, that of the sum does nothing. */
static GTorchImpl *
sync_sum (gpointer processes, GTorchImpl *tensor, GError **error)
{
  g_autoptr (GTorchTensor) own = gtorch_tensor_wrap (gtorch_impl_ref (tensor));
  g_autoptr (GTorchTensor) sum = gtorch_parallel_sum (processes, own, error);
  g_autoptr (GTorchTensor) all = sum == NULL ? NULL : gtorch_parallel_copy (processes, sum, error);

  return all == NULL ? NULL : gtorch_impl_ref (gtorch_tensor_unwrap (all));
}

static const GTorchSync sync_table = { sync_find, sync_sum };

static void __attribute__ ((constructor)) gtorch_sync_register (void) { gtorch_sync = &sync_table; }

typedef struct
{
  GTorchProcessGroup *group;
  gboolean replaces;
} Visit;

static void
set_group (GTorchModule *module, const gchar *path, gpointer data)
{
  const Visit *visit = data;

  if (GTORCH_IS_SYNC_BATCH_NORM (module)
      && (visit->replaces || g_object_get_qdata (G_OBJECT (module), group_quark ()) == NULL))
    g_object_set_qdata_full (G_OBJECT (module), group_quark (), g_object_ref (visit->group),
                             g_object_unref);
}

void
gtorch_sync_set_default (GTorchModule *module, GTorchProcessGroup *group)
{
  gtorch_module_visit (module, TRUE, set_group, &(Visit){ group, FALSE });
}

gboolean
gtorch_sync_has_group (GTorchModule *module)
{
  GTorchProcessGroup *group = g_object_get_qdata (G_OBJECT (module), group_quark ());

  return group != NULL && gtorch_process_group_get_size (group) > 1;
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
 * A [class@DistributedModule] does this for its own group, where nothing else was said before.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if this process has no rank in @group
 *
 * Since: 0.1
 */
gboolean
gtorch_synchronize_batch_norm (GTorchModule *module, GTorchProcessGroup *group, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_MODULE (module) && GTORCH_IS_PROCESS_GROUP (group), FALSE);
  if (gtorch_process_group_get_rank (group) < 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("synchronize_batch_norm: this process has no rank in the group"));
      return FALSE;
    }
  gtorch_module_visit (module, TRUE, set_group, &(Visit){ group, TRUE });
  return TRUE;
}
