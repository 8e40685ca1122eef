/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Records operations as nodes: what the gradient of one operation needs, saved when it runs. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "gtorch-autograd-private.h"
#include "gtorch-grad-mode.h"
#include "gtorch-tensor-private.h"

#define LIST_BIT 31

typedef struct
{
  GTorchNode node;
  const GTorchOpClass *op;
  GTorchMeta *input_metas;
  GTorchAttr *attrs;
  GTorchImpl **inputs;  /* NULL where not saved */
  GTorchImpl **outputs; /* aliases without autograd; NULL where not saved */
  guint *versions;      /* of the inputs, then the outputs, when saved */
} OpNode;

static gboolean op_node_apply (GTorchNode *node, GTorchImpl *const *grads, GTorchImpl **results,
                               GError **error);
static void op_node_release (GTorchNode *node);

static const GTorchNodeClass op_node_class = { op_node_apply, op_node_release };

gboolean
gtorch_autograd_wanted (GTorchImpl *const *inputs, guint n_inputs)
{
  guint i;

  if (!gtorch_is_grad_enabled ())
    return FALSE;
  for (i = 0; i < n_inputs; i++)
    if (inputs[i] != NULL && inputs[i]->autograd != NULL && gtorch_impl_requires_grad (inputs[i]))
      return TRUE;
  return FALSE;
}

static gboolean
is_saved_input (const GTorchOpClass *op, guint i)
{
  return (op->saved_inputs & (1u << (i < op->n_inputs ? i : LIST_BIT))) != 0;
}

static gboolean
is_pointer (const GTorchOpClass *op, guint attr)
{
  guint i;

  for (i = 0; i < op->n_args; i++)
    if (op->args[i].kind > GTORCH_ARG_TENSORS && attr-- == 0)
      return op->args[i].kind == GTORCH_ARG_DEVICE || op->args[i].kind == GTORCH_ARG_GENERATOR;
  return FALSE;
}

static gboolean
is_list (const GTorchOpClass *op, guint attr)
{
  guint i;

  for (i = 0; i < op->n_args; i++)
    if (op->args[i].kind > GTORCH_ARG_TENSORS && attr-- == 0)
      return op->args[i].kind == GTORCH_ARG_INTS;
  return FALSE;
}

/* One block holds the node and all its arrays. */
static OpNode *
op_node_new (const GTorchOpCall *call)
{
  const GTorchOpClass *op = call->op;
  gsize n_dims = 0, n_ints = 0, size;
  OpNode *self;
  gint64 *ints;
  char *next;
  guint i;

  for (i = 0; i < call->n_inputs; i++)
    n_dims += call->inputs[i] != NULL ? call->inputs[i]->n_dims : 0;
  for (i = 0; i < call->n_outputs; i++)
    n_dims += call->outputs[i]->n_dims;
  for (i = 0; i < op->n_attrs; i++)
    if (is_list (op, i))
      n_ints += call->attrs[i].list.n;

  size = sizeof (OpNode)
         + call->n_inputs * (sizeof (GTorchEdge) + sizeof (GTorchMeta) + sizeof (gpointer))
         + call->n_outputs * (sizeof (GTorchMeta) + sizeof (gpointer))
         + op->n_attrs * sizeof (GTorchAttr) + (n_dims + n_ints) * sizeof (gint64)
         + (call->n_inputs + call->n_outputs) * sizeof (guint);
  self = g_malloc0 (size);
  next = (char *) (self + 1);
#define TAKE(field, type, n)        \
  (field) = (type *) (void *) next; \
  next += (n) * sizeof (type)
  TAKE (self->node.edges, GTorchEdge, call->n_inputs);
  TAKE (self->input_metas, GTorchMeta, call->n_inputs);
  TAKE (self->node.output_metas, GTorchMeta, call->n_outputs);
  TAKE (self->inputs, GTorchImpl *, call->n_inputs);
  TAKE (self->outputs, GTorchImpl *, call->n_outputs);
  TAKE (self->attrs, GTorchAttr, op->n_attrs);
  TAKE (ints, gint64, n_dims + n_ints);
  TAKE (self->versions, guint, call->n_inputs + call->n_outputs);
#undef TAKE

  gtorch_node_init (&self->node, &op_node_class, op->name, call->n_inputs, call->n_outputs);
  self->op = op;
  for (i = 0; i < call->n_inputs; i++)
    if (call->inputs[i] != NULL)
      {
        gtorch_meta_init (&self->input_metas[i], call->inputs[i], ints);
        ints += call->inputs[i]->n_dims;
      }
  for (i = 0; i < call->n_outputs; i++)
    {
      gtorch_meta_init (&self->node.output_metas[i], call->outputs[i], ints);
      ints += call->outputs[i]->n_dims;
    }
  for (i = 0; i < op->n_attrs; i++)
    {
      self->attrs[i] = call->attrs[i];
      if (is_list (op, i) && call->attrs[i].list.n > 0)
        {
          memcpy (ints, call->attrs[i].list.data, call->attrs[i].list.n * sizeof (gint64));
          self->attrs[i].list.data = ints;
          ints += call->attrs[i].list.n;
        }
      else if (is_pointer (op, i) && call->attrs[i].p != NULL)
        g_object_ref (call->attrs[i].p);
    }
  return self;
}

