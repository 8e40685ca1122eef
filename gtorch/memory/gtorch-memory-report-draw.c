/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The pictures of a report about memory, as SVG within HTML. */

#include "config.h"

#include "memory/gtorch-memory-report-private.h"

#include <string.h>

#define WIDTH        GTORCH_HTML_WIDTH
#define HEIGHT       GTORCH_HTML_HEIGHT
#define BAR          26
#define MAX_SEGMENTS 300
#define N_COLORS     8

void
gtorch_html_text (GString *page, const gchar *text)
{
  g_autofree gchar *valid = g_utf8_make_valid (text, -1);
  g_autofree gchar *escaped = g_markup_escape_text (valid, -1);

  g_string_append (page, escaped);
}

void
gtorch_html_size (GString *page, guint64 n_bytes)
{
  g_autofree gchar *size = g_format_size_full (n_bytes, G_FORMAT_SIZE_IEC_UNITS);

  gtorch_html_text (page, size);
}

void
gtorch_html_number (GString *page, const gchar *before, gdouble number)
{
  gchar text[G_ASCII_DTOSTR_BUF_SIZE];

  g_string_append (page, before);
  g_string_append (page, g_ascii_formatd (text, sizeof text, "%.2f", number));
}

/* --- the timeline --- */

void
gtorch_html_axes (GString *page, const gchar *title, guint64 most, gdouble span, const gchar *unit)
{
  guint i;

  g_string_append_printf (page,
                          "<svg class=\"timeline\" viewBox=\"-90 -14 %d %d\" role=\"img\">"
                          "<title>",
                          WIDTH + 110, HEIGHT + 40);
  gtorch_html_text (page, title);
  g_string_append (page, "</title>");
  for (i = 0; i <= 4; i++)
    {
      const gdouble y = HEIGHT * (1 - i / 4.0);

      gtorch_html_number (page, "<line class=\"grid\" x1=\"0\" x2=\"1000\" y1=\"", y);
      gtorch_html_number (page, "\" y2=\"", y);
      gtorch_html_number (page, "\"/><text x=\"-6\" text-anchor=\"end\" y=\"", y + 4);
      g_string_append (page, "\">");
      gtorch_html_size (page, most / 4 * i + most % 4 * i / 4);
      g_string_append (page, "</text>");
    }
  for (i = 0; i <= 4; i++)
    {
      gtorch_html_number (page, "<text text-anchor=\"middle\" y=\"238\" x=\"", WIDTH * i / 4.0);
      gtorch_html_number (page, "\">", span * i / 4);
      g_string_append_printf (page, " %s</text>", unit);
    }
}

/* The least and the greatest number of bytes within one column of the picture. */
typedef struct
{
  gint64 low, high;
} Column;

/* One line, in which no peak is lost although many events share a column. */
static void
append_line (GString *page, const gchar *name, const GArray *entries, const GArray *moments,
             gsize member, gint64 most)
{
  const gint64 begin = g_array_index (entries, GTorchMemoryEntry, 0).time_us;
  const gint64 end = g_array_index (entries, GTorchMemoryEntry, entries->len - 1).time_us;
  g_autofree Column *columns = g_new (Column, WIDTH + 1);
  gint64 value = 0;
  guint i, x, at = 0;

  g_string_append_printf (page, "<polyline class=\"%s\" points=\"", name);
  for (x = 0; x <= WIDTH; x++)
    {
      gboolean is_empty = TRUE;

      columns[x].low = columns[x].high = value;
      for (; at < moments->len; at++)
        {
          const gint64 time = g_array_index (entries, GTorchMemoryEntry, at).time_us - begin;

          if (end > begin && (gdouble) time / (end - begin) * WIDTH > x)
            break;
          value =
              G_STRUCT_MEMBER (gint64, &g_array_index (moments, GTorchMemoryMoment, at), member);
          if (is_empty && x == 0)
            columns[x].low = columns[x].high = value;
          columns[x].low = MIN (columns[x].low, value);
          columns[x].high = MAX (columns[x].high, value);
          is_empty = FALSE;
        }
    }
  for (i = 0; i <= WIDTH; i++)
    {
      if (i > 0 && i < WIDTH && columns[i].low == columns[i].high
          && columns[i - 1].low == columns[i].low && columns[i - 1].high == columns[i].high
          && columns[i + 1].low == columns[i].low && columns[i + 1].high == columns[i].high)
        continue; /* within a level part */
      gtorch_html_number (page, " ", i);
      gtorch_html_number (page, ",", HEIGHT * (1 - (gdouble) columns[i].low / most));
      if (columns[i].low == columns[i].high)
        continue;
      gtorch_html_number (page, " ", i);
      gtorch_html_number (page, ",", HEIGHT * (1 - (gdouble) columns[i].high / most));
    }
  g_string_append (page, "\"/>");
}

