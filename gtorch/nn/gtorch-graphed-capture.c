/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Captures callables: warms up and captures each, with the buffers for the gradients of its outputs. The
 * tensors that get gradients are found in the history of the outputs, so that parameters which a function
 * captures are found, too. */

#include "config.h"

#include "nn/gtorch-graphed-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "autograd/gtorch-autograd-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "graph/gtorch-capture-private.h"
#include "stream/gtorch-stream-private.h"
#include "device/gtorch-generator.h"
#include "memory/gtorch-guard.h"
#include "nn/gtorch-module-private.h"
#include "gtorch-ops-private.h"
#include "device/gtorch-scratch-private.h"

static void
group_unref (GTorchGraphedGroup *group)
{
  if (!g_atomic_int_dec_and_test (&group->ref_count))
    return;
  g_clear_object (&group->stream);
  g_ptr_array_unref (group->members);
  g_mutex_clear (&group->lock);
  g_free (group);
}

GTorchGraphed *
gtorch_graphed_ref (GTorchGraphed *self)
{
  g_atomic_int_inc (&self->ref_count);
  return self;
}

static void
clear_impls (GTorchImpl **impls, guint n)
{
  if (impls != NULL)
    gtorch_impl_clear (impls, n);
  g_free (impls);
}

void
gtorch_graphed_unref (GTorchGraphed *self)
{
  guint i;

  if (!g_atomic_int_dec_and_test (&self->ref_count))
    return;
  g_mutex_lock (&self->group->lock);
  g_ptr_array_remove (self->group->members, self);
  g_mutex_unlock (&self->group->lock);
  g_clear_object (&self->forward);
  g_clear_object (&self->backward);
  clear_impls (self->inputs, self->n_inputs);
  clear_impls (self->outputs, self->n_outputs);
  clear_impls (self->grad_outputs, self->n_outputs);
  clear_impls (self->grads, self->n_inputs + self->n_leaves);
  clear_impls (self->leaves, self->n_leaves);
  for (i = 0; i < self->n_leaves; i++)
    {
      gtorch_storage_unref (self->leaf_storages[i]);
      g_free (self->leaf_names[i]);
    }
  for (i = 0; i < self->n_inputs; i++)
    g_free (self->strides[i]);
  g_free (self->leaf_storages);
  g_free (self->leaf_names);
  g_free (self->strides);
  g_free (self->wants);
  g_ptr_array_unref (self->shown_outputs);
  g_ptr_array_unref (self->shown_grads);
  group_unref (self->group);
  g_free (self);
}

/* --- placeholders --- */

/* Allocates memory with the geometry of the sample, and copies its values. */
static GTorchImpl *
placeholder_new (GTorchImpl *sample, GError **error)
{
  gboolean is_plain = !gtorch_impl_overlaps_itself (sample);
  g_autoptr (GTorchImpl) result = NULL;
  GTorchStorage *storage;
  gint64 extent;
  guint i;

  for (i = 0; i < sample->n_dims; i++)
    is_plain &= sample->strides[i] >= 0;
  if (!is_plain)
    return gtorch_op_clone (sample, error);
  extent = gtorch_strides_extent (0, sample->shape, sample->strides, sample->n_dims);
  storage = gtorch_device_alloc (gtorch_impl_device (sample),
                                 extent * gtorch_dtype_size (sample->dtype), error);
  if (storage == NULL)
    {
      gtorch_error_name_op (error, "make_graphed_callables");
      return NULL;
    }
  result = gtorch_impl_new_strided (storage, sample->dtype, 0, sample->shape, sample->strides,
                                    sample->n_dims);
  gtorch_storage_unref (storage);
  if (!gtorch_op_copy_inplace (result, sample, FALSE, error))
    return NULL;
  return g_steal_pointer (&result);
}

static gboolean
init_inputs (GTorchGraphed *self, const GTorchGraphedSpec *spec, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  guint i;

  for (i = 0; i < spec->n_samples; i++)
    {
      GTorchImpl *sample = spec->samples[i];

      self->wants[i] = gtorch_impl_requires_grad (sample);
      self->strides[i] = g_memdup2 (sample->strides, sample->n_dims * sizeof (gint64));
      self->inputs[i] = placeholder_new (sample, error);
      if (self->inputs[i] == NULL)
        {
          g_prefix_error (error, "%s: ", self->name);
          return FALSE;
        }
    }
  return TRUE;
}

