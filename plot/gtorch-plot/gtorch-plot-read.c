/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Tensors become numbers of the host, and these what is drawn, at once or in a thread. Of two reads for one
 * item, the one that was begun later counts, whichever ends last. What was cancelled has ended at once; its
 * thread, which has nothing but what is its own, ends behind it. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "gtorch-plot-private.h"

gchar *
gtorch_plot_shape_text (GTorchTensor *tensor)
{
  gsize n_dims;
  const gint64 *shape = gtorch_tensor_get_shape (tensor, &n_dims);
  GString *text = g_string_new ("[");

  for (gsize i = 0; i < n_dims; i++)
    g_string_append_printf (text, "%s%" PRId64, i > 0 ? ", " : "", shape[i]);
  g_string_append_c (text, ']');
  return g_string_free (text, FALSE);
}

gboolean
gtorch_plot_check_dtype (const gchar *op, const gchar *what, GTorchTensor *tensor, GError **error)
{
  const GTorchDType dtype = gtorch_tensor_get_dtype (tensor);

  if (!gtorch_dtype_is_complex (dtype))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
               _ ("%s: %s is of %s, and complex numbers have no place on an axis"), op, what,
               gtorch_dtype_get_name (dtype));
  return FALSE;
}

static void
clear_read (GTorchPlotRead *read)
{
  for (guint i = 0; i < GTORCH_PLOT_MAX_TENSORS; i++)
    g_clear_pointer (&read->values[i], g_free);
  if (read->result != NULL)
    read->free_result (read->result);
  read->result = NULL;
}

/* Messages begin with the name of the caller's function. */
static void
name_op (GError *error, const gchar *op)
{
  gchar *message = g_strconcat (op, ": ", error->message, NULL);

  g_free (error->message);
  error->message = message;
}

static void
take_read (GTorchPlotItem *item, guint serial, GTorchPlotRead *read, GTorchPlotTake take)
{
  if (serial > item->taken_serial)
    {
      item->taken_serial = serial;
      take (item, read);
    }
  clear_read (read);
}

/* Maybe in a thread. */
static gboolean
read_values (GTorchTensor **tensors, GTorchPlotRead *read, const gchar *op,
             GCancellable *cancellable, GError **error)
{
  GError *failure = NULL;

  for (guint i = 0; i < GTORCH_PLOT_MAX_TENSORS; i++)
    if (tensors[i] != NULL)
      {
        if (g_cancellable_set_error_if_cancelled (cancellable, error))
          return FALSE;
        read->values[i] = gtorch_tensor_to_doubles (tensors[i], &read->n_values[i], &failure);
        if (read->values[i] == NULL)
          {
            name_op (failure, op);
            g_propagate_error (error, failure);
            return FALSE;
          }
      }
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  read->prepare (read);
  return TRUE;
}

gboolean
gtorch_plot_read_now (GTorchPlotItem *item, const gchar *op, GTorchTensor **tensors,
                      GTorchPlotRead read, GTorchPlotTake take, GError **error)
{
  const gboolean result = read_values (tensors, &read, op, NULL, error);

  if (result)
    take_read (item, ++item->serial, &read, take);
  else
    clear_read (&read);
  return result;
}

/* --- in a thread --- */

/* What the thread works with, and nobody else until it has ended. */
typedef struct
{
  const gchar *op;
  GTorchPlotRead read;
  GMainContext *context;                          /* of the owner of the tensors */
  GTorchTensor *tensors[GTORCH_PLOT_MAX_TENSORS]; /* then those on the CPU */
} Work;

typedef struct
{
  GTask *task; /* of the item */
  GTorchPlotTake take;
  guint serial, n_pending;
  GError *error;
  Work *work; /* NULL: the thread has it */
} Later;

static gboolean
drop_tensor (gpointer data)
{
  g_object_unref (data);
  return G_SOURCE_REMOVE;
}

