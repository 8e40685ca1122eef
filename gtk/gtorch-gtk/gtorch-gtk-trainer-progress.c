/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>

#include "gtorch-gtk-private.h"

/**
 * GTorchGtkTrainerProgress:
 *
 * Shows how far a [class@GTorch.Trainer] is: a bar, a line with epoch, step, loss and speed, and a
 * button that cancels the run.
 *
 * [method@TrainerProgress.run_async] begins a run that the button cancels, also after another trainer or
 * another cancellable was set. A program that begins runs itself may pass
 * [property@TrainerProgress:cancellable] to them: the button cancels it, and ends a run that has another
 * cancellable, or none, by [method@GTorch.Trainer.stop]. The line tells if a run has failed, with its error,
 * was cancelled by the button, or has stopped before all of its steps, and whether the widget's run goes on
 * while another trainer is shown.
 *
 * ```c
 * progress = gtorch_gtk_trainer_progress_new (trainer);
 * gtorch_gtk_trainer_progress_run_async (GTORCH_GTK_TRAINER_PROGRESS (progress), on_trained, NULL);
 * ```
 *
 * Since: 0.1
 */

#define POLL_INTERVAL 100

/* That run_async () has begun. */
typedef struct
{
  GTorchTrainer *trainer;
  GCancellable *cancellable;
} Run;

struct _GTorchGtkTrainerProgress
{
  GtkWidget parent_instance;
  GTorchTrainer *trainer;
  GCancellable *cancellable;
  GtkWidget *bar, *label, *button;
  guint timeout;
  gint64 idle_step; /* the step before the run */
  gboolean is_running;
  GPtrArray *runs;        /* of Run: those that go on, maybe behind another trainer */
  gboolean is_asked;      /* the button has asked the run to end */
  gboolean was_cancelled; /* the cancellable was, before the run */
  gboolean has_loss;      /* a step has been seen, so that a loss of NaN is one */
  gchar *outcome;         /* how the last run has ended, if not by itself */
};

enum
{
  PROP_TRAINER = 1,
  PROP_CANCELLABLE,
  PROP_RUNNING,
  N_PROPS
};

static GParamSpec *props[N_PROPS];

G_DEFINE_TYPE (GTorchGtkTrainerProgress, gtorch_gtk_trainer_progress, GTK_TYPE_WIDGET)

static void
run_free (gpointer data)
{
  Run *run = data;

  g_object_unref (run->trainer);
  g_object_unref (run->cancellable);
  g_free (run);
}

/* The widget's own run of the trainer that is shown, or NULL. */
static const Run *
find_run (GTorchGtkTrainerProgress *self)
{
  for (guint i = 0; i < self->runs->len; i++)
    if (((const Run *) self->runs->pdata[i])->trainer == self->trainer)
      return self->runs->pdata[i];
  return NULL;
}

static gboolean
is_cancelling (GTorchGtkTrainerProgress *self)
{
  const Run *own = find_run (self);

  return self->is_asked || (own != NULL && g_cancellable_is_cancelled (own->cancellable))
         || (!self->was_cancelled && g_cancellable_is_cancelled (self->cancellable));
}

/* How many of the widget's runs go on behind another trainer; has_all: with those that were cancelled. */
static guint
count_hidden (GTorchGtkTrainerProgress *self, gboolean has_all)
{
  guint n = 0;

  for (guint i = 0; i < self->runs->len; i++)
    {
      const Run *run = self->runs->pdata[i];

      n += run->trainer != self->trainer
           && (has_all || !g_cancellable_is_cancelled (run->cancellable));
    }
  return n;
}

/* Whether all steps are done that the trainer was to do. */
static gboolean
is_complete (GTorchTrainer *trainer)
{
  gint64 n_epochs, max_steps;

  g_object_get (trainer, "n-epochs", &n_epochs, "max-steps", &max_steps, NULL);
  return gtorch_trainer_get_epoch (trainer) >= n_epochs
         || (max_steps > 0 && gtorch_trainer_get_step (trainer) >= max_steps);
}

