/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/autograd/gtorch-autograd-private.h>
#include <gtorch/autograd/gtorch-function-context.h>

G_BEGIN_DECLS

/* A tensor saved for backward. An input gets its place in the graph from the node's edge, an output from
 * the node itself; only other tensors bring their own grad_fn. */
typedef struct
{
  GTorchSaved saved;
  GTorchMeta meta;
  gint64 dims[2 * GTORCH_MAX_DIMS];
  gint input, output; /* the index of the input or output, or -1 */
  GTorchNode *grad_fn;
  guint index;
} GTorchFunctionSaved;

struct _GTorchFunctionContext
{
  GObject parent_instance;
  GTorchNode *node;    /* not owned, since the node owns the context; NULL while forward runs */
  GPtrArray *to_save;  /* GTorchImpl, which a scope cannot release; only while forward runs */
  GPtrArray *dirty;    /* GTorchImpl; only while forward runs */
  GPtrArray *constant; /* GTorchImpl, not differentiable; only while forward runs */
  GTorchFunctionSaved *saved;
  guint n_saved;
  guint n_inputs;
  gboolean *needs;
  gboolean materialize;
  gboolean is_recorded; /* forward was called where gradients are recorded */
};

GTorchFunctionContext *gtorch_function_context_new (GTorchImpl *const *inputs, guint n_inputs);
/* Converts to_save to saved after forward has run. Fails if a hook for saved tensors does. */
gboolean gtorch_function_context_pack (GTorchFunctionContext *self, GTorchNode *node,
                                       GTorchImpl *const *inputs, guint n_inputs,
                                       GTorchImpl *const *outputs, guint n_outputs, GError **error);
/* Releases the tensors of forward, which may own the node. */
void gtorch_function_context_end_forward (GTorchFunctionContext *self);
/* Releases what was saved, with the node's lock if there is a node, which then is released. */
void gtorch_function_context_drop (GTorchFunctionContext *self, GTorchNode *node);

G_END_DECLS
