/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/base/gtorch-dtype-private.h>
#include <gtorch/base/gtorch-error.h>
#include <gtorch/base/gtorch-text-private.h>
#include <gtorch/io/gtorch-csv-reader.h>

G_BEGIN_DECLS

/* A number of a table, before it becomes one of the column's dtype. */
typedef union
{
  gdouble real;
  gint64 whole; /* of integers and bools */
} GTorchCSVCell;

typedef struct
{
  gchar *name; /* NULL without a header */
  guint dtype;
  gint target; /* its place among those that are wanted, or -1 */
} GTorchCSVColumn;

typedef struct
{
  GInputStream *stream; /* borrowed */
  gchar *buffer;        /* with a zero at the end */
  gsize room, at, end;
  gboolean is_at_end; /* of the stream */
  gchar delimiter, quote;
  gboolean allow_missing;
  gdouble missing;
  guint64 line; /* in which the next record begins, from 1 on */
  GString *token;
} GTorchCSVParser;

struct _GTorchCSVReader
{
  GObject parent_instance;
  GInputStream *stream;
  gchar delimiter[2], quote[2];
  gboolean has_header;
  guint skip_rows;
  gdouble missing;
  GTorchDType dtype;
  guint64 max_bytes;
  gchar **wanted;     /* names of columns, or NULL for all */
  GHashTable *dtypes; /* by name */

  GTorchCSVParser parser;
  GArray *columns; /* of GTorchCSVColumn; NULL until reading began */
  guint n_targets;
  gboolean has_read;
  gint is_busy;
};

void gtorch_csv_parser_clear (GTorchCSVParser *self);
/* Reads more of the stream; what is before `at` is dropped. */
gboolean gtorch_csv_fill (GTorchCSVParser *self, GCancellable *cancellable, GError **error);
/* Skips a line; has no effect at the end. */
gboolean gtorch_csv_skip_line (GTorchCSVParser *self, GCancellable *cancellable, GError **error);
/* The fields of the next record as texts; `at` stays in front of it if it is only looked at. NULL without
 * an error at the end. */
GPtrArray *gtorch_csv_read_texts (GTorchCSVParser *self, gboolean look, GCancellable *cancellable,
                                  GError **error);
/* Reads the next record; the number of column i goes to cells[target * step]. Sets found to FALSE at the
 * end. */
gboolean gtorch_csv_read_record (GTorchCSVParser *self, const GTorchCSVColumn *columns,
                                 guint n_columns, GTorchCSVCell *cells, gsize step, gboolean *found,
                                 GCancellable *cancellable, GError **error);

G_END_DECLS
