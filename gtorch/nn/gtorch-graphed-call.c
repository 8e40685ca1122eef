/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Calls of captured callables, and the node of their backward pass. */

#include "config.h"

#include "nn/gtorch-graphed-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "autograd/gtorch-autograd-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "graph/gtorch-capture-private.h"
#include "stream/gtorch-stream-private.h"
#include "gtorch-ops-private.h"

/* --- memory that is visible outside --- */

typedef struct
{
  GTorchGraphed *owner;
  GPtrArray *list;
} Shown;

static void
shown_free (GTorchStorage *storage)
{
  Shown *shown = storage->free_data;

  g_mutex_lock (&shown->owner->group->lock);
  g_ptr_array_remove_fast (shown->list, storage);
  g_mutex_unlock (&shown->owner->group->lock);
  gtorch_graphed_unref (shown->owner);
  g_free (shown);
}

/* Returns an alias of impl with its own storage, which can be marked as released when the memory is
 * overwritten. */
static GTorchImpl *
show (GTorchGraphed *self, GTorchImpl *impl, GPtrArray *list, GTorchStream *stream)
{
  const GTorchGraphBackend *backend = GTORCH_DEVICE_GET_CLASS (stream->device)->graphs;
  Shown *shown = g_new (Shown, 1);
  GTorchStorage *storage;
  GTorchImpl *result;

  *shown = (Shown){ gtorch_graphed_ref (self), list };
  storage = gtorch_storage_new_foreign (impl->storage->device, impl->storage->data,
                                        impl->storage->n_bytes, shown_free, shown);
  if (backend != NULL)
    backend->note_write (storage, stream);
  else if (stream->timeline != NULL)
    gtorch_storage_set_writer (storage, stream->timeline,
                               gtorch_timeline_submitted (stream->timeline));
  g_mutex_lock (&self->group->lock);
  g_ptr_array_add (list, storage);
  g_mutex_unlock (&self->group->lock);
  result = gtorch_impl_new_strided (storage, impl->dtype, impl->offset, impl->shape, impl->strides,
                                    impl->n_dims);
  gtorch_storage_unref (storage);
  return result;
}

static void
mark (GPtrArray *storages, const gchar *by)
{
  guint i;

  for (i = 0; i < storages->len; i++)
    {
      gtorch_storage_set_stale (storages->pdata[i], by);
      g_atomic_int_inc (&((GTorchStorage *) storages->pdata[i])->version);
    }
}

/* Marks everything that a replay of self overwrites. The group's lock must be held. */
static void
overwrite (GTorchGraphed *self, gboolean is_forward)
{
  guint i;

  for (i = 0; i < self->group->members->len; i++)
    {
      GTorchGraphed *other = self->group->members->pdata[i];

      if (other->position >= self->position)
        {
          other->is_saved = FALSE;
          other->overwritten_by = self->name;
          if (is_forward)
            mark (other->shown_outputs, self->name);
        }
      if (is_forward || other->position <= self->position)
        mark (other->shown_grads, self->name);
    }
}

/* --- before a replay --- */

static gboolean
begin (GTorchGraphed *self, GTorchStream **stream, GError **error)
{
  GTorchGraphedGroup *group = self->group;
  g_autoptr (GTorchStream) last = NULL;

  *stream = gtorch_stream_get_current (group->device);
  if (gtorch_stream_is_capturing (*stream))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                   _ ("%s: the current stream captures a graph: capture the module itself in it, "
                      "not "
                      "its graphs"),
                   self->name);
      return FALSE;
    }
  g_mutex_lock (&group->lock);
  last = group->stream;
  group->stream = g_object_ref (*stream);
  g_mutex_unlock (&group->lock);
  return last == NULL || last == *stream || gtorch_stream_is_capturing (last)
         || gtorch_stream_wait_stream (*stream, last, error);
}

static gboolean
is_same_place (const GTorchImpl *a, const GTorchImpl *b)
{
  return gtorch_impl_data (a) == gtorch_impl_data (b)
         && memcmp (a->strides, b->strides, a->n_dims * sizeof (gint64)) == 0;
}

static gboolean
fill (GTorchImpl *placeholder, GTorchImpl *value, GError **error)
{
  if (value == NULL)
    return gtorch_op_zero_inplace (placeholder, error);
  return is_same_place (placeholder, value)
         || gtorch_op_copy_inplace (placeholder, value, TRUE, error);
}

static gboolean
same_strides (const GTorchImpl *impl, const gint64 *strides)
{
  guint i;

  for (i = 0; i < impl->n_dims && impl->numel > 0; i++)
    if (impl->shape[i] != 1 && impl->strides[i] != strides[i])
      return FALSE;
  return TRUE;
}

