/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Files of figures. */

#include "config.h"

#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <glib/gi18n-lib.h>
#include <math.h>

#include "gtorch-plot-private.h"

typedef struct
{
  GByteArray *bytes;
  GCancellable *cancellable;
} Output;

static cairo_status_t
append (void *data, const unsigned char *bytes, unsigned int n_bytes)
{
  Output *output = data;

  if (g_cancellable_is_cancelled (output->cancellable))
    return CAIRO_STATUS_WRITE_ERROR;
  g_byte_array_append (output->bytes, bytes, n_bytes);
  return CAIRO_STATUS_SUCCESS;
}

static cairo_status_t
write_to (GTorchPlotFigure *self, GTorchPlotFormat format, Output *output)
{
  const gdouble scale = gtorch_plot_figure_get_resolution (self) / 72;
  gdouble width, height;
  cairo_surface_t *surface;
  cairo_status_t status;
  cairo_t *cr;

  gtorch_plot_figure_get_size (self, &width, &height);
  if (format == GTORCH_PLOT_FORMAT_SVG)
    surface = cairo_svg_surface_create_for_stream (append, output, width, height);
  else if (format == GTORCH_PLOT_FORMAT_PDF)
    surface = cairo_pdf_surface_create_for_stream (append, output, width, height);
  else
    surface = cairo_image_surface_create (CAIRO_FORMAT_RGB24, (gint) ceil (width * scale),
                                          (gint) ceil (height * scale));
  cr = cairo_create (surface);
  if (format == GTORCH_PLOT_FORMAT_PNG)
    cairo_scale (cr, scale, scale);
  gtorch_plot_figure_draw (self, cr, width, height);
  status = cairo_status (cr);
  cairo_destroy (cr);
  if (status == CAIRO_STATUS_SUCCESS && format == GTORCH_PLOT_FORMAT_PNG)
    status = cairo_surface_write_to_png_stream (surface, append, output);
  cairo_surface_finish (surface);
  if (status == CAIRO_STATUS_SUCCESS)
    status = cairo_surface_status (surface);
  cairo_surface_destroy (surface);
  return status;
}

static GBytes *
make_bytes (GTorchPlotFigure *self, GTorchPlotFormat format, GCancellable *cancellable,
            GError **error)
{
  gdouble width, height;
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  Output output = { bytes, cancellable };
  cairo_status_t status = write_to (self, format, &output);

  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return NULL;
  if (status == CAIRO_STATUS_SUCCESS)
    return g_byte_array_free_to_bytes (g_steal_pointer (&bytes));
  gtorch_plot_figure_get_size (self, &width, &height);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
               _ ("plot_figure: %g by %g points with %g pixels in an inch: %s"), width, height,
               gtorch_plot_figure_get_resolution (self), cairo_status_to_string (status));
  return NULL;
}

/**
 * gtorch_plot_figure_to_bytes:
 * @self: a figure
 * @format: the format
 * @error: return location for an error
 *
 * Draws the figure as a file in memory.
 *
 * Returns: (transfer full): the contents of the file, or %NULL with %GTORCH_ERROR_FAILED if cairo cannot
 *   draw it, for example because it would have more than 32767 pixels on a side
 *
 * Since: 0.1
 */
GBytes *
gtorch_plot_figure_to_bytes (GTorchPlotFigure *self, GTorchPlotFormat format, GError **error)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_FIGURE (self), NULL);
  if (format < GTORCH_PLOT_FORMAT_PNG || format > GTORCH_PLOT_FORMAT_PDF)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("plot_figure_to_bytes: %d is no format of files"), format);
      return NULL;
    }
  return make_bytes (self, format, NULL, error);
}

static gboolean
find_format (GFile *file, GTorchPlotFormat *format, GError **error)
{
  g_autofree gchar *name = g_file_get_basename (file);
  g_autofree gchar *lower = name != NULL ? g_ascii_strdown (name, -1) : g_strdup ("");

  if (g_str_has_suffix (lower, ".png"))
    *format = GTORCH_PLOT_FORMAT_PNG;
  else if (g_str_has_suffix (lower, ".svg"))
    *format = GTORCH_PLOT_FORMAT_SVG;
  else if (g_str_has_suffix (lower, ".pdf"))
    *format = GTORCH_PLOT_FORMAT_PDF;
  else
    {
      g_autofree gchar *valid = g_utf8_make_valid (lower, -1);

      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("plot_figure_save: the name “%s” ends neither with .png nor with .svg or "
                      ".pdf"),
                   valid);
      return FALSE;
    }
  return TRUE;
}

static gboolean
refuse_place (GFile *file, GIOErrorEnum code, const gchar *why, GError **error)
{
  g_autofree gchar *name = g_file_get_parse_name (file);

  g_set_error (error, G_IO_ERROR, code, _ ("plot_figure_save: “%s”: %s"), name, _ (why));
  return FALSE;
}

