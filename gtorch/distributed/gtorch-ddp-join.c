/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Uneven inputs: a rank that has none left answers the operations of the others, until all have ended. Before
 * each forward pass all ranks tell what they are going to do. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-error.h"
#include "dispatch/gtorch-grad-mode.h"
#include "distributed/gtorch-distributed-module-private.h"
#include "distributed/gtorch-engine-private.h"
#include "elements/gtorch-tensor-bytes.h"
#include "elements/gtorch-tensor-create.h"
#include "gtorch-tensor-ops.h"

enum
{
  IS_ACTIVE,
  IS_SYNCED,  /* a backward pass with an exchange follows */
  BROADCASTS, /* the buffers */
  REBUILDS,   /* the buckets */
  COMPARES,   /* the settings */
  N_FLAGS
};

/* What the ranks that go on do in this pass; -1 where they differ. */
typedef struct
{
  guint n_active;
  gint source; /* the last rank that goes on */
  gint absent; /* the first that does not, or -1 */
  gint does[N_FLAGS];
} Turn;

static gboolean
exchange (GTorchDistributedModule *self, const gint64 *flags, Turn *turn, GError **error)
{
  GTORCH_GROUP_CALL ("distributed_module");
  GTorchDevice *device =
      gtorch_tensor_get_device (((GTorchDDPEntry *) self->entries->pdata[0])->parameter);
  const gint size = gtorch_process_group_get_size (self->group);
  const gint64 n = N_FLAGS, n_all = (gint64) N_FLAGS * size;
  g_autoptr (GTorchTensor) mine = NULL, all = NULL;
  g_autoptr (GTorchWork) work = NULL;
  g_autofree gint64 *values = NULL;
  gsize n_values;
  gint i, k;

  mine = gtorch_tensor_new_from_ints (flags, n, &n, 1, GTORCH_DTYPE_INT64, device, error);
  all = mine == NULL ? NULL : gtorch_zeros (&n_all, 1, GTORCH_DTYPE_INT64, device, error);
  work = all == NULL ? NULL
                     : gtorch_process_group_all_gather_into_tensor (self->group, all, mine, error);
  values = work == NULL || !gtorch_work_join (work, error)
               ? NULL
               : gtorch_tensor_to_ints (all, &n_values, error);
  if (values == NULL)
    return FALSE;
  *turn = (Turn){ .source = -1, .absent = -1 };
  for (i = size - 1; i >= 0; i--)
    {
      const gint64 *of_rank = values + (gsize) i * N_FLAGS;

      if (!of_rank[IS_ACTIVE])
        {
          turn->absent = i;
          continue;
        }
      for (k = 0; k < N_FLAGS; k++)
        if (turn->n_active == 0)
          turn->does[k] = of_rank[k] != 0;
        else if (turn->does[k] != (of_rank[k] != 0))
          turn->does[k] = -1;
      if (turn->n_active++ == 0)
        turn->source = i;
    }
  return TRUE;
}

static gboolean
check_turn (GTorchDistributedModule *self, const Turn *turn, GError **error)
{
  gint k;

  if (self->throws && turn->absent >= 0 && turn->n_active > 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                   _ ("distributed_module: rank %d has no more inputs, and %u other ranks have: "
                      "with "
                      "throw_on_early_termination all of them stop"),
                   turn->absent, turn->n_active);
      return FALSE;
    }
  for (k = 0; k < N_FLAGS; k++)
    if (turn->does[k] < 0)
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                     _ ("distributed_module: some ranks exchange gradients or buffers in this "
                        "pass, and "
                        "others do not: all have the same modes"));
        return FALSE;
      }
  return TRUE;
}

gboolean
gtorch_ddp_join_forward (GTorchDistributedModule *self, gboolean is_synced, GError **error)
{
  gint64 flags[N_FLAGS] = { 1 };
  Turn turn;

  self->source = 0;
  self->n_active = gtorch_process_group_get_size (self->group);
  if (!self->is_joining)
    return TRUE;
  flags[IS_SYNCED] = is_synced;
  flags[BROADCASTS] = self->broadcast_buffers && self->require_sync
                      && gtorch_module_get_training (GTORCH_MODULE (self));
  flags[REBUILDS] = is_synced && self->order == GTORCH_DDP_ORDER_KNOWN;
  flags[COMPARES] = is_synced && !self->is_compared;
  if (!exchange (self, flags, &turn, error) || !check_turn (self, &turn, error))
    return FALSE;
  self->source = turn.source;
  self->n_active = turn.n_active;
  return TRUE;
}

