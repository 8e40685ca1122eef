/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The text of tensors, in PyTorch's layout: one format for all shown numbers, as narrow as possible;
 * nested brackets; the middle of long dimensions is omitted. First the shown elements are collected, then
 * a format is chosen for them, then they are written. */

#include "config.h"

#include "base/gtorch-fork-private.h"
#include "elements/gtorch-tensor-print.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/gtorch-autograd-private.h"
#include "device/gtorch-device-private.h"
#include "ops/gtorch-host-private.h"
#include "tensor/gtorch-hold-private.h"
#include "gtorch-ops-private.h"
#include "stream/gtorch-stream-private.h"
#include "elements/gtorch-tensor-bytes-private.h"
#include "tensor/gtorch-tensor-private.h"

#define MAX_SHOWN (1 << 24) /* maximum of elements in a text */

typedef struct
{
  gint precision;
  gint64 threshold;
  gint edge_items;
  gint line_width;
  GTorchSciMode sci_mode;
} Options;

static Options options = { 4, 1000, 3, 80, GTORCH_SCI_MODE_AUTO };
static GMutex options_lock;
GTORCH_FORK_LOCK (options_lock);

GType
gtorch_sci_mode_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { GTORCH_SCI_MODE_AUTO, "GTORCH_SCI_MODE_AUTO", "auto" },
    { GTORCH_SCI_MODE_NEVER, "GTORCH_SCI_MODE_NEVER", "never" },
    { GTORCH_SCI_MODE_ALWAYS, "GTORCH_SCI_MODE_ALWAYS", "always" },
    { 0, NULL, NULL },
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type, g_enum_register_static ("GTorchSciMode", values));
  return type;
}

static void
get_options (Options *current)
{
  g_mutex_lock (&options_lock);
  *current = options;
  g_mutex_unlock (&options_lock);
}

/* --- a format for many numbers --- */

/* The parts of complex numbers are formatted separately: part 0 is real, part 1 imaginary. */
typedef struct
{
  guint kind;
  gboolean whole;
  gboolean scientific;
  gsize width;
} Format;

typedef struct
{
  Options options;
  const GTorchImpl *impl;
  GTorchImpl *host; /* the source of the elements: all, or the ends of folded dimensions */
  gboolean summarize;
  GArray *values; /* of gint64, or gdouble: one array for each part */
  guint n_parts;
  gsize next;
  Format formats[2];
  GString *text;
} Printer;

static void
write_number (GString *text, const Printer *printer, const Format *format, gsize index)
{
  gchar pattern[16], buffer[512];
  gdouble value;

  if (format->kind == GTORCH_KIND_BOOL)
    {
      g_string_append (text, g_array_index (printer->values, gint64, index) ? "True" : "False");
      return;
    }
  if (format->kind == GTORCH_KIND_INT)
    {
      g_string_append_printf (text, "%" G_GINT64_FORMAT,
                              g_array_index (printer->values, gint64, index));
      return;
    }
  value = g_array_index (printer->values, gdouble, index);
  if (isnan (value))
    g_string_append (text, "nan");
  else if (isinf (value))
    g_string_append (text, value < 0 ? "-inf" : "inf");
  else
    {
      if (format->scientific)
        g_snprintf (pattern, sizeof pattern, "%%.%de", printer->options.precision);
      else
        g_snprintf (pattern, sizeof pattern, "%%.%df",
                    format->whole ? 0 : printer->options.precision);
      g_string_append (text, g_ascii_formatd (buffer, sizeof buffer, pattern, value));
      if (format->whole && !format->scientific)
        g_string_append_c (text, '.');
    }
}