static GTorchGraphed *
graphed_new (GTorchGraphedGroup *group, const GTorchGraphedSpec *spec)
{
  GTorchGraphed *self = g_new0 (GTorchGraphed, 1);
  guint n = MAX (spec->n_samples, 1);

  self->ref_count = 1;
  self->name = g_intern_string (spec->name);
  self->group = group;
  g_atomic_int_inc (&group->ref_count);
  self->position = group->members->len;
  g_ptr_array_add (group->members, self);
  self->n_inputs = spec->n_samples;
  self->inputs = g_new0 (GTorchImpl *, n);
  self->strides = g_new0 (gint64 *, n);
  self->wants = g_new0 (gboolean, n);
  self->shown_outputs = g_ptr_array_new ();
  self->shown_grads = g_ptr_array_new ();
  return self;
}

/* --- a pass forward and backward --- */

typedef struct
{
  GPtrArray *inputs;  /* of GTorchTensor: the placeholders, as leaves of a separate graph */
  GPtrArray *outputs; /* of GTorchTensor */
  GPtrArray
      *leaves;   /* of GTorchImpl, owned: leaves in the history of the outputs that require grad */
  guint64 first; /* nodes of the pass have a higher sequence number */
  gboolean is_wanting; /* whether any output requires grad */
} Pass;

static void
pass_clear (Pass *pass)
{
  g_clear_pointer (&pass->inputs, g_ptr_array_unref);
  g_clear_pointer (&pass->outputs, g_ptr_array_unref);
  g_clear_pointer (&pass->leaves, g_ptr_array_unref);
}

static GTorchImpl *
pass_output (Pass *pass, guint i)
{
  return gtorch_tensor_unwrap (pass->outputs->pdata[i]);
}

static gboolean
add_leaf (Pass *pass, GTorchImpl *leaf)
{
  guint i;

  for (i = 0; i < pass->inputs->len; i++)
    if (gtorch_tensor_unwrap (pass->inputs->pdata[i]) == leaf)
      return FALSE;
  if (g_ptr_array_find (pass->leaves, leaf, NULL))
    return FALSE;
  g_ptr_array_add (pass->leaves, gtorch_impl_ref (leaf));
  return TRUE;
}

/* Adds the parameters that would require grad if the grad mode were on. */
static void
add_parameters (const GTorchGraphedSpec *spec, Pass *pass)
{
  g_autoptr (GListModel) parameters = NULL;
  guint i;

  if (spec->module == NULL)
    return;
  parameters = gtorch_module_get_parameters (spec->module, TRUE);
  for (i = 0; i < g_list_model_get_n_items (parameters); i++)
    {
      g_autoptr (GTorchTensor) parameter = g_list_model_get_item (parameters, i);

      if (gtorch_impl_requires_grad (gtorch_tensor_unwrap (parameter)))
        add_leaf (pass, gtorch_tensor_unwrap (parameter));
    }
}

/* Traverses the history of the outputs. seen receives all nodes and leaves. */
static gboolean
find_leaves (const GTorchGraphedSpec *spec, Pass *pass, GHashTable *seen, GError **error)
{
  g_autoptr (GPtrArray) todo = g_ptr_array_new ();
  guint i;

  for (i = 0; i < pass->outputs->len; i++)
    {
      GTorchImpl *output = pass_output (pass, i);

      if (!gtorch_impl_requires_grad (output))
        continue;
      pass->is_wanting = TRUE;
      if (output->autograd->grad_fn == NULL && g_hash_table_add (seen, output))
        add_leaf (pass, output);
      else if (output->autograd->grad_fn != NULL
               && g_hash_table_add (seen, output->autograd->grad_fn))
        g_ptr_array_add (todo, output->autograd->grad_fn);
    }
  while (todo->len > 0)
    {
      GTorchNode *node = g_ptr_array_steal_index_fast (todo, todo->len - 1);

      if (node->sequence <= pass->first)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                       _ ("%s: it uses a result of %s that was computed before and requires grad: "
                          "give it as an input, or detach it"),
                       spec->name, node->name);
          return FALSE;
        }
      for (i = 0; i < node->n_edges; i++)
        {
          GTorchEdge *edge = &node->edges[i];

          if (edge->node != NULL && g_hash_table_add (seen, edge->node))
            g_ptr_array_add (todo, edge->node);
          else if (edge->node == NULL && edge->leaf != NULL && g_hash_table_add (seen, edge->leaf))
            add_leaf (pass, edge->leaf);
        }
    }
  return TRUE;
}

