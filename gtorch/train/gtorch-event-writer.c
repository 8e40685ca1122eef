/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "train/gtorch-event-writer.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/gtorch-text-private.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-none-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "elements/gtorch-tensor-bytes.h"
#include "ops/gtorch-formula-private.h"
#include "tensor/gtorch-hold-private.h"
#include "tensor/gtorch-tensor-private.h"
#include "train/gtorch-event-records-private.h"
#include "train/gtorch-log-private.h"

#define OP(name, ...) GTORCH_FORMULA_OP (&f, name, __VA_ARGS__)

/**
 * GTorchEventWriter:
 *
 * A log that TensorBoard shows: numbers, histograms, pictures and text in a file of events in a folder.
 *
 * The first event makes the folder, and the file, whose name has the time, the computer and the process.
 * Events are given to the system after [property@EventWriter:flush-secs], and by [method@Log.flush]. A step
 * of [const@NONE] is left out, and a time of [const@NONE_DOUBLE] is the present.
 *
 * ```c
 * g_autoptr (GFile) folder = g_file_new_for_path ("runs/first");
 * g_autoptr (GTorchEventWriter) writer = gtorch_event_writer_new (folder, NULL);
 *
 * gtorch_event_writer_add_scalar (writer, "loss", 0.25, 20, GTORCH_NONE_DOUBLE, &error);
 * ```
 *
 * Since: 0.1
 */
struct _GTorchEventWriter
{
  GTorchLog parent_instance;
  GFile *folder;
  gchar *suffix;
  GTorchLogFile to;
  guint flush_secs;
  gint64 flush_time;
  gboolean has_version;
};

G_DEFINE_TYPE (GTorchEventWriter, gtorch_event_writer, GTORCH_TYPE_LOG)

static const GTorchField fields[] = {
  /**
   * GTorchEventWriter:folder:
   *
   * The folder of the run.
   *
   * Since: 0.1
   */
  { "folder", GTORCH_FIELD_OBJECT, GTORCH_FIELD (GTorchEventWriter, folder), 0, g_file_get_type,
    GTORCH_FIELD_FIXED },
  /**
   * GTorchEventWriter:suffix:
   *
   * What the name of the file ends with.
   *
   * Since: 0.1
   */
  { "suffix", GTORCH_FIELD_STRING, GTORCH_FIELD (GTorchEventWriter, suffix), 0, NULL,
    GTORCH_FIELD_FIXED },
  /**
   * GTorchEventWriter:flush-secs:
   *
   * After how many seconds events are given to the system, by the event behind them; 0: at once.
   *
   * Since: 0.1
   */
  { "flush-secs", GTORCH_FIELD_UINT, GTORCH_FIELD (GTorchEventWriter, flush_secs), 120, NULL,
    GTORCH_FIELD_SETTING, .low = 0, .high = 86400 },
};

/* --- events --- */

/* The numbers of the fields are those of TensorFlow's event.proto, summary.proto and tensor.proto. */
enum
{
  EVENT_WALL_TIME = 1,
  EVENT_STEP = 2,
  EVENT_FILE_VERSION = 3,
  EVENT_SUMMARY = 5,

  SUMMARY_VALUE = 1,
  VALUE_TAG = 1,
  VALUE_SIMPLE = 2,
  VALUE_IMAGE = 4,
  VALUE_HISTOGRAM = 5,
  VALUE_TENSOR = 8,
  VALUE_METADATA = 9,

  METADATA_PLUGIN_DATA = 1,
  PLUGIN_NAME = 1,
  IMAGE_HEIGHT = 1,
  IMAGE_WIDTH = 2,
  IMAGE_COLORSPACE = 3,
  IMAGE_ENCODED = 4,
  HISTOGRAM_MIN = 1,
  HISTOGRAM_MAX = 2,
  HISTOGRAM_NUM = 3,
  HISTOGRAM_SUM = 4,
  HISTOGRAM_SUM_SQUARES = 5,
  HISTOGRAM_BUCKET_LIMIT = 6,
  HISTOGRAM_BUCKET = 7,
  TENSOR_DTYPE = 1,
  TENSOR_SHAPE = 2,
  TENSOR_STRING = 8,
  SHAPE_DIM = 2,
  DIM_SIZE = 1,