void
gtorch_html_timeline (GString *page, const GArray *entries, const GArray *moments)
{
  const gint64 begin = g_array_index (entries, GTorchMemoryEntry, 0).time_us;
  const gint64 end = g_array_index (entries, GTorchMemoryEntry, entries->len - 1).time_us;
  gint64 most = 1;
  guint i;

  for (i = 0; i < moments->len; i++)
    {
      const GTorchMemoryMoment *moment = &g_array_index (moments, GTorchMemoryMoment, i);

      most = MAX (most, MAX (moment->allocated, moment->reserved));
    }
  gtorch_html_axes (page, "allocated and reserved bytes over time", most, (end - begin) / 1e6, "s");
  append_line (page, "reserved", entries, moments, G_STRUCT_OFFSET (GTorchMemoryMoment, reserved),
               most);
  append_line (page, "allocated", entries, moments, G_STRUCT_OFFSET (GTorchMemoryMoment, allocated),
               most);
  for (i = 0; i < entries->len; i++)
    {
      const GTorchMemoryEntry *entry = &g_array_index (entries, GTorchMemoryEntry, i);
      const gdouble x =
          end > begin ? (gdouble) (entry->time_us - begin) / (end - begin) * WIDTH : 0;

      if (entry->action != GTORCH_MEMORY_OOM)
        continue;
      gtorch_html_number (page, "<line class=\"oom\" y1=\"0\" y2=\"220\" x1=\"", x);
      gtorch_html_number (page, "\" x2=\"", x);
      g_string_append (page, "\"><title>out of memory: ");
      gtorch_html_size (page, entry->size);
      g_string_append (page, " were asked for</title></line>");
    }
  g_string_append (page,
                   "</svg>\n<p class=\"key\"><span class=\"allocated\">allocated by tensors</span> "
                   "<span class=\"reserved\">reserved from the driver</span> "
                   "<span class=\"oom\">out of memory</span></p>\n");
}

/* --- segments --- */

static guint
color_of (const GTorchMemorySite *site)
{
  if (site == NULL)
    return 0;
  return site->place != NULL
             ? g_str_hash (site->place) % N_COLORS
             : g_direct_hash (site->site.frames[MIN (4, GTORCH_SITE_FRAMES - 1)]) % N_COLORS;
}

static void
append_block_title (GString *page, const GTorchBlockInfo *block)
{
  static const gchar *const states[] = { "free", "freed, but a stream may still use it", "in use" };

  g_string_append (page, "<title>");
  gtorch_html_size (page, block->size);
  g_string_append_printf (page, " at 0x%" G_GINT64_MODIFIER "x, %s", block->address,
                          states[block->state]);
  if (block->site != NULL)
    {
      g_autofree gchar *where = gtorch_memory_site_to_string (block->site);

      g_string_append (page, "\n");
      gtorch_html_text (page, gtorch_memory_site_get_op (block->site));
      g_string_append (page, " in ");
      gtorch_html_text (page, where);
    }
  g_string_append (page, "</title>");
}

