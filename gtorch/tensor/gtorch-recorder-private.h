/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-impl-private.h>

G_BEGIN_DECLS

/* What a tensor knows about its gradient, and the functions by which tensors and operations reach what
 * records them. */

typedef struct _GTorchNode GTorchNode;

/* The tangent of a tensor, shared by the tensor and by what saved it. The end of the level takes the value
 * away, also from tangents that have become parts of circles. */
typedef struct _GTorchTangent GTorchTangent;

struct _GTorchTangent
{
  gint ref_count;
  GTorchImpl *value; /* NULL after the end of the level; protected by a lock of gtorch-tangent.c */
  GTorchTangent *next, *former; /* all tangents of the level */
};

struct _GTorchAutograd
{
  GTorchNode *grad_fn;
  guint index;          /* the output of grad_fn */
  guint8 requires_grad; /* set by the user on a leaf */
  guint8 retains_grad;  /* set by the user on a non-leaf */
  guint8 is_primal;     /* of a view: has no part of its base's tangent */
  GMutex lock;          /* protects grad, and replacing the grad_fn of a view */
  GTorchImpl *grad;
  GTorchStream
      *grad_stream;   /* the last stream that wrote to grad, owned; NULL for the default one */
  GPtrArray *hooks;   /* of a leaf */
  GTorchImpl *base;   /* of a view: the tensor whose memory it shares */
  guint history;      /* of a base: how often in-place writes have replaced its history; atomic */
  guint base_history; /* of a view: the base's history count when grad_fn was made; atomic */
  GTorchTangent *tangent; /* of a forward-mode derivative, or NULL */
};

/* The folder autograd/ fills this in when the library is loaded. */
typedef struct
{
  /* Installs the properties of GTorchTensor that are about gradients. */
  void (*install_properties) (GObjectClass *klass);
  void (*destroy) (GTorchAutograd *autograd);
  /* Adds what the history and the hooks own. */
  void (*add_references) (GTorchAutograd *autograd, GTorchReferences *references);
  /* Drops the grad if it has a graph, since that leads back to impl. */
  void (*drop_graph) (GTorchImpl *impl);
  /* Updates the grad_fn of a view whose base has a newer history. */
  void (*regenerate) (GTorchImpl *view);
  /* Sets the grad_fn of the outputs after a successful call. */
  gboolean (*record) (GTorchOpCall *call, GError **error);
  void (*record_view) (GTorchOpCall *call);
  /* Prepares an in-place call that may need a gradient: refuses leaves that require grad. *records tells
   * whether the call is to be recorded. If the gradient needs values that the call overwrites, *formers
   * becomes an array of all inputs with their former values and places in the graph; else it is NULL. */
  gboolean (*begin_in_place) (const GTorchOpCall *call, gboolean *records, GTorchImpl ***formers,
                              GError **error);
  /* Computes the gradients of the outputs with respect to the inputs, which are recorded themselves: for a
   * gradient function that gets its own derivatives from another form of its operation. results gets new
   * references, NULL for zero. */
  gboolean (*differentiate) (GTorchImpl *const *outputs, GTorchImpl *const *grads, guint n_outputs,
                             GTorchImpl *const *inputs, guint n_inputs, GTorchImpl **results,
                             GError **error);
  /* Lets a tensor without history, which nothing else uses, require a gradient: an operand of such a form. */
  void (*require) (GTorchImpl *impl);
} GTorchRecorder;

extern const GTorchRecorder *gtorch_recorder;

/* Tells whether the base of a view has a newer history than the view. */
static inline gboolean
gtorch_autograd_is_outdated (const GTorchAutograd *view)
{
  const GTorchAutograd *base = view->base->autograd;

  return base != NULL
         && __atomic_load_n (&view->base_history, __ATOMIC_ACQUIRE)
                != __atomic_load_n (&base->history, __ATOMIC_ACQUIRE);
}

/* Tells whether impl, or the tensor that it is a view of, has a tangent. */
gboolean gtorch_impl_has_tangent (const GTorchImpl *impl);
/* Tells whether a gradient flows to impl; updates an outdated grad_fn of a view. */
gboolean gtorch_impl_requires_grad (GTorchImpl *impl);
gboolean gtorch_impl_is_leaf (GTorchImpl *impl);
/* Adds one reference to impl that the thing being looked at owns; see base/gtorch-references-private.h. */
void gtorch_references_add_impl (GTorchReferences *references, GTorchImpl *impl);

G_END_DECLS
