/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* In-place operations and views. A view knows its base. An in-place write to a view changes the history of
 * the base: a new node passes the part of the gradient that the view covers to the operation's node, and
 * writes the result back into that part. Other views notice that the base has a newer history and
 * regenerate theirs from it. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "autograd/gtorch-autograd-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "gtorch-ops-private.h"
#include "stream/gtorch-stream-private.h"

/* The layout of elements within a piece of memory. */
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
  GTorchNode *inner; /* the node of the in-place operation; NULL for a plain view */
  guint index;       /* the input and output of `inner` that is the view */
  Place view;
  Place base;
  gint64 n_elements;      /* the number of elements that the memory of the base spans */
  gboolean base_overlaps; /* tells whether elements of the base share memory */
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

  /* If `inner` has other owners, such as its saved result, the pass reaches it as a node of its own, later
   * because of its lower sequence, and releases it then. */
  if (self->inner != NULL && g_atomic_int_get (&self->inner->ref_count) == 1)
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

/* Finds the offsets of the lowest and highest element, relative to the first. */
static void
reach (const gint64 *shape, const gint64 *strides, guint n_dims, gint64 *low, gint64 *high)
{
  guint i;

  *low = *high = 0;
  for (i = 0; i < n_dims; i++)
    if (shape[i] > 1)
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
  /* One of the two may be released. */
  self->device = gtorch_impl_device (base->storage != NULL ? base : view);
  self->node.stream = gtorch_current_stream (self->device);
  if (self->node.stream != NULL)
    g_object_ref (self->node.stream);
  reach (base->shape, base->strides, base->n_dims, &low, &high);
  lowest = (base->offset + low) * (gint64) gtorch_dtype_size (base->dtype);
  self->n_elements = base->numel == 0 ? 0 : high - low + 1;
  self->base_overlaps = gtorch_impl_overlaps_itself (base);
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
                   _ ("a view of shape %s uses memory outside of its base"),
                   gtorch_shape_str (place->shape, place->n_dims));
      return NULL;
    }
  return gtorch_impl_new_strided (storage, place->dtype, place->offset / size, place->shape,
                                  place->strides, place->n_dims);
}

/* Allocates memory with the layout of the base. */
static GTorchImpl *
whole_new (ViewNode *self, GError **error)
{
  g_autoptr (GTorchImpl) memory =
      gtorch_op_zeros (&self->n_elements, 1, self->base.dtype, self->device, error);

  return memory != NULL
             ? show (&self->base, memory->storage, (gint64) gtorch_impl_n_bytes (memory), error)
             : NULL;
}

/* --- layouts of views and bases with elements of one kind: both complex, or both real --- */

typedef struct
{
  Place view, base;
  GTorchLayout view_layout, base_layout;
  gboolean view_is_split, base_is_split; /* whether complex elements are split into real ones */
} Frame;

static gboolean
is_complex (guint dtype)
{
  return gtorch_dtype_kind (dtype) == GTORCH_KIND_COMPLEX;
}

static gboolean
frame_place (Place *place, GTorchLayout *layout, gboolean in_reals, gboolean *is_split,
             GError **error)
{
  guint i;

  *is_split = in_reals && is_complex (place->dtype);
  if (*is_split && place->n_dims == GTORCH_MAX_DIMS)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("a complex tensor of %u dimensions that was changed through a view of its "
                      "parts cannot be differentiated"),
                   place->n_dims);
      return FALSE;
    }
  if (*is_split)
    {
      for (i = 0; i < place->n_dims; i++)
        place->strides[i] *= 2;
      place->dtype = gtorch_dtype_infos[place->dtype].real;
      place->shape[place->n_dims] = 2;
      place->strides[place->n_dims++] = 1;
    }
  *layout = (GTorchLayout){ place->shape, place->strides, place->n_dims,
                            place->offset / (gint64) gtorch_dtype_size (place->dtype) };
  return TRUE;
}

static gboolean
frame_init (Frame *frame, const ViewNode *self, GError **error)
{
  gboolean in_reals = self->view.dtype != self->base.dtype;

  frame->view = self->view;
  frame->base = self->base;
  return frame_place (&frame->view, &frame->view_layout, in_reals, &frame->view_is_split, error)
         && frame_place (&frame->base, &frame->base_layout, in_reals, &frame->base_is_split, error);
}

