/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/dispatch/gtorch-op-private.h>
#include <gtorch/stream/gtorch-stream-private.h>

G_BEGIN_DECLS

/* A function of the backward pass. It is made when an operation runs that wants a gradient, is owned by the
 * outputs of that operation, and owns what it has saved and the nodes of its inputs (its edges). Nothing
 * points forward, so there is no cycle: what is saved is memory and a description (GTorchSaved), never an
 * impl, which an in-place operation could later give a history that leads back here. */
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
  /* grads: n_outputs, NULL for a zero. needs, results: n_edges; results are filled with new references
   * where needed, NULL for a zero. Fails if what was saved has been released. */
  gboolean (*apply) (GTorchNode *self, GTorchImpl *const *grads, const gboolean *needs,
                     GTorchImpl **results, GError **error);
  /* Drops the saved tensors, and sets is_released if there were any. */
  void (*release) (GTorchNode *self);
  /* Drops the rest of what the class added. */
  void (*finalize) (GTorchNode *self);
} GTorchNodeClass;

/* The stream that was current for a device; NULL: the default one. */
typedef struct
{
  GTorchDevice *device;
  GTorchStream *stream;
} GTorchPlace;

/* What few nodes have. */
typedef struct
{
  GTorchPlace *places; /* further devices of operands, and their streams; owned */
  guint n_places;
  GPtrArray *hooks;      /* of GTorchHook, on gradients of outputs */
  GTorchImpl **retained; /* for each output the impl whose grad is kept, not owned, or NULL */
} GTorchNodeExtra;

struct _GTorchNode
{
  gint ref_count;
  gint lock; /* for what was saved: gtorch_node_lock () */
  guint n_edges;
  guint n_outputs;
  guint64 sequence; /* above that of all nodes that edges lead to */
  const gchar *name;
  const GTorchNodeClass *klass;
  GTorchEdge *edges;
  GTorchMeta *output_metas;
  GTorchStream *stream; /* the forward's, owned; NULL for the default one */
  GTorchNodeExtra *extra;
  GTorchNode *next_to_free;
  gboolean is_released;
};

struct _GTorchAutograd
{
  GTorchNode *grad_fn;
  guint index;          /* which output of grad_fn */
  guint8 requires_grad; /* as set on a leaf */
  guint8 retains_grad;  /* of a non-leaf */
  GMutex lock;          /* for grad, and for making grad_fn of a view anew */
  GTorchImpl *grad;
  GTorchStream *grad_stream; /* that wrote to grad last, owned; NULL for the default one */
  GPtrArray *hooks;          /* of a leaf */
  GTorchImpl *base;          /* of a view: whose memory it shows */
  guint history;      /* of a base: how often writing in place has given it a new one; atomically */
  guint base_history; /* of a view: that of its base, when grad_fn was made; atomically */
};

/* --- nodes --- */
GTorchNode *gtorch_node_init (GTorchNode *node, const GTorchNodeClass *klass, const gchar *name,
                              guint n_edges, guint n_outputs);
/* Nodes that this thread makes from now on have a higher one. */
guint64 gtorch_node_get_last_sequence (void);
GTorchNode *gtorch_node_ref (GTorchNode *node);
/* Iterative: a chain of any length is freed without recursion. */
void gtorch_node_unref (GTorchNode *node);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchNode, gtorch_node_unref)
void gtorch_node_set_edge (GTorchNode *node, guint i, GTorchImpl *input);
void gtorch_node_copy_edge (GTorchNode *node, guint i, const GTorchEdge *edge);
/* Makes node the history of output. */
void gtorch_node_set_output (GTorchNode *node, guint index, GTorchImpl *output);
GTorchNodeExtra *gtorch_node_ensure_extra (GTorchNode *node);
/* Notes the stream of a further device, that the operation has an operand on. */
void gtorch_node_add_place (GTorchNode *node, GTorchDevice *device);
/* A new reference to the impl that keeps the gradient of this output, if there still is one. */
GTorchImpl *gtorch_node_get_retained (GTorchNode *node, guint index);
void gtorch_node_set_retained (GTorchNode *node, guint index, GTorchImpl *impl);
/* The error of going through a node a second time. */
void gtorch_node_error_released (GTorchNode *node, GError **error);
void gtorch_meta_init (GTorchMeta *meta, const GTorchImpl *impl, gint64 *shape);

static inline void
gtorch_node_lock (GTorchNode *node)
{
  while (__atomic_exchange_n (&node->lock, 1, __ATOMIC_ACQUIRE) != 0)
    g_thread_yield ();
}

static inline void
gtorch_node_unlock (GTorchNode *node)
{
  __atomic_store_n (&node->lock, 0, __ATOMIC_RELEASE);
}

