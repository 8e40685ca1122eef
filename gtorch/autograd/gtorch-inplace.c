/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* In-place operations and views. A view knows its base. Writing to a view in place changes the history of
 * the base: its new node gives the part of the gradient that the view covers to the operation's node and
 * what comes of it back into that part. Other views notice the changed version of the storage and take
 * their history anew from the base. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "gtorch-autograd-private.h"
#include "gtorch-grad-mode.h"
#include "gtorch-ops-private.h"
#include "gtorch-stream-private.h"

/* Where elements lie in a piece of memory. */
typedef struct
{
  guint8 dtype;
  guint8 n_dims;
  gint64 offset; /* in bytes from the lowest byte of the base */
  gint64 shape[GTORCH_MAX_DIMS];
  gint64 strides[GTORCH_MAX_DIMS];
} Place;

typedef struct
{
  GTorchNode node;
  GTorchNode *inner; /* of the in-place operation; NULL for a plain view */
  guint index;       /* which of its inputs and outputs the view is */
  Place view;
  Place base;
  gint64 n_elements; /* that the memory of the base spans */
  GTorchDevice *device;
  GTorchMeta meta;
  gint64 meta_shape[GTORCH_MAX_DIMS];
} ViewNode;

static gboolean slices_apply (GTorchNode *node, GTorchImpl *const *grads, const gboolean *needs,
                              GTorchImpl **results, GError **error);
static gboolean view_apply (GTorchNode *node, GTorchImpl *const *grads, const gboolean *needs,
                            GTorchImpl **results, GError **error);

static void
view_node_release (GTorchNode *node)
{
  ViewNode *self = (ViewNode *) node;

  if (self->inner != NULL)
    self->inner->klass->release (self->inner);
}

static void
view_node_finalize (GTorchNode *node)
{
  ViewNode *self = (ViewNode *) node;

  g_clear_pointer (&self->inner, gtorch_node_unref);
}

static const GTorchNodeClass slices_class = { slices_apply, view_node_release, view_node_finalize };
static const GTorchNodeClass view_class = { view_apply, view_node_release, view_node_finalize };

/* The lowest and highest element, from the first. */
static void
reach (const gint64 *shape, const gint64 *strides, guint n_dims, gint64 *low, gint64 *high)
{
  guint i;

  *low = *high = 0;
  for (i = 0; i < n_dims; i++)
    *(strides[i] < 0 ? low : high) += (shape[i] - 1) * strides[i];
}

static void
place_init (Place *place, const GTorchImpl *impl, gint64 lowest)
{
  place->dtype = impl->dtype;
  place->n_dims = impl->n_dims;
  place->offset = impl->offset * (gint64) gtorch_dtype_size (impl->dtype) - lowest;
  memcpy (place->shape, impl->shape, impl->n_dims * sizeof (gint64));
  memcpy (place->strides, impl->strides, impl->n_dims * sizeof (gint64));
}

static ViewNode *
view_node_new (const GTorchNodeClass *klass, const gchar *name, GTorchImpl *base, GTorchImpl *view,
               GTorchImpl *output, guint n_edges)
{
  ViewNode *self = g_malloc0 (sizeof (ViewNode) + n_edges * sizeof (GTorchEdge));
  gint64 low, high, lowest;

  gtorch_node_init (&self->node, klass, name, n_edges, 1);
  self->node.edges = (GTorchEdge *) (void *) (self + 1);
  self->device = gtorch_impl_device (base->storage != NULL ? base : view); /* one may be released */
  self->node.stream = gtorch_current_stream (self->device);
  if (self->node.stream != NULL)
    g_object_ref (self->node.stream);
  reach (base->shape, base->strides, base->n_dims, &low, &high);
  lowest = (base->offset + low) * (gint64) gtorch_dtype_size (base->dtype);
  self->n_elements = base->numel == 0 ? 0 : high - low + 1;
  place_init (&self->base, base, lowest);
  place_init (&self->view, view, lowest);
  gtorch_meta_init (&self->meta, output, self->meta_shape);
  self->node.output_metas = &self->meta;
  return self;
}

static GTorchImpl *
show (const Place *place, GTorchStorage *storage, gint64 n_bytes, GError **error)
{
  gint64 size = gtorch_dtype_size (place->dtype), low, high, numel = 1;
  guint i;

  reach (place->shape, place->strides, place->n_dims, &low, &high);
  for (i = 0; i < place->n_dims; i++)
    numel *= place->shape[i];
  if (place->offset % size != 0
      || (numel != 0
          && (place->offset + low * size < 0 || place->offset + (high + 1) * size > n_bytes)))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("a view of shape %s shows memory that its base does not"),
                   gtorch_shape_str (place->shape, place->n_dims));
      return NULL;
    }
  return gtorch_impl_new_strided (storage, place->dtype, place->offset / size, place->shape,
                                  place->strides, place->n_dims);
}

