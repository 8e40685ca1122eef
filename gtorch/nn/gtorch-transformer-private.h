/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What the modules of transformers share. */

#pragma once

#include <gtorch/base/gtorch-field-private.h>
#include <gtorch/nn/gtorch-module-private.h>

G_BEGIN_DECLS

typedef struct
{
  gint64 d_model, nhead, dim_feedforward;
  gdouble dropout, layer_norm_eps;
  gboolean batch_first, bias;
  GTorchModule *activation; /* or NULL */
} GTorchTransformerSettings;

/* A part of a layer: attention, or the feed-forward part. */
typedef struct
{
  const gchar *attention; /* the child, or NULL */
  const gchar *norm, *dropout;
  GTorchTensor *memory; /* what it attends to, or NULL for itself */
  GTorchTensor *mask, *padding;
  gboolean is_causal;
} GTorchTransformerPart;

/* Reads the property of a child: that of `custom-encoder` is called "encoder", that of `activation-module`
 * "activation". */
void gtorch_transformer_get_child_value (gpointer object, const GTorchField *field, GValue *value);
/* Returns a new reference, or NULL with an error if the child is of another class. */
gpointer gtorch_transformer_get_child (GTorchModule *self, const gchar *name, GType type,
                                       GError **error);

/* --- layers --- */

/* For constructed (): adds the children, or stores an error in the module. */
void gtorch_transformer_build_layer (GTorchModule *self, const GTorchTransformerSettings *settings,
                                     gboolean is_decoder);
GTorchModule *gtorch_transformer_new_norm (gint64 d_model, gdouble eps, gboolean bias,
                                           GError **error);
GTorchTensor *gtorch_transformer_run (GTorchModule *self, GTorchTensor *x,
                                      const GTorchTransformerPart *parts, guint n_parts,
                                      gboolean norm_first, GError **error);

/* --- stacks of layers --- */

/* A number that is greater is a mistake, which would take all memory first. */
#define GTORCH_TRANSFORMER_MOST_LAYERS 65536

void gtorch_transformer_add_layers (GTorchModule *self);
gboolean gtorch_transformer_check_layer (GTorchModule *self, gpointer layer, GType type,
                                         GError **error);
gboolean gtorch_transformer_add_layer (GTorchModule *self, GTorchModule *layer, GError **error);
gboolean gtorch_transformer_add_copies (GTorchModule *self, GTorchModule *layer, gint64 n,
                                        GError **error);
gboolean gtorch_transformer_add_norm (GTorchModule *self, GTorchModule *norm, GError **error);
gint64 gtorch_transformer_count_layers (GTorchModule *self);
/* Returns the layers, or NULL with an error if one is of another class. */
GPtrArray *gtorch_transformer_dup_layers (GTorchModule *self, GType type, GError **error);
/* Normalises the output of the last layer, if there is a norm. */
GTorchTensor *gtorch_transformer_finish (GTorchModule *self, GTorchTensor *x, GError **error);

G_END_DECLS