static void
choose_format (const Printer *printer, Format *format, guint part)
{
  g_autoptr (GString) text = g_string_new (NULL);
  gdouble min = INFINITY, max = 0;
  gsize i;

  *format = (Format){ .kind = gtorch_dtype_kind (printer->impl->dtype), .whole = TRUE, .width = 1 };
  if (format->kind >= GTORCH_KIND_FLOAT)
    {
      for (i = part; i < printer->values->len; i += printer->n_parts)
        {
          gdouble value = g_array_index (printer->values, gdouble, i);

          if (!isfinite (value) || value == 0)
            continue;
          min = MIN (min, fabs (value));
          max = MAX (max, fabs (value));
          if (value != ceil (value))
            format->whole = FALSE;
        }
      if (max == 0)
        return;
      format->scientific = printer->options.sci_mode == GTORCH_SCI_MODE_AUTO
                               ? max / min > 1000 || max > 1e8 || min < 1e-4
                               : printer->options.sci_mode == GTORCH_SCI_MODE_ALWAYS;
    }
  for (i = part; i < printer->values->len; i += printer->n_parts)
    {
      if (format->kind >= GTORCH_KIND_FLOAT
          && (!isfinite (g_array_index (printer->values, gdouble, i))
              || g_array_index (printer->values, gdouble, i) == 0))
        continue;
      g_string_truncate (text, 0);
      write_number (text, printer, format, i);
      format->width = MAX (format->width, text->len);
    }
}

/* --- selection of elements --- */

static gboolean
is_folded (const Printer *printer, guint dim)
{
  return printer->summarize
         && (printer->options.edge_items == 0
             || printer->impl->shape[dim] > 2 * (gint64) printer->options.edge_items);
}

static void
collect (Printer *printer, guint dim, const char *data)
{
  const GTorchImpl *impl = printer->host;
  gsize size = gtorch_dtype_size (impl->dtype);
  gint64 i;

  if (dim == impl->n_dims)
    {
      gdouble parts[2];

      if (gtorch_dtype_kind (impl->dtype) >= GTORCH_KIND_FLOAT)
        gtorch_host_cast (printer->n_parts == 2 ? GTORCH_DTYPE_COMPLEX128 : GTORCH_DTYPE_FLOAT64,
                          impl->dtype) ((char *) parts, 16, data, size, 1);
      else
        gtorch_host_cast (GTORCH_DTYPE_INT64, impl->dtype) ((char *) parts, 8, data, size, 1);
      g_array_append_vals (printer->values, parts, printer->n_parts);
      return;
    }
  for (i = 0; i < impl->shape[dim]; i++)
    {
      if (is_folded (printer, dim) && i == printer->options.edge_items)
        i = impl->shape[dim] - printer->options.edge_items;
      if (i < impl->shape[dim])
        collect (printer, dim + 1, data + i * impl->strides[dim] * (gint64) size);
    }
}

/* --- the text --- */

static void
write_part (Printer *printer, GString *text, guint part, gboolean padded)
{
  const Format *format = &printer->formats[part];
  gsize start = text->len, length;

  write_number (text, printer, format, printer->next++);
  for (length = text->len - start; padded && length < format->width; length++)
    g_string_insert_c (text, start, ' ');
}

static void
write_element (Printer *printer, GString *text)
{
  write_part (printer, text, 0, TRUE);
  if (printer->n_parts == 2)
    {
      gsize start = text->len;

      write_part (printer, text, 1, FALSE);
      if (text->str[start] != '-')
        g_string_insert_c (text, start, '+');
      g_string_append_c (text, 'j');
    }
}

static void
write_vector (Printer *printer, guint indent)
{
  const GTorchImpl *impl = printer->impl;
  guint dim = impl->n_dims - 1;
  gsize width = printer->formats[0].width + 2;
  gint64 per_line, i, n = 0;

  if (printer->n_parts == 2)
    width += printer->formats[1].width + 1;
  per_line = MAX (1, (printer->options.line_width - (gint64) indent) / (gint64) width);
  if (printer->options.line_width < (gint64) indent)
    per_line = 1;

  g_string_append_c (printer->text, '[');
  for (i = 0; i < impl->shape[dim]; i++, n++)
    {
      gboolean gap = is_folded (printer, dim) && i == printer->options.edge_items;

      if (n > 0 && n % per_line == 0)
        g_string_append_printf (printer->text, ",\n%*s", (int) indent + 1, "");
      else if (n > 0)
        g_string_append (printer->text, ", ");
      if (gap)
        {
          g_string_append (printer->text, printer->options.edge_items == 0 ? "..." : " ...");
          i = impl->shape[dim] - printer->options.edge_items - 1;
        }
      else
        write_element (printer, printer->text);
    }
  g_string_append_c (printer->text, ']');
}

