/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Rows of a profile as a table. Columns, their order and their widths are PyTorch's, so that tables can be
 * put beside each other. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/gtorch-error.h"
#include "base/gtorch-text-private.h"
#include "profiler/gtorch-profile-list-private.h"

#define WIDTH   12 /* of columns of numbers */
#define SPACING 2
#define LEAST   4 /* the narrowest column that can be asked for */

/* --- sorting --- */

typedef gdouble (*Value) (const GTorchProfileData *row);

#define VALUE(name, expression) \
  static gdouble name (const GTorchProfileData *row) { return expression; }

VALUE (value_of_cpu_time, (gdouble) row->cpu_total / MAX (row->count, 1))
VALUE (value_of_device_time, (gdouble) row->device_total / MAX (row->count, 1))
VALUE (value_of_cpu_total, row->cpu_total)
VALUE (value_of_device_total, row->device_total)
VALUE (value_of_self_cpu, row->self_cpu)
VALUE (value_of_self_device, row->self_device)
VALUE (value_of_cpu_memory, row->cpu_memory)
VALUE (value_of_device_memory, row->device_memory)
VALUE (value_of_self_cpu_memory, row->self_cpu_memory)
VALUE (value_of_self_device_memory, row->self_device_memory)
VALUE (value_of_count, row->count)
VALUE (value_of_flops, row->flops)

/* clang-format off */
static const struct
{
  const gchar *name;
  Value value; /* NULL: the key */
} columns_to_sort_by[] = {
  { "cpu_time",                 value_of_cpu_time },
  { "device_time",              value_of_device_time },
  { "cpu_time_total",           value_of_cpu_total },
  { "device_time_total",        value_of_device_total },
  { "self_cpu_time_total",      value_of_self_cpu },
  { "self_device_time_total",   value_of_self_device },
  { "cpu_memory_usage",         value_of_cpu_memory },
  { "device_memory_usage",      value_of_device_memory },
  { "self_cpu_memory_usage",    value_of_self_cpu_memory },
  { "self_device_memory_usage", value_of_self_device_memory },
  { "count",                    value_of_count },
  { "flops",                    value_of_flops },
  { "key",                      NULL },
};
/* clang-format on */

typedef struct
{
  const GTorchProfileData *row;
  gdouble value;
  guint index;
} Sorted;

static gint
by_value (gconstpointer a, gconstpointer b, gpointer by_key)
{
  const Sorted *x = a, *y = b;
  gint order = by_key != NULL ? -strcmp (x->row->key, y->row->key)
                              : (x->value < y->value) - (x->value > y->value);

  return order != 0 ? order : (gint) x->index - (gint) y->index;
}

static gboolean
sort_rows (GPtrArray *rows, const gchar *by, GError **error)
{
  g_autoptr (GString) name = g_string_new (by);
  g_autofree Sorted *sorted = g_new (Sorted, rows->len + 1);
  guint at, i;

  g_string_replace (name, "cuda", "device", 0);
  for (at = 0; at < G_N_ELEMENTS (columns_to_sort_by); at++)
    if (g_str_equal (name->str, columns_to_sort_by[at].name))
      break;
  if (at == G_N_ELEMENTS (columns_to_sort_by))
    {
      g_autoptr (GString) known = g_string_new (NULL);

      for (i = 0; i < G_N_ELEMENTS (columns_to_sort_by); i++)
        g_string_append_printf (known, "%s%s", i > 0 ? ", " : "", columns_to_sort_by[i].name);
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("profile_list_table: sort_by is “%s”, it must be one of %s, where device "
                      "may be "
                      "cuda"),
                   gtorch_name_str (by), known->str);
      return FALSE;
    }
  for (i = 0; i < rows->len; i++)
    {
      const Value value = columns_to_sort_by[at].value;

      sorted[i] = (Sorted){ rows->pdata[i], value != NULL ? value (rows->pdata[i]) : 0, i };
    }
  g_qsort_with_data (sorted, rows->len, sizeof *sorted, by_value,
                     GINT_TO_POINTER (columns_to_sort_by[at].value == NULL));
  for (i = 0; i < rows->len; i++)
    rows->pdata[i] = (gpointer) sorted[i].row;
  return TRUE;
}

/* --- cells --- */

typedef struct
{
  GString *text;
  GArray *widths; /* guint, of the columns */
  guint column;
  gint last_left; /* index of the column whose text is on the left; -1 */
} Table;

static void
add_column (Table *table, guint width)
{
  g_array_append_val (table->widths, width);
}