/* Draws a bar. Blocks that are narrower than half of a point are drawn together. */
static void
append_bar (GString *page, const GTorchBlockInfo *blocks, guint n, guint64 total)
{
  guint64 offset = 0;
  guint i, k;

  g_string_append_printf (page,
                          "<svg class=\"bar\" viewBox=\"0 0 %d %d\" "
                          "preserveAspectRatio=\"none\">",
                          WIDTH, BAR);
  for (i = 0; i < n; i += k)
    {
      guint64 size = blocks[i].size;

      for (k = 1; i + k < n && (gdouble) size / total * WIDTH < 0.5
                  && (gdouble) blocks[i + k].size / total * WIDTH < 0.5;
           k++)
        size += blocks[i + k].size;
      gtorch_html_number (page, "<rect height=\"26\" x=\"", (gdouble) offset / total * WIDTH);
      gtorch_html_number (page, "\" width=\"", (gdouble) size / total * WIDTH);
      if (k > 1)
        {
          g_string_append_printf (page, "\" class=\"many\"><title>%u blocks, together ", k);
          gtorch_html_size (page, size);
          g_string_append (page, "</title>");
        }
      else
        {
          if (blocks[i].state == GTORCH_BLOCK_ALLOCATED)
            g_string_append_printf (page, "\" class=\"c%u\">", color_of (blocks[i].site));
          else
            g_string_append_printf (page, "\" class=\"%s\">",
                                    blocks[i].state == GTORCH_BLOCK_INACTIVE ? "free" : "awaiting");
          append_block_title (page, &blocks[i]);
        }
      g_string_append (page, "</rect>");
      offset += size;
    }
  g_string_append (page, "</svg>");
}

static void
append_segment (GString *page, const GTorchBlockInfo *blocks, guint n)
{
  guint64 total = 0, used = 0;
  guint i;

  for (i = 0; i < n; i++)
    {
      total += blocks[i].size;
      used += blocks[i].state == GTORCH_BLOCK_ALLOCATED ? blocks[i].size : 0;
    }
  g_string_append_printf (page,
                          "<tr><td class=\"mono\">0x%" G_GINT64_MODIFIER
                          "x</td><td class=\"number\">",
                          blocks->address);
  gtorch_html_size (page, total);
  g_string_append (page, "</td><td class=\"number\">");
  gtorch_html_size (page, used);
  g_string_append_printf (page, "</td><td class=\"number\">%u</td><td>%s</td><td class=\"mono\">",
                          n, blocks->pool == GTORCH_POOL_SMALL ? "small" : "large");
  if (blocks->stream != 0)
    g_string_append_printf (page, "0x%" G_GINT64_MODIFIER "x", blocks->stream);
  else
    g_string_append (page, "default");
  g_string_append (page, "</td><td class=\"number\">");
  if (blocks->pool_id != 0)
    g_string_append_printf (page, "%" G_GUINT64_FORMAT, blocks->pool_id);
  g_string_append (page, "</td></tr>\n<tr><td colspan=\"7\" class=\"map\">");
  append_bar (page, blocks, n, total);
  g_string_append (page, "</td></tr>\n");
}

void
gtorch_html_segments (GString *page, const GArray *blocks)
{
  guint i, n, count = 0;

  g_string_append (page, "<table><thead><tr><th>address</th><th class=\"number\">size</th><th "
                         "class=\"number\">in use</th><th class=\"number\">blocks</th>"
                         "<th>pool</th><th>stream</th><th class=\"number\">private "
                         "pool</th></tr></thead><tbody>\n");
  for (i = 0; i < blocks->len; i += n, count++)
    {
      for (n = 1;
           i + n < blocks->len && !g_array_index (blocks, GTorchBlockInfo, i + n).begins_segment;
           n++)
        ;
      if (count < MAX_SEGMENTS)
        append_segment (page, &g_array_index (blocks, GTorchBlockInfo, i), n);
    }
  g_string_append (page, "</tbody></table>\n");
  if (count > MAX_SEGMENTS)
    g_string_append_printf (page, "<p>%u more segments are not shown.</p>\n", count - MAX_SEGMENTS);
}
