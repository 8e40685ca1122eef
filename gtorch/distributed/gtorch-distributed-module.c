/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Data parallelism with a process for each part of the batch, after Li et al., PyTorch Distributed:
 * Experiences on Accelerating Data Parallel Training, VLDB 2020. */

#include "config.h"

#include "distributed/gtorch-distributed-module.h"

#include <glib/gi18n-lib.h>

#include "autograd/gtorch-autograd-private.h"
#include "autograd/gtorch-tensor-autograd.h"
#include "base/gtorch-error.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-references-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "distributed/gtorch-distributed-module-private.h"
#include "distributed/gtorch-group-compare-private.h"
#include "distributed/gtorch-module-shards-private.h"
#include "nn/gtorch-module-members.h"
#include "profiler/gtorch-profiler-private.h"
#include "tensor/gtorch-tensor-private.h"

/**
 * GTorchDistributedModule:
 *
 * A module that several processes train together, each with a part of the batch.
 *
 * Each process has the same module, to which the new module gives the parameters and buffers of rank 0,
 * and computes outputs and gradients of its own part. During the backward pass gradients go to the other
 * ranks as soon as they are there, in buckets of some megabytes, and the mean of all ranks comes back, so
 * that an optimizer step is the same everywhere. All ranks call the module, and go backward, equally often.
 *
 * ```c
 * g_autoptr (GTorchDistributedModule) model
 *     = gtorch_distributed_module_new (net, group, 25, TRUE, FALSE, &error);
 * g_autoptr (GTorchTensor) output = gtorch_module_forward (GTORCH_MODULE (model), part, &error);
 * ```
 *
 * The optimizer gets the parameters of the module inside, or of this one, which are the same; keys of the
 * state dict begin with `module.`. Gradients become views of the buckets; after the first backward pass these
 * get the order in which gradients have come. To add up gradients of several
 * parts before they are exchanged, unset [property@DistributedModule:require-backward-grad-sync] for all
 * but the last.
 *
 * Since: 0.1
 */

G_DEFINE_TYPE (GTorchDistributedModule, gtorch_distributed_module, GTORCH_TYPE_MODULE)

typedef GTorchDistributedModule Self;

static const GTorchField fields[] = {
  /**
   * GTorchDistributedModule:wrapped:
   *
   * The module inside.
   *
   * Since: 0.1
   */
  { "wrapped", GTORCH_PROPERTY_OBJECT (GTorchModule, gtorch_module_get_type,
                                       gtorch_distributed_module_get_wrapped, NULL) },
  /**
   * GTorchDistributedModule:group:
   *
   * The processes that train together.
   *
   * Since: 0.1
   */
  { "group", GTORCH_PROPERTY_OBJECT (GTorchProcessGroup, gtorch_process_group_get_type,
                                     gtorch_distributed_module_get_group, NULL) },
  /**
   * GTorchDistributedModule:require-backward-grad-sync:
   *
   * Whether gradients go to the other ranks. Read by the forward pass: it decides for the backward pass of
   * its output.
   *
   * Since: 0.1
   */
  { "require-backward-grad-sync",
    GTORCH_PROPERTY_BOOL (gtorch_distributed_module_get_require_backward_grad_sync,
                          gtorch_distributed_module_set_require_backward_grad_sync),
    .value = TRUE },
  /**
   * GTorchDistributedModule:n-buckets:
   *
   * In how many parts gradients are exchanged.
   *
   * Since: 0.1
   */
  { "n-buckets", GTORCH_PROPERTY_UINT (gtorch_distributed_module_get_n_buckets, NULL) },
};

/* --- gradients --- */

static gboolean
on_grad (GTorchTensor *tensor, gpointer data, GError **error)
{
  GTorchDDPEntry *entry = data;
  GTorchDistributedModule *self = entry->owner;
  g_autoptr (GTorchGradGuard) guard = NULL;

  if (!self->is_armed)
    return TRUE;
  if (entry->is_ready)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   entry->is_skipped ? _ (
                       "distributed_module: the parameter “%s” has got a gradient, but the first "
                       "pass had none for it: unset static-graph")
                                     : _ ("distributed_module: the parameter “%s” has got a second "
                                          "gradient after "
                                          "one forward pass: go backward once for each, or unset "
                                          "require-backward-grad-sync"),
                   gtorch_parameter_get_name (GTORCH_PARAMETER (tensor)));
      return FALSE;
    }
  guard = gtorch_no_grad ();
  return gtorch_ddp_mark_ready (self, entry, error);
}

