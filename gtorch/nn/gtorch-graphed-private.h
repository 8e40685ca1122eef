/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/graph/gtorch-cuda-graph.h>
#include <gtorch/memory/gtorch-memory-pool.h>
#include <gtorch/stream/gtorch-stream-private.h>
#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

/* The computation of one callable in one mode, as two graphs: forward and, if gradients are possible,
 * backward.
 *
 * Callables that are captured together form a group and share memory: forward passes are captured in the
 * order of the callables, then backward passes in the reverse order. Later captures reuse memory that
 * earlier ones have freed. A replay of a callable therefore overwrites the values that it and all later
 * ones in the sequence have saved for backward, and their outputs and gradients, if those were captured
 * later. Each remembers whether its saved values are intact, and storages that are visible outside are
 * marked when their memory is overwritten. */
typedef struct _GTorchGraphed GTorchGraphed;

typedef struct
{
  gint ref_count;
  GTorchDevice *device;
  GMutex lock;          /* protects everything below, and the members' state of their memory */
  GPtrArray *members;   /* borrowed, in the order of the capture */
  GTorchStream *stream; /* the stream of the last replay */
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
  gint64 **strides;    /* strides of the samples */
  gboolean *wants;     /* whether each input required grad */

  guint n_leaves; /* other tensors that get gradients: parameters */
  GTorchImpl **leaves;
  gchar **leaf_names;
  GTorchStorage **leaf_storages;

  guint n_outputs;
  GTorchImpl **outputs;
  GTorchImpl **grad_outputs; /* NULL where an output has no gradient */
  GTorchImpl **grads;        /* those of inputs, then of leaves; NULL where there is none */

  /* these are protected by the group's lock */
  guint64 generation;          /* the number of forward replays */
  gboolean is_saved;           /* the values saved by the last replay are intact */
  const gchar *overwritten_by; /* the name of the callable that overwrote them, interned */
  GPtrArray *shown_outputs;    /* storages that are visible outside; borrowed */
  GPtrArray *shown_grads;
};

/* The arguments of a capture. */
typedef struct
{
  const gchar *name;
  GPtrArray *(*call) (gpointer data, GTorchTensor **inputs, gsize n_inputs, GError **error);
  gpointer data;
  GTorchImpl *const *samples;
  guint n_samples;
  GTorchModule *module; /* the module, whose buffers the warm-up must restore; or NULL */
  guint n_warmups;
  gboolean allow_unused;
} GTorchGraphedSpec;

/* Warms up and captures all callables. results: n new references. */
gboolean gtorch_graphed_capture (const GTorchGraphedSpec *specs, guint n, GTorchDevice *device,
                                 GTorchMemoryPool *pool, GTorchGraphed **results, GError **error);
GTorchGraphed *gtorch_graphed_ref (GTorchGraphed *self);
void gtorch_graphed_unref (GTorchGraphed *self);

/* Replays the graph. Returns an array of n_outputs new impls, with a history if a gradient is needed. */
GTorchImpl **gtorch_graphed_call (GTorchGraphed *self, GTorchImpl *const *inputs, guint n_inputs,
                                  GError **error);

G_END_DECLS
