/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/memory/gtorch-allocator-history-private.h>
#include <gtorch/memory/gtorch-memory-report.h>

G_BEGIN_DECLS

/* Called for each allocator when it is made; it becomes part of reports. */
void gtorch_memory_report_add (GTorchAllocator *allocator);

/* The memory of a device while its events were recorded. */
typedef struct
{
  gint64 allocated, reserved; /* bytes after the event */
} GTorchMemoryMoment;

/* The state after each entry, as it follows from the present one. */
GArray *gtorch_memory_report_moments (const GArray *blocks, const GArray *entries);

/* --- parts of a page, which needs no other file and no network --- */

/* How wide and high pictures over time are. */
#define GTORCH_HTML_WIDTH  1000
#define GTORCH_HTML_HEIGHT 220

/* The head, and the beginning of the body: a headline. */
void gtorch_html_begin (GString *page, const gchar *title);
void gtorch_html_end (GString *page);
/* The program, its process and the time. */
void gtorch_html_origin (GString *page);
/* A number as SVG has it, whatever the locale is, behind a text. */
void gtorch_html_number (GString *page, const gchar *before, gdouble number);
/* Begins a picture, with lines for 0 to `most` bytes, and times from 0 to `span` below it. */
void gtorch_html_axes (GString *page, const gchar *title, guint64 most, gdouble span,
                       const gchar *unit);
/* Appends a text, with what HTML has a meaning for escaped. */
void gtorch_html_text (GString *page, const gchar *text);
/* “12.5 MiB” */
void gtorch_html_size (GString *page, guint64 n_bytes);
void gtorch_html_timeline (GString *page, const GArray *entries, const GArray *moments);
/* The segments as bars with their blocks. */
void gtorch_html_segments (GString *page, const GArray *blocks);

G_END_DECLS