/* --- making them --- */

static void
entry_free (gpointer data)
{
  GTorchDDPEntry *entry = data;

  if (entry->hook != 0)
    gtorch_tensor_remove_hook (entry->parameter, entry->hook);
  g_object_unref (entry->parameter);
  g_clear_object (&entry->slice);
  g_free (entry);
}

static gboolean
make_entries (GTorchDistributedModule *self, GError **error)
{
  g_autoptr (GListModel) parameters = gtorch_module_get_parameters (self->module, TRUE);
  guint i;

  for (i = g_list_model_get_n_items (parameters); i-- > 0;)
    {
      g_autoptr (GTorchTensor) parameter = g_list_model_get_item (parameters, i);
      GTorchDDPEntry *entry;

      if (gtorch_is_lazy (parameter))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("distributed_module: the parameter “%s” is lazy: call the module once "
                          "before"),
                       gtorch_parameter_get_name (GTORCH_PARAMETER (parameter)));
          return FALSE;
        }
      if (!gtorch_tensor_get_requires_grad (parameter))
        continue;
      entry = g_new0 (GTorchDDPEntry, 1);
      entry->owner = self;
      entry->parameter = g_object_ref (parameter);
      entry->number = self->entries->len;
      g_ptr_array_add (self->entries, entry);
      entry->hook =
          gtorch_tensor_register_post_accumulate_grad_hook (parameter, on_grad, entry, NULL, error);
      if (entry->hook == 0)
        return FALSE;
    }
  self->arrived = g_new (gint64, MAX (self->entries->len, 1));
  if (self->entries->len > 0)
    return gtorch_ddp_make_buckets (self, error);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("distributed_module: no parameter requires a gradient, so there is nothing to "
                  "exchange"));
  return FALSE;
}

/* --- forward --- */

#define FORWARD_RANGE "DistributedDataParallel.forward" /* PyTorch's name */

static void
collect_leaves (GTorchImpl *output, GHashTable *leaves)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);
  g_autoptr (GPtrArray) stack = g_ptr_array_new ();

  if (output->autograd == NULL)
    return;
  if (output->autograd->grad_fn == NULL)
    g_hash_table_add (leaves, output);
  else
    g_ptr_array_add (stack, output->autograd->grad_fn);
  while (stack->len > 0)
    {
      GTorchNode *node = g_ptr_array_steal_index_fast (stack, stack->len - 1);
      guint i;

      if (!g_hash_table_add (seen, node))
        continue;
      for (i = 0; i < node->n_edges; i++)
        if (node->edges[i].leaf != NULL)
          g_hash_table_add (leaves, node->edges[i].leaf);
        else if (node->edges[i].node != NULL)
          g_ptr_array_add (stack, node->edges[i].node);
    }
}

/* Returns the name that a parameter without gradient has in the module. */
static gchar *
find_missing (GTorchDistributedModule *self)
{
  guint i;

  for (i = 0; i < self->entries->len; i++)
    {
      const GTorchDDPEntry *entry = self->entries->pdata[i];

      if (!entry->is_ready)
        {
          gchar *name = gtorch_group_find_name (self->module, GTORCH_TENSOR (entry->parameter));

          return name != NULL
                     ? name
                     : g_strdup (gtorch_parameter_get_name (GTORCH_PARAMETER (entry->parameter)));
        }
    }
  return g_strdup ("");
}

static gboolean
before_forward (GTorchDistributedModule *self, GError **error)
{
  const gboolean is_synced = self->require_sync && gtorch_is_grad_enabled ();
  g_autoptr (GTorchGradGuard) guard = NULL;

  if (self->module == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("distributed_module: there is no module inside"));
      return FALSE;
    }
  if (self->failure != NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("distributed_module: gradients could not be exchanged before, and the ranks "
                      "may "
                      "no longer be at the same exchange; a new one can be made of the module "
                      "inside: "
                      "%s"),
                   self->failure);
      return FALSE;
    }
  if (self->is_armed && self->n_ready > 0)
    {
      g_autofree gchar *missing = find_missing (self);

      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("distributed_module: %u of %u parameters, “%s” among them, got no gradient "
                      "in the last "
                      "backward pass, so that ranks wait for each other: set "
                      "find_unused_parameters, or let the "
                      "output depend on all of them"),
                   self->entries->len - self->n_ready, self->entries->len, missing);
      return FALSE;
    }
  guard = gtorch_no_grad ();
  self->is_armed = FALSE;
  self->was_called = TRUE;
  if (!gtorch_ddp_join_forward (self, is_synced, error)
      || (is_synced && !self->is_compared && !gtorch_ddp_compare (self, error))
      || (self->broadcast_buffers && self->require_sync
          && gtorch_module_get_training (GTORCH_MODULE (self))
          && !gtorch_ddp_broadcast (self, FALSE, self->source, error))
      || (is_synced && self->order == GTORCH_DDP_ORDER_KNOWN
          && !gtorch_ddp_rebuild (self, self->source, error)))
    return FALSE;
  gtorch_ddp_reset (self);
  return TRUE;
}