  DT_STRING = 7,
};

static gboolean
write_event (GTorchEventWriter *self, GByteArray *event, GError **error)
{
  g_autoptr (GByteArray) owned = event;
  g_autoptr (GBytes) record = gtorch_tfrecord_new (owned);
  gsize n_bytes;
  gconstpointer data = g_bytes_get_data (record, &n_bytes);

  return gtorch_log_file_write (&self->to, data, n_bytes, error);
}

static gboolean
open_file (GTorchEventWriter *self, GError **error)
{
  GByteArray *event;
  GError *local = NULL;

  if (self->has_version)
    return TRUE;
  if (!gtorch_log_file_check (&self->to, error))
    return FALSE;
  if (!g_file_make_directory_with_parents (self->folder, NULL, &local)
      && !g_error_matches (local, G_IO_ERROR, G_IO_ERROR_EXISTS))
    {
      g_propagate_error (error, local);
      return FALSE;
    }
  g_clear_error (&local);
  event = g_byte_array_new ();
  gtorch_proto_add_double (event, EVENT_WALL_TIME, g_get_real_time () / (gdouble) G_USEC_PER_SEC);
  gtorch_proto_add_string (event, EVENT_FILE_VERSION, "brain.Event:2");
  self->flush_time = g_get_monotonic_time ();
  self->has_version = write_event (self, event, error);
  return self->has_version;
}

/* Writes an event, and takes the summary. */
static gboolean
write_summary (GTorchEventWriter *self, GByteArray *summary, gint64 step, gdouble wall_time,
               GError **error)
{
  g_autoptr (GByteArray) inner = summary;
  GByteArray *event;
  const gint64 now = g_get_monotonic_time ();

  if (!open_file (self, error))
    return FALSE;
  if (gtorch_is_none_double (wall_time))
    wall_time = g_get_real_time () / (gdouble) G_USEC_PER_SEC;
  event = g_byte_array_new ();
  gtorch_proto_add_double (event, EVENT_WALL_TIME, wall_time);
  if (step != GTORCH_NONE)
    gtorch_proto_add_int (event, EVENT_STEP, step);
  gtorch_proto_add_message (event, EVENT_SUMMARY, g_steal_pointer (&inner));
  if (!write_event (self, event, error))
    return FALSE;
  if (now - self->flush_time < self->flush_secs * (gint64) G_USEC_PER_SEC)
    return TRUE;
  self->flush_time = now;
  return gtorch_log_file_flush (&self->to, error);
}

static GByteArray *
new_value (const gchar *tag)
{
  GByteArray *value = g_byte_array_new ();

  gtorch_proto_add_string (value, VALUE_TAG, tag);
  return value;
}

/* Writes the value as the only one of an event, and takes it. */
static gboolean
write_value (GTorchEventWriter *self, GByteArray *value, gint64 step, gdouble wall_time,
             GError **error)
{
  GByteArray *summary = g_byte_array_new ();
  gboolean result;

  gtorch_proto_add_message (summary, SUMMARY_VALUE, value);
  if (!gtorch_log_lock (GTORCH_LOG (self), "add", error))
    {
      g_byte_array_unref (summary);
      return FALSE;
    }
  result = write_summary (self, summary, step, wall_time, error);
  gtorch_log_unlock (GTORCH_LOG (self));
  return result;
}

static gboolean
check_tag (const gchar *op, const gchar *tag, GError **error)
{
  if (*tag != '\0' && g_utf8_validate (tag, -1, NULL))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               *tag == '\0' ? _ ("%s: the tag is empty") : _ ("%s: the tag is not UTF-8"), op);
  return FALSE;
}

/* --- the class --- */

