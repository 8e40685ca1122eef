/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Records operations as nodes, which save the values that the gradient of the operation needs. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "autograd/gtorch-autograd-private.h"
#include "autograd/gtorch-part-private.h"
#include "base/gtorch-observer-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "gtorch-ops-private.h"
#include "stream/gtorch-stream-private.h"

#define LIST_BIT 31

gint gtorch_n_leaf_parts;

typedef struct
{
  GTorchNode node;
  const GTorchOpClass *op;
  GTorchMeta *input_metas;
  GTorchAttr *attrs;
  GTorchSaved *inputs;
  GTorchSaved *outputs;
} OpNode;

/* The values that a node has saved, one after the other. */
static guint
n_saved (const OpNode *self)
{
  return (self->inputs != NULL ? self->node.n_edges : 0)
         + (self->outputs != NULL ? self->node.n_outputs : 0);
}

static gboolean
is_of_input (const OpNode *self, guint i)
{
  return self->inputs != NULL && i < self->node.n_edges;
}

/* Returns its number among the inputs or the outputs. */
static guint
number_of (const OpNode *self, guint i)
{
  return self->inputs == NULL || i < self->node.n_edges ? i : i - self->node.n_edges;
}

static GTorchSaved *
nth_saved (const OpNode *self, guint i)
{
  return (is_of_input (self, i) ? self->inputs : self->outputs) + number_of (self, i);
}

static const GTorchMeta *
nth_meta (const OpNode *self, guint i)
{
  return (is_of_input (self, i) ? self->input_metas : self->node.output_metas)
         + number_of (self, i);
}

static const gchar *
nth_what (const OpNode *self, guint i)
{
  return is_of_input (self, i) ? N_ ("input") : N_ ("result");
}

static gboolean op_node_apply (GTorchNode *node, GTorchImpl *const *grads, const gboolean *needs,
                               GTorchImpl **results, GError **error);
static void op_node_release (GTorchNode *node);
static void op_node_finalize (GTorchNode *node);

static const GTorchNodeClass op_node_class = { op_node_apply, op_node_release, op_node_finalize };

GTorchGradSaves
gtorch_autograd_get_saves (const GTorchOpCall *call)
{
  const GTorchOpClass *op = call->op;
  const GTorchGradSaves *each = gtorch_op_grad_saves[op->id];
  GTorchGradSaves saves = { op->saved_inputs, op->saved_outputs };
  guint i;

  if (each == NULL)
    return saves;
  saves = (GTorchGradSaves){ 0 };
  for (i = 0; i < op->n_inputs; i++)
    if (call->inputs[i] != NULL && call->inputs[i]->autograd != NULL
        && gtorch_impl_requires_grad (call->inputs[i]))
      {
        saves.inputs |= each[i].inputs;
        saves.outputs |= each[i].outputs;
      }
  return saves;
}

gboolean
gtorch_autograd_saves_input (const GTorchOpClass *op, GTorchGradSaves saves, guint i)
{
  return (saves.inputs & (1u << (i < op->n_inputs ? i : LIST_BIT))) != 0;
}

/* Iterates over the argument specs of the attributes. */
#define FOR_EACH_ATTR(op, spec, i)                                  \
  for ((spec) = (op)->args, (i) = 0; (i) < (op)->n_attrs; (spec)++) \
    if ((spec)->kind <= GTORCH_ARG_TENSORS)                         \
      continue;                                                     \
    else

static gboolean
is_object (const GTorchArgSpec *spec)
{
  return spec->kind == GTORCH_ARG_DEVICE || spec->kind == GTORCH_ARG_GENERATOR;
}