/* What the output does not depend on will have no gradient. */
static void
find_unused (GTorchDistributedModule *self, GTorchTensor **outputs, gsize n_outputs)
{
  g_autoptr (GHashTable) leaves = g_hash_table_new (NULL, NULL);
  gsize i;

  for (i = 0; i < n_outputs; i++)
    collect_leaves (gtorch_tensor_unwrap (outputs[i]), leaves);
  for (i = 0; i < self->entries->len; i++)
    {
      GTorchDDPEntry *entry = self->entries->pdata[i];

      entry->is_unused = !g_hash_table_contains (leaves, gtorch_tensor_unwrap (entry->parameter));
      entry->is_skipped = self->is_static && entry->is_unused;
    }
  self->knows_skipped = self->is_static;
}

static gboolean
after_forward (GTorchDistributedModule *self, GTorchTensor **outputs, gsize n_outputs,
               GError **error)
{
  g_autoptr (GTorchGradGuard) guard = NULL;
  g_autofree gpointer *entries = NULL;
  const guint n = self->entries->len;
  guint i;

  self->is_armed = self->require_sync && gtorch_is_grad_enabled ();
  if (!self->is_armed || !(self->find_unused_parameters || self->is_static))
    return TRUE;
  if (!self->knows_skipped)
    find_unused (self, outputs, n_outputs);
  guard = gtorch_no_grad ();
  entries = g_memdup2 (self->entries->pdata, n * sizeof (gpointer));
  for (i = 0; i < n; i++)
    {
      GTorchDDPEntry *entry = entries[i];

      entry->is_unused |= entry->is_skipped;
      if (entry->is_unused && !gtorch_ddp_mark_ready (self, entry, error))
        return FALSE;
    }
  return TRUE;
}

static GTorchTensor *
gtorch_distributed_module_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  g_auto (GTorchProfileScope) scope = gtorch_profile_scope_begin (FORWARD_RANGE, module);
  GTorchDistributedModule *self = GTORCH_DISTRIBUTED_MODULE (module);
  g_autoptr (GTorchTensor) output = NULL;

  if (!before_forward (self, error))
    return NULL;
  output = gtorch_module_forward (self->module, input, error);
  return output != NULL && after_forward (self, &output, 1, error) ? g_steal_pointer (&output)
                                                                   : NULL;
}

static GTorchTensor *
gtorch_distributed_module_forward_many (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs,
                                        GError **error)
{
  g_auto (GTorchProfileScope) scope = gtorch_profile_scope_begin (FORWARD_RANGE, module);
  GTorchDistributedModule *self = GTORCH_DISTRIBUTED_MODULE (module);
  g_autoptr (GTorchTensor) output = NULL;

  if (!before_forward (self, error))
    return NULL;
  output = gtorch_module_forward_many (self->module, inputs, n_inputs, error);
  return output != NULL && after_forward (self, &output, 1, error) ? g_steal_pointer (&output)
                                                                   : NULL;
}

/* --- the class --- */

static void
clear_hook (GTorchDistributedModule *self)
{
  GDestroyNotify destroy = self->hook_destroy;
  gpointer data = self->hook_data;

  self->hook = NULL;
  self->hook_data = NULL;
  self->hook_destroy = NULL;
  if (destroy != NULL)
    destroy (data);
}

static void
gtorch_distributed_module_finalize (GObject *object)
{
  GTorchDistributedModule *self = GTORCH_DISTRIBUTED_MODULE (object);

  clear_hook (self);
  g_ptr_array_unref (self->entries);
  g_ptr_array_unref (self->buckets);
  g_free (self->arrived);
  g_free (self->used);
  g_free (self->failure);
  g_clear_object (&self->module);
  g_clear_object (&self->group);
  G_OBJECT_CLASS (gtorch_distributed_module_parent_class)->finalize (object);
}

