/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/autograd/gtorch-autograd-private.h>
#include <gtorch/autograd/gtorch-function-context.h>

G_BEGIN_DECLS

/* A tensor kept for backward. What was an input has its place in the graph from the node's edge, what is an
 * output from the node; only something made in between brings its own. */
typedef struct
{
  GTorchSaved saved;
  GTorchMeta meta;
  gint64 dims[2 * GTORCH_MAX_DIMS];
  gint input, output; /* which of them, or -1 */
  GTorchNode *grad_fn;
  guint index;
} GTorchFunctionSaved;

struct _GTorchFunctionContext
{
  GObject parent_instance;
  GTorchNode *node;    /* not owned: it owns the context; NULL while forward runs */
  GPtrArray *to_save;  /* of GTorchTensor, while forward runs */
  GPtrArray *dirty;    /* of GTorchImpl, while forward runs */
  GPtrArray *constant; /* of GTorchImpl, while forward runs: not differentiable */
  GTorchFunctionSaved *saved;
  guint n_saved;
  guint n_inputs;
  gboolean *needs;
  gboolean materialize;
};

GTorchFunctionContext *gtorch_function_context_new (GTorchImpl *const *inputs, guint n_inputs);
/* After forward: to_save becomes saved. */
void gtorch_function_context_pack (GTorchFunctionContext *self, GTorchNode *node,
                                   GTorchImpl *const *inputs, guint n_inputs,
                                   GTorchImpl *const *outputs, guint n_outputs);
/* Lets go of the tensors of forward, which may own the node. */
void gtorch_function_context_end_forward (GTorchFunctionContext *self);
/* TRUE if there was something to drop. Under the node's lock. */
gboolean gtorch_function_context_drop (GTorchFunctionContext *self);

G_END_DECLS
