/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/autograd/gtorch-saved-private.h>
#include <gtorch/base/gtorch-check-private.h>
#include <gtorch/dispatch/gtorch-op-private.h>
#include <gtorch/stream/gtorch-stream-private.h>
#include <gtorch/tensor/gtorch-recorder-private.h>

G_BEGIN_DECLS

/* The target of a gradient: input `index` of a node, or the grad of a leaf. */
typedef struct
{
  GTorchNode *node;
  GTorchImpl *leaf;
  guint index;
} GTorchEdge;

typedef struct
{
  /* Computes the gradients of the inputs. grads has n_outputs elements, NULL for a zero; needs and results
   * have n_edges. results receives new references where needed, NULL for a zero. Fails if the saved values
   * have been released. */
  gboolean (*apply) (GTorchNode *self, GTorchImpl *const *grads, const gboolean *needs,
                     GTorchImpl **results, GError **error);
  /* Releases the saved values, and sets is_released if there were any. */
  void (*release) (GTorchNode *self);
  /* Frees the other members that the class added. */
  void (*finalize) (GTorchNode *self);
} GTorchNodeClass;

/* A device and the stream that was current for it; NULL for the default stream. */
typedef struct
{
  GTorchDevice *device;
  GTorchStream *stream;
} GTorchPlace;

/* The members that few nodes need. */
typedef struct
{
  GTorchPlace *places; /* further devices of operands, with their streams; owned */
  guint n_places;
  GPtrArray *hooks;      /* GTorchHook, on gradients of outputs */
  GTorchImpl **retained; /* for each output, the impl that retains its grad, unowned; or NULL */
  GTorchSite *site;      /* where the operation was called from, while anomalies are searched for */
  gchar *place;          /* the same in the words of the program's language, or NULL */
} GTorchNodeExtra;

/* A node of the backward graph. It is created when a recorded operation runs and is owned by the outputs
 * of that operation; it owns the saved values and the nodes of its inputs (its edges). There are no
 * forward references, so there is no cycle: a saved value is a storage and a description (GTorchSaved),
 * never an impl, since a later in-place operation could give that a history that leads back to the node. */
struct _GTorchNode
{
  gint ref_count;
  gint lock; /* protects the saved values: gtorch_node_lock () */
  guint n_edges;
  guint n_outputs;
  guint64 sequence; /* greater than that of all nodes its edges lead to */
  const gchar *name;
  const GTorchNodeClass *klass;
  GTorchEdge *edges;
  GTorchMeta *output_metas;
  GTorchStream *stream; /* the stream of the forward operation, owned; NULL for the default one */
  GTorchNodeExtra *extra;
  GTorchNode *next_to_free;
  gboolean is_released;
};

/* --- nodes --- */
GTorchNode *gtorch_node_init (GTorchNode *node, const GTorchNodeClass *klass, const gchar *name,
                              guint n_edges, guint n_outputs);
/* Returns a number below the sequence of all nodes that this thread creates from now on. */
guint64 gtorch_node_get_last_sequence (void);
GTorchNode *gtorch_node_ref (GTorchNode *node);
/* Drops a reference. Chains of any length are freed iteratively, without recursion. */
void gtorch_node_unref (GTorchNode *node);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchNode, gtorch_node_unref)
void gtorch_node_set_edge (GTorchNode *node, guint i, GTorchImpl *input);
void gtorch_node_copy_edge (GTorchNode *node, guint i, const GTorchEdge *edge);
/* Makes node the grad_fn of output. */
void gtorch_node_set_output (GTorchNode *node, guint index, GTorchImpl *output);
/* Takes its grad_fn from a tensor that had none before. */
void gtorch_node_unset_output (GTorchImpl *output);
GTorchNodeExtra *gtorch_node_ensure_extra (GTorchNode *node);
/* Adds the current stream of a further device that has an operand of the operation. */
void gtorch_node_add_place (GTorchNode *node, GTorchDevice *device);
/* Returns a new reference to the impl that retains the gradient of this output, or NULL. */
GTorchImpl *gtorch_node_get_retained (GTorchNode *node, guint index);
void gtorch_node_set_retained (GTorchNode *node, guint index, GTorchImpl *impl);
/* Sets the error for a second backward pass through a released node. */
void gtorch_node_error_released (GTorchNode *node, GError **error);
/* Copies the shape to the given memory. */
void gtorch_meta_init (GTorchMeta *meta, const GTorchImpl *impl, gint64 *shape);
/* Leaves the shape where it is: meta may live no longer than impl. */
void gtorch_meta_borrow (GTorchMeta *meta, const GTorchImpl *impl);

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

