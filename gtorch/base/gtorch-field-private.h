/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The properties of a class as a table, from which the GParamSpecs are made and by which they are read and
 * written. A row is one of two:
 *
 *   { "pid", GTORCH_FIELD_UINT, GTORCH_FIELD (GTorchDeviceProcess, pid), .flags = GTORCH_FIELD_FIXED },
 *   { "max-size",
 *     GTORCH_PROPERTY_UINT (gtorch_fft_plan_cache_get_max_size, gtorch_fft_plan_cache_set_max_size),
 *     .value = 4096 },
 *
 * The value of the first is a member of the instance, written without further ado, and notified where it
 * changes. That of the second comes from a function of the class and goes to one, or is only read where the
 * setter is NULL. The setter does all that there is to do, notifying included; it returns nothing, or FALSE
 * with an error, which becomes a warning. GTORCH_FIELDS (klass, fields), in class_init, installs the rows of
 * a table; a class may have several. */

#pragma once

#include <glib-object.h>
#include <math.h>

G_BEGIN_DECLS

typedef enum
{
  GTORCH_FIELD_BOOL,   /* gboolean */
  GTORCH_FIELD_INT,    /* gint */
  GTORCH_FIELD_UINT,   /* guint */
  GTORCH_FIELD_INT64,  /* gint64 */
  GTORCH_FIELD_UINT64, /* guint64 */
  GTORCH_FIELD_DOUBLE, /* gdouble */
  GTORCH_FIELD_ENUM,   /* gint */
  GTORCH_FIELD_FLAGS,  /* guint */
  GTORCH_FIELD_STRING, /* gchar * */
  GTORCH_FIELD_OBJECT, /* of a class, or of an interface */
  GTORCH_FIELD_BOXED,
  GTORCH_FIELD_SIZE, /* GTorchSize *, which may be NULL until constructed () */
} GTorchFieldKind;

/* Without flags, a row with a setter is SETTABLE, another one READABLE. */
#define GTORCH_FIELD_READABLE (G_PARAM_READABLE)
#define GTORCH_FIELD_SETTABLE (G_PARAM_READWRITE | G_PARAM_EXPLICIT_NOTIFY)
#define GTORCH_FIELD_SETTING  (GTORCH_FIELD_SETTABLE | G_PARAM_CONSTRUCT)
#define GTORCH_FIELD_FIXED    (G_PARAM_READWRITE | G_PARAM_CONSTRUCT_ONLY)

/* How a module's text shows the field. */
typedef enum
{
  GTORCH_FIELD_HIDDEN,
  GTORCH_FIELD_NAMED,   /* eps=1e-05 */
  GTORCH_FIELD_CHANGED, /* the same, unless it has its default */
  GTORCH_FIELD_BARE,    /* 1e-05 */
  GTORCH_FIELD_QUOTED,  /* approximate='none' */
} GTorchFieldText;

typedef struct _GTorchField GTorchField;

struct _GTorchField
{
  const gchar *name;
  GTorchFieldKind kind;
  gsize offset;         /* of the member, or a number for get_value () and set_value () */
  gdouble value;        /* the default; of a size, each of its numbers */
  GType (*type) (void); /* of an enum, flags, an object or a boxed value */
  GParamFlags flags;
  GTorchFieldText text;
  gboolean is_optional; /* GTORCH_NONE or GTORCH_NONE_DOUBLE says that there is no number */
  guint length;         /* how many numbers one number of a size stands for; 0 for any shape */

  /* What is outside is refused; an infinite one is the end of the type. Where both are equal, any number is
   * kept, NaN too. */
  gdouble low, high;
  /* Functions of the class; GTORCH_PROPERTY_ gives them. */
  GCallback get, set;
  gboolean
      is_fallible;  /* set () returns a gboolean and has a GError **; by GTORCH_PROPERTY_, too */
  gboolean is_full; /* what get () returns is the caller's */
  /* In place of all these, for what higher folders keep elsewhere; set_value () returns whether it has
   * changed, and does not notify. */
  void (*get_value) (gpointer object, const GTorchField *field, GValue *value);
  gboolean (*set_value) (gpointer object, const GTorchField *field, const GValue *value);
};

#define GTORCH_FIELD(Type, field) G_STRUCT_OFFSET (Type, field)
#define GTORCH_FIELDS(klass, fields) \
  gtorch_fields_install (G_OBJECT_CLASS (klass), fields, G_N_ELEMENTS (fields))

/* `Self` is a typedef in the file of the class, so that the compiler holds the functions against it and
 * against the kind. */
/* clang-format off */
#define GTORCH_PROPERTY(Value, kind_, get_, set_)                   \
  .kind = kind_,                                                    \
  .get = (GCallback) _Generic ((get_), Value (*) (Self *): (get_)), \
  .set = (GCallback) (set_),                                        \
  .is_fallible = _Generic ((set_),                                  \
                           void *: FALSE,                           \
                           void (*) (Self *, Value): FALSE,         \
                           gboolean (*) (Self *, Value, GError **): TRUE)
/* clang-format on */

#define GTORCH_PROPERTY_BOOL(get, set)   GTORCH_PROPERTY (gboolean, GTORCH_FIELD_BOOL, get, set)
#define GTORCH_PROPERTY_INT(get, set)    GTORCH_PROPERTY (gint, GTORCH_FIELD_INT, get, set)
#define GTORCH_PROPERTY_UINT(get, set)   GTORCH_PROPERTY (guint, GTORCH_FIELD_UINT, get, set)
#define GTORCH_PROPERTY_INT64(get, set)  GTORCH_PROPERTY (gint64, GTORCH_FIELD_INT64, get, set)
#define GTORCH_PROPERTY_UINT64(get, set) GTORCH_PROPERTY (guint64, GTORCH_FIELD_UINT64, get, set)
#define GTORCH_PROPERTY_DOUBLE(get, set) GTORCH_PROPERTY (gdouble, GTORCH_FIELD_DOUBLE, get, set)
#define GTORCH_PROPERTY_STRING(get, set) \
  GTORCH_PROPERTY (const gchar *, GTORCH_FIELD_STRING, get, set)
/* Value: the type in C; get_type: its GType. */
#define GTORCH_PROPERTY_ENUM(Value, get_type, get, set) \
  GTORCH_PROPERTY (Value, GTORCH_FIELD_ENUM, get, set), .type = get_type
#define GTORCH_PROPERTY_FLAGS(Value, get_type, get, set) \
  GTORCH_PROPERTY (Value, GTORCH_FIELD_FLAGS, get, set), .type = get_type
#define GTORCH_PROPERTY_OBJECT(Value, get_type, get, set) \
  GTORCH_PROPERTY (Value *, GTORCH_FIELD_OBJECT, get, set), .type = get_type
#define GTORCH_PROPERTY_BOXED(Value, get_type, get, set) \
  GTORCH_PROPERTY (Value *, GTORCH_FIELD_BOXED, get, set), .type = get_type

void gtorch_fields_install (GObjectClass *klass, const GTorchField *fields, guint n);
/* For finalize (): releases what members of the instance own. */
void gtorch_fields_clear (gpointer object, const GTorchField *fields, guint n);

G_END_DECLS