static void
put (Table *table, const gchar *cell)
{
  const guint width = g_array_index (table->widths, guint, table->column);
  const glong length = g_utf8_strlen (cell, -1);
  const gint blanks = MAX ((gint) width - (gint) length, 0);

  if ((gint) table->column == table->last_left)
    g_string_append_printf (table->text, "%s%*s", cell, blanks, "");
  else
    g_string_append_printf (table->text, "%*s%s", blanks, "", cell);
  g_string_append_printf (table->text, "%*s", SPACING, "");
  table->column++;
}

static void
end_line (Table *table)
{
  g_string_append_c (table->text, '\n');
  table->column = 0;
}

static void put_printf (Table *table, const gchar *format, ...) G_GNUC_PRINTF (2, 3);

static void
put_printf (Table *table, const gchar *format, ...)
{
  g_autofree gchar *cell = NULL;
  va_list args;

  va_start (args, format);
  cell = g_strdup_vprintf (format, args);
  va_end (args);
  put (table, cell);
}

static gchar *
time_str (gdouble ns, const gchar *unit)
{
  gchar number[G_ASCII_DTOSTR_BUF_SIZE];
  gdouble factor = 1e3;

  if (unit == NULL)
    unit = ns >= 1e9 ? "s" : ns >= 1e6 ? "ms" : "us";
  if (g_str_equal (unit, "s"))
    factor = 1e9;
  else if (g_str_equal (unit, "ms"))
    factor = 1e6;
  return g_strdup_printf ("%s%s", g_ascii_formatd (number, sizeof number, "%.3f", ns / factor),
                          unit);
}

static void
put_time (Table *table, gdouble ns, const gchar *unit)
{
  g_autofree gchar *cell = time_str (ns, unit);

  put (table, cell);
}

static void
put_share (Table *table, gint64 part, gint64 all)
{
  gchar number[G_ASCII_DTOSTR_BUF_SIZE];

  if (all == 0)
    put (table, "NaN");
  else
    put_printf (table, "%s%%", g_ascii_formatd (number, sizeof number, "%.2f", 100.0 * part / all));
}

static void
put_memory (Table *table, gint64 bytes)
{
  static const gchar *const units[] = { "KB", "MB", "GB" };
  gchar number[G_ASCII_DTOSTR_BUF_SIZE];
  guint i = G_N_ELEMENTS (units);

  while (i > 0 && ABS (bytes) < ((gint64) 1 << (10 * i)))
    i--;
  if (i == 0)
    put_printf (table, "%" PRId64 " B", bytes);
  else
    put_printf (table, "%s %s",
                g_ascii_formatd (number, sizeof number, "%.2f",
                                 (gdouble) bytes / ((gint64) 1 << (10 * i))),
                units[i - 1]);
}

/* The first characters of a text. */
static gchar *
cut (const gchar *text, glong length)
{
  return g_utf8_strlen (text, -1) <= length ? g_strdup (text) : g_utf8_substring (text, 0, length);
}

static void
put_name (Table *table, const gchar *name, gint max)
{
  g_autofree gchar *shown = NULL;

  if (max < 0 || g_utf8_strlen (name, -1) < max - 3)
    {
      put (table, name);
      return;
    }
  shown = cut (name, MAX (max - 3, 0));
  put_printf (table, "%s...", shown);
}

/* The end of a path, which tells more than its beginning. */
static void
put_frame (Table *table, const gchar *frame, guint width)
{
  const glong length = g_utf8_strlen (frame, -1);

  if (length <= (glong) width)
    put (table, frame);
  else
    put_printf (table, "...%s", g_utf8_offset_to_pointer (frame, length - width + 3));
}

/* --- tables --- */

typedef struct
{
  gboolean device_time, device_memory, shapes, stack, flops;
  guint name_width, shapes_width, src_width;
  gint64 self_cpu, self_device;
  guint64 least_flops;
} Found;

static guint
width_of (glong longest, gint max)
{
  return max >= 0 ? MIN (longest + 4, max) : longest + 4;
}

static glong
longest_line (const gchar *text)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  glong longest = 0;
  guint i;

  for (i = 0; lines[i] != NULL; i++)
    longest = MAX (longest, g_utf8_strlen (lines[i], -1));
  return longest;
}