/* --- the search for anomalies --- */
/* 1: it is on; 2: it looks for NaN, too; otherwise it is off. Accessed atomically. */
extern gint gtorch_anomaly;
void gtorch_anomaly_note_site (GTorchNode *node);
/* Fails if a gradient that the node has computed has NaN. */
gboolean gtorch_anomaly_check (GTorchNode *node, GTorchImpl *const *results, GError **error);
/* Adds where the operation was called from to the message, if that is known. */
void gtorch_anomaly_add_site (GTorchNode *node, GError **error);

/* --- impls --- */
GTorchAutograd *gtorch_autograd_ensure (GTorchImpl *impl);
/* Checks whether requires_grad may be set on the tensor. */
gboolean gtorch_impl_check_requires_grad (GTorchImpl *impl, gboolean requires_grad, GError **error);

/* --- saved tensors --- */
/* The inputs and outputs whose values are needed: one bit each; bit 31 of inputs stands for a list. */
typedef struct
{
  guint32 inputs;
  guint32 outputs;
} GTorchGradSaves;

/* Indexed by op id: what the gradient of each input needs. An entry is NULL if only the needs of all
 * gradients together are known. */
extern const GTorchGradSaves *const gtorch_op_grad_saves[];
/* Returns the values that the wanted gradients of this call need. */
GTorchGradSaves gtorch_autograd_get_saves (const GTorchOpCall *call);
gboolean gtorch_autograd_saves_input (const GTorchOpClass *op, GTorchGradSaves saves, guint i);
/* Connects `unpacked`, which has no autograd, to the target of the edge; returns the leaf itself if it
 * still has that memory. Takes the reference. */
GTorchImpl *gtorch_edge_attach (const GTorchEdge *edge, GTorchImpl *unpacked);

/* --- views and in-place operations --- */
/* Makes the same checks as gtorch_autograd_begin_in_place (), for an impl that other code writes to. `op`
 * is named in the error message. */
gboolean gtorch_autograd_check_in_place (const gchar *op, GTorchImpl *impl, gboolean wanted,
                                         GError **error);
/* Records an in-place call after it ran: output `index` of `node` becomes the history of the output, and
 * of the tensor it is a view of. Edge `index` of the node leads to the former history. */
void gtorch_autograd_rebase (GTorchImpl *output, GTorchNode *node, guint index);
/* Finds the node that a call in place would replace, a new reference or NULL. */
void gtorch_autograd_note_history (GTorchImpl *output, GTorchEdge *edge);
/* Gives the output of a call in place the values that it had before and, unless edge is NULL, that
 * history. */
gboolean gtorch_autograd_undo_in_place (const GTorchOpCall *call, const GTorchEdge *edge);

/* --- hooks --- */
/* Is called with a gradient. Returns a replacement in `changed`, or leaves that NULL. */
typedef gboolean (*GTorchHookFunc) (GTorchImpl *grad, gpointer user_data, GTorchImpl **changed,
                                    GError **error);
typedef gboolean (*GTorchAccumulatedFunc) (GTorchImpl *leaf, gpointer user_data, GError **error);
/* Is called with the gradients that come to a node, or that it has computed from those of its outputs, and
 * may replace them. */
typedef gboolean (*GTorchNodeHookFunc) (GTorchNode *node, GTorchImpl **grads, guint n_grads,
                                        GTorchImpl *const *of_outputs, guint n_of_outputs,
                                        gpointer user_data, GError **error);

/* Adds a hook with one of the two functions. `destroy` may be NULL. */
guint64 gtorch_hooks_add (GPtrArray **hooks, guint index, GTorchHookFunc func,
                          GTorchAccumulatedFunc accumulated, gpointer user_data,
                          GDestroyNotify destroy);
/* Adds a hook of a node, which is called before or after its backward. */
guint64 gtorch_hooks_add_of_node (GPtrArray **hooks, gboolean is_after, GTorchNodeHookFunc func,
                                  gpointer user_data, GDestroyNotify destroy);
gboolean gtorch_hooks_run_of_node (GPtrArray **hooks, gboolean is_after, GTorchNode *node,
                                   GTorchImpl **grads, guint n_grads, GTorchImpl *const *of_outputs,
                                   guint n_of_outputs, GError **error);
gboolean gtorch_hooks_remove (guint64 id);
gboolean gtorch_hooks_run (GPtrArray **hooks, guint index, GTorchImpl **grad, GError **error);
/* Adds what the hooks own; of a hook of a tensor, `data` is its data. */
void gtorch_hooks_add_references (GPtrArray *list, GTorchReferences *references);
void gtorch_tensor_hook_add_references (gpointer data, GTorchReferences *references);
void gtorch_node_hook_add_references (gpointer data, GTorchReferences *references);
/* Checks the gradients that a hook of `name` has given for those before, of tensors or NULL. Takes both
 * lists, and returns the one to go on with. */
