/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/gtorch-op-private.h>

G_BEGIN_DECLS

/* A function of the backward pass. It is made when an operation runs that wants a gradient, is owned by the
 * outputs of that operation, and owns what it has saved and the nodes of its inputs (its edges).
 * Nothing
 * points forward, so there is no cycle: outputs are saved as aliases that do not own the node. */
typedef struct _GTorchNode GTorchNode;

/* Where a gradient goes: into input `index` of a node, or, at a leaf, into its grad. */
typedef struct
{
  GTorchNode *node;
  GTorchImpl *leaf;
  guint index;
} GTorchEdge;

typedef struct
{
  /* grads: n_outputs, NULL for a zero. results: n_edges, to be filled with new references. */
  gboolean (*apply) (GTorchNode *self, GTorchImpl *const *grads, GTorchImpl **results,
                     GError **error);
  /* Drops what was saved; also called by destroy. */
  void (*release) (GTorchNode *self);
} GTorchNodeClass;

typedef struct
{
  guint64 id;
  guint index; /* of the output it belongs to */
  gpointer func;
  gpointer user_data;
  GDestroyNotify destroy;
} GTorchHook;

struct _GTorchNode
{
  gint ref_count;
  guint n_edges;
  guint n_outputs;
  gboolean is_released;
  guint64 sequence; /* later nodes run earlier */
  const gchar *name;
  const GTorchNodeClass *klass;
  GTorchEdge *edges;
  GTorchMeta *output_metas;
  GArray *hooks;       /* of GTorchHook, on gradients of outputs; or NULL */
  GPtrArray *retained; /* weak GTorchImpl whose grad is kept, by index; or NULL */
  GTorchNode *next_to_free;
};

struct _GTorchAutograd
{
  gboolean requires_grad; /* as set on a leaf */
  gboolean retains_grad;
  guint index; /* which output of grad_fn */
  GTorchNode *grad_fn;
  GTorchImpl *grad;
  GArray *hooks; /* of a leaf */
  GArray *accumulated_hooks;
  GTorchImpl *base;   /* of a view: whose memory it shows */
  guint base_version; /* of the storage, when grad_fn was made */
  gint64 base_offset;
};

/* --- nodes --- */
GTorchNode *gtorch_node_init (GTorchNode *node, const GTorchNodeClass *klass, const gchar *name,
                              guint n_edges, guint n_outputs);
GTorchNode *gtorch_node_ref (GTorchNode *node);
/* Iterative: a chain of any length is freed without recursion. */
void gtorch_node_unref (GTorchNode *node);
void gtorch_node_set_edge (GTorchNode *node, guint i, GTorchImpl *input);
void gtorch_node_set_output (GTorchNode *node, guint index, GTorchImpl *output);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchNode, gtorch_node_unref)
void gtorch_meta_init (GTorchMeta *meta, const GTorchImpl *impl, gint64 *shape);

/* --- impls --- */
/* Drops impl->autograd. */
void gtorch_autograd_free (GTorchImpl *impl);
GTorchAutograd *gtorch_autograd_ensure (GTorchImpl *impl);
/* Whether a gradient flows to impl; brings a view's grad_fn up to date. */
gboolean gtorch_impl_requires_grad (GTorchImpl *impl);
gboolean gtorch_impl_is_leaf (GTorchImpl *impl);
/* A tensor of gradient brought to the shape and dtype of meta: broadcast dimensions summed. Takes grad. */
GTorchImpl *gtorch_grad_fit (GTorchImpl *grad, const GTorchMeta *meta, const gchar *name,
                             GError **error);

/* --- views and in-place operations --- */
void gtorch_autograd_record_view (GTorchOpCall *call);
/* Before an in-place call: refuses leaves that require grad. If a gradient will be wanted, *original
 * becomes what input 0 was: its place in the graph and, if the gradient needs it, a copy of its
 * values. */
gboolean gtorch_autograd_begin_in_place (const GTorchOpClass *op, GTorchImpl *const *inputs,
                                         guint n_inputs, GTorchImpl **original, GError **error);
/* After it: the output's history becomes that of `node`, also for the tensor it is a view of. */
gboolean gtorch_autograd_rebase (GTorchImpl *output, GTorchNode *node, GTorchImpl *original,
                                 GError **error);
void gtorch_autograd_regenerate (GTorchImpl *view);

/* --- the engine --- */
/* Runs backward from roots. With inputs, their gradients go to results (NULL where unused) and nothing is
 * accumulated; without, leaves accumulate. */
gboolean gtorch_engine_run (GTorchImpl *const *roots, GTorchImpl *const *grads, guint n_roots,
                            GTorchImpl *const *inputs, guint n_inputs, GTorchImpl **results,
                            gboolean retain_graph, gboolean create_graph, GError **error);

typedef GTorchImpl *(*GTorchHookFunc) (GTorchImpl *grad, gpointer user_data);

G_END_DECLS