static void
add_references (gpointer object, GTorchReferences *references)
{
  GTorchDistributedModule *self = object;

  gtorch_references_add_object (references, self->module);
  gtorch_references_add_data (references, self->hook_data, self->hook_destroy);
}

static GTorchReferencesType references_type = { .look = add_references };

static void
gtorch_distributed_module_class_init (GTorchDistributedModuleClass *klass)
{
  GTorchModuleClass *module_class = GTORCH_MODULE_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = gtorch_distributed_module_finalize;
  module_class->forward = gtorch_distributed_module_forward;
  module_class->forward_many = gtorch_distributed_module_forward_many;
  GTORCH_FIELDS (klass, fields);
  references_type.type = GTORCH_TYPE_DISTRIBUTED_MODULE;
  gtorch_references_add_type (&references_type);
}

static void
gtorch_distributed_module_init (GTorchDistributedModule *self)
{
  self->require_sync = TRUE;
  self->entries = g_ptr_array_new_with_free_func (entry_free);
  self->buckets = g_ptr_array_new_with_free_func (gtorch_ddp_bucket_free);
}

/**
 * gtorch_distributed_module_new:
 * @module: a module
 * @group: the processes that train together
 * @bucket_cap_mb: the size of a bucket in MiB, more than 0; 25 is usual
 * @broadcast_buffers: whether each forward pass in training mode takes the buffers of rank 0
 * @find_unused_parameters: whether the output may depend on some of the parameters only, which costs a
 *   walk through the graph and a small exchange in each pass
 * @error: return location for an error
 *
 * Creates a module for data parallelism. All ranks call this, and get the parameters and buffers of rank 0.
 *
 * Returns: (transfer full): a new module, or %NULL with @error set: %GTORCH_ERROR_SHAPE if the modules or the
 *   settings of the ranks differ
 *
 * Since: 0.1
 */
GTorchDistributedModule *
gtorch_distributed_module_new (GTorchModule *module, GTorchProcessGroup *group,
                               gdouble bucket_cap_mb, gboolean broadcast_buffers,
                               gboolean find_unused_parameters, GError **error)
{
  return gtorch_distributed_module_new_full (module, group, bucket_cap_mb, broadcast_buffers,
                                             find_unused_parameters, TRUE, FALSE, error);
}

/* What may be set after the module was made. */
gboolean
gtorch_ddp_compare (GTorchDistributedModule *self, GError **error)
{
  g_auto (GTorchGroupFacts) facts;

  gtorch_group_facts_init (&facts);
  facts.device = gtorch_tensor_get_device (((GTorchDDPEntry *) self->entries->pdata[0])->parameter);
  gtorch_group_facts_add (&facts, "comm_hook", "%s",
                          self->hook != NULL ? "a function" : "no function");
  if (self->is_joining)
    {
      gtorch_group_facts_add_flag (&facts, "divide_by_initial_world_size", self->divides_by_all);
      gtorch_group_facts_add_flag (&facts, "throw_on_early_termination", self->throws);
    }
  self->is_compared = gtorch_group_facts_compare (&facts, self->group, "distributed_module", error);
  return self->is_compared;
}

/* Rank 0's part in place of another one would be a mix. */
static gboolean
check_parts (GTorchDistributedModule *self, GError **error)
{
  g_autoptr (GListModel) params = gtorch_module_get_parameters (self->module, TRUE);
  guint i;

  for (i = 0; i < g_list_model_get_n_items (params); i++)
    {
      g_autoptr (GTorchTensor) param = g_list_model_get_item (params, i);

      if (!gtorch_part_check_group ("distributed_module", param, self->group, error))
        return FALSE;
    }
  return TRUE;
}

/* A rank that cannot prepare its module tells the others, who would wait for it. */
static gboolean
prepare (GTorchDistributedModule *self, gboolean init_sync, GError **error)
{
  g_autoptr (GPtrArray) tensors = g_ptr_array_new_with_free_func (g_object_unref);
  g_auto (GTorchGroupFacts) facts;

  gtorch_group_facts_init (&facts);
  if (make_entries (self, &facts.failure) && check_parts (self, &facts.failure))
    {
      gtorch_group_facts_add_flag (&facts, "init_sync", init_sync);
      gtorch_group_facts_add_number (&facts, "bucket_cap_mb", self->bucket_cap_mb);
      gtorch_group_facts_add_flag (&facts, "broadcast_buffers", self->broadcast_buffers);
      gtorch_group_facts_add_flag (&facts, "find_unused_parameters", self->find_unused_parameters);
      gtorch_group_facts_add_flag (&facts, "static_graph", self->is_static);
      if (init_sync)
        gtorch_ddp_add_tensors (self, tensors, TRUE);
      gtorch_group_facts_add_tensors (&facts, self->module, (GTorchTensor **) tensors->pdata,
                                      tensors->len);
    }
  return gtorch_group_facts_compare (&facts, self->group, "distributed_module", error);
}

