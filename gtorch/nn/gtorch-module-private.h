/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/device/gtorch-object-list-private.h>
#include <gtorch/tensor/gtorch-tensor-private.h>
#include <gtorch/nn/gtorch-module-members.h>
#include <gtorch/nn/gtorch-module-state.h>
#include <gtorch/autograd/gtorch-function.h>
#include <gtorch/nn/gtorch-module.h>
#include <gtorch/profiler/gtorch-profiler-private.h>

G_BEGIN_DECLS

/* A parameter or buffer. */
typedef struct
{
  gchar *name;
  /* NULL if the name is registered without a tensor (a Linear without bias) */
  GTorchTensor *tensor;
  gboolean persistent;
  gboolean is_count; /* its value is never negative */
  /* how it is computed, then without a tensor; or NULL */
  struct _GTorchComputed *computed;
} GTorchMember;

typedef enum
{
  GTORCH_MODULE_HOOK_BEFORE, /* forward */
  GTORCH_MODULE_HOOK_AFTER,
  GTORCH_MODULE_HOOK_BACKWARD_BEFORE,
  GTORCH_MODULE_HOOK_BACKWARD_AFTER,
} GTorchModuleHookKind;

typedef struct
{
  guint64 id;
  GTorchModuleHookKind kind;
  gboolean always_call; /* after a forward that failed, too */
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
  GPtrArray *hooks;       /* of GTorchModuleHook, or NULL; the pointer is accessed atomically */
  GError *error;          /* the error of its construction */
  gboolean training;      /* accessed atomically */
  gint is_lazy;           /* its tensors wait for a size; accessed atomically */
  gboolean is_numbered;   /* children that are called by their positions are renamed with these */
  guint64 serial; /* in profiles; 0: not called while one was recorded; accessed atomically */
  GWeakRef outer; /* a module that has this one; see gtorch_module_be_inside () */
} GTorchModulePrivate;

GTorchModulePrivate *gtorch_module_get_private (GTorchModule *self);

/* Counts changes of members, hooks and modes in all modules. Accessed atomically. */
extern gint gtorch_module_changes;

/* `place` keeps which module has a member: a module or a parameter. Another one takes its place only if the
 * former does not exist any more, or has lost the member. */
void gtorch_module_be_inside (GWeakRef *place, GTorchModule *outer, gpointer member);
/* A call of the module in profiles, until the end of the block. */
GTorchProfileScope gtorch_module_profile_scope (GTorchModule *self);
/* Returns the path of the member from the outermost module on; NULL if it is in none. */
gchar *gtorch_module_dup_path (GWeakRef *place, gpointer member);
/* Of a parameter, or NULL, that was registered. */
void gtorch_parameter_join (GTorchParameter *self, GTorchModule *module, const gchar *name);

/* Tells the live lists of members that there was a change in some module. */
void gtorch_member_models_look (void);

/* Returns the type's name without namespace: "Linear". */
const gchar *gtorch_module_type_name (gpointer self);

/* Stores the error of a construction; the constructor reports it, or the first use. Takes ownership of
 * the error. */
void gtorch_module_set_error (GTorchModule *self, GError *error);
/* For constructors: takes self, returns it or NULL with its error. */
gpointer gtorch_module_checked (gpointer self, GError **error);

/* For constructed (): adds an uninitialised parameter of the default dtype and device. Returns NULL if
 * that failed or the module already has an error. A new reference. */
GTorchTensor *gtorch_module_add_parameter (GTorchModule *self, const gchar *name,
                                           const gint64 *shape, guint n_dims);
/* Adds a parameter without elements. */
GTorchTensor *gtorch_module_add_uninitialized (GTorchModule *self, const gchar *name);
/* Takes ownership of impl. A count is never negative. */
void gtorch_module_add_buffer (GTorchModule *self, const gchar *name, GTorchImpl *impl,
                               gboolean is_count);