static void
describe_trainer (GTorchGtkTrainerProgress *self, GString *text)
{
  const gdouble loss = gtorch_trainer_get_loss (self->trainer);
  const gdouble throughput = gtorch_trainer_get_throughput (self->trainer);
  const gint64 step = gtorch_trainer_get_step (self->trainer);

  if (self->is_running && is_cancelling (self))
    g_string_append (text, _ ("Cancelling…"));
  else if (!self->is_running && step == 0 && self->outcome == NULL)
    g_string_append (text, _ ("Not started"));
  else
    g_string_append_printf (text, _ ("Epoch %" PRId64 ", step %" PRId64),
                            gtorch_trainer_get_epoch (self->trainer), step);
  if (!isnan (loss))
    g_string_append_printf (text, _ ("  ·  loss %.4g"), loss);
  else if (self->has_loss)
    g_string_append (text, _ ("  ·  loss NaN"));
  if (throughput > 0 && self->is_running)
    g_string_append_printf (text, _ ("  ·  %.0f samples/s"), throughput);
  if (self->outcome != NULL)
    g_string_append_printf (text, "  ·  %s", self->outcome);
}

static gchar *
describe (GTorchGtkTrainerProgress *self)
{
  GString *text = g_string_new (NULL);

  if (self->trainer != NULL)
    describe_trainer (self, text);
  if (count_hidden (self, TRUE) > 0)
    g_string_append_printf (text, "%s%s", text->len > 0 ? "  ·  " : "",
                            count_hidden (self, FALSE) > 0
                                ? _ ("the run of another trainer goes on")
                                : _ ("cancelling the run of another trainer…"));
  return g_string_free (text, FALSE);
}

static void
take_outcome (GTorchGtkTrainerProgress *self, gchar *outcome)
{
  g_free (self->outcome);
  self->outcome = outcome;
}

/* What is seen of the trainer: a run that begins or has ended, and steps. */
static void
follow (GTorchGtkTrainerProgress *self, gboolean is_running)
{
  const gint64 step = self->trainer != NULL ? gtorch_trainer_get_step (self->trainer) : 0;

  if (is_running && !self->is_running)
    {
      take_outcome (self, NULL);
      self->was_cancelled = g_cancellable_is_cancelled (self->cancellable);
    }
  else if (!is_running && self->is_running && self->outcome == NULL)
    {
      if (is_cancelling (self))
        take_outcome (self, g_strdup (_ ("cancelled")));
      else if (self->trainer != NULL && !is_complete (self->trainer))
        take_outcome (self, g_strdup (_ ("stopped")));
    }
  if (self->trainer != NULL
      && (!isnan (gtorch_trainer_get_loss (self->trainer))
          || ((is_running || self->is_running) && step > self->idle_step)))
    self->has_loss = TRUE;
  if (!is_running)
    {
      self->idle_step = step;
      self->is_asked = FALSE;
    }
  self->is_running = is_running;
}

static void
update (GTorchGtkTrainerProgress *self)
{
  const gboolean is_running = self->trainer != NULL && gtorch_trainer_is_running (self->trainer);
  const gboolean has_changed = is_running != self->is_running;
  g_autofree gchar *text = NULL;

  if (self->bar == NULL)
    {
      self->is_running = is_running;
      return; /* it is disposed */
    }
  follow (self, is_running);
  text = describe (self);
  gtk_progress_bar_set_fraction (GTK_PROGRESS_BAR (self->bar),
                                 self->trainer != NULL
                                     ? CLAMP (gtorch_trainer_get_progress (self->trainer), 0, 1)
                                     : 0);
  gtk_label_set_text (GTK_LABEL (self->label), text);
  gtk_widget_set_tooltip_text (self->label, self->outcome);
  gtk_widget_set_sensitive (self->button, (is_running && !is_cancelling (self))
                                              || count_hidden (self, FALSE) > 0);
  if (has_changed)
    g_object_notify_by_pspec (G_OBJECT (self), props[PROP_RUNNING]);
}