GPtrArray *gtorch_hook_take_gradients (const gchar *name, GPtrArray *given, GPtrArray *before,
                                       const gchar *what, GError **error);
/* Adds what a node of a function owns; does nothing for others. */
void gtorch_function_node_add_references (GTorchNode *node, GTorchReferences *references);
gboolean gtorch_hooks_run_accumulated (GPtrArray **hooks, GTorchImpl *leaf, GError **error);
void gtorch_hooks_free (GPtrArray *hooks);

/* --- tangents: gtorch-tangent.c and gtorch-forward.c --- */
GTorchTangent *gtorch_tangent_ref (GTorchTangent *self);
/* Does nothing for NULL. */
void gtorch_tangent_unref (GTorchTangent *self);
/* Lets impl share the tangent; NULL for none. */
void gtorch_tangent_attach (GTorchImpl *impl, GTorchTangent *tangent);
/* Gives impl a tangent of this value, which has its dtype, shape and device. */
void gtorch_tangent_set (GTorchImpl *impl, GTorchImpl *value);
/* Returns a new reference to the tangent of impl, NULL without one. That of a view may be a view of its
 * base's, which fails for some views. */
gboolean gtorch_tangent_of (GTorchImpl *impl, GTorchTangent **tangent, GError **error);
/* Lets impl have no tangent although it depends on one: what asks for it gets the error. */
void gtorch_tangent_refuse (GTorchImpl *impl, const gchar *message);
/* The same for the value of the tangent. Fails for a tensor whose tangent is refused. */
gboolean gtorch_tangent_get (GTorchImpl *impl, GTorchImpl **value, GError **error);
/* Gives impl a copy of the tangent that other has, if any. */
gboolean gtorch_tangent_copy (GTorchImpl *impl, GTorchImpl *other, GError **error);
/* Takes the values of all tangents away. */
void gtorch_tangents_end (void);
/* Returns a tensor like value with the strides of impl, so that a view of one is like that of the other. */
GTorchImpl *gtorch_tangent_lay_out (GTorchImpl *value, const GTorchImpl *impl, GError **error);
/* Replaces the elements of the tangent of impl; NULL for zeros. */
gboolean gtorch_tangent_write (GTorchImpl *impl, GTorchImpl *value, GError **error);
gboolean gtorch_tangents_exist (GTorchImpl *const *inputs, guint n_inputs);
/* Tells whether any input requires a gradient while recording is on, as gtorch_autograd_wanted () does
 * without tangents. */
gboolean gtorch_autograd_requires (GTorchImpl *const *inputs, guint n_inputs);
/* Gives the outputs of the call, which has run and is recorded, their tangents. */
gboolean gtorch_tangents_compute (GTorchOpCall *call, GError **error);
/* Refuses a call in place that changes a tensor with a tangent beside its first one. */
gboolean gtorch_tangents_begin_in_place (const GTorchOpCall *call, GError **error);

/* --- gradients --- */
/* Converts a gradient to the shape and dtype of meta, summing over broadcast dimensions. Takes grad. */
GTorchImpl *gtorch_grad_fit (GTorchImpl *grad, const GTorchMeta *meta, GError **error);
/* The layout of elements in memory, in elements from a common start. */
typedef struct
{
  const gint64 *shape;
  const gint64 *strides;
  guint n_dims;
  gint64 offset;
} GTorchLayout;

/* Computes the gradient of a tensor with layout `base` from that of a view of it. Elements of the view
 * that share memory are summed; elements of the base that share memory get equal parts. Differentiable. */
GTorchImpl *gtorch_grad_of_view (GTorchImpl *grad, const GTorchLayout *view,
                                 const GTorchLayout *base, GError **error);
/* Computes the elements of the view from those of the base; elements that share memory are summed.
 * Differentiable. */
GTorchImpl *gtorch_grad_in_view (GTorchImpl *grad, const GTorchLayout *view,
                                 const GTorchLayout *base, GError **error);
/* Tells whether impl is the only user of its memory, so that it may be written to or given away. */
gboolean gtorch_grad_is_ours (const GTorchImpl *impl);
/* Adds grad to the grad of impl. With may_take, grad itself becomes the grad if gtorch_grad_is_ours (). */
gboolean gtorch_grad_accumulate (GTorchImpl *impl, GTorchImpl *grad, gboolean may_take,
                                 GError **error);