/* Returns FALSE with the error of the construction, or that of a property that was set later. */
gboolean gtorch_module_is_usable (GTorchModule *self, GError **error);
/* Checks the result of a virtual function: one in another language may fail without setting an error. */
GTorchTensor *gtorch_module_check_output (GTorchModule *self, GTorchTensor *output, GError *local,
                                          GError **error);

/* Other threads may change the members of a module at any time. Their lists, the names of the children and
 * the hooks are guarded by the lock of the list of children, whose header says what may be done meanwhile;
 * what uses a member has a reference to it. */
void gtorch_module_lock (GTorchModule *self);
void gtorch_module_unlock (GTorchModule *self);
/* Adds the members and the hooks. */
void gtorch_module_add_references (gpointer module, GTorchReferences *references);
/* Around a change: takes gtorch_references_lock (), too. */
void gtorch_module_begin_change (GTorchModule *self);
void gtorch_module_end_change (GTorchModule *self);

/* Return a new reference to the registered parameter or buffer number i; NULL if it was registered as
 * such, or if it could not be computed. */
GTorchTensor *gtorch_module_dup_parameter (GTorchModule *self, guint i);
GTorchTensor *gtorch_module_dup_buffer (GTorchModule *self, guint i);
GTorchImpl *gtorch_module_dup_buffer_impl (gpointer self, guint i);
/* Gets the parameter number i, a new reference; NULL if it was registered as such. Fails if it is computed,
 * and that failed. */
gboolean gtorch_module_take_parameter (gpointer self, guint i, GTorchImpl **impl, GError **error);
/* Does the class of the module have a tensor of this name? Layers find theirs by position. */
gboolean gtorch_module_owns (GTorchModule *self, const gchar *name);
/* Drops what a member refers to. */
void gtorch_member_clear (gpointer member);
/* Returns the member of a list of these; NULL if there is none. With the lock held. */
GTorchMember *gtorch_members_find (GArray *members, const gchar *name);
/* Returns a copy of the parameters or buffers, of GTorchMember, with references. */
GArray *gtorch_module_dup_members (GTorchModule *self, gboolean buffers);
/* Returns a copy of the list of children, and their names, unless that is NULL. */
GPtrArray *gtorch_module_dup_children (GTorchModule *self, gchar ***names);

/* Inserts a child at a position, or at the end if that is NULL, for containers with numbered children.
 * Negative positions count from the end. */
gboolean gtorch_module_insert_child (GTorchModule *self, const gint *position, GTorchModule *child,
                                     GError **error);
/* For extra_repr (): a line for each parameter, with its name, dtype, size and, unless that is the CPU, its
 * device. */
gchar *gtorch_module_describe_parameters (GTorchModule *self);
/* Adds a parameter whose name is the number of parameters, or the next one that is no name yet. */
void gtorch_module_append_parameter (GTorchModule *self, GTorchParameter *parameter);
gboolean gtorch_module_remove_child (GTorchModule *self, gint position, GError **error);

/* Goes through self and its descendants, those that are there several times too. Before the children
 * of a module it calls enter, which returns whether to look at them and at the module's end; after
 * them it calls leave, which returns FALSE with an error to end the walk. Both may be NULL. The path
 * is NULL unless it is wanted. */
typedef gboolean (*GTorchModuleEnter) (GTorchModule *module, const gchar *path, gpointer user_data);
typedef gboolean (*GTorchModuleLeave) (GTorchModule *module, gpointer user_data, GError **error);
gboolean gtorch_module_walk (GTorchModule *self, gboolean with_paths, GTorchModuleEnter enter,
                             GTorchModuleLeave leave, gpointer user_data, GError **error);
/* Calls func for self and all descendants, each once, parents first. */
typedef void (*GTorchModuleVisit) (GTorchModule *module, const gchar *path, gpointer user_data);
void gtorch_module_visit (GTorchModule *self, gboolean recurse, GTorchModuleVisit func,
                          gpointer user_data);
/* Does so for those that are not in `seen`, which gets a reference to each. */
void gtorch_module_visit_unseen (GTorchModule *self, gboolean with_paths, GHashTable *seen,
                                 GTorchModuleVisit func, gpointer user_data);