static void
on_failed (GTorchGtkTrainerProgress *self, const GError *error)
{
  update (self); /* which may see only now that a run goes on */
  take_outcome (self, g_strdup_printf (_ ("failed: %s"), error->message));
  update (self);
}

/* The trainer does not tell that a run begins or ends. */
static gboolean
on_timeout (gpointer data)
{
  GTorchGtkTrainerProgress *self = data;

  if (self->is_running != (self->trainer != NULL && gtorch_trainer_is_running (self->trainer)))
    update (self);
  return G_SOURCE_CONTINUE;
}

/* A run that has this cancellable sees it before it sees that it is to stop, and ends as a cancelled one. The
 * run that is shown comes first, then those behind it. */
static void
on_cancel (GTorchGtkTrainerProgress *self)
{
  const gboolean is_running = self->trainer != NULL && gtorch_trainer_is_running (self->trainer);

  if (is_running && !is_cancelling (self))
    {
      const Run *own = find_run (self);

      self->is_asked = TRUE;
      g_cancellable_cancel (self->cancellable);
      if (own != NULL)
        g_cancellable_cancel (own->cancellable);
      else
        gtorch_trainer_stop (self->trainer);
    }
  else
    for (guint i = 0; i < self->runs->len; i++)
      g_cancellable_cancel (((const Run *) self->runs->pdata[i])->cancellable);
  update (self);
}

static void
gtorch_gtk_trainer_progress_map (GtkWidget *widget)
{
  GTorchGtkTrainerProgress *self = GTORCH_GTK_TRAINER_PROGRESS (widget);

  GTK_WIDGET_CLASS (gtorch_gtk_trainer_progress_parent_class)->map (widget);
  update (self);
  if (self->timeout == 0)
    self->timeout = g_timeout_add (POLL_INTERVAL, on_timeout, self);
}

static void
gtorch_gtk_trainer_progress_unmap (GtkWidget *widget)
{
  g_clear_handle_id (&GTORCH_GTK_TRAINER_PROGRESS (widget)->timeout, g_source_remove);
  GTK_WIDGET_CLASS (gtorch_gtk_trainer_progress_parent_class)->unmap (widget);
}

/* --- class --- */