/* Convert to the elements in which layouts are compared, and back. */
static GTorchImpl *
split (GTorchImpl *impl, gboolean is_split, GError **error)
{
  return is_split ? gtorch_op_view_as_real (impl, error) : gtorch_impl_ref (impl);
}

static GTorchImpl *
join (GTorchImpl *impl, gboolean is_split, GError **error)
{
  g_autoptr (GTorchImpl) plain = NULL;

  if (!is_split)
    return gtorch_impl_ref (impl);
  plain = gtorch_op_contiguous (impl, error);
  return plain != NULL ? gtorch_op_view_as_complex (plain, error) : NULL;
}

/* --- running the nodes --- */

/* Computes the gradient of the written values from that of the base. */
static GTorchImpl *
written_of (const Frame *frame, GTorchImpl *whole, GError **error)
{
  g_autoptr (GTorchImpl) parts = split (whole, frame->base_is_split, error);
  g_autoptr (GTorchImpl) seen =
      parts != NULL ? gtorch_grad_in_view (parts, &frame->view_layout, &frame->base_layout, error)
                    : NULL;

  return seen != NULL ? join (seen, frame->view_is_split, error) : NULL;
}

/* Computes the gradient of the base's former value: `part` at the view's elements, `whole` elsewhere. */
static GTorchImpl *
former_of (const Frame *frame, GTorchImpl *whole, GTorchImpl *part, GTorchDevice *device,
           GError **error)
{
  const GTorchLayout *view = &frame->view_layout, *base = &frame->base_layout;
  g_autoptr (GTorchImpl) parts = split (whole, frame->base_is_split, error);
  g_autoptr (GTorchImpl) ones =
      gtorch_op_ones (view->shape, view->n_dims, frame->view.dtype, device, error);
  g_autoptr (GTorchImpl) zero = gtorch_impl_new_number (0);
  g_autoptr (GTorchImpl) marks =
      ones != NULL ? gtorch_grad_of_view (ones, view, base, error) : NULL;
  g_autoptr (GTorchImpl) mask = marks != NULL ? gtorch_op_ne (marks, zero, error) : NULL;
  g_autoptr (GTorchImpl) seen =
      part != NULL ? split (part, frame->view_is_split, error) : gtorch_impl_ref (zero);
  g_autoptr (GTorchImpl) back = part == NULL   ? g_steal_pointer (&seen)
                                : seen != NULL ? gtorch_grad_of_view (seen, view, base, error)
                                               : NULL;
  g_autoptr (GTorchImpl) result = mask != NULL && parts != NULL && back != NULL
                                      ? gtorch_op_where (mask, back, parts, error)
                                      : NULL;

  return result != NULL ? join (result, frame->base_is_split, error) : NULL;
}

/* Computes the gradients by recorded operations, so that they can be differentiated. */
static gboolean
slices_apply_recorded (ViewNode *self, GTorchImpl **inner_grads, GTorchImpl *whole,
                       const gboolean *needs, GTorchImpl **results, GError **error)
{
  guint k = self->index;
  GTorchImpl *former;
  Frame frame;

  if (!frame_init (&frame, self, error))
    return FALSE;
  inner_grads[k] = written_of (&frame, whole, error);
  if (inner_grads[k] == NULL)
    return FALSE;
  if (!self->inner->klass->apply (self->inner, inner_grads, needs, results, error))
    return FALSE;
  if (!needs[k])
    return TRUE;
  former = former_of (&frame, whole, results[k], self->device, error);
  g_clear_pointer (&results[k], gtorch_impl_unref);
  results[k] = former;
  return former != NULL;
}