/* Calls compute with the hooks around it, which may replace the inputs by another number of them. */
typedef GTorchTensor *(*GTorchModuleCompute) (GTorchModule *self, GTorchTensor **inputs,
                                              gsize n_inputs, gpointer data, GError **error);
GTorchTensor *gtorch_module_call_by (GTorchModule *self, GTorchTensor **inputs, gsize n_inputs,
                                     GTorchModuleCompute compute, gpointer data, GError **error);
/* Sets the error of a module that does not take so many inputs. Returns NULL. */
GTorchTensor *gtorch_module_refuse_inputs (GTorchModule *self, gsize n_inputs, GError **error);
/* Calls the class's forward or forward_many with the hooks around it. */
GTorchTensor *gtorch_module_call (GTorchModule *self, GTorchTensor **inputs, gsize n_inputs,
                                  GError **error);
/* Returns a copy of the list of hooks, since hooks may add or remove some; NULL if there are none. */
GPtrArray *gtorch_module_dup_hooks (GTorchModule *self);
/* Returns the inputs, possibly replaced by hooks. */
GPtrArray *gtorch_module_run_pre_hooks (GTorchModule *self, GPtrArray *hooks, GTorchTensor **inputs,
                                        gsize n_inputs, GError **error);
/* Takes ownership of the output. */
GTorchTensor *gtorch_module_run_hooks (GTorchModule *self, GPtrArray *hooks, GPtrArray *inputs,
                                       GTorchTensor *output, GError **error);
/* Calls the hooks from a position on that are called after errors, too. */
void gtorch_module_run_always (GTorchModule *self, GPtrArray *hooks, guint from,
                               GTorchTensor **inputs, gsize n_inputs, GTorchTensor *output);
GTorchModuleHook *gtorch_module_hook_new (GTorchModuleHookKind kind, gboolean always_call,
                                          GCallback func, gpointer user_data,
                                          GDestroyNotify destroy);
/* The hooks of all modules; the second appends a reference to each. */
gboolean gtorch_module_has_global_hooks (void);
void gtorch_module_add_global_hooks (GPtrArray *to);
guint64 gtorch_module_add_hook (GTorchModule *self, GTorchModuleHookKind kind, gboolean prepend,
                                gboolean always_call, GCallback func, gpointer user_data,
                                GDestroyNotify destroy);
GTorchModuleHook *gtorch_module_hook_ref (GTorchModuleHook *hook);
void gtorch_module_hook_unref (gpointer hook);
/* Returns the functions that call those of the hooks that belong to the backward pass; NULL if there is none.
 * */
GTorchFunction *gtorch_module_make_backward_hooks (GTorchModule *self, GPtrArray *hooks,
                                                   GTorchFunction **of_outputs);
/* Puts tensors, if one of them requires grad, through such a function. */
gboolean gtorch_module_apply_hooks (GTorchFunction *function, GPtrArray *tensors, GError **error);

/* Returns a module with the same settings and copies of the tensors. Fails for a class that is defined in
 * another language. */
gpointer gtorch_module_copy (gpointer self, GError **error);
/* Returns the module itself if it has no parameters and buffers, or a copy. */
GTorchModule *gtorch_module_dup_stateless (GTorchModule *self, GError **error);

/* Returns the elements on another device (NULL: unchanged) and with another dtype (NONE: unchanged); a
 * new reference, possibly to impl itself. */
GTorchImpl *gtorch_impl_to (GTorchImpl *impl, GTorchDevice *device, guint dtype, GError **error);

/* Returns a table that borrows names and tensors. Returns NULL with an error if their numbers differ. */
GHashTable *gtorch_state_from_lists (const gchar *const *names, GTorchTensor **tensors,
                                     gsize n_tensors, GError **error);
/* Returns the tensors of a table; `names` may be NULL. */
GPtrArray *gtorch_state_to_lists (GHashTable *state, gchar ***names);

/* Of the data of a tensor that is in the place of a parameter for a time: that one, which lists have. */
GQuark gtorch_module_stands_for_quark (void);

G_END_DECLS