static gchar *
dup_leaf_name (GTorchModule *module, GTorchImpl *leaf, guint i)
{
  g_autoptr (GListModel) parameters = NULL;
  g_auto (GStrv) names = NULL;
  guint j;

  if (module != NULL)
    {
      parameters = gtorch_module_get_parameters (module, TRUE);
      names = gtorch_module_get_parameter_names (module, TRUE);
      for (j = 0; names[j] != NULL && j < g_list_model_get_n_items (parameters); j++)
        {
          g_autoptr (GTorchTensor) parameter = g_list_model_get_item (parameters, j);

          if (gtorch_tensor_unwrap (parameter) == leaf)
            return g_strdup (names[j]);
        }
    }
  return g_strdup_printf ("%u", i);
}

static gboolean
check_used (const GTorchGraphedSpec *spec, Pass *pass, GHashTable *seen, GError **error)
{
  g_autoptr (GListModel) parameters = NULL;
  guint i;

  for (i = 0; i < pass->inputs->len; i++)
    {
      GTorchImpl *input = gtorch_tensor_unwrap (pass->inputs->pdata[i]);

      if (input->autograd == NULL || g_hash_table_contains (seen, input))
        continue;
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("%s: input %u, of shape %s, requires grad and does not contribute to the "
                      "outputs: set allow-unused if that is meant"),
                   spec->name, i, gtorch_impl_shape_str (input));
      return FALSE;
    }
  if (spec->module == NULL)
    return TRUE;
  parameters = gtorch_module_get_parameters (spec->module, TRUE);
  for (i = 0; i < g_list_model_get_n_items (parameters); i++)
    {
      g_autoptr (GTorchTensor) parameter = g_list_model_get_item (parameters, i);
      GTorchImpl *impl = gtorch_tensor_unwrap (parameter);
      g_autofree gchar *name = NULL;

      if (!gtorch_impl_requires_grad (impl) || g_hash_table_contains (seen, impl))
        continue;
      name = dup_leaf_name (spec->module, impl, i);
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("%s: parameter %s requires grad and does not contribute to the outputs: set "
                      "allow-unused if that is meant"),
                   spec->name, name);
      return FALSE;
    }
  return TRUE;
}

static gboolean
check_outputs (GTorchGraphed *self, Pass *pass, GError **error)
{
  guint i;

  for (i = 0; i < pass->outputs->len; i++)
    {
      GTorchTensor *output = pass->outputs->pdata[i];

      if (!GTORCH_IS_TENSOR (output) || gtorch_tensor_unwrap (output)->storage == NULL)
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("%s: output %u is not a tensor or was released"), self->name, i);
      else if (gtorch_impl_device (gtorch_tensor_unwrap (output)) != self->group->device)
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH,
                     _ ("%s: output %u is on %s, the graph is of %s"), self->name, i,
                     gtorch_device_name (gtorch_impl_device (gtorch_tensor_unwrap (output))),
                     gtorch_device_name (self->group->device));
      else
        continue;
      return FALSE;
    }
  return TRUE;
}

