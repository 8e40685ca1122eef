/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Brings the signals of a run to the main context of the program, in order. The threads of the run tell the
 * context by a bell, which takes no lock that the main loop needs. A turn of the main loop emits
 * signals for a few milliseconds at most, so that many of them do not stop it. A run is ahead of its handlers
 * by what the program allows and no more, so that a handler can end it. Changes of properties are notified at
 * most twenty times a second. */

#include "config.h"

#include "train/gtorch-trainer-private.h"
#include "base/gtorch-bell-private.h"
#include "base/gtorch-wake-private.h"

#define MAX_WAITING     1024
#define TURN            (2 * G_TIME_SPAN_MILLISECOND)
#define NOTIFY_INTERVAL (50 * G_TIME_SPAN_MILLISECOND)

typedef struct
{
  GTorchTrainerSignal signal;
  gint64 number;
  gdouble value;
  GError *failure;
  GVariant *results;
} Notice;

struct _GTorchTrainerDelivery
{
  gint ref_count;
  GTorchTrainer *trainer; /* the run's */
  GSource *bell;          /* in the context of the program; NULL: signals are emitted at once */
  GMutex lock;
  GCond cond;
  GQueue notices;
  guint n_emitting; /* signals whose handlers are being called */
  gboolean is_awake;
  gboolean is_dirty, is_urgent; /* properties have changed; by more than a step */
  gint64 notify_time;
};

static void
notice_free (gpointer data)
{
  Notice *notice = data;

  g_clear_error (&notice->failure);
  g_clear_pointer (&notice->results, g_variant_unref);
  g_free (notice);
}

void
gtorch_trainer_delivery_end (GTorchTrainerDelivery *self)
{
  if (self->bell != NULL)
    g_source_destroy (self->bell);
}

void
gtorch_trainer_delivery_unref (GTorchTrainerDelivery *self)
{
  if (!g_atomic_int_dec_and_test (&self->ref_count))
    return;
  g_queue_clear_full (&self->notices, notice_free);
  g_clear_pointer (&self->bell, g_source_unref);
  g_object_unref (self->trainer);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->cond);
  g_free (self);
}

static void
notify (GTorchTrainerDelivery *self)
{
  static const gchar *const names[] = { "step", "epoch", "loss", "progress", "throughput", "best" };
  GObject *trainer = G_OBJECT (self->trainer);

  g_object_freeze_notify (trainer);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    g_object_notify (trainer, names[i]);
  g_object_thaw_notify (trainer);
}

/* The next one, behind the handlers of the former one. */
static Notice *
take_notice (GTorchTrainerDelivery *self, gboolean is_first)
{
  Notice *notice;

  g_mutex_lock (&self->lock);
  self->n_emitting -= is_first ? 0 : 1;
  notice = g_queue_pop_head (&self->notices);
  self->n_emitting += notice != NULL ? 1 : 0;
  g_cond_broadcast (&self->cond);
  g_mutex_unlock (&self->lock);
  return notice;
}

/* Emits what waits, until a time. Without a limit, changes are notified in any case. */
static void
emit_until (GTorchTrainerDelivery *self, gint64 until, gboolean is_last)
{
  gboolean is_due, is_first = TRUE;
  Notice *notice;

  while ((notice = take_notice (self, is_first)) != NULL)
    {
      is_first = FALSE;
      if (notice->results != NULL)
        gtorch_trainer_publish (self->trainer, notice->results);
      gtorch_trainer_emit (self->trainer, notice->signal, notice->number, notice->value,
                           notice->failure);
      notice_free (notice);
      if (g_get_monotonic_time () >= until)
        {
          g_mutex_lock (&self->lock);
          self->n_emitting--;
          g_cond_broadcast (&self->cond);
          g_mutex_unlock (&self->lock);
          break;
        }
    }
  g_mutex_lock (&self->lock);
  is_due = self->is_dirty
           && (is_last || self->is_urgent
               || g_get_monotonic_time () - self->notify_time >= NOTIFY_INTERVAL);
  if (is_due)
    {
      self->is_dirty = self->is_urgent = FALSE;
      self->notify_time = g_get_monotonic_time ();
    }
  g_mutex_unlock (&self->lock);
  if (is_due)
    notify (self);
}

static gboolean
on_turn (gpointer data)
{
  GTorchTrainerDelivery *self = data;
  gboolean has_more;

  emit_until (self, g_get_monotonic_time () + TURN, FALSE);
  g_mutex_lock (&self->lock);
  has_more = !g_queue_is_empty (&self->notices);
  g_mutex_unlock (&self->lock);
  if (has_more)
    gtorch_bell_ring (self->bell);
  return G_SOURCE_CONTINUE;
}

static void
release (gpointer data)
{
  gtorch_trainer_delivery_unref (data);
}

/* Of a lower priority than what draws and answers. */
static void
make_bell (GTorchTrainerDelivery *self, GMainContext *context)
{
  self->bell = gtorch_bell_new ();
  g_source_set_static_name (self->bell, "[GTorch] signals of a trainer");
  g_source_set_priority (self->bell, G_PRIORITY_DEFAULT_IDLE);
  g_atomic_int_inc (&self->ref_count);
  g_source_set_callback (self->bell, on_turn, self, release);
  g_source_attach (self->bell, context);
}