/* Zeroes the grad, if there is one. A grad with a graph, which leads back to impl, is replaced. */
gboolean gtorch_grad_set_zero (GTorchImpl *impl, GError **error);
/* Notifies of GTorchTensor:grad, if somebody listens, where functions of the program run. */
void gtorch_grad_notify (GTorchImpl *impl);
/* The functions of the recorder, each in the file that it belongs to. */
void gtorch_tensor_install_autograd (GObjectClass *klass);
void gtorch_autograd_destroy (GTorchAutograd *autograd);
void gtorch_autograd_add_references (GTorchAutograd *autograd, GTorchReferences *references);
void gtorch_autograd_regenerate (GTorchImpl *view);
gboolean gtorch_autograd_record (GTorchOpCall *call, GError **error);
void gtorch_autograd_record_view (GTorchOpCall *call);
gboolean gtorch_autograd_begin_in_place (const GTorchOpCall *call, gboolean *records,
                                         GTorchImpl ***formers, GError **error);
gboolean gtorch_autograd_differentiate (GTorchImpl *const *outputs, GTorchImpl *const *grads,
                                        guint n_outputs, GTorchImpl *const *inputs, guint n_inputs,
                                        GTorchImpl **results, GError **error);
void gtorch_grad_drop_graph (GTorchImpl *impl);
/* Returns a gradient that may be handed to the user: grad, or a copy. */
GTorchImpl *gtorch_grad_show (GTorchImpl *grad, gboolean may_take, GError **error);

/* --- the streams of a backward pass --- */
/* The current streams of a thread. */
typedef struct
{
  GTorchStream *streams[GTORCH_MAX_DEVICES]; /* owned */
} GTorchThreadStreams;

void gtorch_thread_streams_take (GTorchThreadStreams *self);
void gtorch_thread_streams_apply (const GTorchThreadStreams *self);
/* Makes the streams current until the end of the change. */
void gtorch_thread_streams_change_to (const GTorchThreadStreams *self, GTorchChange *change);
void gtorch_thread_streams_clear (GTorchThreadStreams *self);
/* Tells whether the thread has chosen a stream for any device. */
gboolean gtorch_thread_has_streams (void);

typedef struct
{
  GTorchThreadStreams callers;
  GTorchDevice *device; /* the device of all roots, or NULL */
  GPtrArray *used;      /* the streams of the pass that are not the caller's; owned */
  GPtrArray *held;      /* storages of gradients that several streams read */
  GTorchFence *fence;   /* a fence behind the work of `fenced` so far, recorded on demand */
  GTorchStream *fenced;
} GTorchPassStreams;

void gtorch_pass_streams_init (GTorchPassStreams *self, GTorchImpl *const *roots, guint n_roots);
void gtorch_pass_streams_clear (GTorchPassStreams *self);
/* Checks that the forward and backward passes of the node are in the same capture, or both in none. */
gboolean gtorch_pass_streams_check_capture (GTorchPassStreams *self, GTorchNode *node,
                                            GError **error);
/* Makes the stream (NULL: the default one) current for the duration of the change. */
gboolean gtorch_pass_streams_enter (GTorchPassStreams *self, GTorchChange *change,
                                    GTorchDevice *device, GTorchStream *stream, GError **error);
/* Makes later work on `next` wait for the current stream, which computed the gradient. */
gboolean gtorch_pass_streams_order (GTorchPassStreams *self, GTorchImpl *grad, GTorchStream *next,
                                    GError **error);
/* Invalidates the fence, because the stream that computed the last gradient gets new work. */
void gtorch_pass_streams_forget_fence (GTorchPassStreams *self);
/* Makes the caller's streams wait for all others. */
gboolean gtorch_pass_streams_join (GTorchPassStreams *self, GError **error);

/* --- the engine --- */
typedef struct
{
  GTorchImpl *const *roots;
  GTorchImpl *const *grads; /* may be NULL */
  guint n_roots;
  /* With inputs, their gradients are stored in results (NULL where unused) and nothing is accumulated;
   * without inputs, leaves accumulate. */
  GTorchImpl *const *inputs;
  guint n_inputs;
  GTorchImpl **results;
  gboolean retain_graph;
  gboolean create_graph;
  GCancellable *cancellable;
} GTorchBackward;

gboolean gtorch_engine_run (const GTorchBackward *backward, GError **error);

/* The innermost backward pass that this thread runs, or calls a function for. */
typedef struct _GTorchPass GTorchPass;

GTorchPass *gtorch_engine_get_pass (void);
/* Returns whether the pass computes gradients of inputs that its caller named. */
gboolean gtorch_pass_has_inputs (const GTorchPass *pass);
/* Calls the function at the end of the pass, with its data. */
void gtorch_pass_at_end (GTorchPass *pass, GDestroyNotify func, gpointer data);

/* Calls a hook or a function of another language: directly, or, if this thread runs a backward pass for
 * another one, in the main context of that thread. */
void gtorch_engine_call_user (void (*func) (gpointer data), gpointer data);
/* Sets the main context in which this thread calls user functions; returns the former one. */
GMainContext *gtorch_engine_set_context (GMainContext *context);

G_END_DECLS