static void
look (GPtrArray *rows, const GTorchProfileTableStyle *style, Found *found)
{
  glong name = 0, shapes = 0, src = 0;
  guint i;

  for (i = 0; i < rows->len; i++)
    {
      const GTorchProfileData *row = rows->pdata[i];

      found->device_time |= row->self_device > 0;
      found->device_memory |= row->self_device_memory > 0;
      found->shapes |= row->shapes[0] != '\0';
      found->stack |= row->stack[0] != '\0';
      found->self_cpu += row->self_cpu;
      if (row->is_of_device)
        found->self_device += row->self_device;
      if (row->flops > 0 && (found->least_flops == 0 || row->flops < found->least_flops))
        found->least_flops = row->flops;
      name = MAX (name, g_utf8_strlen (row->key, -1));
      shapes = MAX (shapes, g_utf8_strlen (row->shapes, -1));
      src = MAX (src, longest_line (row->stack));
    }
  /* From timing events there are no rows of the device. */
  for (i = 0; i < rows->len && found->self_device == 0; i++)
    found->self_device += ((const GTorchProfileData *) rows->pdata[i])->self_device;
  found->name_width = width_of (name, style->max_name);
  found->shapes_width = width_of (shapes, style->max_shapes);
  found->src_width = width_of (src, style->max_src);
}

static guint
flops_scale (guint64 least)
{
  guint i = 0;

  for (; i < 5 && least >= 1000; i++)
    least /= 1000;
  return i;
}

static void
put_headers (Table *table, const GTorchProfileColumns *columns, const Found *found)
{
  static const gchar *const scales[] = { "", "K", "M", "G", "T", "P" };
  const gchar *device = columns->device_name != NULL ? columns->device_name : "None";
  static const gchar *const host[] = { "Self CPU %", "Self CPU", "CPU total %", "CPU total",
                                       "CPU time avg" };
  guint i;

  put (table, "Name");
  for (i = 0; i < G_N_ELEMENTS (host); i++)
    put (table, host[i]);
  if (found->device_time)
    {
      put_printf (table, "Self %s", device);
      put_printf (table, "Self %s %%", device);
      put_printf (table, "%s total", device);
      put_printf (table, "%s time avg", device);
    }
  if (columns->settings.profile_memory)
    {
      put (table, "CPU Mem");
      put (table, "Self CPU Mem");
      if (found->device_memory)
        {
          put_printf (table, "%s Mem", device);
          put_printf (table, "Self %s Mem", device);
        }
    }
  put (table, "# of Calls");
  if (found->shapes)
    put (table, "Input Shapes");
  if (found->stack)
    put (table, "Source Location");
  if (found->flops)
    put_printf (table, "Total %sFLOPs", scales[flops_scale (found->least_flops)]);
  end_line (table);
}

static void
put_row (Table *table, const GTorchProfileColumns *columns, const Found *found,
         const GTorchProfileTableStyle *style, const GTorchProfileData *row)
{
  g_auto (GStrv) frames = g_strsplit (row->stack, "\n", -1);
  const gdouble count = MAX (row->count, 1);
  guint i, n;

  put_name (table, row->key, style->max_name);
  put_share (table, row->self_cpu, found->self_cpu);
  put_time (table, row->self_cpu, style->time_unit);
  put_share (table, row->cpu_total, found->self_cpu);
  put_time (table, row->cpu_total, style->time_unit);
  put_time (table, row->cpu_total / count, style->time_unit);
  if (found->device_time)
    {
      put_time (table, row->self_device, style->time_unit);
      put_share (table, row->self_device, found->self_device);
      put_time (table, row->device_total, style->time_unit);
      put_time (table, row->device_total / count, style->time_unit);
    }
  if (columns->settings.profile_memory)
    {
      put_memory (table, row->cpu_memory);
      put_memory (table, row->self_cpu_memory);
      if (found->device_memory)
        {
          put_memory (table, row->device_memory);
          put_memory (table, row->self_device_memory);
        }
    }
  put_printf (table, "%" PRIu64, row->count);
  if (found->shapes)
    {
      g_autofree gchar *shapes = cut (row->shapes, found->shapes_width);

      put (table, shapes);
    }
  if (found->stack)
    put_frame (table, frames[0] != NULL ? frames[0] : "", found->src_width);
  if (found->flops)
    {
      gchar number[G_ASCII_DTOSTR_BUF_SIZE];

      if (row->flops == 0)
        put (table, "--");
      else
        put (table, g_ascii_formatd (number, sizeof number, "%8.3f",
                                     row->flops / pow (1000, flops_scale (found->least_flops))));
    }
  end_line (table);
  if (!found->stack)
    return;
  n = table->widths->len;
  for (i = 1; i <= MAX (g_strv_length (frames), 1); i++) /* and an empty line */
    {
      guint j;

      for (j = 0; j < n; j++)
        if ((gint) j == table->last_left && i < g_strv_length (frames))
          put_frame (table, frames[i], found->src_width);
        else
          put (table, "");
      end_line (table);
    }
}

