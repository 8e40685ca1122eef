/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* In-place operations and views. A view knows its base. Writing to a view in place changes the history of
 * the base: its new node gives the part of the gradient that the view covers to the operation's
 * node and
 * what comes of it back into that part. Other views notice the changed version of the storage and
 * take
 * their history anew from the base. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "cpu/gtorch-cpu-iter.h"
#include "gtorch-autograd-private.h"
#include "gtorch-grad-mode.h"
#include "gtorch-ops-private.h"

typedef struct
{
  GTorchNode node;
  GTorchNode *inner; /* of the in-place operation; NULL for a plain view */
  guint8 n_dims;
  gint64 offset; /* relative to the base */
  gint64 view_shape[GTORCH_MAX_DIMS];
  gint64 view_strides[GTORCH_MAX_DIMS];
  guint8 base_n_dims;
  guint8 dtype;
  gint64 base_shape[GTORCH_MAX_DIMS];
  GTorchDevice *device;
  GTorchMeta meta;
  gint64 meta_shape[GTORCH_MAX_DIMS];
} ViewNode;

static gboolean slices_apply (GTorchNode *node, GTorchImpl *const *grads, GTorchImpl **results,
                              GError **error);
static gboolean view_apply (GTorchNode *node, GTorchImpl *const *grads, GTorchImpl **results,
                            GError **error);

static void
view_node_release (GTorchNode *node)
{
  ViewNode *self = (ViewNode *) node;

  node->is_released = TRUE;
  g_clear_pointer (&self->inner, gtorch_node_unref);
}

static const GTorchNodeClass slices_class = { slices_apply, view_node_release };
static const GTorchNodeClass view_class = { view_apply, view_node_release };

static ViewNode *
view_node_new (const GTorchNodeClass *klass, const gchar *name, GTorchImpl *base, GTorchImpl *view,
               GTorchImpl *output, guint n_edges)
{
  ViewNode *self = g_malloc0 (sizeof (ViewNode) + n_edges * sizeof (GTorchEdge));

  gtorch_node_init (&self->node, klass, name, n_edges, 1);
  self->node.edges = (GTorchEdge *) (void *) (self + 1);
  self->n_dims = view->n_dims;
  self->offset = view->offset - base->offset;
  memcpy (self->view_shape, view->shape, view->n_dims * sizeof (gint64));
  memcpy (self->view_strides, view->strides, view->n_dims * sizeof (gint64));
  self->base_n_dims = base->n_dims;
  self->dtype = base->dtype;
  self->device = gtorch_impl_device (base);
  memcpy (self->base_shape, base->shape, base->n_dims * sizeof (gint64));
  gtorch_meta_init (&self->meta, output, self->meta_shape);
  self->node.output_metas = &self->meta;
  return self;
}

/* The view's part of a contiguous tensor of the base's shape. The base itself was contiguous: views of
 * others are refused in gtorch_autograd_rebase(). */
static GTorchImpl *
part_of (ViewNode *self, GTorchImpl *whole)
{
  return gtorch_impl_new_view (whole, whole->offset + self->offset, self->view_shape,
                               self->view_strides, self->n_dims);
}

static gboolean
slices_apply (GTorchNode *node, GTorchImpl *const *grads, GTorchImpl **results, GError **error)
{
  ViewNode *self = (ViewNode *) node;
  g_autoptr (GTorchImpl) whole = NULL;
  g_autoptr (GTorchImpl) part = NULL;
  g_autoptr (GTorchImpl) grad = NULL;
  g_autoptr (GTorchImpl) zeros = NULL;
  GTorchImpl *inner_grads[1];

  if (gtorch_is_grad_enabled ())
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("backward: the gradient of %s on a view cannot be differentiated again"),
                   self->inner->name);
      return FALSE;
    }
  whole = gtorch_op_clone (grads[0], error);
  if (whole == NULL)
    return FALSE;
  part = part_of (self, whole);
  grad = gtorch_op_clone (part, error);
  if (grad == NULL)
    return FALSE;
  inner_grads[0] = grad;
  if (!self->inner->klass->apply (self->inner, inner_grads, results, error))
    return FALSE;
  /* What the operation's own input 0 gets goes back into its part; the rest of the base passes through. */
  if (results[0] != NULL)
    {
      if (!gtorch_op_copy_inplace (part, results[0], FALSE, error))
        return FALSE;
      g_clear_pointer (&results[0], gtorch_impl_unref);
    }
  else if (!gtorch_op_zero_inplace (part, error))
    return FALSE;
  results[0] = g_steal_pointer (&whole);
  return TRUE;
}