/* Computes the gradients in place, in newly allocated memory. */
static gboolean
slices_apply_quickly (ViewNode *self, GTorchImpl **inner_grads, GTorchImpl *grad,
                      const gboolean *needs, GTorchImpl **results, GError **error)
{
  g_autoptr (GTorchImpl) whole = whole_new (self, error);
  g_autoptr (GTorchImpl) part = NULL;
  guint k = self->index;

  if (whole == NULL || !gtorch_op_copy_inplace (whole, grad, FALSE, error))
    return FALSE;
  part = show (&self->view, whole->storage,
               self->n_elements * (gint64) gtorch_dtype_size (self->base.dtype), error);
  if (part == NULL)
    return FALSE;
  inner_grads[k] = gtorch_op_clone (part, error);
  if (inner_grads[k] == NULL
      || !self->inner->klass->apply (self->inner, inner_grads, needs, results, error))
    return FALSE;
  if (!needs[k])
    return TRUE;
  if (results[k] != NULL ? !gtorch_op_copy_inplace (part, results[k], FALSE, error)
                         : !gtorch_op_zero_inplace (part, error))
    return FALSE;
  g_clear_pointer (&results[k], gtorch_impl_unref);
  results[k] = g_steal_pointer (&whole);
  return TRUE;
}

static gboolean
slices_apply (GTorchNode *node, GTorchImpl *const *grads, const gboolean *needs,
              GTorchImpl **results, GError **error)
{
  ViewNode *self = (ViewNode *) node;
  g_autofree GTorchImpl **inner_grads = g_new0 (GTorchImpl *, self->inner->n_outputs);
  gboolean success =
      (gtorch_autograd_is_differentiated () || self->base_overlaps
           ? slices_apply_recorded
           : slices_apply_quickly) (self, inner_grads, grads[0], needs, results, error);

  g_clear_pointer (&inner_grads[self->index], gtorch_impl_unref);
  return success;
}

static gboolean
view_apply (GTorchNode *node, GTorchImpl *const *grads, const gboolean *needs, GTorchImpl **results,
            GError **error)
{
  g_autoptr (GTorchImpl) parts = NULL;
  g_autoptr (GTorchImpl) whole = NULL;
  Frame frame;

  if (!frame_init (&frame, (ViewNode *) node, error))
    return FALSE;
  parts = split (grads[0], frame.view_is_split, error);
  whole = parts != NULL ? gtorch_grad_of_view (parts, &frame.view_layout, &frame.base_layout, error)
                        : NULL;
  results[0] = whole != NULL ? join (whole, frame.base_is_split, error) : NULL;
  return results[0] != NULL;
}

void
gtorch_autograd_record_view (GTorchOpCall *call)
{
  GTorchImpl *self = call->inputs[0], *output = call->outputs[0];
  gboolean silent = !gtorch_is_grad_enabled ();
  const GTorchAutograd *parent;
  GTorchAutograd *autograd;

  if (output->storage != self->storage)
    return;
  output->inference = self->inference;
  if (gtorch_dtype_kind (output->dtype) < GTORCH_KIND_FLOAT)
    return;
  output->is_silent_view = silent || self->is_silent_view;
  if (silent && !gtorch_forward_is_on ()
      && (self->autograd == NULL || !gtorch_impl_requires_grad (self)))
    return;
  parent = self->autograd != NULL && self->autograd->base != NULL ? self->autograd : NULL;
  autograd = gtorch_autograd_ensure (output);
  autograd->base = gtorch_impl_ref (parent != NULL ? parent->base : self);
  autograd->is_primal = parent != NULL && parent->is_primal;
  /* A view of a view inherits that view's history count, which may be outdated. */
  autograd->base_history = parent != NULL           ? parent->base_history
                           : self->autograd != NULL ? self->autograd->history
                                                    : 0;
}

/* Returns the base of impl, or impl itself if it is no view or the base has other memory by now. */
static GTorchImpl *
base_of (GTorchImpl *impl)
{
  GTorchImpl *base = impl->autograd != NULL ? impl->autograd->base : NULL;

  return base != NULL && (base->storage == NULL || base->storage == impl->storage) ? base : impl;
}

/* Regenerates the grad_fn of a view whose base has a new history: the base's grad_fn followed by
 * as_strided. */