/**
 * gtorch_distributed_module_new_full:
 * @module: a module
 * @group: the processes that train together
 * @bucket_cap_mb: the size of a bucket in MiB, more than 0; 25 is usual
 * @broadcast_buffers: whether each forward pass in training mode takes the buffers of rank 0
 * @find_unused_parameters: whether the output may depend on some of the parameters only
 * @init_sync: whether the modules of the ranks are compared, and all get the parameters and buffers of rank
 *   0; without it they have to be alike already; settings are compared always
 * @static_graph: whether all passes use the same parameters as the first one, in which those that are not
 *   used are found; @find_unused_parameters costs nothing in the others then
 * @error: return location for an error
 *
 * Creates a module for data parallelism as [ctor@DistributedModule.new] does, with all settings.
 *
 * Returns: (transfer full): a new module, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchDistributedModule *
gtorch_distributed_module_new_full (GTorchModule *module, GTorchProcessGroup *group,
                                    gdouble bucket_cap_mb, gboolean broadcast_buffers,
                                    gboolean find_unused_parameters, gboolean init_sync,
                                    gboolean static_graph, GError **error)
{
  g_autoptr (GTorchDistributedModule) self = NULL;

  g_return_val_if_fail (GTORCH_IS_MODULE (module) && GTORCH_IS_PROCESS_GROUP (group), NULL);
  if (!(bucket_cap_mb > 0 && bucket_cap_mb < 1e6))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("distributed_module: the buckets have %g MiB; they have more than 0, and "
                      "less than a million"),
                   bucket_cap_mb);
      return NULL;
    }
  self = g_object_new (GTORCH_TYPE_DISTRIBUTED_MODULE, NULL);
  self->bucket_cap_mb = bucket_cap_mb;
  self->broadcast_buffers = broadcast_buffers;
  self->find_unused_parameters = find_unused_parameters;
  self->is_static = static_graph;
  self->module = g_object_ref (module);
  self->group = g_object_ref (group);
  if (!gtorch_module_register_module (GTORCH_MODULE (self), "module", module, error)
      || !prepare (self, init_sync, error)
      || (init_sync && !gtorch_ddp_broadcast (self, TRUE, 0, error)))
    return NULL;
  gtorch_ddp_reset (self);
  gtorch_sync_set_default (module, group, NULL);
  return g_steal_pointer (&self);
}

/**
 * gtorch_distributed_module_register_comm_hook:
 * @self: a module that was not called yet
 * @hook: (scope notified) (closure user_data) (destroy destroy): the function
 * @user_data: data for @hook
 * @destroy: called when @user_data is not needed anymore
 * @error: return location for an error
 *
 * Lets a function exchange the gradients: one that sends fewer bits, for example. A module has one such
 * function, and all ranks register the same, before the first forward pass: this fails if some ranks have
 * registered one, and others have not.
 *
 * It is called in the backward pass, for one bucket after the other in the same order on all ranks.
 * [method@GradBucket.average] does what happens without such a function, and [method@PowerSGD.average] sends
 * matrices of low rank.
 *
 * ```c
 * gtorch_distributed_module_register_comm_hook (model, send_as_bfloat16, NULL, NULL, &error);
 * ```
 *
 * Returns: %TRUE, or %FALSE with @error set: %GTORCH_ERROR_INVALID if there is one already, or the module
 *   was called
 *
 * Since: 0.1
 */
gboolean
gtorch_distributed_module_register_comm_hook (GTorchDistributedModule *self, GTorchCommHook hook,
                                              gpointer user_data, GDestroyNotify destroy,
                                              GError **error)
{
  g_return_val_if_fail (GTORCH_IS_DISTRIBUTED_MODULE (self) && hook != NULL, FALSE);
  if (self->hook == NULL && !self->was_called && self->module != NULL)
    {
      gtorch_references_lock ();
      self->hook = hook;
      self->hook_data = user_data;
      self->hook_destroy = destroy;
      gtorch_references_unlock ();
      return TRUE;
    }
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               self->module == NULL ? _ ("distributed_module: there is no module inside")
               : self->was_called
                   ? _ ("register_comm_hook: the module was called already: register it before")
                   : _ ("register_comm_hook: the module has such a function already"));
  if (destroy != NULL)
    destroy (user_data);
  return FALSE;
}