static void
gtorch_gtk_trainer_progress_get_property (GObject *object, guint id, GValue *value,
                                          GParamSpec *pspec)
{
  GTorchGtkTrainerProgress *self = GTORCH_GTK_TRAINER_PROGRESS (object);

  if (id == PROP_TRAINER)
    g_value_set_object (value, self->trainer);
  else if (id == PROP_CANCELLABLE)
    g_value_set_object (value, self->cancellable);
  else if (id == PROP_RUNNING)
    g_value_set_boolean (value, gtorch_gtk_trainer_progress_is_running (self));
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

static void
gtorch_gtk_trainer_progress_set_property (GObject *object, guint id, const GValue *value,
                                          GParamSpec *pspec)
{
  GTorchGtkTrainerProgress *self = GTORCH_GTK_TRAINER_PROGRESS (object);

  if (id == PROP_TRAINER)
    gtorch_gtk_trainer_progress_set_trainer (self, g_value_get_object (value));
  else if (id == PROP_CANCELLABLE)
    gtorch_gtk_trainer_progress_set_cancellable (self, g_value_get_object (value));
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

static void
gtorch_gtk_trainer_progress_dispose (GObject *object)
{
  GTorchGtkTrainerProgress *self = GTORCH_GTK_TRAINER_PROGRESS (object);
  GtkWidget *child;

  g_clear_handle_id (&self->timeout, g_source_remove);
  if (self->trainer != NULL)
    g_signal_handlers_disconnect_by_data (self->trainer, self);
  g_clear_object (&self->trainer);
  while ((child = gtk_widget_get_first_child (GTK_WIDGET (self))) != NULL)
    gtk_widget_unparent (child);
  self->bar = self->label = self->button = NULL;
  g_clear_object (&self->cancellable);
  g_clear_pointer (&self->outcome, g_free);
  g_ptr_array_set_size (self->runs, 0);
  G_OBJECT_CLASS (gtorch_gtk_trainer_progress_parent_class)->dispose (object);
}

static void
gtorch_gtk_trainer_progress_finalize (GObject *object)
{
  g_ptr_array_unref (GTORCH_GTK_TRAINER_PROGRESS (object)->runs);
  G_OBJECT_CLASS (gtorch_gtk_trainer_progress_parent_class)->finalize (object);
}

static void
gtorch_gtk_trainer_progress_class_init (GTorchGtkTrainerProgressClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  object_class->get_property = gtorch_gtk_trainer_progress_get_property;
  object_class->set_property = gtorch_gtk_trainer_progress_set_property;
  object_class->dispose = gtorch_gtk_trainer_progress_dispose;
  object_class->finalize = gtorch_gtk_trainer_progress_finalize;
  widget_class->map = gtorch_gtk_trainer_progress_map;
  widget_class->unmap = gtorch_gtk_trainer_progress_unmap;
  /**
   * GTorchGtkTrainerProgress:trainer:
   *
   * The trainer.
   *
   * Since: 0.1
   */
  props[PROP_TRAINER] =
      g_param_spec_object ("trainer", NULL, NULL, GTORCH_TYPE_TRAINER, GTORCH_GTK_PARAM_FLAGS);
  /**
   * GTorchGtkTrainerProgress:cancellable:
   *
   * What the button cancels. A run that the program has begun with another one, or with none, the button
   * stops.
   *
   * Since: 0.1
   */
  props[PROP_CANCELLABLE] =
      g_param_spec_object ("cancellable", NULL, NULL, G_TYPE_CANCELLABLE, GTORCH_GTK_PARAM_FLAGS);
  /**
   * GTorchGtkTrainerProgress:running: (getter is_running)
   *
   * Whether a run goes on. Notified within a tenth of a second while the widget is seen.
   *
   * Since: 0.1
   */
  props[PROP_RUNNING] = g_param_spec_boolean ("running", NULL, NULL, FALSE, GTORCH_GTK_PARAM_READ);
  g_object_class_install_properties (object_class, N_PROPS, props);
  gtk_widget_class_set_css_name (widget_class, "trainer");
  gtk_widget_class_set_layout_manager_type (widget_class, GTK_TYPE_BOX_LAYOUT);
  gtk_widget_class_set_accessible_role (widget_class, GTK_ACCESSIBLE_ROLE_GROUP);
}

static void
gtorch_gtk_trainer_progress_init (GTorchGtkTrainerProgress *self)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 4);
  GtkLayoutManager *layout = gtk_widget_get_layout_manager (GTK_WIDGET (self));

  self->cancellable = g_cancellable_new ();
  self->runs = g_ptr_array_new_with_free_func (run_free);
  self->bar = gtk_progress_bar_new ();
  self->label = gtorch_gtk_label_new (NULL, "numeric");
  self->button = gtk_button_new_with_mnemonic (_ ("_Cancel"));
  gtk_label_set_ellipsize (GTK_LABEL (self->label), PANGO_ELLIPSIZE_END);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->bar), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Progress of training"), -1);
  gtk_widget_set_valign (self->button, GTK_ALIGN_CENTER);
  gtk_widget_set_valign (box, GTK_ALIGN_CENTER);
  gtk_widget_set_hexpand (box, TRUE);
  gtk_widget_set_sensitive (self->button, FALSE);
  gtk_box_append (GTK_BOX (box), self->bar);
  gtk_box_append (GTK_BOX (box), self->label);
  gtk_box_layout_set_spacing (GTK_BOX_LAYOUT (layout), 12);
  gtk_widget_set_parent (box, GTK_WIDGET (self));
  gtk_widget_set_parent (self->button, GTK_WIDGET (self));
  g_signal_connect_swapped (self->button, "clicked", G_CALLBACK (on_cancel), self);
}

/**
 * gtorch_gtk_trainer_progress_new:
 * @trainer: (nullable): the trainer, or %NULL
 *
 * Creates a widget that shows how far a trainer is.
 *
 * Returns: (transfer floating): a new widget
 *
 * Since: 0.1
 */
