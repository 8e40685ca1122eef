/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Scoped changes of a thread's settings, and the guards by which programs hold them. */

#include "config.h"

#include "device/gtorch-choice-private.h"

#include <string.h>

__thread GTorchThread gtorch_thread;

gint gtorch_n_strays;

/* --- changes --- */

static inline gpointer
exchange (gpointer place, gboolean is_byte, gpointer value)
{
  gpointer former;

  if (is_byte)
    {
      former = GUINT_TO_POINTER (*(guint8 *) place);
      *(guint8 *) place = GPOINTER_TO_UINT (value);
    }
  else
    {
      former = *(gpointer *) place;
      *(gpointer *) place = value;
    }
  return former;
}

/* Returns the record of the next younger change of the same place, or NULL. */
static GTorchFormer *
find_heir (GTorchChange *self, gpointer place)
{
  GTorchFormer *heir = NULL;
  GTorchChange *at;
  guint i;

  for (at = gtorch_thread.changes; at != self; at = at->older)
    for (i = 0; i < at->n_formers; i++)
      if (at->formers[i].place == place)
        heir = &at->formers[i];
  return heir;
}

/* Writes to the place, or into the record of the next younger change, which writes it back at its end.
 * Returns the former value. */
static inline gpointer
put (GTorchChange *self, gpointer place, gboolean is_byte, gpointer value)
{
  GTorchFormer *heir = G_LIKELY (gtorch_thread.changes == self) ? NULL : find_heir (self, place);
  gpointer former;

  if (G_LIKELY (heir == NULL))
    return exchange (place, is_byte, value);
  former = heir->value;
  heir->value = value;
  return former;
}

static inline void
change (GTorchChange *self, GTorchFormer former)
{
  if (G_UNLIKELY (self->n_formers == G_N_ELEMENTS (self->few)))
    {
      self->formers = g_new (GTorchFormer, G_N_ELEMENTS (self->few) + GTORCH_MAX_DEVICES);
      memcpy (self->formers, self->few, sizeof self->few);
    }
  former.value = put (self, former.place, former.is_byte, former.value);
  self->formers[self->n_formers++] = former;
}

void
gtorch_change_byte (GTorchChange *self, guint8 *place, guint8 value)
{
  change (self, (GTorchFormer){ place, GUINT_TO_POINTER (value), TRUE, NULL });
}

void
gtorch_change_pointer (GTorchChange *self, gpointer place, gpointer value, GDestroyNotify drop)
{
  if (drop != NULL && value != NULL)
    gtorch_thread_clean_up_later ();
  change (self, (GTorchFormer){ place, value, FALSE, drop });
}

void
gtorch_change_device (GTorchChange *self, GTorchDevice **place, GTorchDevice *device)
{
  gtorch_change_pointer (self, place, device, NULL);
}

void
gtorch_change_current (GTorchChange *self, GTorchDevice *device)
{
  gtorch_change_device (self, &gtorch_thread.current[device->type], device);
  gtorch_change_device (self, &gtorch_thread.device, device);
}

void
gtorch_change_end (GTorchChange *self)
{
  GTorchChange **at = &gtorch_thread.changes;
  guint i;

  for (i = self->n_formers; i-- > 0;)
    {
      GTorchFormer *own = &self->formers[i];

      own->value = put (self, own->place, own->is_byte, own->value);
    }
  while (*at != self)
    at = &(*at)->older;
  *at = self->older;
  /* Dropping the last reference may run arbitrary code, which may begin or end guards. */
  for (i = 0; i < self->n_formers; i++)
    if (self->formers[i].drop != NULL && self->formers[i].value != NULL)
      self->formers[i].drop (self->formers[i].value);
  if (self->formers != self->few)
    g_free (self->formers);
}

/* --- guards --- */

/* States of a guard. The thread that changes the state is the one that acts on the change. */
enum
{
  LASTS,
  STRAY, /* ended in another thread; its own thread will end the change */
  OVER,
};

/* The guards of this thread that still last. */
static __thread GPtrArray *guards;

static void
let_go (GTorchGuard *self)
{
  if (g_atomic_int_dec_and_test (&self->n_holders))
    g_free (self);
}

