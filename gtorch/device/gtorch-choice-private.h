/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/device/gtorch-thread-private.h>

G_BEGIN_DECLS

/* What a thread has chosen for a while: its current stream, whether gradients are recorded, and so on.
 * All of it is in gtorch_thread, and whoever only wants to know reads it there.
 *
 * A change remembers what was there before, for each place that it writes to, and gives it back at its
 * end. Changes may end in any order: the ones of a thread form a list, the last one first, and a change
 * that is not the last one hands what it remembers to the next younger change of the same place. So the
 * youngest change decides, and when all of them have ended everything is as it was before the first.
 *
 * Whoever calls a function of the program while something is changed must use a change instead of
 * writing the old value back by hand, since the function may leave a guard behind that ends later. */

typedef struct
{
  gpointer place; /* in gtorch_thread: a byte, or a pointer */
  gpointer value;
  gboolean is_byte;
  GDestroyNotify drop; /* of a pointer that the place owns, or NULL */
} GTorchFormer;

typedef struct _GTorchGuard GTorchGuard;

struct _GTorchChange
{
  GTorchChange *older;
  GTorchGuard *guard; /* that this is part of, or NULL */
  guint n_formers;
  GTorchFormer *formers;
  GTorchFormer few[3];
};

/* Adds the change to the list of this thread. It is the caller's memory, and must end in the same
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
/* Takes the value; drop: for places that own what they point to. */
void gtorch_change_pointer (GTorchChange *self, gpointer place, gpointer value,
                            GDestroyNotify drop);
/* The device is the current one of its type, and the thread's. */
void gtorch_change_current (GTorchChange *self, GTorchDevice *device);
void gtorch_change_end (GTorchChange *self);

/* A change of whether gradients are recorded, which lasts until gtorch_change_end (). */
static inline void
gtorch_change_to_grad (GTorchChange *self, gboolean enabled)
{
  gtorch_change_begin (self);
  gtorch_change_byte (self, &gtorch_thread.no_grad, !enabled);
}

/* --- guards --- */

/* A change that belongs to the program: the first member of each of the boxed types. It ends by
 * gtorch_guard_end () or with the last reference. If that happens in another thread the change lasts
 * until its own thread calls gtorch_guards_settle (), which is where guards begin and end, where the
 * program asks for or sets what they change, and in each operation that may have to be recorded. */
struct _GTorchGuard
{
  gint ref_count; /* of the program */
  gint n_holders; /* the program, and the thread while the change lasts */
  gint state;
  GTorchThread *thread;
  void (*ended) (void); /* in the thread, afterwards; or NULL */
  GTorchChange change;
};

/* A new guard of `size` bytes, with a change that was begun. */
gpointer gtorch_guard_new (gsize size, void (*ended) (void));
gpointer gtorch_guard_ref (gpointer guard);
void gtorch_guard_unref (gpointer guard);
void gtorch_guard_end (gpointer guard);

/* How many guards have ended in a thread that is not theirs and still last; atomically. */
extern gint gtorch_n_strays G_GNUC_INTERNAL;
void gtorch_guards_end_strays (void);

/* Ends those of this thread. */
static inline void
gtorch_guards_settle (void)
{
  if (G_UNLIKELY (__atomic_load_n (&gtorch_n_strays, __ATOMIC_RELAXED) != 0))
    gtorch_guards_end_strays ();
}

/* Has what the thread holds dropped when it ends. */
void gtorch_thread_clean_up_later (void);
/* Has func called, too, at the end of each thread that the former was called in. For constructors. */
void gtorch_thread_add_cleanup (void (*func) (void));

G_END_DECLS