static gboolean
gtorch_event_writer_write (GTorchLog *log, gint64 step, const gchar *const *names,
                           const gdouble *values, gsize n_values, GError **error)
{
  g_autoptr (GByteArray) summary = g_byte_array_new ();

  for (gsize i = 0; i < n_values; i++)
    {
      GByteArray *value;

      if (!check_tag ("log_write", names[i], error))
        return FALSE;
      value = new_value (names[i]);
      gtorch_proto_add_float (value, VALUE_SIMPLE, values[i]);
      gtorch_proto_add_message (summary, SUMMARY_VALUE, value);
    }
  return write_summary (GTORCH_EVENT_WRITER (log), g_steal_pointer (&summary), step,
                        GTORCH_NONE_DOUBLE, error);
}

static gboolean
gtorch_event_writer_flush (GTorchLog *log, GError **error)
{
  GTorchEventWriter *self = GTORCH_EVENT_WRITER (log);

  self->flush_time = g_get_monotonic_time ();
  return gtorch_log_file_flush (&self->to, error);
}

static gboolean
gtorch_event_writer_close (GTorchLog *log, GError **error)
{
  return gtorch_log_file_close (&GTORCH_EVENT_WRITER (log)->to, error);
}

static void
gtorch_event_writer_constructed (GObject *object)
{
  static gint number;
  GTorchEventWriter *self = GTORCH_EVENT_WRITER (object);
  g_autofree gchar *name = NULL;

  G_OBJECT_CLASS (gtorch_event_writer_parent_class)->constructed (object);
  if (self->folder == NULL)
    return;
  name = g_strdup_printf ("events.out.tfevents.%010" G_GINT64_FORMAT ".%s.%d.%d%s",
                          g_get_real_time () / G_USEC_PER_SEC, g_get_host_name (), (gint) getpid (),
                          g_atomic_int_add (&number, 1), self->suffix != NULL ? self->suffix : "");
  self->to.file = g_file_get_child (self->folder, name);
}

static void
gtorch_event_writer_finalize (GObject *object)
{
  GTorchEventWriter *self = GTORCH_EVENT_WRITER (object);

  gtorch_log_file_clear (&self->to);
  g_clear_object (&self->folder);
  g_free (self->suffix);
  G_OBJECT_CLASS (gtorch_event_writer_parent_class)->finalize (object);
}