static gboolean
pass_forward (Pass *pass, GTorchGraphed *self, const GTorchGraphedSpec *spec, GError **error)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);
  GError *local = NULL;
  guint i;

  pass->inputs = g_ptr_array_new_with_free_func (g_object_unref);
  pass->leaves = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  for (i = 0; i < self->n_inputs; i++)
    {
      GTorchImpl *input = gtorch_impl_alias (self->inputs[i]);

      if (self->wants[i])
        gtorch_autograd_ensure (input)->requires_grad = TRUE;
      g_ptr_array_add (pass->inputs, gtorch_tensor_wrap (input));
    }
  pass->first = gtorch_node_get_last_sequence ();
  pass->outputs =
      spec->call (spec->data, (GTorchTensor **) pass->inputs->pdata, self->n_inputs, &local);
  if (pass->outputs == NULL || local != NULL)
    {
      g_clear_pointer (&pass->outputs, g_ptr_array_unref);
      if (local == NULL)
        g_set_error (&local, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                     _ ("%s: the function gave nothing and set no error"), spec->name);
      g_propagate_error (error, local);
      return FALSE;
    }
  if (!check_outputs (self, pass, error))
    return FALSE;
  if (self->is_inference)
    {
      add_parameters (spec, pass);
      return TRUE;
    }
  return find_leaves (spec, pass, seen, error)
         && (spec->allow_unused || check_used (spec, pass, seen, error));
}

/* grads: one for each output. results: those of inputs, then of leaves. */
static gboolean
pass_backward (Pass *pass, GTorchImpl *const *grads, GTorchImpl **results, GError **error)
{
  g_autoptr (GPtrArray) roots = g_ptr_array_new ();
  g_autoptr (GPtrArray) given = g_ptr_array_new ();
  g_autoptr (GPtrArray) wanted = g_ptr_array_new ();
  g_autoptr (GArray) places = g_array_new (FALSE, FALSE, sizeof (guint));
  g_autofree GTorchImpl **found = NULL;
  GTorchBackward backward = { NULL };
  gboolean success;
  guint i;

  for (i = 0; i < pass->outputs->len; i++)
    if (grads[i] != NULL)
      {
        g_ptr_array_add (roots, pass_output (pass, i));
        g_ptr_array_add (given, grads[i]);
      }
  for (i = 0; i < pass->inputs->len + pass->leaves->len; i++)
    {
      GTorchImpl *impl = i < pass->inputs->len ? gtorch_tensor_unwrap (pass->inputs->pdata[i])
                                               : pass->leaves->pdata[i - pass->inputs->len];

      if (impl->autograd == NULL)
        continue;
      g_ptr_array_add (wanted, impl);
      g_array_append_val (places, i);
    }
  found = g_new0 (GTorchImpl *, MAX (wanted->len, 1));
  backward.roots = (GTorchImpl *const *) roots->pdata;
  backward.grads = (GTorchImpl *const *) given->pdata;
  backward.n_roots = roots->len;
  backward.inputs = (GTorchImpl *const *) wanted->pdata;
  backward.n_inputs = wanted->len;
  backward.results = found;
  success = gtorch_engine_run (&backward, error);
  for (i = 0; i < wanted->len; i++)
    results[g_array_index (places, guint, i)] = found[i];
  return success;
}

/* --- warm-up --- */

static gboolean
warm_up_once (GTorchGraphed *self, const GTorchGraphedSpec *spec, GError **error)
{
  g_autofree GTorchImpl **results = NULL;
  g_autofree GTorchImpl **grads = NULL;
  Pass pass = { NULL };
  gboolean success = pass_forward (&pass, self, spec, error);
  guint n, i;

  if (success && pass.is_wanting)
    {
      n = self->n_inputs + pass.leaves->len;
      results = g_new0 (GTorchImpl *, n);
      grads = g_new0 (GTorchImpl *, pass.outputs->len);
      for (i = 0; success && i < pass.outputs->len; i++)
        if (gtorch_impl_requires_grad (pass_output (&pass, i)))
          {
            grads[i] = gtorch_op_ones_like (pass_output (&pass, i), GTORCH_DTYPE_NONE, error);
            success = grads[i] != NULL;
          }
      success = success && pass_backward (&pass, grads, results, error);
      gtorch_impl_clear (results, n);
      gtorch_impl_clear (grads, pass.outputs->len);
    }
  pass_clear (&pass);
  return success;
}

typedef struct
{
  GPtrArray *buffers; /* of GTorchImpl */
  GPtrArray *copies;
  GTorchGenerator *generator;
  GBytes *state;
} Kept;

