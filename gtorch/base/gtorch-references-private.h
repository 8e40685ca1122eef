/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-inner-types-private.h>

G_BEGIN_DECLS

typedef struct _GTorchNode GTorchNode;

/* Around a change of what gtorch-references.c reads: members of modules, items of lists, the node of a tensor
 * that had another one. Nothing that a program may know is referenced or unreferenced
 * inside: a binding may wait there for the collector, which waits for the lock. */
void gtorch_references_lock (void);
void gtorch_references_unlock (void);

/* One reference that the object, tensor or node being looked at owns. NULL is nothing. */
void gtorch_references_add_object (GTorchReferences *self, gpointer object);
void gtorch_references_add_impl (GTorchReferences *self, GTorchImpl *impl);
void gtorch_references_add_node (GTorchReferences *self, GTorchNode *node);
/* The data of a hook, if it is the language's. */
void gtorch_references_add_data (GTorchReferences *self, gpointer user_data,
                                 GDestroyNotify destroy);

/* Is there a hook or a function of the program in any graph? Without one nothing is looked for there. */
gboolean gtorch_autograd_has_data (void);
void gtorch_autograd_count_data (gint n);

/* Each calls those for what it owns. */
void gtorch_module_add_references (gpointer module, GTorchReferences *references);
void gtorch_lr_scheduler_add_references (gpointer scheduler, GTorchReferences *references);
void gtorch_optimizer_add_references (gpointer optimizer, GTorchReferences *references);
void gtorch_param_group_add_references (gpointer group, GTorchReferences *references);
void gtorch_autograd_add_references (GTorchAutograd *autograd, GTorchReferences *references);
void gtorch_node_add_references (GTorchNode *node, GTorchReferences *references);
void gtorch_function_node_add_references (GTorchNode *node, GTorchReferences *references);
/* data: of a hook of gtorch_tensor_register_hook () and the like */
void gtorch_tensor_hook_add_references (gpointer data, GTorchReferences *references);
void gtorch_hooks_add_references (GPtrArray *list, GTorchReferences *references);

G_END_DECLS