static void
gtorch_event_writer_class_init (GTorchEventWriterClass *klass)
{
  G_OBJECT_CLASS (klass)->constructed = gtorch_event_writer_constructed;
  G_OBJECT_CLASS (klass)->finalize = gtorch_event_writer_finalize;
  GTORCH_LOG_CLASS (klass)->write = gtorch_event_writer_write;
  GTORCH_LOG_CLASS (klass)->flush = gtorch_event_writer_flush;
  GTORCH_LOG_CLASS (klass)->close = gtorch_event_writer_close;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_event_writer_init (GTorchEventWriter *self)
{
}

/**
 * gtorch_event_writer_new:
 * @folder: the folder of the run
 * @suffix: (nullable): what the name of the file ends with
 *
 * Creates a log.
 *
 * Returns: (transfer full): the log
 *
 * Since: 0.1
 */
GTorchEventWriter *
gtorch_event_writer_new (GFile *folder, const gchar *suffix)
{
  g_return_val_if_fail (G_IS_FILE (folder), NULL);
  return g_object_new (GTORCH_TYPE_EVENT_WRITER, "folder", folder, "suffix", suffix, NULL);
}

/**
 * gtorch_event_writer_get_file:
 * @self: a log
 *
 * Gets the file, which the first event makes.
 *
 * Returns: (transfer none) (nullable): the file; %NULL if the log was made without a folder
 *
 * Since: 0.1
 */
GFile *
gtorch_event_writer_get_file (GTorchEventWriter *self)
{
  g_return_val_if_fail (GTORCH_IS_EVENT_WRITER (self), NULL);
  return self->to.file;
}

/**
 * gtorch_event_writer_add_scalar:
 * @self: a log
 * @tag: the name of the number
 * @value: the number, of which the file keeps a float32
 * @step: the step, or [const@NONE]
 * @wall_time: seconds since 1970, or [const@NONE_DOUBLE] for the present
 * @error: return location for an error
 *
 * Adds a number.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID for an empty tag or a closed log, or with the error of
 *   the file
 *
 * Since: 0.1
 */
gboolean
gtorch_event_writer_add_scalar (GTorchEventWriter *self, const gchar *tag, gdouble value,
                                gint64 step, gdouble wall_time, GError **error)
{
  GByteArray *message;

  g_return_val_if_fail (GTORCH_IS_EVENT_WRITER (self), FALSE);
  g_return_val_if_fail (tag != NULL, FALSE);
  if (!check_tag ("add_scalar", tag, error))
    return FALSE;
  message = new_value (tag);
  gtorch_proto_add_float (message, VALUE_SIMPLE, value);
  return write_value (self, message, step, wall_time, error);
}

/* --- histograms --- */

/* TensorFlow's: each is greater than the one before by a tenth, on both sides of 0. */
static GArray *
make_bounds (const gdouble *bounds, gsize n_bounds)
{
  GArray *made = g_array_new (FALSE, FALSE, sizeof (gdouble));
  g_autoptr (GArray) positive = g_array_new (FALSE, FALSE, sizeof (gdouble));
  gdouble bound;

  if (n_bounds > 0)
    return g_array_append_vals (made, bounds, n_bounds);
  for (bound = 1e-12; bound < 1e20; bound *= 1.1)
    g_array_append_val (positive, bound);
  for (guint i = positive->len; i > 0; i--)
    {
      bound = -g_array_index (positive, gdouble, i - 1);
      g_array_append_val (made, bound);
    }
  bound = 0;
  g_array_append_val (made, bound);
  g_array_append_vals (made, positive->data, positive->len);
  return made;
}

static gboolean
check_bounds (const gdouble *bounds, gsize n_bounds, GError **error)
{
  if (n_bounds == 1)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("add_histogram: one bound is given, and buckets have at least two"));
      return FALSE;
    }
  for (gsize i = 1; i < n_bounds; i++)
    if (!(bounds[i - 1] < bounds[i]))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("add_histogram: the bound %g is followed by %g, and bounds must grow"),
                     bounds[i - 1], bounds[i]);
        return FALSE;
      }
  return TRUE;
}

/* The bucket that begins at a bound not above the value; the last one has its end, too. -1: none. */
static gssize
find_bucket (const gdouble *bounds, gsize n_bounds, gdouble value)
{
  gsize low = 0, high = n_bounds - 1;

  if (value < bounds[0] || value > bounds[high])
    return -1;
  while (high - low > 1)
    {
      const gsize middle = (low + high) / 2;

      if (value < bounds[middle])
        high = middle;
      else
        low = middle;
    }
  return low;
}

static GByteArray *
make_histogram (const gdouble *values, gsize n_values, const gdouble *bounds, gsize n_bounds)
{
  g_autofree gdouble *counts = g_new0 (gdouble, n_bounds);
  GByteArray *histogram = g_byte_array_new ();
  gdouble low = INFINITY, high = -INFINITY, sum = 0, squares = 0;
  gsize first, last;

  /* counts[i + 1] is that of the bucket i: TensorBoard knows a bucket by its upper end, and wants an empty
   * one for the lower end of the first. */
  for (gsize i = 0; i < n_values; i++)
    {
      const gssize bucket = find_bucket (bounds, n_bounds, values[i]);

      if (bucket >= 0)
        counts[bucket + 1]++;
      low = MIN (low, values[i]);
      high = MAX (high, values[i]);
      sum += values[i];
      squares += values[i] * values[i];
    }
  for (first = 0; first + 2 < n_bounds && counts[first + 1] == 0; first++)
    ;
  for (last = n_bounds - 1; last > first + 1 && counts[last] == 0; last--)
    ;
  gtorch_proto_add_double (histogram, HISTOGRAM_MIN, low);
  gtorch_proto_add_double (histogram, HISTOGRAM_MAX, high);
  gtorch_proto_add_double (histogram, HISTOGRAM_NUM, n_values);
  gtorch_proto_add_double (histogram, HISTOGRAM_SUM, sum);
  gtorch_proto_add_double (histogram, HISTOGRAM_SUM_SQUARES, squares);
  gtorch_proto_add_doubles (histogram, HISTOGRAM_BUCKET_LIMIT, bounds + first, last - first + 1);
  gtorch_proto_add_doubles (histogram, HISTOGRAM_BUCKET, counts + first, last - first + 1);
  return histogram;
}

