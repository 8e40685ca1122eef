/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/device/gtorch-object-list-private.h>
#include <gtorch/tensor/gtorch-tensor-private.h>
#include <gtorch/nn/gtorch-module-members.h>
#include <gtorch/nn/gtorch-module-state.h>
#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

/* A parameter or buffer. */
typedef struct
{
  gchar *name;
  GTorchTensor *tensor; /* NULL: the name is taken, there is none (a Linear without bias) */
  gboolean persistent;
  gboolean is_count; /* never less than 0 */
} GTorchMember;

typedef struct
{
  guint64 id;
  gboolean before;
  GCallback func;
  gpointer user_data;
  GDestroyNotify destroy;
  gint ref_count;
} GTorchModuleHook;

typedef struct
{
  GArray *parameters; /* of GTorchMember */
  GArray *buffers;
  GTorchObjectList *children;
  GPtrArray *child_names; /* as many as children */
  GPtrArray *hooks;       /* of GTorchModuleHook, or NULL */
  GError *error;          /* why it could not be constructed */
  gboolean training;
} GTorchModulePrivate;

GTorchModulePrivate *gtorch_module_get_private (GTorchModule *self);

/* Counts, over all modules, what changes one: members, hooks and the mode. Atomically. */
extern gint gtorch_module_changes;

/* "Linear": the name of the type as a user knows it. */
const gchar *gtorch_module_type_name (gpointer self);

/* Keeps why a module could not be built; reported by its constructor, or when it is first used. Takes
 * the error. */
void gtorch_module_set_error (GTorchModule *self, GError *error);
/* For constructors: takes self, returns it or NULL with its error. */
gpointer gtorch_module_checked (gpointer self, GError **error);

/* For constructed (): an uninitialised parameter of the default dtype and device; NULL (once the module
 * has an error, too) if that failed. Borrowed. */
GTorchTensor *gtorch_module_add_parameter (GTorchModule *self, const gchar *name,
                                           const gint64 *shape, guint n_dims);
/* Takes impl. A count is never negative. */
void gtorch_module_add_buffer (GTorchModule *self, const gchar *name, GTorchImpl *impl,
                               gboolean is_count);
/* FALSE with the error of construction. */
gboolean gtorch_module_is_usable (GTorchModule *self, GError **error);
/* What a vfunc gave, with its error: one in another language may fail without saying why. */
GTorchTensor *gtorch_module_check_output (GTorchModule *self, GTorchTensor *output, GError *local,
                                          GError **error);
/* The registered parameter or buffer number i, borrowed; NULL if it was registered as such. */
GTorchTensor *gtorch_module_nth_parameter (GTorchModule *self, guint i);
GTorchTensor *gtorch_module_nth_buffer (GTorchModule *self, guint i);

static inline GTorchImpl *
gtorch_module_parameter_impl (gpointer self, guint i)
{
  GTorchTensor *tensor = gtorch_module_nth_parameter (self, i);

  return tensor != NULL ? gtorch_tensor_unwrap (tensor) : NULL;
}

static inline GTorchImpl *
gtorch_module_buffer_impl (gpointer self, guint i)
{
  GTorchTensor *tensor = gtorch_module_nth_buffer (self, i);

  return tensor != NULL ? gtorch_tensor_unwrap (tensor) : NULL;
}

/* Puts a child at a position, for containers with numbered children. */
gboolean gtorch_module_insert_child (GTorchModule *self, guint position, GTorchModule *child,
                                     GError **error);
void gtorch_module_remove_child (GTorchModule *self, guint position);

/* Calls func for self and all below, each once, parents first. */
typedef void (*GTorchModuleVisit) (GTorchModule *module, const gchar *path, gpointer user_data);
void gtorch_module_visit (GTorchModule *self, gboolean recurse, GTorchModuleVisit func,
                          gpointer user_data);

/* The class's forward for so many inputs, with the hooks around it. */
GTorchTensor *gtorch_module_call (GTorchModule *self, GTorchTensor **inputs, gsize n_inputs,
                                  GError **error);
/* The hooks as they are now, as one may add or remove some; NULL if there are none. */
GPtrArray *gtorch_module_dup_hooks (GTorchModule *self);
/* The inputs, or what hooks have put in their place. */
GPtrArray *gtorch_module_run_pre_hooks (GTorchModule *self, GPtrArray *hooks, GTorchTensor **inputs,
                                        gsize n_inputs, GError **error);
/* Takes the reference on the output. */
GTorchTensor *gtorch_module_run_hooks (GTorchModule *self, GPtrArray *hooks, GPtrArray *inputs,
                                       GTorchTensor *output, GError **error);

/* Gives impl the elements of data, which has the same shape; PyTorch's `impl.data = data`. */
void gtorch_impl_set_data (GTorchImpl *impl, GTorchImpl *data);
/* The elements on another device (NULL: stay) and of another dtype (NONE: stay); a new reference, maybe
 * on impl itself. */
GTorchImpl *gtorch_impl_to (GTorchImpl *impl, GTorchDevice *device, guint dtype, GError **error);

/* A table that borrows names and tensors; NULL with an error if their numbers differ. */
GHashTable *gtorch_state_from_lists (const gchar *const *names, GTorchTensor **tensors,
                                     gsize n_tensors, GError **error);
/* The tensors of a table; `names` may be NULL. */
GPtrArray *gtorch_state_to_lists (GHashTable *state, gchar ***names);

G_END_DECLS