/**
 * gtorch_distributed_module_begin_forward:
 * @self: a module
 * @error: return location for an error
 *
 * Does what has to be done before the module inside is called, for programs that call it themselves: with
 * arguments that are no tensors, say. They call [method@DistributedModule.end_forward] afterwards.
 *
 * Returns: %TRUE, or %FALSE with @error set: %GTORCH_ERROR_AUTOGRAD if parameters got no gradient in the
 *   last backward pass
 *
 * Since: 0.1
 */
gboolean
gtorch_distributed_module_begin_forward (GTorchDistributedModule *self, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_DISTRIBUTED_MODULE (self), FALSE);
  return before_forward (self, error);
}

/**
 * gtorch_distributed_module_end_forward:
 * @self: a module
 * @outputs: (array length=n_outputs): what the module inside has computed
 * @n_outputs: the number of @outputs
 * @error: return location for an error
 *
 * Does what has to be done after the module inside was called.
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_distributed_module_end_forward (GTorchDistributedModule *self, GTorchTensor **outputs,
                                       gsize n_outputs, GError **error)
{
  gsize i;

  g_return_val_if_fail (GTORCH_IS_DISTRIBUTED_MODULE (self) && (outputs != NULL || n_outputs == 0),
                        FALSE);
  for (i = 0; i < n_outputs; i++)
    g_return_val_if_fail (GTORCH_IS_TENSOR (outputs[i]), FALSE);
  return self->module == NULL ? before_forward (self, error)
                              : after_forward (self, outputs, n_outputs, error);
}

/**
 * gtorch_distributed_module_get_wrapped:
 * @self: a module
 *
 * Gets the module inside.
 *
 * Returns: (transfer none) (nullable): the module
 *
 * Since: 0.1
 */
GTorchModule *
gtorch_distributed_module_get_wrapped (GTorchDistributedModule *self)
{
  g_return_val_if_fail (GTORCH_IS_DISTRIBUTED_MODULE (self), NULL);
  return self->module;
}

/**
 * gtorch_distributed_module_get_group:
 * @self: a module
 *
 * Gets the processes that train together.
 *
 * Returns: (transfer none) (nullable): the group
 *
 * Since: 0.1
 */
GTorchProcessGroup *
gtorch_distributed_module_get_group (GTorchDistributedModule *self)
{
  g_return_val_if_fail (GTORCH_IS_DISTRIBUTED_MODULE (self), NULL);
  return self->group;
}

/**
 * gtorch_distributed_module_get_require_backward_grad_sync:
 * @self: a module
 *
 * Gets whether gradients go to the other ranks.
 *
 * Returns: %TRUE if they do
 *
 * Since: 0.1
 */
gboolean
gtorch_distributed_module_get_require_backward_grad_sync (GTorchDistributedModule *self)
{
  g_return_val_if_fail (GTORCH_IS_DISTRIBUTED_MODULE (self), FALSE);
  return self->require_sync;
}

/**
 * gtorch_distributed_module_set_require_backward_grad_sync:
 * @self: a module
 * @require: whether gradients go to the other ranks
 *
 * Sets whether gradients go to the other ranks, from the next forward pass on. Where they do not, they are
 * added to those that are there, and all go with the next pass in which they do.
 *
 * Since: 0.1
 */
void
gtorch_distributed_module_set_require_backward_grad_sync (GTorchDistributedModule *self,
                                                          gboolean require)
{
  g_return_if_fail (GTORCH_IS_DISTRIBUTED_MODULE (self));
  if (self->require_sync == !!require)
    return;
  self->require_sync = !!require;
  g_object_notify (G_OBJECT (self), "require-backward-grad-sync");
}

/**
 * gtorch_distributed_module_get_n_buckets:
 * @self: a module
 *
 * Gets in how many parts gradients are exchanged.
 *
 * Returns: the number
 *
 * Since: 0.1
 */
guint
gtorch_distributed_module_get_n_buckets (GTorchDistributedModule *self)
{
  g_return_val_if_fail (GTORCH_IS_DISTRIBUTED_MODULE (self), 0);
  return self->buckets->len;
}
