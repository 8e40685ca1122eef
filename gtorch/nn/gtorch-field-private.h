/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib-object.h>

#include <gtorch/base/gtorch-size.h>
#include <gtorch/nn/gtorch-module-private.h>

G_BEGIN_DECLS

/* Properties that are fields of the instance, as a table: layers have many. */
typedef enum
{
  GTORCH_FIELD_INT,       /* gint64 */
  GTORCH_FIELD_DOUBLE,    /* gdouble */
  GTORCH_FIELD_BOOL,      /* gboolean */
  GTORCH_FIELD_ENUM,      /* gint */
  GTORCH_FIELD_SIZE,      /* GTorchSize *, which may be NULL until constructed () */
  GTORCH_FIELD_PARAMETER, /* read only: the parameter number `offset` of a module */
  GTORCH_FIELD_BUFFER, /* the buffer number `offset`; if mutable, registered by init () as NULL */
  GTORCH_FIELD_DEVICE, /* GTorchDevice *: where the parameters are made; read from them later */
  GTORCH_FIELD_DTYPE,  /* gint: likewise */
} GTorchFieldKind;

/* How a module's text shows the field. */
typedef enum
{
  GTORCH_FIELD_HIDDEN,
  GTORCH_FIELD_NAMED,   /* eps=1e-05 */
  GTORCH_FIELD_CHANGED, /* the same, unless it has its default */
  GTORCH_FIELD_BARE,    /* 1e-05 */
  GTORCH_FIELD_QUOTED,  /* approximate='none' */
} GTorchFieldText;

typedef struct
{
  const gchar *name;
  GTorchFieldKind kind;
  gsize offset;
  gdouble value;        /* the default; of a size, each of its numbers */
  GType (*type) (void); /* of an enum */
  gboolean is_mutable;  /* else set at construction only */
  GTorchFieldText text;
  gboolean is_optional; /* GTORCH_NONE and NaN say that there is no number */
  guint length;         /* how many numbers one number of a size stands for; 0 for any shape */
} GTorchField;

#define GTORCH_FIELD(Type, field) G_STRUCT_OFFSET (Type, field)
#define GTORCH_FIELDS(klass, fields) \
  gtorch_fields_install (G_OBJECT_CLASS (klass), fields, G_N_ELEMENTS (fields))

void gtorch_fields_install (GObjectClass *klass, const GTorchField *fields, guint n);
/* For finalize (): releases what the fields own. */
void gtorch_fields_clear (gpointer object, const GTorchField *fields, guint n);
/* "3, 4, kernel_size=(3, 3)": what stands between the brackets of a module's text. */
gchar *gtorch_fields_str (gpointer object, const GTorchField *fields, guint n);

/* "(3, 3)", "(3,)": as PyTorch writes tuples. */
gchar *gtorch_tuple_str (const gint64 *values, guint n);
/* PyTorch's way to write a number: 0.1, 1e-05. The buffer is a ring of this thread's. */
const gchar *gtorch_double_str (gdouble value);
#define GTORCH_BOOL_STR(value) ((value) ? "True" : "False")

G_END_DECLS
