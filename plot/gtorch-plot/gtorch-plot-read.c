/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Tensors become numbers of the host, and these what is drawn, at once or in a thread. Of two reads for one
 * item, the one that was begun later counts, whichever ends last. */

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
read_values (GTorchTensor **tensors, GTorchPlotRead *read, const gchar *op, GError **error)
{
  GError *failure = NULL;

  for (guint i = 0; i < GTORCH_PLOT_MAX_TENSORS; i++)
    if (tensors[i] != NULL)
      {
        read->values[i] = gtorch_tensor_to_doubles (tensors[i], &read->n_values[i], &failure);
        if (read->values[i] == NULL)
          {
            name_op (failure, op);
            g_propagate_error (error, failure);
            return FALSE;
          }
      }
  read->prepare (read);
  return TRUE;
}

gboolean
gtorch_plot_read_now (GTorchPlotItem *item, const gchar *op, GTorchTensor **tensors,
                      GTorchPlotRead read, GTorchPlotTake take, GError **error)
{
  const gboolean result = read_values (tensors, &read, op, error);

  if (result)
    take_read (item, ++item->serial, &read, take);
  else
    clear_read (&read);
  return result;
}

typedef struct
{
  GTask *task; /* of the item: the thread leaves it alone */
  GTorchPlotRead read;
  GTorchPlotTake take;
  const gchar *op;
  guint serial, n_pending;
  GTorchTensor *tensors[GTORCH_PLOT_MAX_TENSORS]; /* then those on the CPU */
  GError *error;
} Later;

static void
later_end (Later *later)
{
  if (later->error != NULL)
    g_task_return_error (later->task, later->error);
  else if (!g_task_return_error_if_cancelled (later->task))
    {
      take_read (g_task_get_source_object (later->task), later->serial, &later->read, later->take);
      g_task_return_boolean (later->task, TRUE);
    }
  clear_read (&later->read);
  for (guint i = 0; i < GTORCH_PLOT_MAX_TENSORS; i++)
    g_clear_object (&later->tensors[i]);
  g_object_unref (later->task);
  g_free (later);
}

static void
read_in_thread (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  Later *later = data;

  read_values (later->tensors, &later->read, later->op, &later->error);
  g_task_return_boolean (task, TRUE);
}

static void
was_read (GObject *object, GAsyncResult *result, gpointer data)
{
  later_end (data);
}

static void
end_one (Later *later)
{
  g_autoptr (GTask) task = NULL;

  if (--later->n_pending > 0)
    return;
  if (later->error != NULL)
    {
      name_op (later->error, later->op);
      later_end (later);
      return;
    }
  task = g_task_new (NULL, NULL, was_read, later);
  g_task_set_task_data (task, later, NULL);
  g_task_run_in_thread (task, read_in_thread);
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

  g_object_unref (later->tensors[part->i]);
  later->tensors[part->i] = host;
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

  later->task = g_object_ref (task);
  later->read = read;
  later->take = take;
  later->op = op;
  later->serial = ++item->serial;
  later->n_pending = 1; /* until all are begun */
  for (guint i = 0; i < GTORCH_PLOT_MAX_TENSORS; i++)
    if (tensors[i] != NULL)
      {
        Part *part = g_new (Part, 1);

        *part = (Part){ later, i };
        later->tensors[i] = g_object_ref (tensors[i]);
        later->n_pending++;
        gtorch_tensor_to_device_async (tensors[i], gtorch_device_cpu (),
                                       g_task_get_cancellable (task), found_elements, part);
      }
  end_one (later);
}