static gboolean
answer (GTorchDistributedModule *self, const Turn *turn, GError **error)
{
  self->n_active = turn->n_active;
  self->is_armed = FALSE;
  gtorch_ddp_reset (self);
  return (!turn->does[COMPARES] || gtorch_ddp_compare (self, error))
         && (!turn->does[BROADCASTS] || gtorch_ddp_broadcast (self, FALSE, turn->source, error))
         && (!turn->does[REBUILDS] || gtorch_ddp_rebuild (self, turn->source, error))
         && (!turn->does[IS_SYNCED] || gtorch_ddp_send_zeros (self, error));
}

static gboolean
answer_all (GTorchDistributedModule *self, gint *last, GError **error)
{
  const gint64 flags[N_FLAGS] = { 0 };
  Turn turn;

  *last = gtorch_process_group_get_rank (self->group);
  do
    {
      if (!exchange (self, flags, &turn, error) || !check_turn (self, &turn, error))
        return FALSE;
      if (turn.n_active == 0)
        return TRUE;
      *last = -1;
      if (!answer (self, &turn, error))
        return FALSE;
    }
  while (TRUE);
}

/* The parameters of those that have ended last are those of all passes. */
static gboolean
take_last (GTorchDistributedModule *self, gint last, GError **error)
{
  GTORCH_GROUP_CALL ("distributed_module");
  GTorchDevice *device =
      gtorch_tensor_get_device (((GTorchDDPEntry *) self->entries->pdata[0])->parameter);
  const gint64 rank = last, n = 1;
  g_autoptr (GTorchTensor) tensor =
      gtorch_tensor_new_from_ints (&rank, 1, &n, 1, GTORCH_DTYPE_INT64, device, error);
  g_autoptr (GTorchWork) work =
      tensor == NULL
          ? NULL
          : gtorch_process_group_all_reduce (self->group, tensor, GTORCH_REDUCE_OP_MAX, error);
  g_autofree gint64 *source = NULL;
  gsize n_values;

  source = work == NULL || !gtorch_work_join (work, error)
               ? NULL
               : gtorch_tensor_to_ints (tensor, &n_values, error);
  return source != NULL && gtorch_ddp_broadcast (self, TRUE, (gint) *source, error);
}

static gboolean
check_made (GTorchDistributedModule *self, GError **error)
{
  if (self->module != NULL)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("distributed_module: there is no module inside"));
  return FALSE;
}

/**
 * gtorch_distributed_module_begin_join:
 * @self: a module
 * @divide_by_initial_world_size: whether gradients are divided by the number of all ranks, also of those that
 *   have ended; by those that go on otherwise
 * @throw_on_early_termination: whether all ranks get an error as soon as one of them has ended
 * @error: return location for an error
 *
 * Allows ranks to have different numbers of inputs, until [method@DistributedModule.end_join]. All ranks call
 * both.
 *
 * Each forward pass begins with a small exchange then, in which the ranks tell that they go on. One that has
 * come to end_join () takes part in the exchange of buffers and gradients, with gradients of zero, until all
 * have. Where operations are recorded, each forward pass is followed by one backward pass. Other operations
 * of groups have no such help.
 *
 * ```c
 * gtorch_distributed_module_begin_join (model, TRUE, FALSE, &error);
 * for (i = 0; i < n_batches_of_this_rank; i++)
 *   train (model, batches[i]);
 * gtorch_distributed_module_end_join (model, TRUE, &error);
 * ```
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_distributed_module_begin_join (GTorchDistributedModule *self,
                                      gboolean divide_by_initial_world_size,
                                      gboolean throw_on_early_termination, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_DISTRIBUTED_MODULE (self), FALSE);
  if (!check_made (self, error))
    return FALSE;
  if (self->is_joining)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("distributed_module: begin_join was called before: call end_join first"));
      return FALSE;
    }
  self->is_joining = TRUE;
  self->divides_by_all = divide_by_initial_world_size;
  self->throws = throw_on_early_termination;
  self->is_compared = FALSE;
  return TRUE;
}

/**
 * gtorch_distributed_module_end_join:
 * @self: a module
 * @wait: whether to answer the other ranks until all have come here; %FALSE after an error
 * @error: return location for an error
 *
 * Ends what [method@DistributedModule.begin_join] has begun. With @wait all ranks have the parameters and
 * buffers of a rank with the most passes afterwards.
 *
 * Returns: %TRUE, or %FALSE with @error set: %GTORCH_ERROR_FAILED if other ranks go on, and begin_join was
 *   told to let all fail then
 *
 * Since: 0.1
 */
gboolean
gtorch_distributed_module_end_join (GTorchDistributedModule *self, gboolean wait, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = NULL;
  gboolean is_over = TRUE;
  gint last;

  g_return_val_if_fail (GTORCH_IS_DISTRIBUTED_MODULE (self), FALSE);
  if (!self->is_joining)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("distributed_module: begin_join was not called"));
      return FALSE;
    }
  guard = gtorch_no_grad ();
  if (wait)
    is_over = answer_all (self, &last, error) && take_last (self, last, error);
  self->is_joining = FALSE;
  return is_over;
}
