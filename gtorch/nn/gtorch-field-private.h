/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib-object.h>

#include <gtorch/nn/gtorch-module-private.h>

G_BEGIN_DECLS

/* Properties that are fields of the instance, as a table: layers and optimizers have many. */
typedef enum
{
  GTORCH_FIELD_INT,       /* gint64 */
  GTORCH_FIELD_DOUBLE,    /* gdouble */
  GTORCH_FIELD_BOOL,      /* gboolean */
  GTORCH_FIELD_PARAMETER, /* read only: the parameter number `offset` of a module */
  GTORCH_FIELD_BUFFER, /* the buffer number `offset`; if mutable, registered by init () as NULL */
} GTorchFieldKind;

typedef struct
{
  const gchar *name;
  GTorchFieldKind kind;
  gsize offset;
  gdouble value;       /* the default */
  gboolean is_mutable; /* else set at construction only */
} GTorchField;

#define GTORCH_FIELD(Type, field) G_STRUCT_OFFSET (Type, field)
#define GTORCH_FIELDS(klass, fields) \
  gtorch_fields_install (G_OBJECT_CLASS (klass), fields, G_N_ELEMENTS (fields))

void gtorch_fields_install (GObjectClass *klass, const GTorchField *fields, guint n);

/* "(3, 3)", "(3,)": as PyTorch writes tuples. */
gchar *gtorch_tuple_str (const gint64 *values, guint n);
gchar *gtorch_pair_str (gint64 first, gint64 second);
/* PyTorch's way to write a number: 0.1, 1e-05. The buffer is a ring of this thread's. */
const gchar *gtorch_double_str (gdouble value);
#define GTORCH_BOOL_STR(value) ((value) ? "True" : "False")

G_END_DECLS