static void
write_nested (Printer *printer, guint dim, guint indent)
{
  const GTorchImpl *impl = printer->impl;
  guint below = impl->n_dims - dim;
  gint64 i;

  if (below == 0)
    {
      write_element (printer, printer->text);
      return;
    }
  if (below == 1)
    {
      write_vector (printer, indent);
      return;
    }
  g_string_append_c (printer->text, '[');
  for (i = 0; i < impl->shape[dim]; i++)
    {
      gboolean gap = is_folded (printer, dim) && i == printer->options.edge_items;

      if (i > 0)
        {
          guint line;

          g_string_append_c (printer->text, ',');
          for (line = 1; line < below; line++)
            g_string_append_c (printer->text, '\n');
          g_string_append_printf (printer->text, "%*s", (int) indent + 1, "");
        }
      if (gap)
        {
          g_string_append (printer->text, "...");
          i = impl->shape[dim] - printer->options.edge_items - 1;
        }
      else
        write_nested (printer, dim + 1, indent + 1);
    }
  g_string_append_c (printer->text, ']');
}

static void
write_suffix (Printer *printer, gsize *line_length, guint indent, const gchar *suffix)
{
  gsize length = strlen (suffix);

  if (*line_length + length + 2 > (gsize) printer->options.line_width)
    {
      g_string_append_printf (printer->text, ",\n%*s%s", (int) indent, "", suffix);
      *line_length = indent + length;
    }
  else
    {
      g_string_append_printf (printer->text, ", %s", suffix);
      *line_length += length + 2;
    }
}

static gchar *
size_suffix (const GTorchImpl *impl)
{
  g_autofree gchar *shape = g_strdup (gtorch_impl_shape_str (impl));

  shape[strlen (shape) - 1] = '\0';
  return g_strdup_printf (impl->n_dims == 1 ? "size=(%s,)" : "size=(%s)", shape + 1);
}

static void
write_suffixes (Printer *printer, GTorchImpl *impl, gboolean with_size, gboolean with_elements,
                guint indent)
{
  const gchar *newline = strrchr (printer->text->str, '\n');
  gsize line_length = newline != NULL ? strlen (newline) : printer->text->len + 2;
  guint dtype = gtorch_get_default_dtype ();
  gboolean usual = impl->dtype == dtype;

  if (with_elements && impl->numel > 0)
    usual = usual || impl->dtype == GTORCH_DTYPE_INT64 || impl->dtype == GTORCH_DTYPE_BOOL
            || impl->dtype
                   == (dtype == GTORCH_DTYPE_FLOAT64 ? GTORCH_DTYPE_COMPLEX128
                                                     : GTORCH_DTYPE_COMPLEX64);
  if (impl->storage != NULL && !gtorch_device_is_host (gtorch_impl_device (impl)))
    {
      g_autofree gchar *device =
          g_strdup_printf ("device='%s'", gtorch_device_name (gtorch_impl_device (impl)));

      write_suffix (printer, &line_length, indent, device);
    }
  if (with_size)
    {
      g_autofree gchar *size = size_suffix (impl);

      write_suffix (printer, &line_length, indent, size);
    }
  if (!usual)
    {
      g_autofree gchar *name = g_strdup_printf ("dtype=%s", gtorch_dtype_get_name (impl->dtype));

      write_suffix (printer, &line_length, indent, name);
    }
  if (impl->storage != NULL && gtorch_impl_requires_grad (impl))
    {
      if (impl->autograd->grad_fn != NULL)
        {
          g_autofree gchar *name = g_strdup_printf ("grad_fn=<%s>", impl->autograd->grad_fn->name);

          write_suffix (printer, &line_length, indent, name);
        }
      else
        write_suffix (printer, &line_length, indent, "requires_grad=True");
    }
  g_string_append_c (printer->text, ')');
}

