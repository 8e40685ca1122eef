/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "distributed/gtorch-roll-private.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#define ANSWER_TIME 1.5                  /* seconds for the other ranks to tell how far they are */
#define GIVE_UP     (2 * G_USEC_PER_SEC) /* for how long the store may take for all of that */

struct _GTorchRoll
{
  gint ref_count;
  GTorchStore *store;
  gchar *prefix;
  gint rank, size;
  GCancellable *listening;
  GMutex lock; /* protects what follows */
  guint64 n_started;
  const gchar *last_name;
  gboolean listens;
};

GTorchRoll *
gtorch_roll_new (GTorchStore *store, const gchar *prefix, gint rank, gint size)
{
  GTorchRoll *self = g_new0 (GTorchRoll, 1);

  self->ref_count = 1;
  self->store = g_object_ref (store);
  self->prefix = g_strdup (prefix);
  self->rank = rank;
  self->size = size;
  self->listening = g_cancellable_new ();
  g_mutex_init (&self->lock);
  return self;
}

GTorchRoll *
gtorch_roll_ref (GTorchRoll *self)
{
  g_atomic_int_inc (&self->ref_count);
  return self;
}

void
gtorch_roll_unref (GTorchRoll *self)
{
  if (!g_atomic_int_dec_and_test (&self->ref_count))
    return;
  g_object_unref (self->store);
  g_object_unref (self->listening);
  g_mutex_clear (&self->lock);
  g_free (self->prefix);
  g_free (self);
}

void
gtorch_roll_begin (GTorchRoll *self, guint64 sequence, const gchar *name)
{
  g_mutex_lock (&self->lock);
  self->n_started = sequence;
  self->last_name = name;
  g_mutex_unlock (&self->lock);
}

static gchar *
key_of (GTorchRoll *self, gint rank)
{
  return g_strdup_printf ("%s/state/%d", self->prefix, rank);
}

gchar *
gtorch_roll_get_key (GTorchRoll *self)
{
  return g_strconcat (self->prefix, "/failed", NULL);
}

gdouble
gtorch_roll_get_answer_time (void)
{
  return ANSWER_TIME;
}

/* “7 all_reduce” */
gboolean
gtorch_roll_post (GTorchRoll *self, GCancellable *cancellable)
{
  g_autofree gchar *key = key_of (self, self->rank);
  g_autofree gchar *text = NULL;
  g_autoptr (GBytes) bytes = NULL;

  g_mutex_lock (&self->lock);
  text = g_strdup_printf ("%" PRIu64 " %s", self->n_started,
                          self->last_name != NULL ? self->last_name : "-");
  g_mutex_unlock (&self->lock);
  bytes = g_bytes_new (text, strlen (text));
  return gtorch_store_set (self->store, key, bytes, cancellable, NULL);
}

/* --- answering --- */

static gpointer
listen (gpointer data)
{
  GTorchRoll *self = data;
  g_autofree gchar *key = gtorch_roll_get_key (self);
  const gchar *const keys[] = { key, NULL };

  if (gtorch_store_wait (self->store, keys, 1e8, self->listening, NULL))
    gtorch_roll_post (self, self->listening);
  gtorch_roll_unref (self);
  return NULL;
}

void
gtorch_roll_listen (GTorchRoll *self)
{
  gboolean is_first;

  g_mutex_lock (&self->lock);
  is_first = !self->listens && self->size > 1;
  self->listens = TRUE;
  g_mutex_unlock (&self->lock);
  if (is_first)
    g_thread_unref (g_thread_new ("gtorch-ear", listen, gtorch_roll_ref (self)));
}

void
gtorch_roll_stop (GTorchRoll *self)
{
  g_cancellable_cancel (self->listening);
}

/* --- asking --- */

typedef struct
{
  gint ref_count;
  GTorchRoll *roll;
  GCancellable *cancellable;
  gchar *report;    /* what this rank tells the others */
  guint64 sequence; /* of the operation that it waits for; 0 for none */
  GMutex lock;
  GCond changed;
  gboolean is_over;
  GString *found; /* what the others have said */
  GArray *lost;   /* gint: who has said nothing */
} Inquiry;

static void
inquiry_unref (Inquiry *self)
{
  if (!g_atomic_int_dec_and_test (&self->ref_count))
    return;
  gtorch_roll_unref (self->roll);
  g_object_unref (self->cancellable);
  g_string_free (self->found, TRUE);
  g_array_unref (self->lost);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  g_free (self->report);
  g_free (self);
}

