/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib-object.h>

#include <gtorch/base/gtorch-size.h>
#include <gtorch/nn/gtorch-module-private.h>

G_BEGIN_DECLS

/* A table of properties that are fields of the instance: layers have many. */
typedef enum
{
  GTORCH_FIELD_INT,       /* gint64 */
  GTORCH_FIELD_DOUBLE,    /* gdouble */
  GTORCH_FIELD_BOOL,      /* gboolean */
  GTORCH_FIELD_ENUM,      /* gint */
  GTORCH_FIELD_SIZE,      /* GTorchSize *; may be NULL until constructed () */
  GTORCH_FIELD_PARAMETER, /* read only: the parameter at index `offset` of a module */
  GTORCH_FIELD_BUFFER, /* the buffer at index `offset`; if mutable, registered by init () as NULL */
  /* GTorchDevice *: the device on which parameters are created; later reads return theirs */
  GTORCH_FIELD_DEVICE,
  GTORCH_FIELD_DTYPE, /* gint: the dtype, in the same way */
} GTorchFieldKind;

/* The form of a field in the text of a module. */
typedef enum
{
  GTORCH_FIELD_HIDDEN,
  GTORCH_FIELD_NAMED,   /* eps=1e-05 */
  GTORCH_FIELD_CHANGED, /* eps=1e-05, unless it has its default */
  GTORCH_FIELD_BARE,    /* 1e-05 */
  GTORCH_FIELD_QUOTED,  /* approximate='none' */
} GTorchFieldText;

typedef struct
{
  const gchar *name;
  GTorchFieldKind kind;
  gsize offset;
  gdouble value;        /* the default; for a size, each of its numbers */
  GType (*type) (void); /* of an enum */
  gboolean is_mutable;  /* otherwise set at construction only */
  GTorchFieldText text;
  gboolean is_optional; /* GTORCH_NONE and NaN stand for no number */
  guint length;         /* the length to which a single number of a size expands; 0 for any shape */
} GTorchField;

#define GTORCH_FIELD(Type, field) G_STRUCT_OFFSET (Type, field)
#define GTORCH_FIELDS(klass, fields) \
  gtorch_fields_install (G_OBJECT_CLASS (klass), fields, G_N_ELEMENTS (fields))

void gtorch_fields_install (GObjectClass *klass, const GTorchField *fields, guint n);
/* Releases the members that the fields own, for finalize (). */
void gtorch_fields_clear (gpointer object, const GTorchField *fields, guint n);
/* Returns the text between the brackets of a module's text: "3, 4, kernel_size=(3, 3)". */
gchar *gtorch_fields_str (gpointer object, const GTorchField *fields, guint n);

/* Returns "(3, 3)", "(3,)": tuples in Python's form. */
gchar *gtorch_tuple_str (const gint64 *values, guint n);
/* Returns a number in PyTorch's form: 0.1, 1e-05. The buffer belongs to a ring of this thread. */
const gchar *gtorch_double_str (gdouble value);
#define GTORCH_BOOL_STR(value) ((value) ? "True" : "False")

G_END_DECLS
