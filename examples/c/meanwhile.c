/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Learns to separate two spirals while the main loop stays responsive.
 *
 * Training steps are enqueued on a stream, at most two ahead of the device, and nothing in this thread
 * waits for them: an event reports the end of each, and losses are read asynchronously. A timeout stands
 * in for the user interface: it draws a progress bar and measures for how long the main loop was blocked.
 * Ctrl-C ends the training after the pending steps. */

#include <glib-unix.h>
#include <gtorch/gtorch.h>
#include <unistd.h>

#define WIDTH       128
#define AHEAD       2
#define LOSS_EVERY  10
#define TICK_MS     10
#define INTERRUPTED 130

static gint seed = 1, steps = 300, points = 5000;

static GOptionEntry entries[] = {
  { "seed", 0, 0, G_OPTION_ARG_INT, &seed, "Where random numbers start", "N" },
  { "steps", 0, 0, G_OPTION_ARG_INT, &steps, "How often all points are seen", "N" },
  { "points", 0, 0, G_OPTION_ARG_INT, &points, "How many points each spiral has", "N" },
  { NULL },
};

typedef struct
{
  GMainLoop *loop;
  GCancellable *cancellable;
  GTorchStream *stream;
  GTorchTensor *x, *y;
  GTorchModule *model;
  GTorchOptimizer *adam;
  GError *error; /* the first error */
  gint n_sent, n_done, n_drawn;
  gint n_awaited; /* pending steps and reads of losses */
  gdouble loss;   /* the last known loss */
  gint n_ticks;
  gboolean in_place; /* on a terminal; otherwise each longer bar gets a line */
  gint bar_length;
  gint64 last_tick, longest_us;
} Run;

static gboolean
check_options (const char *argument, GError **error)
{
  if (argument != NULL)
    g_set_error (error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED, "unexpected argument “%s”",
                 argument);
  else if (steps < 1 || points < 1)
    g_set_error (error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                 "--steps and --points begin at 1");
  else
    return TRUE;
  return FALSE;
}

/* --- work on the device --- */

/* Creates points as [2 n, 2], and the spiral of each as [2 n, 1]. */
static gboolean
make_spirals (Run *run, GError **error)
{
  g_autoptr (GTorchTensor) radius = NULL, angle = NULL, cosine = NULL, sine = NULL;
  g_autoptr (GTorchTensor) across = NULL, up = NULL, one = NULL, other = NULL, no = NULL,
                           yes = NULL;

  if (!(radius = gtorch_linspace (0.1, 1, points, GTORCH_DTYPE_FLOAT32, NULL, error))
      || !(angle = gtorch_tensor_mul_scalar (radius, 9.5, error))
      || !(cosine = gtorch_tensor_cos (angle, error)) || !(sine = gtorch_tensor_sin (angle, error))
      || !(across = gtorch_tensor_mul (radius, cosine, error))
      || !(up = gtorch_tensor_mul (radius, sine, error))
      || !(one = gtorch_stack ((GTorchTensor *[]){ across, up }, 2, 1, error))
      || !(other = gtorch_tensor_neg (one, error))
      || !(no = gtorch_zeros (GTORCH_SHAPE (points, 1), GTORCH_DTYPE_FLOAT32, NULL, error))
      || !(yes = gtorch_ones (GTORCH_SHAPE (points, 1), GTORCH_DTYPE_FLOAT32, NULL, error)))
    return FALSE;
  run->x = gtorch_cat ((GTorchTensor *[]){ one, other }, 2, 0, error);
  run->y = run->x ? gtorch_cat ((GTorchTensor *[]){ no, yes }, 2, 0, error) : NULL;
  return run->y != NULL;
}

static gboolean
make_model (Run *run, GError **error)
{
  GTorchModule *layers[] = {
    GTORCH_MODULE (gtorch_linear_new (2, WIDTH, error)),     GTORCH_MODULE (gtorch_tanh_new ()),
    GTORCH_MODULE (gtorch_linear_new (WIDTH, WIDTH, error)), GTORCH_MODULE (gtorch_tanh_new ()),
    GTORCH_MODULE (gtorch_linear_new (WIDTH, 1, error)),
  };
  g_autoptr (GListModel) params = NULL;

  run->model =
      GTORCH_MODULE (gtorch_sequential_new_from_modules (layers, G_N_ELEMENTS (layers), error));
  for (guint i = 0; i < G_N_ELEMENTS (layers); i++)
    g_clear_object (&layers[i]);
  if (run->model == NULL)
    return FALSE;
  params = gtorch_module_get_parameters (run->model, TRUE);
  run->adam = GTORCH_OPTIMIZER (gtorch_adam_new (params, 0.01, error));
  return run->adam != NULL;
}

static void step_done (Run *run);
static void loss_known (GObject *loss, GAsyncResult *result, gpointer data);

/* Enqueues a step; returns before anything is computed. */
static gboolean
send_step (Run *run, GError **error)
{
  g_autoptr (GTorchEvent) done = gtorch_event_new (GTORCH_EVENT_NONE);
  g_autoptr (GTorchTensor) scores = gtorch_module_forward (run->model, run->x, error);
  g_autoptr (GTorchTensor) loss =
      scores ? gtorch_tensor_binary_cross_entropy_with_logits (scores, run->y, NULL, NULL,
                                                               GTORCH_REDUCTION_MEAN, error)
             : NULL;

  if (loss == NULL || !gtorch_optimizer_zero_grad (run->adam, TRUE, error)
      || !gtorch_tensor_backward (loss, NULL, FALSE, FALSE, error)
      || !gtorch_optimizer_step (run->adam, error))
    return FALSE;

  g_signal_connect_swapped (done, "completed", G_CALLBACK (step_done), run);
  if (!gtorch_event_record (done, run->stream, error))
    return FALSE;
  run->n_awaited++;
  if (++run->n_sent % LOSS_EVERY == 0 || run->n_sent == steps)
    {
      gtorch_tensor_item_double_async (loss, run->cancellable, loss_known, run);
      run->n_awaited++;
    }
  return TRUE;
}