static gboolean
keep (Kept *kept, const GTorchGraphedSpec *spec, GTorchDevice *device, GError **error)
{
  g_autoptr (GListModel) buffers = NULL;
  guint i;

  kept->buffers = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  kept->copies = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  kept->generator = gtorch_device_get_default_generator (device);
  kept->state = gtorch_generator_get_state (kept->generator);
  if (spec->module == NULL)
    return TRUE;
  buffers = gtorch_module_get_buffers (spec->module, TRUE);
  for (i = 0; i < g_list_model_get_n_items (buffers); i++)
    {
      g_autoptr (GTorchTensor) buffer = g_list_model_get_item (buffers, i);
      GTorchImpl *copy = gtorch_op_clone (gtorch_tensor_unwrap (buffer), error);

      if (copy == NULL)
        return FALSE;
      g_ptr_array_add (kept->buffers, gtorch_impl_ref (gtorch_tensor_unwrap (buffer)));
      g_ptr_array_add (kept->copies, copy);
    }
  return TRUE;
}

static gboolean
restore (Kept *kept, GError **error)
{
  gboolean success = TRUE;
  guint i;

  for (i = 0; success && i < kept->copies->len; i++)
    success =
        gtorch_op_copy_inplace (kept->buffers->pdata[i], kept->copies->pdata[i], FALSE, error);
  g_ptr_array_unref (kept->buffers);
  g_ptr_array_unref (kept->copies);
  success = success && gtorch_generator_set_state (kept->generator, kept->state, error);
  g_bytes_unref (kept->state);
  return success;
}

/* Warms up; restores buffers and random numbers afterwards. */
static gboolean
warm_up (GTorchGraphed *self, const GTorchGraphedSpec *spec, GError **error)
{
  GTorchChange mode;
  gboolean success;
  Kept kept;
  guint i;

  gtorch_change_to_grad (&mode, FALSE);
  success = keep (&kept, spec, self->group->device, error);
  gtorch_change_end (&mode);
  for (i = 0; success && i < spec->n_warmups; i++)
    success = warm_up_once (self, spec, error);
  gtorch_change_to_grad (&mode, FALSE);
  success = restore (&kept, success ? error : NULL) && success;
  gtorch_change_end (&mode);
  if (!success)
    g_prefix_error (error, _ ("warming up: "));
  return success;
}

/* --- capturing --- */

static gboolean
capture_forward (GTorchGraphed *self, const GTorchGraphedSpec *spec, Pass *pass,
                 GTorchStream *stream, GTorchMemoryPool *pool, GError **error)
{
  g_autoptr (GTorchGraphCapture) capture = NULL;
  guint i;

  self->forward = gtorch_cuda_graph_new ();
  gtorch_cuda_graph_set_unordered (self->forward);
  capture = gtorch_graph_capture_new (self->forward, stream, pool, GTORCH_CAPTURE_MODE_THREAD_LOCAL,
                                      error);
  if (capture == NULL || !pass_forward (pass, self, spec, error)
      || !gtorch_graph_capture_end (capture, error)
      || !gtorch_cuda_graph_instantiate (self->forward, error))
    return FALSE;

  self->n_outputs = pass->outputs->len;
  self->outputs = g_new0 (GTorchImpl *, MAX (self->n_outputs, 1));
  self->grad_outputs = g_new0 (GTorchImpl *, MAX (self->n_outputs, 1));
  for (i = 0; i < self->n_outputs; i++)
    self->outputs[i] = gtorch_impl_alias (pass_output (pass, i));
  self->n_leaves = pass->leaves->len;
  self->leaves = g_new0 (GTorchImpl *, MAX (self->n_leaves, 1));
  self->leaf_names = g_new0 (gchar *, MAX (self->n_leaves, 1));
  self->leaf_storages = g_new0 (GTorchStorage *, MAX (self->n_leaves, 1));
  self->grads = g_new0 (GTorchImpl *, MAX (self->n_inputs + self->n_leaves, 1));
  for (i = 0; i < self->n_leaves; i++)
    {
      self->leaves[i] = gtorch_impl_ref (pass->leaves->pdata[i]);
      self->leaf_storages[i] = gtorch_storage_ref (self->leaves[i]->storage);
      self->leaf_names[i] = dup_leaf_name (spec->module, self->leaves[i], i);
    }
  return TRUE;
}