/* Allocates a node and all its arrays in one block. Returns NULL if a value cannot be saved. */
static OpNode *
op_node_new (const GTorchOpCall *call, GError **error)
{
  const GTorchOpClass *op = call->op;
  const GTorchGradSaves saves = gtorch_autograd_get_saves (call);
  const GTorchArgSpec *spec;
  gboolean success = TRUE;
  gsize n_ints = 0, size;
  OpNode *self;
  gint64 *ints;
  char *next;
  guint i;

  for (i = 0; i < call->n_inputs; i++)
    if (call->inputs[i] != NULL)
      n_ints += 2 * call->inputs[i]->n_dims;
  for (i = 0; i < call->n_outputs; i++)
    n_ints += 2 * call->outputs[i]->n_dims;
  FOR_EACH_ATTR (op, spec, i)
  {
    if (spec->kind == GTORCH_ARG_INTS)
      n_ints += call->attrs[i].list.n;
    i++;
  }

  size = sizeof (OpNode) + call->n_inputs * (sizeof (GTorchEdge) + sizeof (GTorchMeta))
         + call->n_outputs * sizeof (GTorchMeta) + op->n_attrs * sizeof (GTorchAttr)
         + n_ints * sizeof (gint64)
         + (saves.inputs != 0 ? call->n_inputs * sizeof (GTorchSaved) : 0)
         + (saves.outputs != 0 ? call->n_outputs * sizeof (GTorchSaved) : 0);
  self = g_malloc (size);
  memset (self, 0, size - n_ints * sizeof (gint64));
  next = (char *) (self + 1);
#define TAKE(field, type, n)        \
  (field) = (type *) (void *) next; \
  next += (n) * sizeof (type)
  TAKE (self->node.edges, GTorchEdge, call->n_inputs);
  TAKE (self->input_metas, GTorchMeta, call->n_inputs);
  TAKE (self->node.output_metas, GTorchMeta, call->n_outputs);
  if (saves.inputs != 0)
    {
      TAKE (self->inputs, GTorchSaved, call->n_inputs);
    }
  if (saves.outputs != 0)
    {
      TAKE (self->outputs, GTorchSaved, call->n_outputs);
    }
  TAKE (self->attrs, GTorchAttr, op->n_attrs);
  ints = (gint64 *) (void *) next;
#undef TAKE

  gtorch_node_init (&self->node, &op_node_class, op->name, call->n_inputs, call->n_outputs);
  self->op = op;
  self->node.stream = gtorch_current_stream (call->device);
  if (G_UNLIKELY (self->node.stream != NULL))
    g_object_ref (self->node.stream);
  for (i = 0; i < call->n_inputs; i++)
    {
      GTorchImpl *input = call->inputs[i];

      if (input == NULL)
        continue;
      gtorch_meta_init (&self->input_metas[i], input, ints);
      ints += input->n_dims;
      if (G_UNLIKELY (op->flags & GTORCH_OP_FLAG_DEVICES)
          && self->input_metas[i].device != call->device)
        gtorch_node_add_place (&self->node, self->input_metas[i].device);
      if (gtorch_autograd_saves_input (op, saves, i))
        {
          success = success && gtorch_saved_init (&self->inputs[i], input, op->name, ints, error);
          ints += input->n_dims;
        }
    }
  for (i = 0; i < call->n_outputs; i++)
    {
      GTorchImpl *output = call->outputs[i];

      gtorch_meta_init (&self->node.output_metas[i], output, ints);
      ints += output->n_dims;
      if (saves.outputs & (1u << i))
        {
          success = success && gtorch_saved_init (&self->outputs[i], output, op->name, ints, error);
          ints += output->n_dims;
        }
    }
  FOR_EACH_ATTR (op, spec, i)
  {
    self->attrs[i] = call->attrs[i];
    if (spec->kind == GTORCH_ARG_INTS && call->attrs[i].list.n > 0)
      {
        memcpy (ints, call->attrs[i].list.data, call->attrs[i].list.n * sizeof (gint64));
        self->attrs[i].list.data = ints;
        ints += call->attrs[i].list.n;
      }
    else if (is_object (spec) && call->attrs[i].p != NULL)
      g_object_ref (call->attrs[i].p);
    i++;
  }
  if (G_UNLIKELY (!success))
    {
      gtorch_node_unref (&self->node);
      return NULL;
    }
  return self;
}