gpointer
gtorch_guard_new (gsize size, void (*ended) (void))
{
  GTorchGuard *self = g_malloc0 (size);

  gtorch_guards_settle ();
  gtorch_thread_clean_up_later ();
  self->ref_count = 1;
  self->n_holders = 2;
  self->state = LASTS;
  self->thread = &gtorch_thread;
  self->ended = ended;
  gtorch_change_begin (&self->change);
  self->change.guard = self;
  if (guards == NULL)
    guards = g_ptr_array_new ();
  g_ptr_array_add (guards, self);
  return self;
}

gpointer
gtorch_guard_ref (gpointer guard)
{
  g_atomic_int_inc (&((GTorchGuard *) guard)->ref_count);
  return guard;
}

void
gtorch_guard_unref (gpointer guard)
{
  GTorchGuard *self = guard;

  if (!g_atomic_int_dec_and_test (&self->ref_count))
    return;
  gtorch_guard_end (self);
  let_go (self);
}

/* Sets the state to OVER. Returns TRUE for the one caller that did so first. */
static gboolean
take_over (GTorchGuard *self)
{
  gint former = __atomic_exchange_n (&self->state, OVER, __ATOMIC_ACQ_REL);

  if (former == STRAY)
    g_atomic_int_add (&gtorch_n_strays, -1);
  return former != OVER;
}

static void
has_ended (GTorchGuard *self)
{
  if (self->ended != NULL)
    self->ended ();
  let_go (self);
}

static void
end_here (GTorchGuard *self)
{
  if (!take_over (self))
    return;
  g_ptr_array_remove (guards, self);
  gtorch_change_end (&self->change);
  has_ended (self);
}

void
gtorch_guard_end (gpointer guard)
{
  GTorchGuard *self = guard;
  gint lasts = LASTS;

  if (self->thread == &gtorch_thread)
    {
      end_here (self);
      gtorch_guards_settle ();
    }
  else if (__atomic_compare_exchange_n (&self->state, &lasts, STRAY, FALSE, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
    g_atomic_int_inc (&gtorch_n_strays);
}

static GTorchGuard *
find_stray (void)
{
  GTorchChange *at;

  for (at = gtorch_thread.changes; at != NULL; at = at->older)
    if (at->guard != NULL && __atomic_load_n (&at->guard->state, __ATOMIC_ACQUIRE) == STRAY)
      return at->guard;
  return NULL;
}

void
gtorch_guards_end_strays (void)
{
  GTorchGuard *stray;

  while ((stray = find_stray ()) != NULL) /* ending one may end others */
    end_here (stray);
}

/* --- the end of a thread --- */

static void (*cleanups[4]) (void);
static guint n_cleanups;

void
gtorch_thread_add_cleanup (void (*func) (void))
{
  g_assert (n_cleanups < G_N_ELEMENTS (cleanups));
  cleanups[n_cleanups++] = func;
}

/* Restores only what guards have changed. Other changes live on the stack of their thread; one that is left
 * here means that the thread ended inside a call, as Python's daemon threads do at the end of the program,
 * and that its stack no longer exists. */
static void
end_guards (void)
{
  gtorch_thread.changes = NULL;
  while (guards != NULL && guards->len > 0)
    {
      GTorchGuard *self = g_ptr_array_steal_index (guards, guards->len - 1);

      take_over (self);
      self->change.older = NULL;
      gtorch_thread.changes = &self->change;
      gtorch_change_end (&self->change);
      has_ended (self);
    }
  g_clear_pointer (&guards, g_ptr_array_unref);
}

static void
drop_thread (gpointer data)
{
  guint i;

  end_guards ();
  for (i = 0; i < GTORCH_MAX_DEVICES; i++)
    g_clear_object ((GObject **) &gtorch_thread.streams[i]);
  for (i = 0; i < n_cleanups; i++)
    cleanups[i]();
}

static GPrivate thread_cleanup = G_PRIVATE_INIT (drop_thread);

void
gtorch_thread_clean_up_later (void)
{
  if (g_private_get (&thread_cleanup) == NULL)
    g_private_set (&thread_cleanup, &gtorch_thread);
}
