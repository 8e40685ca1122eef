/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-graphed-module.h>
#include <gtorch/nn/gtorch-graphed-private.h>

G_BEGIN_DECLS

/* The state of the module tree at its capture. */
typedef struct
{
  GTorchGraphed *graphed;
  GArray *training; /* of gboolean: the mode of each module in the tree */
} GTorchGraphedMode;

struct _GTorchGraphedModule
{
  GTorchModule parent_instance;
  GTorchModule *module; /* or a function */
  GTorchGraphedFunc func;
  gpointer user_data;
  GDestroyNotify destroy;

  GPtrArray *samples; /* of GTorchImpl */
  guint n_warmups;
  gboolean allow_unused;
  gboolean both_modes;

  GTorchGraphedMode modes[2];
  guint n_modes;
  /* of GTorchImpl, NULL where there was none: parameters and buffers of the tree at the capture */
  GPtrArray *members;
  GPtrArray *storages;        /* the storages of the members */
  gint seen_changes;          /* the value of gtorch_module_changes when `current` was set */
  GTorchGraphedMode *current; /* NULL: the present mode was not captured */
};

/* Returns the present state of the tree. */
typedef struct
{
  GPtrArray *members; /* of GTorchImpl, NULL where there is none; owned, as `hooked` */
  GArray *training;
  GTorchModule *hooked;
} GTorchGraphedBelow;

/* Returns "GraphedModule(Linear)", interned. */
const gchar *gtorch_graphed_module_name (GTorchGraphedModule *self);
void gtorch_graphed_below_init (GTorchGraphedBelow *below, GTorchGraphedModule *self);
void gtorch_graphed_below_clear (GTorchGraphedBelow *below);
gboolean gtorch_graphed_check_hooks (GTorchGraphedModule *self, GTorchGraphedBelow *below,
                                     GError **error);
/* Calls the module without graphs. */
GPtrArray *gtorch_graphed_call_module (gpointer data, GTorchTensor **inputs, gsize n_inputs,
                                       GError **error);
GPtrArray *gtorch_graphed_call_func (gpointer data, GTorchTensor **inputs, gsize n_inputs,
                                     GError **error);
void gtorch_graphed_module_drop_modes (GTorchGraphedModule *self);

G_END_DECLS