/* A copy of a part is one, too, as it says. */
static G_GNUC_NO_INLINE gboolean
check_parts (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *part = NULL;
  guint i;

  for (i = 0; part == NULL && i < call->n_inputs; i++)
    if (call->inputs[i] != NULL && gtorch_leaf_is_part (call->inputs[i]))
      part = call->inputs[i];
  if (part == NULL)
    return TRUE;
  if (call->op->id == GTORCH_OP_CLONE || call->op->id == GTORCH_OP_COPY
      || call->op->id == GTORCH_OP_TO_DTYPE)
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                     _ ("an input of shape %s is a part of a parameter, of which other processes "
                        "have the others: call the module that it belongs to, make its parameters "
                        "whole by unshard (), or compute without gradients what is meant for the "
                        "part"),
                     gtorch_impl_shape_str (part));
  return FALSE;
}

static gboolean
record (GTorchOpCall *call, OpNode **result, GError **error)
{
  GTorchNode *node;
  OpNode *self;
  guint i;

  if (G_UNLIKELY (__atomic_load_n (&gtorch_n_leaf_parts, __ATOMIC_RELAXED) != 0)
      && !check_parts (call, error))
    return FALSE;
  self = op_node_new (call, error);
  if (G_UNLIKELY (self == NULL))
    return FALSE;
  node = &self->node;
  for (i = 0; i < call->n_inputs; i++)
    gtorch_node_set_edge (node, i, call->inputs[i]);
  if (call->in_place)
    gtorch_autograd_rebase (call->outputs[0], node, 0);
  else
    for (i = 0; i < call->n_outputs; i++)
      if (gtorch_dtype_kind (call->outputs[i]->dtype) >= GTORCH_KIND_FLOAT)
        gtorch_node_set_output (node, i, call->outputs[i]);
  gtorch_observe_recorded (node->sequence);
  *result = self;
  return TRUE;
}

/* Records the call if a gradient is wanted, and computes the tangents of its outputs. Their formulas may
 * contain the outputs, which therefore have their history first; and what the node has saved of the outputs
 * gets the tangents in the end. */
static G_GNUC_NO_INLINE gboolean
record_with_tangents (GTorchOpCall *call, GError **error)
{
  const gboolean is_wanted = gtorch_tangents_exist (call->inputs, call->n_inputs)
                             || (call->in_place && gtorch_impl_has_tangent (call->outputs[0]));
  OpNode *self = NULL;
  GTorchEdge former = { NULL };
  gboolean success;
  guint i;

  if (call->in_place)
    gtorch_autograd_note_history (call->outputs[0], &former);
  if (gtorch_autograd_requires (call->inputs, call->n_inputs) && !record (call, &self, error))
    {
      if (call->in_place)
        gtorch_autograd_undo_in_place (call, NULL);
      g_clear_pointer (&former.node, gtorch_node_unref);
      return FALSE;
    }
  success = !is_wanted || gtorch_tangents_compute (call, error);
  for (i = 0; success && is_wanted && self != NULL && self->outputs != NULL && i < call->n_outputs;
       i++)
    if (gtorch_saved_is_set (&self->outputs[i]))
      {
        g_clear_pointer (&self->outputs[i].tangent, gtorch_tangent_unref);
        success = gtorch_tangent_of (call->outputs[i], &self->outputs[i].tangent, error);
      }
  if (!success && call->in_place)
    gtorch_autograd_undo_in_place (call, self != NULL ? &former : NULL);
  g_clear_pointer (&former.node, gtorch_node_unref);
  if (self != NULL)
    gtorch_node_unref (&self->node);
  return success;
}

gboolean
gtorch_autograd_record (GTorchOpCall *call, GError **error)
{
  OpNode *self = NULL;
  guint i;

  for (i = 0; i < call->n_outputs; i++)
    if (gtorch_dtype_kind (call->outputs[i]->dtype) >= GTORCH_KIND_FLOAT)
      break;
  if (i == call->n_outputs)
    return TRUE; /* outputs of integers or bool have no gradient */
  if (gtorch_forward_is_on ())
    return record_with_tangents (call, error);
  if (!record (call, &self, error))
    {
      if (call->in_place)
        gtorch_autograd_undo_in_place (call, NULL);
      return FALSE;
    }
  gtorch_node_unref (&self->node);
  return TRUE;
}

