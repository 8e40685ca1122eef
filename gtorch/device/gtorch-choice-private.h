/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/device/gtorch-thread-private.h>
#include <gtorch/base/gtorch-internal-private.h>

G_BEGIN_DECLS

/* Scoped changes of a thread's settings: its current stream, whether gradients are recorded, and so on. The
 * settings are in gtorch_thread, where any code may read them.
 *
 * A change remembers the former value of each place that it writes to and restores it when it ends. Changes
 * may end in any order: the changes of a thread form a list, youngest first, and a change that ends before
 * a younger one passes its remembered value on to the next younger change of the same place. So the
 * youngest change decides, and when all of them have ended everything is as before the first.
 *
 * Code that calls back into the program while a setting is changed must use a change instead of restoring
 * the old value by hand, since the callback may leave a guard behind that ends later. */

typedef struct
{
  gpointer place; /* in gtorch_thread: a byte, or a pointer */
  gpointer value;
  gboolean is_byte;
  GDestroyNotify drop; /* frees the value if the place owns it; else NULL */
} GTorchFormer;

typedef struct _GTorchGuard GTorchGuard;

struct _GTorchChange
{
  GTorchChange *older;
  GTorchGuard *guard; /* the guard that contains this change, or NULL */
  guint n_formers;
  GTorchFormer *formers;
  GTorchFormer few[3];
};

/* Adds the change to the list of this thread. The caller owns its memory and must end it in the same
 * thread, at the same address. */
static inline void
gtorch_change_begin (GTorchChange *self)
{
  self->older = gtorch_thread.changes;
  self->guard = NULL;
  self->n_formers = 0;
  self->formers = self->few;
  gtorch_thread.changes = self;
}

/* Writes to a place in gtorch_thread. */
void gtorch_change_byte (GTorchChange *self, guint8 *place, guint8 value);
void gtorch_change_device (GTorchChange *self, GTorchDevice **place, GTorchDevice *device);
/* Takes ownership of the value; drop frees it, for places that own what they point to. */
void gtorch_change_pointer (GTorchChange *self, gpointer place, gpointer value,
                            GDestroyNotify drop);
/* Makes the device the current one of its type and the current device of the thread. */
void gtorch_change_current (GTorchChange *self, GTorchDevice *device);
void gtorch_change_end (GTorchChange *self);

/* What gtorch_thread.no_grad becomes: inference mode lasts longer than the grad mode within it. */
static inline guint8
gtorch_no_grad_for (gboolean enabled)
{
  return (gtorch_thread.no_grad & GTORCH_INFERENCE) | (enabled ? 0 : GTORCH_NO_GRAD);
}

/* A change of whether gradients are recorded, which lasts until gtorch_change_end (). */
static inline void
gtorch_change_to_grad (GTorchChange *self, gboolean enabled)
{
  gtorch_change_begin (self);
  gtorch_change_byte (self, &gtorch_thread.no_grad, gtorch_no_grad_for (enabled));
}

/* --- guards --- */

/* A change that the program holds: the first member of each of the boxed types. It ends with
 * gtorch_guard_end () or with the last reference. If that happens in another thread, the change lasts until
 * its own thread calls gtorch_guards_settle (): when a guard begins or ends, when the program reads or sets
 * what guards change, and in each operation that may be recorded. */
struct _GTorchGuard
{
  gint ref_count; /* references that the program holds */
  gint n_holders; /* 2: the program, and the thread while the change lasts */
  gint state;
  GTorchThread *thread;
  void (*ended) (void); /* called in the guard's thread after the change has ended; or NULL */
  GTorchChange change;
};

/* Returns a new guard of `size` bytes whose change has begun. */
gpointer gtorch_guard_new (gsize size, void (*ended) (void));
gpointer gtorch_guard_ref (gpointer guard);
void gtorch_guard_unref (gpointer guard);
void gtorch_guard_end (gpointer guard);

/* The number of guards that were ended in a thread not their own and still last; atomic. */
extern gint gtorch_n_strays GTORCH_INTERNAL;
void gtorch_guards_end_strays (void);

/* Ends those guards of this thread that another thread wanted to end. */
static inline void
gtorch_guards_settle (void)
{
  if (G_UNLIKELY (__atomic_load_n (&gtorch_n_strays, __ATOMIC_RELAXED) != 0))
    gtorch_guards_end_strays ();
}

/* Arranges that everything gtorch_thread owns is freed when this thread ends. */
void gtorch_thread_clean_up_later (void);
/* Registers a function that is called at the end of each thread that called gtorch_thread_clean_up_later
 * (). For constructors. */
void gtorch_thread_add_cleanup (void (*func) (void));

G_END_DECLS
