/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/io/gtorch-table.h>
#include <gtorch/tensor/gtorch-impl-private.h>

G_BEGIN_DECLS

/* The structures of the Arrow C data and stream interfaces, as their specification has them. */

#define GTORCH_ARROW_NULLABLE 2

typedef struct _GTorchArrowSchema GTorchArrowSchema;
typedef struct _GTorchArrowArray GTorchArrowArray;
typedef struct _GTorchArrowStream GTorchArrowStream;

struct _GTorchArrowSchema
{
  const char *format, *name, *metadata;
  gint64 flags, n_children;
  GTorchArrowSchema **children, *dictionary;
  void (*release) (GTorchArrowSchema *schema);
  void *private_data;
};

struct _GTorchArrowArray
{
  gint64 length, null_count, offset, n_buffers, n_children;
  const void **buffers;
  GTorchArrowArray **children, *dictionary;
  void (*release) (GTorchArrowArray *array);
  void *private_data;
};

struct _GTorchArrowStream
{
  int (*get_schema) (GTorchArrowStream *stream, GTorchArrowSchema *schema);
  int (*get_next) (GTorchArrowStream *stream, GTorchArrowArray *array);
  const char *(*get_last_error) (GTorchArrowStream *stream);
  void (*release) (GTorchArrowStream *stream);
  void *private_data;
};

/* On success the array is moved away, and its release () is NULL. */
GTorchTable *gtorch_arrow_import (const GTorchArrowSchema *schema, GTorchArrowArray *array,
                                  GError **error);

static inline void
gtorch_arrow_release_schema (GTorchArrowSchema *schema)
{
  if (schema->release != NULL)
    schema->release (schema);
}

static inline void
gtorch_arrow_release_array (GTorchArrowArray *array)
{
  if (array->release != NULL)
    array->release (array);
}

static inline void
gtorch_arrow_release_stream (GTorchArrowStream *stream)
{
  if (stream->release != NULL)
    stream->release (stream);
}

G_END_DECLS
