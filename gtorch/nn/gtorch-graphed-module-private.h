/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-graphed-module.h>
#include <gtorch/nn/gtorch-graphed-private.h>

G_BEGIN_DECLS

/* What the row of modules looked like when it was captured. */
typedef struct
{
  GTorchGraphed *graphed;
  GArray *training; /* of gboolean: the mode of each module below */
} GTorchGraphedMode;

struct _GTorchGraphedModule
{
  GTorchModule parent_instance;
  GTorchModule *module; /* or */
  GTorchGraphedFunc func;
  gpointer user_data;
  GDestroyNotify destroy;

  GPtrArray *samples; /* of GTorchImpl */
  guint n_warmups;
  gboolean allow_unused;
  gboolean both_modes;

  GTorchGraphedMode modes[2];
  guint n_modes;
  GPtrArray *members;         /* of GTorchTensor: parameters and buffers below, as in the capture */
  GPtrArray *storages;        /* theirs */
  gint seen_changes;          /* of gtorch_module_changes, when `current` was found */
  GTorchGraphedMode *current; /* NULL: the present one was not captured */
};

/* What is below now. */
typedef struct
{
  GPtrArray *members;
  GArray *training;
  GTorchModule *hooked;
} GTorchGraphedBelow;

/* "GraphedModule(Linear)", interned. */
const gchar *gtorch_graphed_module_name (GTorchGraphedModule *self);
void gtorch_graphed_below_init (GTorchGraphedBelow *below, GTorchGraphedModule *self);
void gtorch_graphed_below_clear (GTorchGraphedBelow *below);
gboolean gtorch_graphed_check_hooks (GTorchGraphedModule *self, GTorchGraphedBelow *below,
                                     GError **error);
/* Without graphs. */
GPtrArray *gtorch_graphed_call_module (gpointer data, GTorchTensor **inputs, gsize n_inputs,
                                       GError **error);
GPtrArray *gtorch_graphed_call_func (gpointer data, GTorchTensor **inputs, gsize n_inputs,
                                     GError **error);
void gtorch_graphed_module_drop_modes (GTorchGraphedModule *self);

G_END_DECLS