/* --- impls --- */
/* Drops impl->autograd. */
void gtorch_autograd_free (GTorchImpl *impl);
void gtorch_autograd_destroy (GTorchAutograd *autograd);
GTorchAutograd *gtorch_autograd_ensure (GTorchImpl *impl);
/* Whether a gradient flows to impl; brings a view's grad_fn up to date. */
gboolean gtorch_impl_requires_grad (GTorchImpl *impl);
gboolean gtorch_impl_is_leaf (GTorchImpl *impl);
/* Whether it may be said so of the tensor. */
gboolean gtorch_impl_check_requires_grad (GTorchImpl *impl, gboolean requires_grad, GError **error);

/* --- saved tensors --- */
typedef struct
{
  GTorchStorage *storage; /* NULL: nothing saved */
  gint64 offset;
  gint64 *strides;
  guint version;
  guint8 is_number;
} GTorchSaved;

/* strides has room for the dimensions of impl. */
void gtorch_saved_init (GTorchSaved *saved, GTorchImpl *impl, gint64 *strides);
/* Which values are needed, a bit for each input (31: the list), and output. */
typedef struct
{
  guint32 inputs;
  guint32 outputs;
} GTorchGradSaves;

/* By the id of the op: what the gradient of each input needs. NULL where only what all of them need is
 * known. */
extern const GTorchGradSaves *const gtorch_op_grad_saves[];
/* What the gradients need that are wanted of this call. */
GTorchGradSaves gtorch_autograd_get_saves (const GTorchOpCall *call);
gboolean gtorch_autograd_saves_input (const GTorchOpClass *op, GTorchGradSaves saves, guint i);
/* What was saved, without autograd. The error says "its <what> <i>". */
GTorchImpl *gtorch_saved_unpack (const GTorchSaved *saved, const GTorchMeta *meta,
                                 const gchar *what, guint i, GError **error);
/* Gives `unpacked`, which has no autograd, the place in the graph that the edge leads to: the leaf itself if
 * it still shows that memory. Takes the reference. */
GTorchImpl *gtorch_edge_attach (const GTorchEdge *edge, GTorchImpl *unpacked);

/* --- views and in-place operations --- */
void gtorch_autograd_record_view (GTorchOpCall *call);
/* Before an in-place call that wants a gradient: refuses leaves that require grad. *records tells whether the
 * call is to be recorded. If the gradient needs values that the call overwrites, *formers becomes an array of
 * all inputs as they were, with their places in the graph; else it is NULL. */
gboolean gtorch_autograd_begin_in_place (const GTorchOpCall *call, gboolean *records,
                                         GTorchImpl ***formers, GError **error);
/* The same checks alone, for impl that somebody else writes to; `op` is named in the message. */
gboolean gtorch_autograd_check_in_place (const gchar *op, GTorchImpl *impl, gboolean wanted,
                                         GError **error);
/* After it: the output's history becomes output `index` of `node`, whose edge `index` is the output's former
 * self; also for the tensor it is a view of. */
void gtorch_autograd_rebase (GTorchImpl *output, GTorchNode *node, guint index);
void gtorch_autograd_regenerate (GTorchImpl *view);
/* Has the base of a view a newer history than the view? */
static inline gboolean
gtorch_autograd_is_outdated (const GTorchAutograd *view)
{
  const GTorchAutograd *base = view->base->autograd;

  return base != NULL
         && __atomic_load_n (&view->base_history, __ATOMIC_ACQUIRE)
                != __atomic_load_n (&base->history, __ATOMIC_ACQUIRE);
}

/* --- hooks --- */
/* Gives another gradient in `changed`, or leaves that NULL. */
typedef gboolean (*GTorchHookFunc) (GTorchImpl *grad, gpointer user_data, GTorchImpl **changed,
                                    GError **error);
typedef gboolean (*GTorchAccumulatedFunc) (GTorchImpl *leaf, gpointer user_data, GError **error);

/* One of the two functions is given. destroy may be NULL. */
guint64 gtorch_hooks_add (GPtrArray **hooks, guint index, GTorchHookFunc func,
                          GTorchAccumulatedFunc accumulated, gpointer user_data,
                          GDestroyNotify destroy);
gboolean gtorch_hooks_remove (guint64 id);
gboolean gtorch_hooks_run (GPtrArray **hooks, guint index, GTorchImpl **grad, GError **error);
gboolean gtorch_hooks_run_accumulated (GPtrArray **hooks, GTorchImpl *leaf, GError **error);
void gtorch_hooks_free (GPtrArray *hooks);