static void
put_line (Table *table, gchar c)
{
  guint i, j, n = 0;

  for (i = 0; i < table->widths->len; i++)
    {
      const guint width = g_array_index (table->widths, guint, i);

      n += width + SPACING;
      for (j = 0; j < width && c == '-'; j++)
        g_string_append_c (table->text, c);
      if (c == '-')
        g_string_append_printf (table->text, "%*s", SPACING, "");
    }
  for (j = SPACING; j < n && c == '='; j++)
    g_string_append_c (table->text, c);
  g_string_append_c (table->text, '\n');
}

static gboolean
check_style (const GTorchProfileTableStyle *style, GError **error)
{
  const struct
  {
    const gchar *name;
    gint value;
  } widths[] = { { "max_src_column_width", style->max_src },
                 { "max_name_column_width", style->max_name },
                 { "max_shapes_column_width", style->max_shapes } };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (widths); i++)
    if (widths[i].value >= 0 && widths[i].value < LEAST)
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("profile_list_table: %s is %d, it must be at least %d, or negative for any "
                        "width"),
                     widths[i].name, widths[i].value, LEAST);
        return FALSE;
      }
  if (style->time_unit == NULL || g_str_equal (style->time_unit, "s")
      || g_str_equal (style->time_unit, "ms") || g_str_equal (style->time_unit, "us"))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("profile_list_table: time_unit is “%s”, it must be s, ms or us"),
               gtorch_name_str (style->time_unit));
  return FALSE;
}

gchar *
gtorch_profile_write_table (const GTorchProfileColumns *columns, GPtrArray *rows,
                            const GTorchProfileTableStyle *style, GError **error)
{
  g_autoptr (GArray) widths = g_array_new (FALSE, FALSE, sizeof (guint));
  Table table = { .widths = widths, .last_left = -1 };
  Found found = { FALSE };
  guint i, shown, n;

  if (!check_style (style, error)
      || (style->sort_by != NULL && !sort_rows (rows, style->sort_by, error)))
    return NULL;
  if (rows->len == 0)
    return g_strdup ("");
  look (rows, style, &found);
  found.flops = columns->settings.with_flops && found.least_flops > 0;

  add_column (&table, found.name_width);
  n = 5 + (found.device_time ? 4 : 0) + 1;
  if (columns->settings.profile_memory)
    n += 2 + (found.device_memory ? 2 : 0);
  for (i = 0; i < n; i++)
    add_column (&table, WIDTH);
  if (found.shapes)
    add_column (&table, found.shapes_width);
  if (found.stack)
    {
      table.last_left = widths->len;
      add_column (&table, found.src_width);
    }
  if (found.flops)
    add_column (&table, WIDTH);

  table.text = g_string_new (NULL);
  if (style->header != NULL)
    {
      put_line (&table, '=');
      g_string_append_printf (table.text, "%s\n", style->header);
    }
  if (style->top_level_only)
    {
      put_line (&table, '=');
      g_string_append (table.text, "This report only display top-level ops statistics\n");
    }
  put_line (&table, '-');
  put_headers (&table, columns, &found);
  put_line (&table, '-');
  for (i = 0, shown = 0;
       i < rows->len && (style->row_limit < 0 || shown < (guint) style->row_limit); i++)
    {
      const GTorchProfileData *row = rows->pdata[i];

      if (style->top_level_only && row->parent >= 0)
        continue;
      put_row (&table, columns, &found, style, row);
      shown++;
    }
  put_line (&table, '-');
  {
    g_autofree gchar *cpu = time_str (found.self_cpu, style->time_unit);
    g_autofree gchar *device = time_str (found.self_device, style->time_unit);

    g_string_append_printf (table.text, "Self CPU time total: %s\n", cpu);
    if (found.device_time)
      g_string_append_printf (table.text, "Self %s time total: %s\n",
                              columns->device_name != NULL ? columns->device_name : "None", device);
  }
  if (columns->n_missing > 0)
    g_string_append_printf (table.text, "%" PRIu64 " records of kernels and copies are missing\n",
                            columns->n_missing);
  return g_string_free (table.text, FALSE);
}