GTorchTrainerDelivery *
gtorch_trainer_delivery_new (GTorchTrainer *trainer, GMainContext *context)
{
  GTorchTrainerDelivery *self = g_new0 (GTorchTrainerDelivery, 1);

  self->ref_count = 1;
  self->trainer = g_object_ref (trainer);
  g_mutex_init (&self->lock);
  g_cond_init (&self->cond);
  g_queue_init (&self->notices);
  if (context != NULL)
    make_bell (self, context);
  return self;
}

static void
add_now (GTorchTrainerDelivery *self, GTorchTrainerSignal signal, gint64 number, gdouble value,
         const GError *failure, GVariant *results)
{
  const gint64 now = g_get_monotonic_time ();

  if (results != NULL)
    gtorch_trainer_publish (self->trainer, results);
  gtorch_trainer_emit (self->trainer, signal, number, value, failure);
  if (now - self->notify_time < NOTIFY_INTERVAL && signal == GTORCH_TRAINER_STEP_DONE)
    return;
  self->notify_time = now;
  notify (self);
}

static void
add (GTorchTrainerDelivery *self, GTorchTrainerSignal signal, gint64 number, gdouble value,
     const GError *failure, GVariant *results)
{
  const gboolean is_heard = results != NULL || gtorch_trainer_is_heard (self->trainer, signal);
  gboolean must_ring;

  if (self->bell == NULL)
    {
      add_now (self, signal, number, value, failure, results);
      return;
    }
  g_mutex_lock (&self->lock);
  self->is_dirty = TRUE;
  self->is_urgent = self->is_urgent || signal != GTORCH_TRAINER_STEP_DONE;
  if (is_heard)
    {
      Notice *notice = g_new (Notice, 1);

      *notice = (Notice){ signal, number, value, failure != NULL ? g_error_copy (failure) : NULL,
                          results != NULL ? g_variant_ref (results) : NULL };
      g_queue_push_tail (&self->notices, notice);
    }
  must_ring = is_heard || signal != GTORCH_TRAINER_STEP_DONE
              || g_get_monotonic_time () - self->notify_time >= NOTIFY_INTERVAL;
  g_mutex_unlock (&self->lock);
  if (must_ring) /* without the lock, which whoever is woken takes */
    gtorch_bell_ring (self->bell);
}

void
gtorch_trainer_delivery_add (GTorchTrainerDelivery *self, GTorchTrainerSignal signal, gint64 number,
                             gdouble value, const GError *failure)
{
  add (self, signal, number, value, failure, NULL);
}

void
gtorch_trainer_delivery_add_results (GTorchTrainerDelivery *self, gint64 step, gdouble loss,
                                     GVariant *results)
{
  g_autoptr (GVariant) owned = g_variant_ref_sink (results);

  add (self, GTORCH_TRAINER_EVALUATED, step, loss, NULL, owned);
}

void
gtorch_trainer_delivery_wake (GTorchTrainerDelivery *self)
{
  g_mutex_lock (&self->lock);
  self->is_awake = TRUE;
  g_cond_broadcast (&self->cond);
  g_mutex_unlock (&self->lock);
}

/* With the lock held. */
static gboolean
is_ahead (GTorchTrainerDelivery *self, gint64 n_ahead)
{
  return g_queue_get_length (&self->notices) + self->n_emitting > MIN (n_ahead, MAX_WAITING);
}

void
gtorch_trainer_delivery_wait (GTorchTrainerDelivery *self, gint64 n_ahead,
                              GCancellable *cancellable, gint *is_stopped)
{
  GTorchWake wake;
  gboolean is_full;

  if (self->bell == NULL)
    return;
  g_mutex_lock (&self->lock);
  is_full = is_ahead (self, n_ahead);
  self->is_awake = FALSE;
  g_mutex_unlock (&self->lock);
  if (!is_full || g_atomic_int_get (is_stopped))
    return;
  gtorch_wake_begin (&wake, cancellable, &self->lock, &self->cond);
  g_mutex_lock (&self->lock);
  while (!self->is_awake && !g_atomic_int_get (is_stopped)
         && !g_cancellable_is_cancelled (cancellable) && is_ahead (self, n_ahead))
    g_cond_wait (&self->cond, &self->lock);
  g_mutex_unlock (&self->lock);
  gtorch_wake_end (&wake);
}

void
gtorch_trainer_delivery_serve (GTorchTrainerDelivery *self)
{
  emit_until (self, G_MAXINT64, FALSE);
}

void
gtorch_trainer_delivery_flush (GTorchTrainerDelivery *self)
{
  gboolean is_empty;

  if (self->bell == NULL)
    {
      notify (self);
      return;
    }
  do
    {
      emit_until (self, G_MAXINT64, TRUE);
      g_mutex_lock (&self->lock);
      is_empty = g_queue_is_empty (&self->notices);
      g_mutex_unlock (&self->lock);
    }
  while (!is_empty);
}