/* New zeros with the geometry of the base, and the view's part of them, both with a history if the grad mode
 * is on. */
static GTorchImpl *
whole_new (ViewNode *self, GError **error)
{
  g_autoptr (GTorchImpl) memory =
      gtorch_op_zeros (&self->n_elements, 1, self->base.dtype, self->device, error);

  return memory != NULL
             ? show (&self->base, memory->storage, (gint64) gtorch_impl_n_bytes (memory), error)
             : NULL;
}

static GTorchImpl *
part_of (ViewNode *self, GTorchImpl *whole, GError **error)
{
  GTorchImpl *part = show (&self->view, whole->storage,
                           self->n_elements * (gint64) gtorch_dtype_size (self->base.dtype), error);
  GTorchAutograd *autograd;

  if (part == NULL || !gtorch_is_grad_enabled ())
    return part;
  autograd = gtorch_autograd_ensure (part);
  autograd->base = gtorch_impl_ref (whole);
  gtorch_autograd_regenerate (part);
  return part;
}

static gboolean
slices_apply (GTorchNode *node, GTorchImpl *const *grads, const gboolean *needs,
              GTorchImpl **results, GError **error)
{
  ViewNode *self = (ViewNode *) node;
  g_autoptr (GTorchImpl) whole = NULL;
  g_autoptr (GTorchImpl) part = NULL;
  g_autofree GTorchImpl **inner_grads = g_new0 (GTorchImpl *, self->inner->n_outputs);
  guint k = self->index;
  gboolean success;

  whole = whole_new (self, error);
  if (whole == NULL || !gtorch_op_copy_inplace (whole, grads[0], FALSE, error))
    return FALSE;
  part = part_of (self, whole, error);
  if (part == NULL)
    return FALSE;
  inner_grads[k] = gtorch_op_clone (part, error);
  if (inner_grads[k] == NULL)
    return FALSE;
  success = self->inner->klass->apply (self->inner, inner_grads, needs, results, error);
  g_clear_pointer (&inner_grads[k], gtorch_impl_unref);
  if (!success || !needs[k])
    return success;
  /* What the view's former self gets goes back into its part; the rest of the base passes through. */
  if (results[k] != NULL ? !gtorch_op_copy_inplace (part, results[k], FALSE, error)
                         : !gtorch_op_zero_inplace (part, error))
    return FALSE;
  g_clear_pointer (&results[k], gtorch_impl_unref);
  results[k] = g_steal_pointer (&whole);
  return TRUE;
}

static gboolean
view_apply (GTorchNode *node, GTorchImpl *const *grads, const gboolean *needs, GTorchImpl **results,
            GError **error)
{
  ViewNode *self = (ViewNode *) node;
  g_autoptr (GTorchImpl) whole = whole_new (self, error);
  g_autoptr (GTorchImpl) part = NULL;
  const gint64 size = gtorch_dtype_size (self->base.dtype);

  part = whole != NULL ? part_of (self, whole, error) : NULL;
  if (part == NULL)
    return FALSE;
  if (!gtorch_impl_overlaps_itself (part))
    {
      if (!gtorch_op_copy_inplace (part, grads[0], FALSE, error))
        return FALSE;
      results[0] = g_steal_pointer (&whole);
      return TRUE;
    }
  if (gtorch_is_grad_enabled ())
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("the gradient of an expanded view of shape %s, whose base was changed in "
                      "place, cannot be differentiated again"),
                   gtorch_impl_shape_str (part));
      return FALSE;
    }
  results[0] = gtorch_op_strided_view_backward (grads[0], self->base.shape, self->base.n_dims,
                                                self->view.strides, self->view.n_dims,
                                                self->view.offset / size, self->base.strides,
                                                self->base.n_dims, self->base.offset / size, error);
  return results[0] != NULL;
}

void
gtorch_autograd_record_view (GTorchOpCall *call)
{
  GTorchImpl *self = call->inputs[0], *output = call->outputs[0];
  gboolean silent = !gtorch_is_grad_enabled ();
  GTorchAutograd *autograd;

  /* Without a history a view made in no-grad mode stays unknown: gradients themselves are of that kind. */
  if (gtorch_dtype_kind (output->dtype) < GTORCH_KIND_FLOAT || output->storage != self->storage
      || (silent && (self->autograd == NULL || !gtorch_impl_requires_grad (self))))
    return;
  autograd = gtorch_autograd_ensure (output);
  autograd->is_silent_view = silent;
  autograd->base_version = g_atomic_int_get (&output->storage->version);
  autograd->base = gtorch_impl_ref (
      self->autograd != NULL && self->autograd->base != NULL ? self->autograd->base : self);
  if (self->autograd != NULL && self->autograd->is_silent_view)
    autograd->is_silent_view = TRUE;
}