/* Copies each end of each folded dimension from dim on. */
static gboolean
copy_ends (const Printer *printer, guint dim, GTorchImpl *to, GTorchImpl *from)
{
  gint64 n = printer->options.edge_items;
  guint end;

  while (dim < from->n_dims && !is_folded (printer, dim))
    dim++;
  if (dim == from->n_dims)
    return gtorch_op_copy_inplace (to, from, FALSE, NULL);
  for (end = 0; end < 2; end++)
    {
      gint64 shape[GTORCH_MAX_DIMS];
      gint64 first = end == 0 ? 0 : from->shape[dim] - n;
      g_autoptr (GTorchImpl) part = NULL;
      g_autoptr (GTorchImpl) source = NULL;

      memcpy (shape, to->shape, to->n_dims * sizeof *shape);
      shape[dim] = n;
      part = gtorch_impl_new_view (to, to->offset + end * n * to->strides[dim], shape, to->strides,
                                   to->n_dims);
      memcpy (shape, from->shape, from->n_dims * sizeof *shape);
      shape[dim] = n;
      source = gtorch_impl_new_view (from, from->offset + first * from->strides[dim], shape,
                                     from->strides, from->n_dims);
      if (!copy_ends (printer, dim + 1, part, source))
        return FALSE;
    }
  return TRUE;
}

/* Copies from another device only the shown elements of a large tensor. */
static GTorchImpl *
fetch_ends (const Printer *printer, GTorchImpl *impl, GError **error)
{
  gint64 shape[GTORCH_MAX_DIMS], numel = 1;
  g_autoptr (GTorchImpl) host = NULL;
  guint i;

  if (!gtorch_impl_wait ("to_string", impl, error))
    return NULL;
  for (i = 0; i < impl->n_dims; i++)
    {
      shape[i] = is_folded (printer, i) ? 2 * (gint64) printer->options.edge_items : impl->shape[i];
      numel *= shape[i];
    }
  host = gtorch_impl_new (gtorch_device_cpu (), impl->dtype, shape, impl->n_dims, NULL);
  if (host == NULL || (numel > 0 && !copy_ends (printer, 0, host, impl)))
    return NULL;
  return g_steal_pointer (&host);
}

/* Returns TRUE if the text would be too long for any memory, as with many dimensions that have ends. */
static gboolean
is_endless (const Printer *printer, const GTorchImpl *impl)
{
  gint64 n = 1;
  guint i;

  for (i = 0; i < impl->n_dims; i++)
    if (__builtin_mul_overflow (n,
                                is_folded (printer, i) ? 2 * (gint64) printer->options.edge_items
                                                       : impl->shape[i],
                                &n)
        || n > MAX_SHOWN)
      return TRUE;
  return FALSE;
}

/* Returns the elements, or NULL. The text shows an error of earlier work, which stays for other calls. */
static GTorchImpl *
look_at_elements (const Printer *printer, GTorchImpl *impl, GError **error)
{
  gboolean former = gtorch_thread.keeps_errors;
  GTorchImpl *host;

  gtorch_thread.keeps_errors = TRUE;
  if (printer->summarize && !gtorch_device_is_host (gtorch_impl_device (impl)))
    host = fetch_ends (printer, impl, error);
  else
    host = gtorch_impl_to_host ("to_string", impl, error);
  gtorch_thread.keeps_errors = former;
  return host;
}

/**
 * gtorch_tensor_to_string:
 * @self: a tensor
 *
 * Formats the tensor as text: its elements, and those of dtype, device, shape and gradient that they do
 * not imply. Of more than 1000 elements only the first and last three of each dimension are shown;
 * [func@set_print_options] changes that and the format of numbers.
 *
 * Waits until the elements are computed. During a capture, after [method@Tensor.release], and if work on
 * the stream failed, the text contains the shape instead of elements. The same is true of a tensor with more
 * than 2^24 elements to show. Of work that failed the text ends with “error="…"”; the error stays for
 * [method@Stream.synchronize] and for calls that need the elements.
 *
 * ```c
 * g_autofree gchar *text = gtorch_tensor_to_string (x);
 * g_print ("%s\n", text); // tensor([[1., 2.],
 *                         //         [3., 4.]])
 * ```
 *
 * Returns: (transfer full): the text
 *
 * Since: 0.1
 */
