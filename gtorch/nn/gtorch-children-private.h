/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What containers of modules have in common: they are lists of their children, which may be called by their
 * positions. */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

/* Implements GListModel by the children of a module. */
void gtorch_children_list_model_init (GListModelInterface *iface);
/* For init (): forwards the changes of the list. Numbered children get the names of their positions. */
void gtorch_children_init (GTorchModule *self, gboolean are_numbered);
/* Appends modules. Fails if one of them is no module. */
gboolean gtorch_children_append (GTorchModule *self, GTorchModule **modules, gsize n_modules,
                                 GError **error);

G_END_DECLS