/* Maybe in the thread. The tensors are dropped where their owner is. */
static void
work_free (gpointer data)
{
  Work *work = data;

  for (guint i = 0; i < GTORCH_PLOT_MAX_TENSORS; i++)
    if (work->tensors[i] != NULL)
      {
        g_autoptr (GSource) source = g_idle_source_new ();

        g_source_set_callback (source, drop_tensor, work->tensors[i], NULL);
        g_source_attach (source, work->context);
      }
  clear_read (&work->read);
  g_main_context_unref (work->context);
  g_free (work);
}

static void
work_drop_tensors (Work *work)
{
  for (guint i = 0; i < GTORCH_PLOT_MAX_TENSORS; i++)
    g_clear_object (&work->tensors[i]);
}

static void
later_free (Later *later)
{
  if (later->work != NULL)
    {
      work_drop_tensors (later->work);
      work_free (later->work);
    }
  g_object_unref (later->task);
  g_free (later);
}

static void
read_in_thread (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  Work *work = data;
  GError *error = NULL;

  if (read_values (work->tensors, &work->read, work->op, cancellable, &error))
    g_task_return_boolean (task, TRUE);
  else
    g_task_return_error (task, error);
}

static void
was_read (GObject *object, GAsyncResult *result, gpointer data)
{
  Later *later = data;
  Work *work = g_task_get_task_data (G_TASK (result));
  GError *error = NULL;

  if (g_task_propagate_boolean (G_TASK (result), &error))
    {
      take_read (g_task_get_source_object (later->task), later->serial, &work->read, later->take);
      work_drop_tensors (work);
      g_task_return_boolean (later->task, TRUE);
    }
  else
    g_task_return_error (later->task, error);
  later_free (later);
}

static void
end_one (Later *later)
{
  g_autoptr (GTask) task = NULL;

  if (--later->n_pending > 0)
    return;
  if (later->error != NULL)
    {
      name_op (later->error, later->work->op);
      g_task_return_error (later->task, later->error);
      later_free (later);
      return;
    }
  task = g_task_new (NULL, g_task_get_cancellable (later->task), was_read, later);
  g_task_set_task_data (task, g_steal_pointer (&later->work), work_free);
  gtorch_task_run_in_thread (task, read_in_thread);
}

typedef struct
{
  Later *later;
  guint i;
} Part;

static void
found_elements (GObject *object, GAsyncResult *result, gpointer data)
{
  g_autofree Part *part = data;
  Later *later = part->later;
  GError *error = NULL;
  GTorchTensor *host = gtorch_tensor_to_device_finish (GTORCH_TENSOR (object), result, &error);

  g_object_unref (later->work->tensors[part->i]);
  later->work->tensors[part->i] = host;
  if (error != NULL && later->error == NULL)
    later->error = g_steal_pointer (&error);
  g_clear_error (&error);
  end_one (later);
}

void
gtorch_plot_read_later (GTorchPlotItem *item, const gchar *op, GTorchTensor **tensors,
                        GTorchPlotRead read, GTorchPlotTake take, GTask *task)
{
  Later *later = g_new0 (Later, 1);
  Work *work = later->work = g_new0 (Work, 1);

  later->task = g_object_ref (task);
  later->take = take;
  later->serial = ++item->serial;
  later->n_pending = 1; /* until all are begun */
  work->op = op;
  work->read = read;
  work->context = g_main_context_ref_thread_default ();
  for (guint i = 0; i < GTORCH_PLOT_MAX_TENSORS; i++)
    if (tensors[i] != NULL)
      {
        Part *part = g_new (Part, 1);

        *part = (Part){ later, i };
        work->tensors[i] = g_object_ref (tensors[i]);
        later->n_pending++;
        gtorch_tensor_to_device_async (tensors[i], gtorch_device_cpu (),
                                       g_task_get_cancellable (task), found_elements, part);
      }
  end_one (later);
}