gchar *
gtorch_tensor_to_string (GTorchTensor *self)
{
  GTORCH_HOLD_TENSOR (self);
  GTorchImpl *impl;
  g_autoptr (GTorchImpl) host = NULL;
  g_autoptr (GArray) values = NULL;
  g_autoptr (GError) failure = NULL;
  Printer printer = { .text = NULL };
  gboolean is_complex, with_elements = TRUE, with_size;
  guint indent;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);

  impl = gtorch_tensor_unwrap (self);
  get_options (&printer.options);
  printer.impl = impl;
  printer.summarize = impl->numel > printer.options.threshold;
  printer.text = g_string_new ("tensor(");
  indent = printer.text->len;
  if (impl->storage == NULL)
    {
      g_string_append (printer.text, "<released>");
      with_elements = FALSE;
    }
  else if (impl->numel == 0)
    g_string_append (printer.text, "[]");
  else if (is_endless (&printer, impl)
           || (host = look_at_elements (&printer, impl, &failure)) == NULL)
    {
      g_string_append (printer.text, "...");
      with_elements = FALSE;
    }
  else
    {
      is_complex = gtorch_dtype_kind (impl->dtype) == GTORCH_KIND_COMPLEX;
      printer.host = host;
      printer.n_parts = is_complex ? 2 : 1;
      values = g_array_new (FALSE, FALSE, 8);
      printer.values = values;
      collect (&printer, 0, gtorch_impl_data (host));
      choose_format (&printer, &printer.formats[0], 0);
      if (is_complex)
        choose_format (&printer, &printer.formats[1], 1);
      write_nested (&printer, 0, indent);
    }

  with_size = !with_elements || (impl->numel == 0 && impl->n_dims != 1)
              || (impl->numel > 0 && printer.options.edge_items == 0);
  write_suffixes (&printer, impl, with_size, with_elements, indent);
  if (failure != NULL && !g_error_matches (failure, GTORCH_ERROR, GTORCH_ERROR_CAPTURE))
    {
      const gchar *message = failure->message;

      if (g_str_has_prefix (message, "to_string: "))
        message += strlen ("to_string: ");
      g_string_truncate (printer.text, printer.text->len - 1); /* the parenthesis */
      g_string_append_printf (printer.text, ", error=\"%s\")", message);
    }
  return g_string_free (printer.text, FALSE);
}

/**
 * gtorch_set_print_options:
 * @precision: digits after the point; 4 by default
 * @threshold: the number of elements above which the middle is omitted; 1000 by default
 * @edge_items: the number of elements shown at each end of a dimension then; 3 by default
 * @line_width: the maximum width of lines; 80 by default
 * @sci_mode: when to write exponents
 * @error: return location for an error
 *
 * Sets how [method@Tensor.to_string] formats tensors, for the whole process.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if a number is negative, or @precision above 60
 *
 * Since: 0.1
 */
gboolean
gtorch_set_print_options (gint precision, gint64 threshold, gint edge_items, gint line_width,
                          GTorchSciMode sci_mode, GError **error)
{
  const gchar *const names[] = { "precision", "threshold", "edge_items", "line_width", "sci_mode" };
  const gint64 values[] = { precision, threshold, edge_items, line_width, (gint) sci_mode };
  const gint64 low[] = { 0, 0, 0, 1, GTORCH_SCI_MODE_AUTO };
  const gint64 high[] = { 60, G_MAXINT64, G_MAXINT, G_MAXINT, GTORCH_SCI_MODE_ALWAYS };

  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (values[i] < low[i] || values[i] > high[i])
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("set_print_options: %s is %" PRId64 ", it must be from %" PRId64
                        " to %" PRId64),
                     names[i], values[i], low[i], high[i]);
        return FALSE;
      }
  g_mutex_lock (&options_lock);
  options = (Options){ precision, threshold, edge_items, line_width, sci_mode };
  g_mutex_unlock (&options_lock);
  return TRUE;
}

/**
 * gtorch_get_print_options:
 * @precision: (out) (optional): digits after the point
 * @threshold: (out) (optional): the number of elements above which the middle is omitted
 * @edge_items: (out) (optional): the number of elements shown at each end then
 * @line_width: (out) (optional): the maximum width of lines
 * @sci_mode: (out) (optional): when exponents are written
 *
 * Gets the options of [func@set_print_options].
 *
 * Since: 0.1
 */
void
gtorch_get_print_options (gint *precision, gint64 *threshold, gint *edge_items, gint *line_width,
                          GTorchSciMode *sci_mode)
{
  Options current;

  get_options (&current);
  if (precision != NULL)
    *precision = current.precision;
  if (threshold != NULL)
    *threshold = current.threshold;
  if (edge_items != NULL)
    *edge_items = current.edge_items;
  if (line_width != NULL)
    *line_width = current.line_width;
  if (sci_mode != NULL)
    *sci_mode = current.sci_mode;
}