GtkWidget *
gtorch_gtk_trainer_progress_new (GTorchTrainer *trainer)
{
  g_return_val_if_fail (trainer == NULL || GTORCH_IS_TRAINER (trainer), NULL);
  return g_object_new (GTORCH_GTK_TYPE_TRAINER_PROGRESS, "trainer", trainer, NULL);
}

/**
 * gtorch_gtk_trainer_progress_get_trainer: (get-property trainer)
 * @self: a progress widget
 *
 * Gets the trainer.
 *
 * Returns: (transfer none) (nullable): the trainer, or %NULL
 *
 * Since: 0.1
 */
GTorchTrainer *
gtorch_gtk_trainer_progress_get_trainer (GTorchGtkTrainerProgress *self)
{
  g_return_val_if_fail (GTORCH_GTK_IS_TRAINER_PROGRESS (self), NULL);
  return self->trainer;
}

/**
 * gtorch_gtk_trainer_progress_set_trainer: (set-property trainer)
 * @self: a progress widget
 * @trainer: (nullable): a trainer whose signals are emitted in the main context of GTK, or %NULL
 *
 * Sets the trainer. A run that the widget has begun goes on behind another one: the line tells of it, and the
 * button cancels it.
 *
 * Since: 0.1
 */
void
gtorch_gtk_trainer_progress_set_trainer (GTorchGtkTrainerProgress *self, GTorchTrainer *trainer)
{
  static const gchar *const names[] = { "notify::step", "notify::progress", "notify::loss" };
  gboolean was_running;

  g_return_if_fail (GTORCH_GTK_IS_TRAINER_PROGRESS (self));
  g_return_if_fail (trainer == NULL || GTORCH_IS_TRAINER (trainer));
  if (self->trainer == trainer)
    return;
  if (self->trainer != NULL)
    g_signal_handlers_disconnect_by_data (self->trainer, self);
  g_set_object (&self->trainer, trainer);
  for (guint i = 0; trainer != NULL && i < G_N_ELEMENTS (names); i++)
    g_signal_connect_swapped (trainer, names[i], G_CALLBACK (update), self);
  if (trainer != NULL)
    g_signal_connect_swapped (trainer, "failed", G_CALLBACK (on_failed), self);
  self->idle_step = trainer != NULL ? gtorch_trainer_get_step (trainer) : 0;
  was_running = self->is_running;
  self->is_asked = self->has_loss = self->is_running = FALSE;
  take_outcome (self, NULL);
  update (self);
  if (was_running && !self->is_running)
    g_object_notify_by_pspec (G_OBJECT (self), props[PROP_RUNNING]);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_TRAINER]);
}

/**
 * gtorch_gtk_trainer_progress_get_cancellable: (get-property cancellable)
 * @self: a progress widget
 *
 * Gets what the button cancels.
 *
 * Returns: (transfer none): the cancellable
 *
 * Since: 0.1
 */
GCancellable *
gtorch_gtk_trainer_progress_get_cancellable (GTorchGtkTrainerProgress *self)
{
  g_return_val_if_fail (GTORCH_GTK_IS_TRAINER_PROGRESS (self), NULL);
  return self->cancellable;
}

/**
 * gtorch_gtk_trainer_progress_set_cancellable: (set-property cancellable)
 * @self: a progress widget
 * @cancellable: (nullable): what the button is to cancel, or %NULL for a new one
 *
 * Sets what the button cancels. A cancellable that was cancelled stays so: each run needs a new one.
 *
 * Since: 0.1
 */
void
gtorch_gtk_trainer_progress_set_cancellable (GTorchGtkTrainerProgress *self,
                                             GCancellable *cancellable)
{
  g_autoptr (GCancellable) chosen = NULL;

  g_return_if_fail (GTORCH_GTK_IS_TRAINER_PROGRESS (self));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  chosen = cancellable != NULL ? g_object_ref (cancellable) : g_cancellable_new ();
  if (!g_set_object (&self->cancellable, chosen))
    return;
  self->was_cancelled = g_cancellable_is_cancelled (chosen);
  update (self);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_CANCELLABLE]);
}