void
gtorch_autograd_regenerate (GTorchImpl *view)
{
  GTorchAutograd *autograd = view->autograd;
  GTorchImpl *base = autograd->base;
  g_autoptr (GTorchNode) former = NULL; /* freed after the lock is released */
  ViewNode *node;
  guint history;

  g_mutex_lock (&autograd->lock);
  history = __atomic_load_n (&base->autograd->history, __ATOMIC_ACQUIRE);
  if (autograd->base_history != history)
    {
      if (!view->is_silent_view && view->storage != NULL && base_of (view) == base)
        {
          former = autograd->grad_fn != NULL ? gtorch_node_ref (autograd->grad_fn) : NULL;
          node = view_node_new (&view_class, "as_strided", base, view, view, 1);
          gtorch_node_set_edge (&node->node, 0, base);
          gtorch_node_set_output (&node->node, 0, view);
          gtorch_node_unref (&node->node);
        }
      __atomic_store_n (&autograd->base_history, history, __ATOMIC_RELEASE);
    }
  g_mutex_unlock (&autograd->lock);
}

gboolean
gtorch_autograd_check_in_place (const gchar *op, GTorchImpl *impl, gboolean wanted, GError **error)
{
  GTorchImpl *base = base_of (impl);
  gboolean flows;

  if (!gtorch_impl_check_write (impl, op, error))
    return FALSE;
  if (!wanted || !gtorch_is_grad_enabled () || impl->storage == NULL)
    return TRUE;
  /* Leaves that require grad, their views, and views that require grad themselves are refused: the base
   * has no recorded history in which the change could be noted. */
  flows = gtorch_impl_requires_grad (impl) || gtorch_impl_requires_grad (base);
  if (flows && (base->autograd == NULL || base->autograd->grad_fn == NULL))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   gtorch_impl_is_leaf (impl)
                       ? _ ("%s: a leaf of shape %s that requires grad cannot be changed in place: "
                            "do it with no_grad, or on a clone")
                       : _ ("%s: a view of shape %s of a leaf that requires grad cannot be changed "
                            "in place: do it with no_grad, or on a clone"),
                   op, gtorch_impl_shape_str (impl));
      return FALSE;
    }
  /* If nothing else refers to the storage, no base needs to know of the change. */
  if (impl->is_silent_view && g_atomic_int_get (&impl->storage->ref_count) > 1)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("%s: a view of shape %s that was made with no_grad cannot be changed in "
                      "place where gradients are recorded: its base could not record the "
                      "change"),
                   op, gtorch_impl_shape_str (impl));
      return FALSE;
    }
  return TRUE;
}

static gboolean
is_overwritten (const GTorchOpCall *call, GTorchGradSaves saves, guint i)
{
  return call->inputs[i] != NULL && gtorch_autograd_saves_input (call->op, saves, i)
         && gtorch_impl_is_same_place (call->inputs[0], call->inputs[i]);
}

/* Returns an alias of `values`, a copy of the input, with the place in the graph that the input has before
 * its memory is overwritten. */
static GTorchImpl *
former_new (GTorchImpl *input, GTorchImpl *values)
{
  GTorchEdge edge = { NULL };

  if (gtorch_impl_requires_grad (input))
    {
      edge.node = input->autograd->grad_fn;
      edge.leaf = edge.node == NULL ? input : NULL;
      edge.index = input->autograd->index;
    }
  return gtorch_edge_attach (&edge, gtorch_impl_alias (values));
}