/**
 * gtorch_event_writer_add_histogram:
 * @self: a log
 * @tag: the name of the histogram
 * @values: the values, of any shape and real dtype
 * @bounds: (array length=n_bounds) (nullable): the bounds of the buckets, each greater than the one before;
 *   %NULL for TensorFlow's, each of which is by a tenth further from 0
 * @n_bounds: the length of @bounds
 * @step: the step, or [const@NONE]
 * @wall_time: seconds since 1970, or [const@NONE_DOUBLE] for the present
 * @error: return location for an error
 *
 * Adds a histogram of the elements of a tensor. Waits for the tensor. Values beyond the bounds are in no
 * bucket.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if there are no values, some are not finite, bounds do
 *   not grow, the tag is empty or the log is closed; or with the error of the file
 *
 * Since: 0.1
 */
gboolean
gtorch_event_writer_add_histogram (GTorchEventWriter *self, const gchar *tag, GTorchTensor *values,
                                   const gdouble *bounds, gsize n_bounds, gint64 step,
                                   gdouble wall_time, GError **error)
{
  g_autoptr (GArray) buckets = NULL;
  g_autofree gdouble *numbers = NULL;
  GByteArray *value;
  gsize n, n_wrong = 0;
  GError *local = NULL;

  g_return_val_if_fail (GTORCH_IS_EVENT_WRITER (self), FALSE);
  g_return_val_if_fail (tag != NULL, FALSE);
  g_return_val_if_fail (GTORCH_IS_TENSOR (values), FALSE);
  g_return_val_if_fail (bounds != NULL || n_bounds == 0, FALSE);
  if (!check_tag ("add_histogram", tag, error) || !check_bounds (bounds, n_bounds, error))
    return FALSE;
  numbers = gtorch_tensor_to_doubles (values, &n, &local);
  if (local != NULL)
    {
      g_propagate_error (error, local);
      return FALSE;
    }
  for (gsize i = 0; i < n; i++)
    n_wrong += !isfinite (numbers[i]);
  if (n == 0 || n_wrong > 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("add_histogram: %zu of %zu values are not finite, and a histogram has at "
                      "least one value"),
                   n_wrong, n);
      return FALSE;
    }
  buckets = make_bounds (bounds, n_bounds);
  value = new_value (tag);
  gtorch_proto_add_message (value, VALUE_HISTOGRAM,
                            make_histogram (numbers, n, (const gdouble *) buckets->data,
                                            buckets->len));
  return write_value (self, value, step, wall_time, error);
}

/* --- pictures --- */

#define GRID_COLUMNS 8