static gboolean
check_input (GTorchGraphed *self, guint i, GTorchImpl *input, GError **error)
{
  const GTorchImpl *sample = self->inputs[i];

  if (input->storage == NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED,
                 _ ("%s: input %u, of shape %s, was released"), self->name, i,
                 gtorch_impl_shape_str (input));
  else if (gtorch_impl_device (input) != gtorch_impl_device (sample))
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH,
                 _ ("%s: input %u is on %s, in the capture it was on %s"), self->name, i,
                 gtorch_device_name (gtorch_impl_device (input)),
                 gtorch_device_name (gtorch_impl_device (sample)));
  else if (input->dtype != sample->dtype)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                 _ ("%s: input %u has dtype %s, in the capture it had %s"), self->name, i,
                 gtorch_dtype_get_name (input->dtype), gtorch_dtype_get_name (sample->dtype));
  else if (!gtorch_impl_same_shape (input, sample))
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                 _ ("%s: input %u has shape %s, in the capture it had %s"), self->name, i,
                 gtorch_impl_shape_str (input), gtorch_impl_shape_str (sample));
  else if (!same_strides (input, self->strides[i]))
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: input %u has strides %s, in the capture it had %s"), self->name, i,
                 gtorch_shape_str (input->strides, input->n_dims),
                 gtorch_shape_str (self->strides[i], input->n_dims));
  else if (gtorch_forward_is_on () && gtorch_impl_has_tangent (input))
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                 _ ("%s: input %u has a tangent, which a captured graph does not compute"),
                 self->name, i);
  else if (gtorch_is_grad_enabled () && !self->is_inference
           && gtorch_impl_requires_grad (input) != self->wants[i])
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                 self->wants[i] ? _ ("%s: input %u does not require grad, in the capture it did")
                                : _ ("%s: input %u requires grad, in the capture it did not"),
                 self->name, i);
  else
    return TRUE;
  return FALSE;
}

static gboolean
check_leaves (GTorchGraphed *self, GError **error)
{
  guint i;

  for (i = 0; i < self->n_leaves; i++)
    if (G_UNLIKELY (self->leaves[i]->storage != self->leaf_storages[i]))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("%s: parameter %s, of shape %s, got other memory since the capture, which "
                        "the graph does not know: capture again"),
                     self->name, self->leaf_names[i], gtorch_impl_shape_str (self->leaves[i]));
        return FALSE;
      }
  return TRUE;
}

static gboolean
wants_gradient (GTorchGraphed *self, GTorchImpl *const *inputs)
{
  return gtorch_autograd_wanted (inputs, self->n_inputs)
         || gtorch_autograd_wanted (self->leaves, self->n_leaves);
}

/* --- the backward node --- */

typedef struct
{
  GTorchNode node;
  GTorchGraphed *graphed;
  guint64 generation;
  guint *versions; /* versions of inputs and leaves at the replay */
} GraphedNode;

static GTorchStorage *
nth_storage (GTorchGraphed *self, guint i)
{
  return i < self->n_inputs ? self->inputs[i]->storage : self->leaf_storages[i - self->n_inputs];
}

static gboolean
check_saved (GraphedNode *node, GError **error)
{
  GTorchGraphed *self = node->graphed;
  const gchar *by;
  gboolean valid;
  guint i;

  g_mutex_lock (&self->group->lock);
  valid = self->is_saved && self->generation == node->generation;
  by = self->overwritten_by;
  g_mutex_unlock (&self->group->lock);
  if (!valid)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("what its call had saved was overwritten by a later replay of %s: call "
                      "backward once after each call, before the next one"),
                   by);
      return FALSE;
    }
  for (i = 0; i < node->node.n_edges; i++)
    if (node->versions[i] != (guint) g_atomic_int_get (&nth_storage (self, i)->version))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                     i < self->n_inputs ? _ (
                         "its input %s was changed in place since the call, and the graph reads "
                         "it again")
                                        : _ ("parameter %s was changed in place since the call, "
                                             "and the graph reads "
                                             "it again"),
                     i < self->n_inputs ? gtorch_impl_shape_str (self->inputs[i])
                                        : self->leaf_names[i - self->n_inputs]);
        return FALSE;
      }
  return TRUE;
}

static gboolean
graphed_node_apply (GTorchNode *node, GTorchImpl *const *grads, const gboolean *needs,
                    GTorchImpl **results, GError **error)
{
  GTorchGraphed *self = ((GraphedNode *) node)->graphed;
  GTorchStream *stream;
  guint i;

  if (node->is_released)
    {
      gtorch_node_error_released (node, error);
      return FALSE;
    }
  if (gtorch_is_grad_enabled ())
    {
      g_set_error_literal (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                           _ ("a captured backward has no gradient of its own: create-graph needs "
                              "the module without graphs"));
      return FALSE;
    }
  if (!check_saved ((GraphedNode *) node, error) || !check_leaves (self, error)
      || !begin (self, &stream, error))
    return FALSE;
  for (i = 0; i < self->n_outputs; i++)
    if (self->grad_outputs[i] != NULL && !fill (self->grad_outputs[i], grads[i], error))
      return FALSE;
  g_mutex_lock (&self->group->lock);
  overwrite (self, FALSE);
  g_mutex_unlock (&self->group->lock);
  if (!gtorch_cuda_graph_replay_on (self->backward, stream, error))
    return FALSE;
  for (i = 0; i < node->n_edges; i++)
    if (needs[i] && self->grads[i] != NULL)
      results[i] = show (self, self->grads[i], self->shown_grads, stream);
  return TRUE;
}