static gboolean
view_apply (GTorchNode *node, GTorchImpl *const *grads, GTorchImpl **results, GError **error)
{
  ViewNode *self = (ViewNode *) node;
  g_autoptr (GTorchImpl) whole =
      gtorch_op_zeros (self->base_shape, self->base_n_dims, self->dtype, self->device, error);
  g_autoptr (GTorchImpl) part = NULL;

  if (whole == NULL)
    return FALSE;
  part = part_of (self, whole);
  if (gtorch_is_grad_enabled ())
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("backward: the gradient of a view whose base was changed in place cannot be "
                      "differentiated "
                      "again"));
      return FALSE;
    }
  if (!gtorch_op_copy_inplace (part, grads[0], FALSE, error))
    return FALSE;
  results[0] = g_steal_pointer (&whole);
  return TRUE;
}

void
gtorch_autograd_record_view (GTorchOpCall *call)
{
  GTorchImpl *self = call->inputs[0], *output = call->outputs[0];
  GTorchAutograd *autograd;

  if (gtorch_dtype_kind (output->dtype) < GTORCH_KIND_FLOAT || output->storage != self->storage)
    return;
  autograd = gtorch_autograd_ensure (output);
  autograd->base = gtorch_impl_ref (
      self->autograd != NULL && self->autograd->base != NULL ? self->autograd->base : self);
  autograd->base_version = output->storage->version;
}

/* The base has a new history: the view's is one step behind it. */
void
gtorch_autograd_regenerate (GTorchImpl *view)
{
  GTorchAutograd *autograd = view->autograd;
  GTorchImpl *base = autograd->base;
  ViewNode *node;

  autograd->base_version = view->storage->version;
  if (base->autograd == NULL || base->autograd->grad_fn == NULL || !base->is_contiguous)
    return;
  node = view_node_new (&view_class, "as_strided", base, view, view, 1);
  gtorch_node_set_edge (&node->node, 0, base);
  gtorch_node_set_output (&node->node, 0, view);
  gtorch_node_unref (&node->node);
}

gboolean
gtorch_autograd_begin_in_place (const GTorchOpClass *op, GTorchImpl *const *inputs, guint n_inputs,
                                GTorchImpl **original, GError **error)
{
  GTorchImpl *self = inputs[0];
  GTorchImpl *base =
      self->autograd != NULL && self->autograd->base != NULL ? self->autograd->base : self;
  GTorchAutograd *autograd;

  *original = NULL;
  if (!gtorch_is_grad_enabled ())
    return TRUE;
  if (gtorch_impl_requires_grad (base) && base->autograd->grad_fn == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   base == self
                       ? _ ("%s: a leaf of shape %s that requires grad cannot be changed in place")
                       : _ ("%s: a view of shape %s of a leaf that requires grad cannot be changed "
                            "in place"),
                   op->name, gtorch_impl_shape_str (self));
      return FALSE;
    }
  if (op->grad == NULL || !gtorch_autograd_wanted (inputs, n_inputs))
    return TRUE;

  if (op->saved_inputs & 1)
    {
      gboolean before = gtorch_set_grad_enabled (FALSE);

      *original = gtorch_op_clone (self, error);
      gtorch_set_grad_enabled (before);
      if (*original == NULL)
        return FALSE;
    }
  else
    *original = gtorch_impl_alias (self);
  if (gtorch_impl_requires_grad (self))
    {
      autograd = gtorch_autograd_ensure (*original);
      autograd->grad_fn = gtorch_node_ref (self->autograd->grad_fn);
      autograd->index = self->autograd->index;
    }
  return TRUE;
}

gboolean
gtorch_autograd_rebase (GTorchImpl *output, GTorchNode *node, GTorchImpl *original, GError **error)
{
  GTorchImpl *base = output->autograd != NULL ? output->autograd->base : NULL;
  ViewNode *slices;
  guint i;

  if (base == NULL)
    {
      gtorch_node_set_output (node, 0, output);
      return TRUE;
    }
  if (!base->is_contiguous)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("%s: in place on a view of a tensor of shape %s that is not contiguous has "
                      "no gradient"),
                   node->name, gtorch_impl_shape_str (base));
      return FALSE;
    }
  slices = view_node_new (&slices_class, "copy_slices", base, output, base, node->n_edges);
  gtorch_node_set_edge (&slices->node, 0, base);
  for (i = 1; i < node->n_edges; i++)
    {
      slices->node.edges[i] = node->edges[i];
      if (node->edges[i].node != NULL)
        gtorch_node_ref (node->edges[i].node);
      if (node->edges[i].leaf != NULL)
        gtorch_impl_ref (node->edges[i].leaf);
    }
  slices->inner = gtorch_node_ref (node);
  gtorch_node_set_output (&slices->node, 0, base);
  gtorch_node_unref (&slices->node);
  gtorch_autograd_regenerate (output);
  return TRUE;
}