static void append (Inquiry *self, const gchar *format, ...) G_GNUC_PRINTF (2, 3);

static void
append (Inquiry *self, const gchar *format, ...)
{
  va_list args;

  if (self->found->len > 0)
    g_string_append (self->found, ", ");
  va_start (args, format);
  g_string_append_vprintf (self->found, format, args);
  va_end (args);
}

static void
read_state (Inquiry *self, const gchar *key, gint rank)
{
  g_autoptr (GBytes) bytes = gtorch_store_get (self->roll->store, key, self->cancellable, NULL);
  g_autofree gchar *text = NULL;
  guint64 started;
  gchar *end;

  if (bytes == NULL)
    return;
  text = g_strndup (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes));
  started = g_ascii_strtoull (text, &end, 10);
  if (self->sequence > 0 && started < self->sequence)
    append (self, _ ("rank %d has begun %" PRIu64 " operations only, the last was “%s”"), rank,
            started, *end == ' ' ? end + 1 : end);
}

static void
ask_others (Inquiry *self)
{
  GTorchRoll *roll = self->roll;
  g_autofree gchar *failed = gtorch_roll_get_key (roll);
  g_autoptr (GBytes) report = g_bytes_new (self->report, strlen (self->report));
  g_autoptr (GPtrArray) keys = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GArray) others = g_array_new (FALSE, FALSE, sizeof (gint));
  gint i;

  for (i = 0; i < roll->size; i++)
    if (i != roll->rank)
      {
        g_ptr_array_add (keys, key_of (roll, i));
        g_array_append_val (others, i);
      }
  g_ptr_array_add (keys, NULL);
  if (!gtorch_store_set (roll->store, failed, report, self->cancellable, NULL)
      || !gtorch_roll_post (roll, self->cancellable))
    {
      append (self, _ ("the store does not answer: the process that serves it may have ended"));
      return;
    }
  gtorch_store_wait (roll->store, (const gchar *const *) keys->pdata, ANSWER_TIME,
                     self->cancellable, NULL);
  for (i = 0; i < (gint) others->len; i++)
    {
      const gchar *const key[] = { keys->pdata[i], NULL };
      gboolean is_there;

      if (!gtorch_store_check (roll->store, key, &is_there, self->cancellable, NULL))
        return;
      if (is_there)
        {
          read_state (self, key[0], g_array_index (others, gint, i));
          continue;
        }
      append (self, _ ("rank %d does not answer: its process has ended or hangs"),
              g_array_index (others, gint, i));
      g_array_append_val (self->lost, g_array_index (others, gint, i));
    }
}

static gpointer
run_inquiry (gpointer data)
{
  Inquiry *self = data;

  ask_others (self);
  g_mutex_lock (&self->lock);
  self->is_over = TRUE;
  g_cond_signal (&self->changed);
  g_mutex_unlock (&self->lock);
  inquiry_unref (self);
  return NULL;
}

/* Asks in a thread of its own, since a store whose server is gone may not answer for long. Returns what is
 * known after some time. */
gchar *
gtorch_roll_inquire (GTorchRoll *roll, const gchar *report, guint64 sequence, gint **lost,
                     guint *n_lost)
{
  const gint64 deadline = g_get_monotonic_time () + GIVE_UP;
  Inquiry *self = g_new0 (Inquiry, 1);
  gchar *result = NULL;

  self->ref_count = 2;
  self->roll = gtorch_roll_ref (roll);
  self->cancellable = g_cancellable_new ();
  self->report = g_strdup (report);
  self->sequence = sequence;
  self->found = g_string_new (NULL);
  self->lost = g_array_new (FALSE, FALSE, sizeof (gint));
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  g_thread_unref (g_thread_new ("gtorch-ask", run_inquiry, self));
  g_mutex_lock (&self->lock);
  while (!self->is_over && g_cond_wait_until (&self->changed, &self->lock, deadline))
    ;
  if (self->is_over)
    {
      *n_lost = self->lost->len;
      *lost = g_memdup2 (self->lost->data, self->lost->len * sizeof (gint));
      result = g_strdup (self->found->str);
    }
  g_mutex_unlock (&self->lock);
  if (result == NULL)
    g_cancellable_cancel (self->cancellable);
  inquiry_unref (self);
  return result != NULL ? result : g_strdup (_ ("the store does not answer"));
}