/* --- gradients --- */
/* A gradient brought to the shape and dtype of meta: broadcast dimensions summed. Takes grad. */
GTorchImpl *gtorch_grad_fit (GTorchImpl *grad, const GTorchMeta *meta, GError **error);
/* Where elements lie in memory, in elements from some place. */
typedef struct
{
  const gint64 *shape;
  const gint64 *strides;
  guint n_dims;
  gint64 offset;
} GTorchLayout;

/* The gradient of what lies as `base` says, from that of a view of it: elements of the view that show one
 * place are summed, those of the base that share one have equal parts of it. It can be differentiated. */
GTorchImpl *gtorch_grad_of_view (GTorchImpl *grad, const GTorchLayout *view,
                                 const GTorchLayout *base, GError **error);
/* What the view shows, from the base's elements: those that share a place are summed. It can be
 * differentiated. */
GTorchImpl *gtorch_grad_in_view (GTorchImpl *grad, const GTorchLayout *view,
                                 const GTorchLayout *base, GError **error);
/* Nobody else sees the memory of impl, so that it may be written to or given away. */
gboolean gtorch_grad_is_ours (const GTorchImpl *impl);
/* Adds grad to the grad of impl. With may_take it becomes the grad itself where it is ours. */
gboolean gtorch_grad_accumulate (GTorchImpl *impl, GTorchImpl *grad, gboolean may_take,
                                 GError **error);
/* Makes the grad zero, if there is one. One with a graph, which leads back to impl, is replaced. */
gboolean gtorch_grad_set_zero (GTorchImpl *impl, GError **error);
/* Drops the grad if it has a graph, which leads back to impl. */
void gtorch_grad_drop_graph (GTorchImpl *impl);
/* A gradient that can be shown: grad, or a copy. */
GTorchImpl *gtorch_grad_show (GTorchImpl *grad, gboolean may_take, GError **error);

/* --- streams of a pass --- */
/* The current streams of a thread. */
typedef struct
{
  GTorchStream *streams[GTORCH_MAX_DEVICES]; /* owned */
} GTorchThreadStreams;

void gtorch_thread_streams_take (GTorchThreadStreams *self);
void gtorch_thread_streams_apply (const GTorchThreadStreams *self);
/* The same until the end of the change. */
void gtorch_thread_streams_change_to (const GTorchThreadStreams *self, GTorchChange *change);
void gtorch_thread_streams_clear (GTorchThreadStreams *self);
/* Has the thread chosen any? */
gboolean gtorch_thread_has_streams (void);

typedef struct
{
  GTorchThreadStreams callers;
  GTorchDevice *device; /* of all roots, or NULL */
  GPtrArray *used;      /* that are not the caller's; owned */
  GPtrArray *held;      /* storages of gradients that several streams read */
  GTorchFence *fence;   /* behind the work of `fenced` until now, once it was needed */
  GTorchStream *fenced;
} GTorchPassStreams;

void gtorch_pass_streams_init (GTorchPassStreams *self, GTorchImpl *const *roots, guint n_roots);
void gtorch_pass_streams_clear (GTorchPassStreams *self);
/* Are forward and backward of the node in the same capture, or in none? */
gboolean gtorch_pass_streams_check_capture (GTorchPassStreams *self, GTorchNode *node,
                                            GError **error);
/* The change makes the stream (NULL: the default one) current. */
gboolean gtorch_pass_streams_enter (GTorchPassStreams *self, GTorchChange *change,
                                    GTorchDevice *device, GTorchStream *stream, GError **error);
/* What is put on `next` from now on comes after what the current stream has, which computed the gradient. */
gboolean gtorch_pass_streams_order (GTorchPassStreams *self, GTorchImpl *grad, GTorchStream *next,
                                    GError **error);
/* The stream that computed the last gradient goes on. */
void gtorch_pass_streams_forget_fence (GTorchPassStreams *self);
/* The caller's streams wait for the others. */
gboolean gtorch_pass_streams_join (GTorchPassStreams *self, GError **error);

/* --- the engine --- */
typedef struct
{
  GTorchImpl *const *roots;
  GTorchImpl *const *grads; /* or NULL */
  guint n_roots;
  /* With inputs, their gradients go to results (NULL where unused) and nothing is accumulated; without,
   * leaves accumulate. */
  GTorchImpl *const *inputs;
  guint n_inputs;
  GTorchImpl **results;
  gboolean retain_graph;
  gboolean create_graph;
  GCancellable *cancellable;
} GTorchBackward;

gboolean gtorch_engine_run (const GTorchBackward *backward, GError **error);

/* Where hooks and functions of other languages run: here, or, while this thread goes backward for another
 * one, in the main context of that one. */
void gtorch_engine_call_user (void (*func) (gpointer data), gpointer data);
/* Sets that context for this thread, gives the former one. */
GMainContext *gtorch_engine_set_context (GMainContext *context);

G_END_DECLS