gboolean
gtorch_autograd_begin_in_place (const GTorchOpCall *call, gboolean *records, GTorchImpl ***formers,
                                GError **error)
{
  GTorchImpl *self = call->inputs[0];
  g_autoptr (GTorchImpl) values = NULL;
  const gboolean has_tangents =
      gtorch_forward_is_on () && gtorch_tangents_exist (call->inputs, call->n_inputs);
  gboolean is_needed = FALSE, may_fail;
  GTorchChange mode;
  GTorchGradSaves saves;
  guint i;

  *records = FALSE;
  *formers = NULL;
  if (has_tangents && !gtorch_tangents_begin_in_place (call, error))
    return FALSE;
  for (i = 1; G_UNLIKELY (call->op->writes != NULL) && i < call->n_inputs; i++)
    if (gtorch_call_writes (call, i))
      {
        if (!gtorch_autograd_check_in_place (call->op->name, call->inputs[i], TRUE, error))
          return FALSE;
        if (gtorch_impl_requires_grad (call->inputs[i]))
          {
            g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                         _ ("%s: the tensor of shape %s that it changes was computed from others "
                            "that require grad: detach it"),
                         call->op->name, gtorch_impl_shape_str (call->inputs[i]));
            return FALSE;
          }
      }
  if (self == NULL || self->storage == NULL
      || (!has_tangents && call->op->grad == NULL && !gtorch_impl_requires_grad (self)))
    return TRUE;
  if ((!has_tangents || gtorch_autograd_requires (call->inputs, call->n_inputs))
      && !gtorch_autograd_check_in_place (call->op->name, self, TRUE, error))
    return FALSE;
  *records = TRUE;

  saves = has_tangents ? (GTorchGradSaves){ call->op->saved_inputs, call->op->saved_outputs }
                       : gtorch_autograd_get_saves (call);
  may_fail =
      has_tangents || (gtorch_thread.saved_hooks != NULL && (saves.inputs | saves.outputs) != 0);
  for (i = 0; i < call->n_inputs && !is_needed; i++)
    is_needed = is_overwritten (call, saves, i);
  if (!is_needed && !may_fail)
    return TRUE;
  gtorch_change_to_grad (&mode, FALSE);
  values = gtorch_op_clone (self, error);
  gtorch_change_end (&mode);
  if (values == NULL)
    return FALSE;
  *formers = g_new0 (GTorchImpl *, call->n_inputs);
  for (i = 0; i < call->n_inputs; i++)
    if (call->inputs[i] != NULL)
      (*formers)[i] = (i == 0 && may_fail) || is_overwritten (call, saves, i)
                          ? former_new (call->inputs[i], values)
                          : gtorch_impl_ref (call->inputs[i]);
  for (i = 0; i < call->n_inputs && has_tangents; i++)
    if ((*formers)[i] != call->inputs[i] && call->inputs[i] != NULL
        && !gtorch_tangent_copy ((*formers)[i], call->inputs[i], error))
      {
        gtorch_impl_clear (*formers, call->n_inputs);
        g_clear_pointer (formers, g_free);
        return FALSE;
      }
  return TRUE;
}

/* Returns the tensor that a change of the output is recorded in. */
static GTorchImpl *
recorded_in (GTorchImpl *output)
{
  return output->is_silent_view ? output : base_of (output);
}

void
gtorch_autograd_note_history (GTorchImpl *output, GTorchEdge *edge)
{
  const GTorchAutograd *autograd = recorded_in (output)->autograd;

  *edge = (GTorchEdge){ NULL };
  if (autograd != NULL && autograd->grad_fn != NULL)
    {
      edge->node = gtorch_node_ref (autograd->grad_fn);
      edge->index = autograd->index;
    }
}

gboolean
gtorch_autograd_undo_in_place (const GTorchOpCall *call, const GTorchEdge *edge)
{
  GTorchImpl *output = call->outputs[0];
  GTorchChange mode;
  gboolean success;

  if (edge != NULL)
    {
      GTorchImpl *impl = recorded_in (output);

      if (edge->node != NULL)
        gtorch_node_set_output (edge->node, edge->index, impl);
      else
        gtorch_node_unset_output (impl);
      __atomic_add_fetch (&impl->autograd->history, 1, __ATOMIC_RELEASE);
    }
  if (call->inputs[0] == output)
    return TRUE;
  gtorch_change_to_grad (&mode, FALSE);
  gtorch_change_byte (&mode, &gtorch_thread.no_forward, TRUE);
  success = gtorch_op_copy_inplace (output, call->inputs[0], FALSE, NULL);
  gtorch_change_end (&mode);
  return success;
}

/* Replaces the history of a base. Its views regenerate theirs. */
static void
set_history (GTorchImpl *base, GTorchNode *node, guint index)
{
  gtorch_node_set_output (node, index, base);
  __atomic_add_fetch (&base->autograd->history, 1, __ATOMIC_RELEASE);
}

void
gtorch_autograd_rebase (GTorchImpl *output, GTorchNode *node, guint index)
{
  GTorchImpl *base = base_of (output);
  ViewNode *slices;
  guint i;

  if (base == output || output->is_silent_view)
    {
      set_history (output, node, index);
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
  set_history (base, &slices->node, 0);
  gtorch_node_unref (&slices->node);
  gtorch_autograd_regenerate (output);
}
