/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/autograd/gtorch-saved-hooks.h>
#include <gtorch/device/gtorch-choice-private.h>
#include <gtorch/dispatch/gtorch-op-private.h>
#include <gtorch/tensor/gtorch-recorder-private.h>

G_BEGIN_DECLS

/* What operations and functions save for their backward pass, and hooks that keep something else in its
 * place. */

/* Hooks of a thread; the first member of each kind of them. */
typedef struct _GTorchSavedHooks GTorchSavedHooks;

typedef struct
{
  /* Packs a value, which has no autograd and is saved by the operation of that name; *packed stays NULL if
   * it is to be saved as without hooks. */
  gboolean (*pack) (GTorchSavedHooks *self, GTorchImpl *value, const gchar *op, gpointer *packed,
                    GError **error);
  /* Returns the value that was packed, a new reference. Called without any lock, by
   * gtorch_engine_call_user (). */
  GTorchImpl *(*unpack) (GTorchSavedHooks *self, gpointer packed, GError **error);
  /* Releases what was packed. */
  void (*drop) (GTorchSavedHooks *self, gpointer packed);
  /* Frees the other members that the kind added. */
  void (*finalize) (GTorchSavedHooks *self);
} GTorchSavedHooksClass;

struct _GTorchSavedHooks
{
  gint ref_count;
  const GTorchSavedHooksClass *klass;
};

/* Initialises hooks that were allocated with g_malloc0 (), with one reference. */
void gtorch_saved_hooks_init (GTorchSavedHooks *self, const GTorchSavedHooksClass *klass);
GTorchSavedHooks *gtorch_saved_hooks_ref (GTorchSavedHooks *self);
void gtorch_saved_hooks_unref (gpointer self);
/* Makes the hooks, or none with NULL, those of this thread until the end of the change. */
void gtorch_change_to_saved_hooks (GTorchChange *change, GTorchSavedHooks *hooks);

/* Fails if hooks are refused in this thread. */
gboolean gtorch_saved_hooks_are_allowed (const gchar *op, GError **error);
/* Makes the hooks those of this thread. Takes the reference. */
GTorchSavedTensorsGuard *gtorch_saved_tensors_guard_new (GTorchSavedHooks *hooks);

/* What hooks have packed. */
typedef struct
{
  gint ref_count;
  GTorchSavedHooks *hooks;
  gpointer value;
} GTorchPacked;

GTorchPacked *gtorch_packed_ref (GTorchPacked *self);
/* May call the program: no lock may be held. */
void gtorch_packed_unref (GTorchPacked *self);
/* Returns the value, without autograd. The error message calls it "its <what> <i>". May call the program. */
GTorchImpl *gtorch_packed_unpack (GTorchPacked *self, const GTorchMeta *meta, const gchar *what,
                                  guint i, GError **error);

typedef struct
{
  union
  {
    GTorchStorage *storage; /* NULL if nothing is saved */
    GTorchPacked *packed;   /* with is_packed */
  };
  GTorchTangent *tangent; /* or NULL */
  gint64 offset;
  gint64 *strides;
  guint version;
  guint8 is_number;
  guint8 is_packed;
} GTorchSaved;

static inline gboolean
gtorch_saved_is_set (const GTorchSaved *saved)
{
  return saved->storage != NULL;
}

/* Saves impl for an operation. `strides` must have room for its dimensions. Fails if a hook does; numbers
 * are not packed. */
gboolean gtorch_saved_init (GTorchSaved *saved, GTorchImpl *impl, const gchar *op, gint64 *strides,
                            GError **error);
/* Releases a value without hooks, and returns what is packed: the caller releases that by
 * gtorch_packed_unref () when it holds no lock, because that may call the program. */
GTorchPacked *gtorch_saved_steal (GTorchSaved *saved);
/* Returns the saved value, which is not packed, without autograd. */
GTorchImpl *gtorch_saved_unpack (const GTorchSaved *saved, const GTorchMeta *meta,
                                 const gchar *what, guint i, GError **error);

G_END_DECLS
