/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The memory over time as a page: a picture in which the categories lie on top of each other, and a table. */

#include "config.h"

#include "profiler/gtorch-profile-memory-private.h"

#include "device/gtorch-device-private.h"
#include "memory/gtorch-memory-report-private.h"

#define WIDTH  GTORCH_HTML_WIDTH
#define HEIGHT GTORCH_HTML_HEIGHT

static const gchar *const names[GTORCH_N_CATEGORIES] = {
  [GTORCH_CATEGORY_PARAMETER] = "parameters",
  [GTORCH_CATEGORY_OPTIMIZER_STATE] = "steps of optimizers",
  [GTORCH_CATEGORY_INPUT] = "inputs",
  [GTORCH_CATEGORY_TEMPORARY] = "other operations",
  [GTORCH_CATEGORY_ACTIVATION] = "operations that were recorded for a backward pass",
  [GTORCH_CATEGORY_GRADIENT] = "gradients of leaves",
  [GTORCH_CATEGORY_AUTOGRAD_DETAIL] = "elsewhere in backward passes",
  [GTORCH_CATEGORY_NONE] = "outside of operations, or before the profile",
};

/* The bytes of each category at one moment. */
typedef struct
{
  gint64 bytes[GTORCH_N_CATEGORIES];
  gint64 total;
} Moment;

typedef struct
{
  gint64 begin, end;         /* nanoseconds */
  Moment columns[WIDTH + 1]; /* of the picture: the greatest moment within each */
  Moment peak;
  gint64 peak_time;
  gint64 most[GTORCH_N_CATEGORIES];
} Picture;

static void
take_moment (Moment *moment, const gint64 *totals)
{
  guint i;

  moment->total = 0;
  for (i = 0; i < GTORCH_N_CATEGORIES; i++)
    {
      moment->bytes[i] = MAX (totals[i], 0);
      moment->total += moment->bytes[i];
    }
}

static guint
column_of (const Picture *self, gint64 time)
{
  return self->end > self->begin
             ? (guint) CLAMP ((gdouble) (time - self->begin) / (self->end - self->begin) * WIDTH, 0,
                              WIDTH)
             : 0;
}

/* A column begins with what there was at the end of the one before. */
static void
look (Picture *self, const GTorchProfileTimeline *timeline)
{
  g_auto (GTorchTimelineWalk) walk = { NULL };
  const GTorchRecord *record;
  guint category, i, at = 0;
  Moment now;

  self->begin = gtorch_trace_get_start (timeline->trace);
  self->end = gtorch_trace_get_end (timeline->trace);
  gtorch_timeline_walk_begin (&walk, timeline);
  take_moment (&now, walk.totals);
  self->peak = self->columns[0] = now;
  self->peak_time = self->begin;
  while ((record = gtorch_timeline_walk_next (&walk, &category)) != NULL)
    {
      const guint column = column_of (self, record->start);

      while (at < column)
        self->columns[++at] = now;
      take_moment (&now, walk.totals);
      if (now.total > self->columns[at].total)
        self->columns[at] = now;
      for (i = 0; i < GTORCH_N_CATEGORIES; i++)
        self->most[i] = MAX (self->most[i], now.bytes[i]);
      if (now.total > self->peak.total)
        {
          self->peak = now;
          self->peak_time = record->start;
        }
    }
  while (at < WIDTH)
    self->columns[++at] = now;
}

/* A point of a line, unless it is within a level part. */
static void
append_point (GString *page, const gint64 *line, gint x, gint64 most)
{
  const gint64 bytes = line[x];

  if (x > 0 && x < WIDTH && line[x - 1] == bytes && line[x + 1] == bytes)
    return;
  gtorch_html_number (page, " ", x);
  gtorch_html_number (page, ",", HEIGHT * (1 - (gdouble) bytes / most));
}

/* The area of a category, above those before it. */
static void
append_area (GString *page, const Picture *self, guint category, gint64 most)
{
  gint64 below[WIDTH + 1], above[WIDTH + 1];
  guint i;
  gint x;

  for (x = 0; x <= WIDTH; x++)
    {
      for (i = 0, below[x] = 0; i < category; i++)
        below[x] += self->columns[x].bytes[i];
      above[x] = below[x] + self->columns[x].bytes[category];
    }
  g_string_append_printf (page, "<polygon class=\"c%u\" points=\"", category);
  for (x = 0; x <= WIDTH; x++)
    append_point (page, above, x, most);
  for (x = WIDTH; x >= 0; x--)
    append_point (page, below, x, most);
  g_string_append (page, "\"><title>");
  gtorch_html_text (page, names[category]);
  g_string_append (page, "</title></polygon>\n");
}

static void
append_size (GString *page, gint64 bytes)
{
  g_string_append (page, "<td class=\"number\">");
  gtorch_html_size (page, bytes);
  g_string_append (page, "</td>");
}

static void
append_table (GString *page, const Picture *self)
{
  guint i;

  g_string_append (page, "<table><thead><tr><th></th><th>taken in</th><th class=\"number\">at the "
                         "peak</th><th class=\"number\">at most</th></tr></thead><tbody>\n");
  for (i = 0; i < GTORCH_N_CATEGORIES; i++)
    {
      if (self->most[i] == 0 && self->peak.bytes[i] == 0)
        continue;
      g_string_append_printf (page,
                              "<tr><td><svg class=\"swatch\"><rect class=\"c%u\" width=\"100%%\" "
                              "height=\"100%%\"/></svg></td><td>",
                              i);
      gtorch_html_text (page, names[i]);
      g_string_append (page, "</td>");
      append_size (page, self->peak.bytes[i]);
      append_size (page, MAX (self->most[i], self->peak.bytes[i]));
      g_string_append (page, "</tr>\n");
    }
  g_string_append (page, "</tbody></table>\n");
}

gboolean
gtorch_profile_write_memory_page (GTorchProfileFile *file, gpointer data, GError **error)
{
  const GTorchProfileTimeline *timeline = data;
  g_autofree Picture *picture = g_new0 (Picture, 1);
  g_autofree gchar *title =
      g_strdup_printf ("Memory over time: %s", gtorch_device_name (timeline->device));
  GString *page = file->text;
  gboolean is_short;
  gint64 most;
  guint i;

  look (picture, timeline);
  most = MAX (picture->peak.total, 1);
  is_short = picture->end - picture->begin < G_GINT64_CONSTANT (1000000000);
  gtorch_html_begin (page, title);
  gtorch_html_origin (page);
  g_string_append_printf (page, "<p>%u events were recorded. At the peak there were ",
                          timeline->order->len);
  gtorch_html_size (page, picture->peak.total);
  gtorch_html_number (page, ", ", (picture->peak_time - picture->begin) / 1e6);
  g_string_append (page, " ms after the beginning of the profile.</p>\n");
  gtorch_html_axes (page, "bytes of each category over time", most,
                    (picture->end - picture->begin) / (is_short ? 1e6 : 1e9),
                    is_short ? "ms" : "s");
  for (i = 0; i < GTORCH_N_CATEGORIES; i++)
    if (picture->most[i] > 0 || picture->peak.bytes[i] > 0)
      append_area (page, picture, i, most);
  g_string_append (page, "</svg>\n");
  append_table (page, picture);
  gtorch_html_end (page);
  return TRUE;
}