static void
op_node_release (GTorchNode *node)
{
  OpNode *self = (OpNode *) node;
  const guint n = n_saved (self);
  g_autoptr (GPtrArray) packed = NULL;
  g_autoptr (GPtrArray) tangents = NULL; /* their histories may end here: not under the lock */
  guint i;

  if (n == 0)
    return;
  gtorch_node_lock (node);
  /* Numbers are kept, so a node that has saved nothing else can run again. */
  for (i = 0; i < n; i++)
    {
      GTorchSaved *saved = nth_saved (self, i);

      if (!gtorch_saved_is_set (saved) || (saved->is_number && is_of_input (self, i)))
        continue;
      if (G_UNLIKELY (saved->is_packed) && packed == NULL)
        packed = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_packed_unref);
      if (G_UNLIKELY (saved->tangent != NULL))
        {
          if (tangents == NULL)
            tangents = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_tangent_unref);
          g_ptr_array_add (tangents, g_steal_pointer (&saved->tangent));
        }
      if (G_UNLIKELY (saved->is_packed))
        g_ptr_array_add (packed, gtorch_saved_steal (saved));
      else
        gtorch_saved_steal (saved);
      node->is_released = TRUE;
    }
  gtorch_node_unlock (node);
}

static void
op_node_finalize (GTorchNode *node)
{
  OpNode *self = (OpNode *) node;
  const GTorchArgSpec *spec;
  guint i;

  for (i = 0; i < n_saved (self); i++)
    gtorch_saved_steal (nth_saved (self, i)); /* numbers, which are never packed */
  FOR_EACH_ATTR (self->op, spec, i)
  {
    if (is_object (spec))
      g_clear_object (&self->attrs[i].p);
    i++;
  }
}

/* Unpacks what hooks have packed, without the lock. Takes the references. */
static gboolean
unpack_packed (OpNode *self, GTorchPacked **packed, GTorchImpl **inputs, GTorchImpl **outputs,
               GError **error)
{
  gboolean success = TRUE;
  guint i;

  for (i = 0; i < n_saved (self); i++)
    {
      GTorchImpl **values = is_of_input (self, i) ? inputs : outputs;
      const guint at = number_of (self, i);

      if (packed[i] == NULL)
        continue;
      if (success)
        {
          values[at] =
              gtorch_packed_unpack (packed[i], nth_meta (self, i), nth_what (self, i), at, error);
          success = values[at] != NULL;
        }
      gtorch_packed_unref (packed[i]);
    }
  return success;
}

/* Gives the values the tangents that were saved with them. */
static void
attach_tangents (OpNode *self, GPtrArray *tangents, GTorchImpl **inputs, GTorchImpl **outputs)
{
  guint i;

  for (i = 0; i < tangents->len; i++)
    {
      GTorchImpl *value = (is_of_input (self, i) ? inputs : outputs)[number_of (self, i)];

      if (value != NULL)
        gtorch_tangent_attach (value, tangents->pdata[i]);
    }
}

/* Unpacks the saved values, or fails if they have been released. */
static gboolean
unpack (OpNode *self, GTorchImpl **inputs, GTorchImpl **outputs, GError **error)
{
  GTorchNode *node = &self->node;
  g_autofree GTorchPacked **packed = NULL;
  g_autoptr (GPtrArray) tangents = NULL;
  const guint n = n_saved (self);
  gboolean success = TRUE;
  guint i;

  if (n == 0)
    return TRUE;
  gtorch_node_lock (node);
  if (node->is_released)
    {
      gtorch_node_unlock (node);
      gtorch_node_error_released (node, error);
      return FALSE;
    }
  if (gtorch_forward_is_on ())
    tangents = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_tangent_unref);
  for (i = 0; success && i < n; i++)
    {
      const GTorchSaved *saved = nth_saved (self, i);

      if (G_UNLIKELY (tangents != NULL))
        g_ptr_array_add (tangents,
                         saved->tangent != NULL ? gtorch_tangent_ref (saved->tangent) : NULL);
      if (!gtorch_saved_is_set (saved))
        continue;
      if (G_UNLIKELY (saved->is_packed))
        {
          if (packed == NULL)
            packed = g_new0 (GTorchPacked *, n);
          packed[i] = gtorch_packed_ref (saved->packed);
        }
      else
        {
          GTorchImpl **values = is_of_input (self, i) ? inputs : outputs;
          const guint at = number_of (self, i);

          values[at] =
              gtorch_saved_unpack (saved, nth_meta (self, i), nth_what (self, i), at, error);
          success = values[at] != NULL;
        }
    }
  gtorch_node_unlock (node);
  if (G_UNLIKELY (packed != NULL))
    success = unpack_packed (self, packed, inputs, outputs, success ? error : NULL) && success;
  if (!success)
    return FALSE;
  if (G_UNLIKELY (tangents != NULL))
    attach_tangents (self, tangents, inputs, outputs);
  if (!gtorch_is_grad_enabled ())
    return TRUE;
  for (i = 0; i < node->n_edges; i++)
    if (inputs[i] != NULL)
      inputs[i] = gtorch_edge_attach (&node->edges[i], inputs[i]);
  for (i = 0; i < node->n_outputs; i++) /* outputs of integers have no gradient */
    if (outputs[i] != NULL && gtorch_dtype_kind (outputs[i]->dtype) >= GTORCH_KIND_FLOAT)
      gtorch_node_set_output (node, i, outputs[i]);
  return TRUE;
}