static void
graphed_node_release (GTorchNode *node)
{
  node->is_released = TRUE;
}

static void
graphed_node_finalize (GTorchNode *node)
{
  gtorch_graphed_unref (((GraphedNode *) node)->graphed);
}

static const GTorchNodeClass graphed_node_class = { graphed_node_apply, graphed_node_release,
                                                    graphed_node_finalize };

static void
record (GTorchGraphed *self, GTorchImpl *const *inputs, GTorchImpl **outputs, GTorchStream *stream,
        guint64 generation)
{
  guint n = self->n_inputs + self->n_leaves, i;
  GraphedNode *node = g_malloc0 (sizeof (GraphedNode) + n * sizeof (GTorchEdge)
                                 + self->n_outputs * sizeof (GTorchMeta) + n * sizeof (guint));

  gtorch_node_init (&node->node, &graphed_node_class, self->name, n, self->n_outputs);
  node->node.edges = (GTorchEdge *) (void *) (node + 1);
  node->node.output_metas = (GTorchMeta *) (void *) (node->node.edges + n);
  node->versions = (guint *) (void *) (node->node.output_metas + self->n_outputs);
  if (!stream->is_default)
    g_set_object (&node->node.stream, stream);
  node->graphed = gtorch_graphed_ref (self);
  node->generation = generation;
  for (i = 0; i < n; i++)
    {
      gtorch_node_set_edge (&node->node, i,
                            i < self->n_inputs ? inputs[i] : self->leaves[i - self->n_inputs]);
      node->versions[i] = g_atomic_int_get (&nth_storage (self, i)->version);
    }
  for (i = 0; i < self->n_outputs; i++)
    {
      gtorch_meta_borrow (&node->node.output_metas[i], self->outputs[i]);
      if (self->grad_outputs[i] != NULL)
        gtorch_node_set_output (&node->node, i, outputs[i]);
    }
  gtorch_node_unref (&node->node);
}

/* --- the call --- */

static gboolean
replay (GTorchGraphed *self, GTorchImpl *const *inputs, GTorchStream *stream, guint64 *generation,
        GError **error)
{
  GTorchChange mode;
  gboolean success = TRUE;
  guint i;

  gtorch_change_to_grad (&mode, FALSE);
  for (i = 0; success && i < self->n_inputs; i++)
    success = fill (self->inputs[i], inputs[i], error);
  gtorch_change_end (&mode);
  if (!success)
    {
      g_prefix_error (error, "%s: ", self->name);
      return FALSE;
    }
  g_mutex_lock (&self->group->lock);
  overwrite (self, TRUE);
  *generation = ++self->generation;
  g_mutex_unlock (&self->group->lock);
  if (!gtorch_cuda_graph_replay_on (self->forward, stream, error))
    {
      g_prefix_error (error, "%s: ", self->name);
      return FALSE;
    }
  g_mutex_lock (&self->group->lock);
  self->is_saved = *generation == self->generation;
  g_mutex_unlock (&self->group->lock);
  return TRUE;
}

GTorchImpl **
gtorch_graphed_call (GTorchGraphed *self, GTorchImpl *const *inputs, guint n_inputs, GError **error)
{
  GTorchImpl **outputs;
  GTorchStream *stream;
  guint64 generation;
  gboolean wanted;
  guint i;

  if (n_inputs != self->n_inputs)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: %u inputs were given, in the capture there were %u"), self->name,
                   n_inputs, self->n_inputs);
      return NULL;
    }
  for (i = 0; i < n_inputs; i++)
    if (!check_input (self, i, inputs[i], error))
      return NULL;
  if (!check_leaves (self, error))
    return NULL;
  wanted = wants_gradient (self, inputs);
  if (wanted && self->is_inference)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("%s: a gradient is wanted, and it was captured with the grad mode off"),
                   self->name);
      return NULL;
    }
  if (!begin (self, &stream, error) || !replay (self, inputs, stream, &generation, error))
    return NULL;
  outputs = g_new0 (GTorchImpl *, MAX (self->n_outputs, 1));
  for (i = 0; i < self->n_outputs; i++)
    outputs[i] = show (self, self->outputs[i], self->shown_outputs, stream);
  if (wanted && self->backward != NULL)
    record (self, inputs, outputs, stream, generation);
  return outputs;
}