gboolean
gtorch_autograd_record (GTorchOpCall *call, GError **error)
{
  const GTorchOpClass *op = call->op;
  g_autoptr (GTorchNode) node = NULL;
  OpNode *self;
  guint i;

  for (i = 0; i < call->n_outputs; i++)
    if (gtorch_dtype_kind (call->outputs[i]->dtype) >= GTORCH_KIND_FLOAT)
      break;
  if (i == call->n_outputs)
    return TRUE; /* indices and truth have no gradient */

  self = op_node_new (call);
  node = &self->node;
  for (i = 0; i < call->n_inputs; i++)
    {
      gtorch_node_set_edge (node, i, call->inputs[i]);
      if (call->inputs[i] != NULL && is_saved_input (op, i))
        {
          self->inputs[i] = gtorch_impl_ref (call->inputs[i]);
          self->versions[i] = call->inputs[i]->storage->version;
        }
    }
  for (i = 0; i < call->n_outputs; i++)
    if (op->saved_outputs & (1u << i))
      {
        self->outputs[i] = gtorch_impl_alias (call->outputs[i]);
        self->versions[call->n_inputs + i] = call->outputs[i]->storage->version;
      }

  if (call->in_place)
    return gtorch_autograd_rebase (call->outputs[0], node, call->inputs[0], error);
  for (i = 0; i < call->n_outputs; i++)
    if (gtorch_dtype_kind (call->outputs[i]->dtype) >= GTORCH_KIND_FLOAT)
      gtorch_node_set_output (node, i, call->outputs[i]);
  return TRUE;
}

static void
op_node_release (GTorchNode *node)
{
  OpNode *self = (OpNode *) node;
  guint i;

  node->is_released = TRUE;
  gtorch_impl_clear (self->inputs, node->n_edges);
  gtorch_impl_clear (self->outputs, node->n_outputs);
  for (i = 0; i < self->op->n_attrs; i++)
    if (is_pointer (self->op, i))
      g_clear_object (&self->attrs[i].p);
}

static gboolean
check_version (OpNode *self, GTorchImpl *impl, guint version, const gchar *what, guint i,
               GError **error)
{
  if (impl->storage == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED,
                   _ ("backward: %s saved its %s %u, of shape %s, which was released"),
                   self->op->name, what, i, gtorch_impl_shape_str (impl));
      return FALSE;
    }
  if (impl->storage->version == version)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
               _ ("backward: the gradient of %s needs its %s %u, of dtype %s and shape %s, which "
                  "was changed in "
                  "place: it is at version %u, version %u was saved"),
               self->op->name, what, i, gtorch_dtype_get_name (impl->dtype),
               gtorch_impl_shape_str (impl), impl->storage->version, version);
  return FALSE;
}

static gboolean
op_node_apply (GTorchNode *node, GTorchImpl *const *grads, GTorchImpl **results, GError **error)
{
  OpNode *self = (OpNode *) node;
  g_autofree gboolean *needs = g_new0 (gboolean, MAX (node->n_edges, 1));
  GTorchImpl *outputs[GTORCH_OP_MAX_OUTPUTS] = { NULL };
  GTorchGradContext context = {
    .op = self->op,
    .n_inputs = node->n_edges,
    .grads = grads,
    .inputs = self->inputs,
    .outputs = outputs,
    .input_metas = self->input_metas,
    .output_metas = node->output_metas,
    .attrs = self->attrs,
    .needs = needs,
    .result = results,
  };
  gboolean success = TRUE;
  guint i;

  for (i = 0; i < node->n_edges; i++)
    {
      needs[i] = node->edges[i].node != NULL || node->edges[i].leaf != NULL;
      if (self->inputs[i] != NULL
          && !check_version (self, self->inputs[i], self->versions[i], "input", i, error))
        return FALSE;
    }
  for (i = 0; i < node->n_outputs && success; i++)
    if (self->outputs[i] != NULL)
      {
        success = check_version (self, self->outputs[i], self->versions[node->n_edges + i],
                                 "result", i, error);
        if (!success)
          break;
        outputs[i] = gtorch_impl_alias (self->outputs[i]);
        if (gtorch_is_grad_enabled ())
          gtorch_node_set_output (node, i, outputs[i]);
      }
  if (success)
    success = self->op->grad (&context, error);
  gtorch_impl_clear (outputs, G_N_ELEMENTS (outputs));
  for (i = 0; i < node->n_edges && success; i++)
    if (results[i] != NULL)
      {
        results[i] = gtorch_grad_fit (results[i], &self->input_metas[i], self->op->name, error);
        success = results[i] != NULL;
      }
  return success;
}