static gboolean
apply (GTorchNode *node, GTorchImpl *const *grads, const gboolean *needs, GTorchImpl **results,
       GError **error)
{
  OpNode *self = (OpNode *) node;
  GTorchImpl *few[8] = { NULL };
  GTorchImpl **inputs = few;
  GTorchImpl *outputs[GTORCH_OP_MAX_OUTPUTS] = { NULL };
  GTorchGradContext context = {
    .op = self->op,
    .n_inputs = node->n_edges,
    .grads = grads,
    .outputs = outputs,
    .input_metas = self->input_metas,
    .output_metas = node->output_metas,
    .attrs = self->attrs,
    .needs = needs,
    .result = results,
  };
  gboolean success;
  guint i;

  if (self->op->grad == NULL)
    return TRUE; /* an in-place operation whose result does not depend on the former values */
  if (node->n_edges > G_N_ELEMENTS (few))
    inputs = g_new0 (GTorchImpl *, node->n_edges);
  context.inputs = inputs;
  success = unpack (self, inputs, outputs, error) && self->op->grad (&context, error);
  gtorch_impl_clear (inputs, node->n_edges);
  gtorch_impl_clear (outputs, node->n_outputs);
  if (inputs != few)
    g_free (inputs);
  for (i = 0; i < node->n_edges && success; i++)
    if (results[i] != NULL && needs[i])
      {
        results[i] = gtorch_grad_fit (results[i], &self->input_metas[i], error);
        success = results[i] != NULL;
      }
  return success;
}

/* Takes the history of a result away, but not its tangent. */
static gboolean
drop_history (GTorchImpl **result, GError **error)
{
  g_autoptr (GTorchImpl) former = g_steal_pointer (result);
  GTorchTangent *tangent;

  if (!gtorch_tangent_of (former, &tangent, error))
    return FALSE;
  *result = gtorch_impl_alias (former);
  gtorch_tangent_attach (*result, tangent);
  gtorch_tangent_unref (tangent);
  return TRUE;
}

/* In a pass that is not recorded, a gradient function may take forms that have no derivatives, so it
 * runs as if the pass were while tangents are followed. */
static G_GNUC_NO_INLINE gboolean
apply_with_tangents (GTorchNode *node, GTorchImpl *const *grads, const gboolean *needs,
                     GTorchImpl **results, GError **error)
{
  GTorchChange mode;
  gboolean success;
  guint i;

  gtorch_change_to_grad (&mode, TRUE);
  success = apply (node, grads, needs, results, error);
  gtorch_change_end (&mode);
  for (i = 0; success && i < node->n_edges; i++)
    success = results[i] == NULL || drop_history (&results[i], error);
  return success;
}

static gboolean
op_node_apply (GTorchNode *node, GTorchImpl *const *grads, const gboolean *needs,
               GTorchImpl **results, GError **error)
{
  return (gtorch_forward_is_on () && !gtorch_is_grad_enabled ()
              ? apply_with_tangents
              : apply) (node, grads, needs, results, error);
}