/**
 * gtorch_gtk_trainer_progress_is_running: (get-property running)
 * @self: a progress widget
 *
 * Tells whether a run of the trainer goes on.
 *
 * Returns: %TRUE if it does
 *
 * Since: 0.1
 */
gboolean
gtorch_gtk_trainer_progress_is_running (GTorchGtkTrainerProgress *self)
{
  g_return_val_if_fail (GTORCH_GTK_IS_TRAINER_PROGRESS (self), FALSE);
  return self->trainer != NULL && gtorch_trainer_is_running (self->trainer);
}

static void
ran (GObject *object, GAsyncResult *result, gpointer data)
{
  g_autoptr (GTask) task = data;
  GTorchGtkTrainerProgress *self = g_task_get_source_object (task);
  GTorchTrainer *trainer = GTORCH_TRAINER (object);
  GError *error = NULL;
  const gboolean has_ended = gtorch_trainer_run_finish (trainer, result, &error);

  g_ptr_array_remove (self->runs, g_task_get_task_data (task)); /* NULL: it was refused */
  /* a run that was refused, as another one goes on, is none */
  if (!has_ended && trainer == self->trainer && !gtorch_trainer_is_running (trainer))
    {
      follow (self, FALSE);
      take_outcome (self, g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED)
                              ? g_strdup (_ ("cancelled"))
                              : g_strdup_printf (_ ("failed: %s"), error->message));
    }
  update (self);
  if (has_ended)
    g_task_return_boolean (task, TRUE);
  else
    g_task_return_error (task, error);
}

/**
 * gtorch_gtk_trainer_progress_run_async:
 * @self: a progress widget
 * @callback: (nullable) (scope async) (closure user_data): called when the run has ended
 * @user_data: data for @callback
 *
 * Begins a run of the trainer ([method@GTorch.Trainer.run_async]) with a new cancellable, which the
 * button cancels.
 *
 * Since: 0.1
 */
void
gtorch_gtk_trainer_progress_run_async (GTorchGtkTrainerProgress *self, GAsyncReadyCallback callback,
                                       gpointer user_data)
{
  g_autoptr (GTask) task = NULL;

  g_return_if_fail (GTORCH_GTK_IS_TRAINER_PROGRESS (self));
  task = gtorch_task_new (self, gtorch_gtk_trainer_progress_run_async, NULL, callback, user_data);
  if (self->trainer == NULL)
    {
      g_task_return_new_error (task, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                               _ ("gtk_trainer_progress_run: there is no trainer"));
      return;
    }
  if (!gtorch_trainer_is_running (
          self->trainer)) /* otherwise the trainer refuses, and the other run goes on */
    {
      Run *run = g_new (Run, 1);

      gtorch_gtk_trainer_progress_set_cancellable (self, NULL);
      follow (self, FALSE);
      *run = (Run){ g_object_ref (self->trainer), g_object_ref (self->cancellable) };
      g_ptr_array_add (self->runs, run);
      g_task_set_task_data (task, run, NULL); /* which is the array's */
    }
  gtorch_trainer_run_async (self->trainer, self->cancellable, ran, g_steal_pointer (&task));
  update (self);
}

/**
 * gtorch_gtk_trainer_progress_run_finish:
 * @self: a progress widget
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Finishes [method@TrainerProgress.run_async].
 *
 * Returns: %TRUE if the run has ended by itself; %FALSE with %G_IO_ERROR_CANCELLED after the button, with
 *   %GTORCH_ERROR_INVALID without a trainer, or with an error of [method@GTorch.Trainer.run]
 *
 * Since: 0.1
 */
gboolean
gtorch_gtk_trainer_progress_run_finish (GTorchGtkTrainerProgress *self, GAsyncResult *result,
                                        GError **error)
{
  g_return_val_if_fail (GTORCH_GTK_IS_TRAINER_PROGRESS (self), FALSE);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), FALSE);
  return gtorch_task_take (result, self, gtorch_gtk_trainer_progress_run_async, error)
         && g_task_propagate_boolean (G_TASK (result), error);
}