/* --- in the main loop --- */

static void
fail (Run *run, GError *error)
{
  if (run->error == NULL && !g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    run->error = g_error_copy (error);
  g_error_free (error);
  g_cancellable_cancel (run->cancellable);
}

static void
one_less_awaited (Run *run)
{
  if (--run->n_awaited == 0)
    g_main_loop_quit (run->loop);
}

static void
step_done (Run *run)
{
  GError *error = NULL;

  run->n_done++;
  if (!gtorch_stream_check (run->stream, &error)
      || (run->n_sent < steps && !g_cancellable_is_cancelled (run->cancellable)
          && !send_step (run, &error)))
    fail (run, error);
  one_less_awaited (run);
}

static void
loss_known (GObject *loss, GAsyncResult *result, gpointer data)
{
  Run *run = data;
  GError *error = NULL;
  gdouble value = gtorch_tensor_item_double_finish (GTORCH_TENSOR (loss), result, &error);

  if (error == NULL)
    run->loss = value;
  else
    fail (run, error);
  one_less_awaited (run);
}

static gboolean
interrupted (gpointer data)
{
  g_cancellable_cancel (data);
  return G_SOURCE_REMOVE; /* another Ctrl-C ends the program at once */
}

static void
measure_gap (Run *run)
{
  gint64 now = g_get_monotonic_time ();

  run->longest_us = MAX (run->longest_us, now - run->last_tick);
  run->last_tick = now;
}

static void
draw (Run *run)
{
  gchar bar[] = "....................";
  gint length = strlen (bar) * run->n_done / steps;

  if (!run->in_place && length == run->bar_length)
    return;
  memset (bar, '#', length);
  g_print ("%s[%s] %3d %%, loss %.4f%s", run->in_place ? "\r" : "", bar, 100 * run->n_done / steps,
           run->loss, run->in_place ? "" : "\n");
  run->n_drawn = run->n_done;
  run->bar_length = length;
}

static gboolean
tick (gpointer data)
{
  Run *run = data;

  run->n_ticks++;
  measure_gap (run);
  if (run->n_drawn < run->n_done)
    draw (run);
  return G_SOURCE_CONTINUE;
}

static gboolean
train (Run *run, GError **error)
{
  gint64 start;

  gtorch_stream_set_current (run->stream);
  gtorch_manual_seed (seed);
  /* the first step loads kernels and libraries, which takes a while: it is made before the user interface
   * starts */
  if (!make_spirals (run, error) || !make_model (run, error))
    return FALSE;
  while (run->n_sent < MIN (steps, AHEAD))
    if (!send_step (run, error))
      return FALSE;

  g_unix_signal_add (SIGINT, interrupted, run->cancellable);
  g_timeout_add (TICK_MS, tick, run);
  run->in_place = isatty (STDOUT_FILENO);
  run->bar_length = -1;
  start = run->last_tick = g_get_monotonic_time ();
  g_main_loop_run (run->loop);
  measure_gap (run);
  draw (run);
  if (run->in_place)
    g_print ("\n");
  g_print ("meanwhile: %d ticks in %.2f s, %.1f ms from one to the next at most\n", run->n_ticks,
           (run->last_tick - start) / 1e6, run->longest_us / 1e3);
  if (run->error == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&run->error));
  return FALSE;
}

/* Prints the GPU that computes, or why none does. */
static void
print_device (void)
{
  GTorchDevice *device = gtorch_get_default_device ();
  g_autofree char *name = gtorch_device_to_string (device);
  g_autofree char *reason = gtorch_device_manager_dup_reason (gtorch_device_manager_get_default ());

  g_print ("meanwhile: on %s, %s%s%s\n", name, gtorch_device_get_name (device),
           reason ? "; no GPU: " : "", reason ? reason : "");
}

static void
run_clear (Run *run)
{
  g_clear_object (&run->adam);
  g_clear_object (&run->model);
  g_clear_object (&run->x);
  g_clear_object (&run->y);
  g_clear_object (&run->stream);
  g_clear_object (&run->cancellable);
  g_clear_pointer (&run->loop, g_main_loop_unref);
}

int
main (int argc, char *argv[])
{
  g_autoptr (GOptionContext) context = g_option_context_new ("- learn while a main loop goes on");
  g_autoptr (GError) error = NULL;
  Run run = { NULL };
  gint status = 1;

  g_option_context_add_main_entries (context, entries, NULL);
  g_option_context_add_group (context, gtorch_get_option_group ());
  if (g_option_context_parse (context, &argc, &argv, &error) && check_options (argv[1], &error))
    {
      print_device ();
      run.loop = g_main_loop_new (NULL, FALSE);
      run.cancellable = g_cancellable_new ();
      run.stream = gtorch_stream_new (gtorch_get_default_device (), 0, &error);
      if (run.stream != NULL && train (&run, &error))
        status = g_cancellable_is_cancelled (run.cancellable) ? INTERRUPTED : 0;
    }
  if (status == 0)
    g_print ("meanwhile: %d steps, loss %.9f\n", steps, run.loss);
  else if (status == INTERRUPTED)
    g_print ("meanwhile: stopped after %d of %d steps\n", run.n_done, steps);
  else
    g_printerr ("meanwhile: %s\n", error->message);
  run_clear (&run);
  return status;
}