/* Whether a file can be made there, as far as it can be told without making it: drawing may take a while. */
static gboolean
check_place (GFile *file, GCancellable *cancellable, GError **error)
{
  static const gchar attributes[] =
      G_FILE_ATTRIBUTE_STANDARD_TYPE "," G_FILE_ATTRIBUTE_ACCESS_CAN_WRITE;
  g_autoptr (GFile) folder = g_file_get_parent (file);
  g_autoptr (GError) local = NULL;
  g_autoptr (GFileInfo) info =
      g_file_query_info (file, attributes, G_FILE_QUERY_INFO_NONE, cancellable, NULL);
  const gboolean is_there = info != NULL;

  if (!is_there && folder != NULL)
    info = g_file_query_info (folder, attributes, G_FILE_QUERY_INFO_NONE, cancellable, &local);
  if (local != NULL && !g_error_matches (local, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED))
    {
      g_prefix_error (&local, "plot_figure_save: ");
      g_propagate_error (error, g_steal_pointer (&local));
      return FALSE;
    }
  if (info == NULL)
    return TRUE; /* writing tells */
  if (is_there && g_file_info_get_file_type (info) == G_FILE_TYPE_DIRECTORY)
    return refuse_place (file, G_IO_ERROR_IS_DIRECTORY, N_ ("it is a folder"), error);
  if (!is_there && g_file_info_get_file_type (info) != G_FILE_TYPE_DIRECTORY)
    return refuse_place (folder, G_IO_ERROR_NOT_DIRECTORY, N_ ("it is no folder"), error);
  if (g_file_info_has_attribute (info, G_FILE_ATTRIBUTE_ACCESS_CAN_WRITE)
      && !g_file_info_get_attribute_boolean (info, G_FILE_ATTRIBUTE_ACCESS_CAN_WRITE))
    return refuse_place (is_there ? file : folder, G_IO_ERROR_PERMISSION_DENIED,
                         N_ ("it may not be written"), error);
  return TRUE;
}

static gboolean
draw_and_write (GTorchPlotFigure *self, GTorchPlotFormat format, GFile *file,
                GCancellable *cancellable, GError **error)
{
  g_autoptr (GBytes) bytes = NULL;
  gconstpointer data;
  gsize n_bytes;

  if (!check_place (file, cancellable, error))
    return FALSE;
  bytes = make_bytes (self, format, cancellable, error);
  if (bytes == NULL)
    return FALSE;
  data = g_bytes_get_data (bytes, &n_bytes);
  return g_file_replace_contents (file, data, n_bytes, NULL, FALSE, G_FILE_CREATE_NONE, NULL,
                                  cancellable, error);
}

/**
 * gtorch_plot_figure_save:
 * @self: a figure
 * @file: a file whose name ends with `.png`, `.svg` or `.pdf`
 * @cancellable: (nullable): cancels drawing and writing
 * @error: return location for an error
 *
 * Writes the figure into a file, in place of what is there. Where no file can be made, it does not draw.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_NOT_SUPPORTED, an error of
 *   [method@Figure.to_bytes], or one of the file system
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_figure_save (GTorchPlotFigure *self, GFile *file, GCancellable *cancellable,
                         GError **error)
{
  GTorchPlotFormat format;

  g_return_val_if_fail (GTORCH_PLOT_IS_FIGURE (self), FALSE);
  g_return_val_if_fail (G_IS_FILE (file), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  return find_format (file, &format, error)
         && draw_and_write (self, format, file, cancellable, error);
}

typedef struct
{
  GTorchPlotFigure *copy;
  GTorchPlotFormat format;
  GFile *file;
} Save;

static void
save_free (gpointer data)
{
  Save *save = data;

  g_object_unref (save->copy);
  g_object_unref (save->file);
  g_free (save);
}

static void
save_in_thread (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  const Save *save = data;
  GError *error = NULL;

  if (!g_cancellable_set_error_if_cancelled (cancellable, &error)
      && draw_and_write (save->copy, save->format, save->file, cancellable, &error))
    g_task_return_boolean (task, TRUE);
  else
    g_task_return_error (task, error);
}

/* data: the task of the figure, which the thread leaves alone. */
static void
written (GObject *object, GAsyncResult *result, gpointer data)
{
  g_autoptr (GTask) task = data;
  GError *error = NULL;

  if (g_task_propagate_boolean (G_TASK (result), &error))
    g_task_return_boolean (task, TRUE);
  else
    g_task_return_error (task, error);
}

/**
 * gtorch_plot_figure_save_async:
 * @self: a figure
 * @file: a file whose name ends with `.png`, `.svg` or `.pdf`
 * @cancellable: (nullable): cancels drawing and writing
 * @callback: (nullable) (scope async) (closure user_data): called when the file is written
 * @user_data: data for @callback
 *
 * Draws the figure as it is now, and writes the file, in a thread: neither blocks the main loop.
 * When @cancellable is cancelled, @callback is called at once; the thread ends after it, and leaves the file
 * as it was.
 *
 * Since: 0.1
 */
void
gtorch_plot_figure_save_async (GTorchPlotFigure *self, GFile *file, GCancellable *cancellable,
                               GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = NULL, writer = NULL;
  GTorchPlotFormat format;
  GError *error = NULL;
  Save *save;

  g_return_if_fail (GTORCH_PLOT_IS_FIGURE (self));
  g_return_if_fail (G_IS_FILE (file));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (self, gtorch_plot_figure_save_async, cancellable, callback, user_data);
  if (!find_format (file, &format, &error))
    {
      g_task_return_error (task, error);
      return;
    }
  save = g_new (Save, 1);
  *save = (Save){ gtorch_plot_figure_copy (self), format, g_object_ref (file) };
  gtorch_plot_figure_set_cancellable (save->copy, cancellable);
  writer = g_task_new (NULL, cancellable, written, g_steal_pointer (&task));
  g_task_set_task_data (writer, save, save_free);
  gtorch_task_run_in_thread (writer, save_in_thread);
}

/**
 * gtorch_plot_figure_save_finish:
 * @self: a figure
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Finishes [method@Figure.save_async].
 *
 * Returns: %TRUE on success; %FALSE with an error of [method@Figure.save] or %G_IO_ERROR_CANCELLED
 *
 * Since: 0.1
 */
gboolean
gtorch_plot_figure_save_finish (GTorchPlotFigure *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (GTORCH_PLOT_IS_FIGURE (self), FALSE);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), FALSE);
  return gtorch_task_take (result, self, gtorch_plot_figure_save_async, error)
         && g_task_propagate_boolean (G_TASK (result), error);
}
