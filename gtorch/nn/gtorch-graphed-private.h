/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/graph/gtorch-cuda-graph.h>
#include <gtorch/memory/gtorch-memory-pool.h>
#include <gtorch/stream/gtorch-stream-private.h>
#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

/* What one callable computes in one mode, as two graphs: forward and, if a gradient can be wanted, backward.
 *
 * Those that are captured together form a group and share memory: forwards are captured in the order of the
 * callables, then backwards in the reverse order. What a capture has dropped, later ones use. A replay of a
 * callable therefore destroys what itself and all behind it in the row have saved for backward, and what
 * their outputs and gradients hold where those were captured later. Each remembers whether its saved values
 * are there, and storages that were given away are marked when their memory gets other values. */
typedef struct _GTorchGraphed GTorchGraphed;

typedef struct
{
  gint ref_count;
  GTorchDevice *device;
  GMutex lock;          /* of everything below, and of what members say of memory */
  GPtrArray *members;   /* borrowed, in the order of the capture */
  GTorchStream *stream; /* of the last replay */
} GTorchGraphedGroup;

struct _GTorchGraphed
{
  gint ref_count;
  const gchar *name; /* interned */
  GTorchGraphedGroup *group;
  guint position;

  GTorchCUDAGraph *forward;
  GTorchCUDAGraph *backward; /* NULL: no output can have a gradient */
  gboolean is_inference;     /* captured with the grad mode off */

  guint n_inputs;
  GTorchImpl **inputs; /* the placeholders */
  gint64 **strides;    /* of the samples */
  gboolean *wants;     /* did they require grad? */

  guint n_leaves; /* what else gets gradients: parameters */
  GTorchImpl **leaves;
  gchar **leaf_names;
  GTorchStorage **leaf_storages;

  guint n_outputs;
  GTorchImpl **outputs;
  GTorchImpl **grad_outputs; /* NULL where an output has no gradient */
  GTorchImpl **grads;        /* of inputs, then of leaves; NULL where there is none */

  /* under the group's lock */
  guint64 generation;          /* counts the replays of forward */
  gboolean is_saved;           /* what the last of them saved is still there */
  const gchar *overwritten_by; /* why not, interned */
  GPtrArray *shown_outputs;    /* storages that others hold; borrowed */
  GPtrArray *shown_grads;
};

/* How to call it, for the capture. */
typedef struct
{
  const gchar *name;
  GPtrArray *(*call) (gpointer data, GTorchTensor **inputs, gsize n_inputs, GError **error);
  gpointer data;
  GTorchImpl *const *samples;
  guint n_samples;
  GTorchModule *module; /* or NULL: whose buffers warming up leaves alone */
  guint n_warmups;
  gboolean allow_unused;
} GTorchGraphedSpec;

/* Warms all up and captures them. results: n new references. */
gboolean gtorch_graphed_capture (const GTorchGraphedSpec *specs, guint n, GTorchDevice *device,
                                 GTorchMemoryPool *pool, GTorchGraphed **results, GError **error);
GTorchGraphed *gtorch_graphed_ref (GTorchGraphed *self);
void gtorch_graphed_unref (GTorchGraphed *self);

/* Replays; an array of n_outputs new impls, with a history if a gradient is wanted. */
GTorchImpl **gtorch_graphed_call (GTorchGraphed *self, GTorchImpl *const *inputs, guint n_inputs,
                                  GError **error);

G_END_DECLS