/* The base has a new history: the view's is one step behind it. */
void
gtorch_autograd_regenerate (GTorchImpl *view)
{
  GTorchAutograd *autograd = view->autograd;
  GTorchImpl *base = autograd->base;
  guint version = g_atomic_int_get (&view->storage->version);
  ViewNode *node;

  if (autograd->is_silent_view || base->autograd == NULL || base->autograd->grad_fn == NULL)
    {
      __atomic_store_n (&autograd->base_version, version, __ATOMIC_RELEASE);
      return;
    }
  g_mutex_lock (&autograd->lock);
  if (autograd->base_version != version || autograd->grad_fn == NULL)
    {
      node = view_node_new (&view_class, "as_strided", base, view, view, 1);
      gtorch_node_set_edge (&node->node, 0, base);
      gtorch_node_set_output (&node->node, 0, view);
      gtorch_node_unref (&node->node);
      __atomic_store_n (&autograd->base_version, version, __ATOMIC_RELEASE);
    }
  g_mutex_unlock (&autograd->lock);
}

static GTorchImpl *
base_of (GTorchImpl *impl)
{
  return impl->autograd != NULL && impl->autograd->base != NULL ? impl->autograd->base : impl;
}

gboolean
gtorch_autograd_check_in_place (const gchar *op, GTorchImpl *impl, gboolean wanted, GError **error)
{
  GTorchImpl *base = base_of (impl);

  if (!wanted || !gtorch_is_grad_enabled ())
    return TRUE;
  if (gtorch_impl_requires_grad (base) && base->autograd->grad_fn == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   base == impl
                       ? _ ("%s: a leaf of shape %s that requires grad cannot be changed in place: "
                            "do it with no_grad, or on a clone")
                       : _ ("%s: a view of shape %s of a leaf that requires grad cannot be changed "
                            "in place: do it with no_grad, or on a clone"),
                   op, gtorch_impl_shape_str (impl));
      return FALSE;
    }
  if (impl->autograd != NULL && impl->autograd->is_silent_view)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("%s: a view of shape %s that was made with no_grad cannot be changed in "
                      "place where gradients are recorded: its base would not know"),
                   op, gtorch_impl_shape_str (impl));
      return FALSE;
    }
  return TRUE;
}

gboolean
gtorch_autograd_begin_in_place (const GTorchOpClass *op, GTorchImpl *const *inputs, guint n_inputs,
                                GTorchImpl **original, GError **error)
{
  GTorchImpl *self = inputs[0];
  GTorchAutograd *autograd;
  gboolean before, own;

  *original = NULL;
  own = gtorch_impl_requires_grad (self);
  if (op->grad == NULL && !own)
    return TRUE;
  if (!gtorch_autograd_check_in_place (op->name, self, TRUE, error))
    return FALSE;

  if ((op->saved_inputs & 1) != 0)
    {
      before = gtorch_set_grad_enabled (FALSE);
      *original = gtorch_op_clone (self, error);
      gtorch_set_grad_enabled (before);
    }
  else if (self->storage != NULL)
    *original = gtorch_impl_alias (self);
  else
    return TRUE; /* the operation itself will complain */
  if (*original == NULL)
    return FALSE;
  if (own)
    {
      autograd = gtorch_autograd_ensure (*original);
      autograd->grad_fn = gtorch_node_ref (self->autograd->grad_fn);
      autograd->index = self->autograd->index;
    }
  return TRUE;
}

void
gtorch_autograd_rebase (GTorchImpl *output, GTorchNode *node, guint index)
{
  GTorchImpl *base = output->autograd != NULL ? output->autograd->base : NULL;
  ViewNode *slices;
  guint i;

  if (base == NULL)
    {
      gtorch_node_set_output (node, index, output);
      return;
    }
  slices = view_node_new (&slices_class, "copy_slices", base, output, base, node->n_edges);
  slices->index = index;
  for (i = 0; i < node->n_edges; i++)
    if (i == index)
      gtorch_node_set_edge (&slices->node, i, base);
    else
      gtorch_node_copy_edge (&slices->node, i, &node->edges[i]);
  slices->inner = gtorch_node_ref (node);
  gtorch_node_set_output (&slices->node, 0, base);
  gtorch_node_unref (&slices->node);
  gtorch_autograd_regenerate (output);
}