static gboolean
capture_backward (GTorchGraphed *self, Pass *pass, GTorchStream *stream, GTorchMemoryPool *pool,
                  GError **error)
{
  g_autoptr (GTorchGraphCapture) capture = NULL;
  guint i;

  if (!pass->is_wanting)
    return TRUE;
  for (i = 0; i < self->n_outputs; i++)
    if (gtorch_impl_requires_grad (pass_output (pass, i)))
      {
        self->grad_outputs[i] = gtorch_op_empty_like (self->outputs[i], GTORCH_DTYPE_NONE, error);
        if (self->grad_outputs[i] == NULL)
          return FALSE;
      }
  self->backward = gtorch_cuda_graph_new ();
  gtorch_cuda_graph_set_unordered (self->backward);
  capture = gtorch_graph_capture_new (self->backward, stream, pool,
                                      GTORCH_CAPTURE_MODE_THREAD_LOCAL, error);
  return capture != NULL && pass_backward (pass, self->grad_outputs, self->grads, error)
         && gtorch_graph_capture_end (capture, error)
         && gtorch_cuda_graph_instantiate (self->backward, error);
}

static gboolean
capture_all (const GTorchGraphedSpec *specs, guint n, GTorchStream *stream, GTorchMemoryPool *pool,
             GTorchGraphed **results, GError **error)
{
  g_autofree Pass *passes = g_new0 (Pass, n);
  gboolean success = TRUE;
  guint i;

  for (i = 0; success && i < n; i++)
    {
      success = capture_forward (results[i], &specs[i], &passes[i], stream, pool, error);
      if (!success)
        g_prefix_error (error, _ ("%s: capture of forward: "), results[i]->name);
    }
  for (i = n; success && i-- > 0;)
    {
      success = capture_backward (results[i], &passes[i], stream, pool, error);
      if (!success)
        g_prefix_error (error, _ ("%s: capture of backward: "), results[i]->name);
      pass_clear (&passes[i]);
    }
  for (i = 0; i < n; i++)
    pass_clear (&passes[i]);
  return success;
}

gboolean
gtorch_graphed_capture (const GTorchGraphedSpec *specs, guint n, GTorchDevice *device,
                        GTorchMemoryPool *pool, GTorchGraphed **results, GError **error)
{
  g_autoptr (GTorchDeviceGuard) device_guard = gtorch_device_guard_new (device, error);
  g_autoptr (GTorchMemoryPool) own = NULL;
  g_autoptr (GTorchStream) side = NULL;
  GTorchStream *current;
  GTorchGraphedGroup *group;
  gboolean success;
  guint i;

  if (device_guard == NULL)
    return FALSE;
  current = gtorch_stream_get_current (device);
  if (gtorch_stream_is_capturing (current))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                   _ ("%s: a graph captures the current stream, and no other can be captured in "
                      "it"),
                   specs[0].name);
      return FALSE;
    }
  side = gtorch_stream_new (device, 0, error);
  if (side == NULL || !gtorch_stream_wait_stream (side, current, error))
    return FALSE;
  if (pool == NULL)
    pool = own = gtorch_memory_pool_new (device);

  group = g_new0 (GTorchGraphedGroup, 1);
  group->ref_count = 1;
  group->device = device;
  group->members = g_ptr_array_new ();
  g_mutex_init (&group->lock);
  for (i = 0; i < n; i++)
    {
      results[i] = graphed_new (group, &specs[i]);
      results[i]->is_inference = !gtorch_is_grad_enabled ();
    }
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (side);

    success = TRUE;
    for (i = 0; success && i < n; i++)
      success =
          init_inputs (results[i], &specs[i], error) && warm_up (results[i], &specs[i], error);
    success = success && capture_all (specs, n, side, pool, results, error);
  }
  success = gtorch_stream_wait_stream (current, side, success ? error : NULL) && success;
  for (i = 0; !success && i < n; i++)
    g_clear_pointer (&results[i], gtorch_graphed_unref);
  group_unref (group);
  return success;
}