/* As bytes of shape [pictures, height, width, channels]. */
static GTorchImpl *
make_pixels (GTorchImpl *image, const gchar *dataformats, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  static const gchar order[] = "NHWC";
  GTorchImpl *pixels = image, *factor, *low, *high;
  gint64 dims[4];
  guint n = 0;

  if (strlen (dataformats) != image->n_dims
      || !g_strv_contains ((const gchar *const[]){ "CHW", "HWC", "HW", "NCHW", "NHWC", NULL },
                           dataformats))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("add_image: dataformats is “%s” and the shape %s: it must be CHW, HWC, HW, "
                      "NCHW or NHWC, with a letter for each dimension"),
                   gtorch_name_str (dataformats), gtorch_impl_shape_str (image));
      return NULL;
    }
  if (image->dtype != GTORCH_DTYPE_UINT8 && image->dtype != GTORCH_DTYPE_BOOL
      && !gtorch_dtype_is_floating_point (image->dtype))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("add_image: a picture is of uint8 from 0 to 255, or of a floating-point "
                      "dtype from 0 to 1, not of %s"),
                   gtorch_dtype_get_name (image->dtype));
      return NULL;
    }
  for (guint i = 0; i < 4; i++)
    {
      const gchar *at = strchr (dataformats, order[i]);

      if (at != NULL)
        dims[n++] = at - dataformats;
    }
  pixels = OP (permute, pixels, dims, n);
  if (strchr (dataformats, 'N') == NULL)
    pixels = OP (unsqueeze, pixels, 0);
  if (strchr (dataformats, 'C') == NULL)
    pixels = OP (unsqueeze, pixels, -1);
  if (image->dtype != GTORCH_DTYPE_UINT8)
    {
      factor = gtorch_formula_number (&f, 255);
      low = gtorch_formula_number (&f, 0);
      high = gtorch_formula_number (&f, 255);
      pixels = OP (to_dtype, pixels, GTORCH_DTYPE_FLOAT32);
      pixels = OP (mul, pixels, factor);
      pixels = OP (maximum, pixels, low);
      pixels = OP (minimum, pixels, high);
      pixels = OP (to_dtype, pixels, GTORCH_DTYPE_UINT8);
    }
  if (f.failed)
    return NULL;
  if (pixels->numel == 0
      || (pixels->shape[3] != 1 && pixels->shape[3] != 3 && pixels->shape[3] != 4))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("add_image: the shape is %s in the order %s: a picture has elements, and 1, "
                      "3 or 4 channels"),
                   gtorch_impl_shape_str (image), dataformats);
      return NULL;
    }
  return gtorch_formula_take (&f, pixels);
}

/* Puts the pictures into rows of at most eight. */
static guint8 *
make_grid (const guint8 *pixels, const gint64 *shape, gint64 *width, gint64 *height)
{
  const gint64 n = shape[0], columns = MIN (n, GRID_COLUMNS), rows = (n + columns - 1) / columns;
  const gsize line = shape[2] * shape[3];
  guint8 *grid;

  *width = columns * shape[2];
  *height = rows * shape[1];
  grid = g_try_malloc0_n (*height, *width * shape[3]);
  for (gint64 i = 0; grid != NULL && i < n; i++)
    for (gint64 y = 0; y < shape[1]; y++)
      memcpy (grid + (i / columns * shape[1] + y) * columns * line + i % columns * line,
              pixels + (i * shape[1] + y) * line, line);
  return grid;
}

/**
 * gtorch_event_writer_add_image:
 * @self: a log
 * @tag: the name of the picture
 * @image: the picture, uint8 from 0 to 255, or of a floating-point dtype from 0 to 1
 * @dataformats: the order of its dimensions: `CHW`, `HWC` or `HW`, or `NCHW` or `NHWC` for several pictures,
 *   which are shown in rows of eight
 * @step: the step, or [const@NONE]
 * @wall_time: seconds since 1970, or [const@NONE_DOUBLE] for the present
 * @error: return location for an error
 *
 * Adds a picture, of one (grey), three (red, green, blue) or four channels. Waits for the tensor. Numbers
 * outside of the range are black or white.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_SHAPE or %GTORCH_ERROR_DTYPE if the tensor is no such picture,
 *   %GTORCH_ERROR_INVALID for an empty tag or a closed log, or with the error of the file
 *
 * Since: 0.1
 */
gboolean
gtorch_event_writer_add_image (GTorchEventWriter *self, const gchar *tag, GTorchTensor *image,
                               const gchar *dataformats, gint64 step, gdouble wall_time,
                               GError **error)
{
  GTORCH_HOLD_TENSOR (image);
  g_autoptr (GTorchGradGuard) guard = NULL;
  g_autoptr (GTorchTensor) pixels = NULL;
  g_autoptr (GBytes) bytes = NULL;
  g_autoptr (GBytes) png = NULL;
  g_autofree guint8 *grid = NULL;
  GByteArray *message, *value;
  gint64 width, height;
  const gint64 *shape;

  g_return_val_if_fail (GTORCH_IS_EVENT_WRITER (self), FALSE);
  g_return_val_if_fail (tag != NULL, FALSE);
  g_return_val_if_fail (GTORCH_IS_TENSOR (image), FALSE);
  g_return_val_if_fail (dataformats != NULL, FALSE);
  if (!check_tag ("add_image", tag, error))
    return FALSE;
  guard = gtorch_no_grad ();
  pixels = gtorch_tensor_wrap (make_pixels (gtorch_tensor_unwrap (image), dataformats, error));
  bytes = pixels != NULL ? gtorch_tensor_get_bytes (pixels, error) : NULL;
  if (bytes == NULL)
    return FALSE;
  shape = gtorch_tensor_unwrap (pixels)->shape;
  grid = make_grid (g_bytes_get_data (bytes, NULL), shape, &width, &height);
  if (grid == NULL || width > G_MAXINT32 || height > G_MAXINT32)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY,
                   _ ("add_image: a picture of %" PRId64 " times %" PRId64 " pixels is too large"),
                   width, height);
      return FALSE;
    }
  png = gtorch_png_encode (grid, width, height, shape[3], error);
  if (png == NULL)
    return FALSE;
  message = g_byte_array_new ();
  gtorch_proto_add_int (message, IMAGE_HEIGHT, height);
  gtorch_proto_add_int (message, IMAGE_WIDTH, width);
  gtorch_proto_add_int (message, IMAGE_COLORSPACE, shape[3]);
  gtorch_proto_add_bytes (message, IMAGE_ENCODED, g_bytes_get_data (png, NULL),
                          g_bytes_get_size (png));
  value = new_value (tag);
  gtorch_proto_add_message (value, VALUE_IMAGE, message);
  return write_value (self, value, step, wall_time, error);
}

/* --- text --- */

static GByteArray *
make_metadata (const gchar *plugin)
{
  GByteArray *data = g_byte_array_new (), *metadata = g_byte_array_new ();

  gtorch_proto_add_string (data, PLUGIN_NAME, plugin);
  gtorch_proto_add_message (metadata, METADATA_PLUGIN_DATA, data);
  return metadata;
}

/* A tensor of one string. */
static GByteArray *
make_text (const gchar *text)
{
  GByteArray *dim = g_byte_array_new (), *shape = g_byte_array_new (),
             *tensor = g_byte_array_new ();

  gtorch_proto_add_int (dim, DIM_SIZE, 1);
  gtorch_proto_add_message (shape, SHAPE_DIM, dim);
  gtorch_proto_add_int (tensor, TENSOR_DTYPE, DT_STRING);
  gtorch_proto_add_message (tensor, TENSOR_SHAPE, shape);
  gtorch_proto_add_string (tensor, TENSOR_STRING, text);
  return tensor;
}

/**
 * gtorch_event_writer_add_text:
 * @self: a log
 * @tag: the name of the text, to which `/text_summary` is added, as PyTorch does
 * @text: the text, which TensorBoard reads as Markdown
 * @step: the step, or [const@NONE]
 * @wall_time: seconds since 1970, or [const@NONE_DOUBLE] for the present
 * @error: return location for an error
 *
 * Adds text.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID for an empty tag or a closed log, or with the error of
 *   the file
 *
 * Since: 0.1
 */
gboolean
gtorch_event_writer_add_text (GTorchEventWriter *self, const gchar *tag, const gchar *text,
                              gint64 step, gdouble wall_time, GError **error)
{
  g_autofree gchar *whole = NULL;
  GByteArray *value;

  g_return_val_if_fail (GTORCH_IS_EVENT_WRITER (self), FALSE);
  g_return_val_if_fail (tag != NULL, FALSE);
  g_return_val_if_fail (text != NULL, FALSE);
  if (!check_tag ("add_text", tag, error))
    return FALSE;
  whole = g_strconcat (tag, "/text_summary", NULL);
  value = new_value (whole);
  gtorch_proto_add_message (value, VALUE_METADATA, make_metadata ("text"));
  gtorch_proto_add_message (value, VALUE_TENSOR, make_text (text));
  return write_value (self, value, step, wall_time, error);
}
