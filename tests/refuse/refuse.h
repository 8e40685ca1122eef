/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/gtorch.h>

/* Calls of public functions with invalid arguments. Whatever the arguments, a function succeeds, or sets
 * an error and returns NULL or FALSE, or, for faults that only C programs can cause, logs one critical
 * message of this library. functions.py writes the table of all functions. */

typedef enum
{
  PARAM_BOOL,
  PARAM_BOOLS, /* a list; its length follows */
  PARAM_DOUBLE,
  PARAM_DOUBLES,
  PARAM_ENUM,
  PARAM_FLOATS,
  PARAM_FOREIGN, /* an object or a structure of GLib */
  PARAM_FUNC,
  PARAM_INT,
  PARAM_INTS,
  PARAM_LENGTH,
  PARAM_OBJECT, /* an object or a boxed structure */
  PARAM_OBJECTS,
  PARAM_OUT,
  PARAM_OUT_FULL,
  PARAM_POINTER,
  PARAM_STRING,
  PARAM_STRINGS,
} ParamKind;

typedef enum
{
  RETURN_VOID,
  RETURN_BOOL,
  RETURN_INT,
  RETURN_DOUBLE,
  RETURN_NONE, /* a pointer that the function keeps */
  RETURN_FULL,
} ReturnKind;

typedef union
{
  gint64 i;
  gdouble d;
  gconstpointer p;
} Value;

typedef struct
{
  ParamKind kind;
  const gchar *name;
  const gchar *type;
  gboolean nullable;
  GType (*get_type) (void);
  gint64 low, high;    /* for INT */
  GDestroyNotify drop; /* for OUT_FULL; NULL: by get_type */
  gboolean
      takes_none; /* by its documentation, the constant for no number has a meaning; or it is no number */
} Param;

typedef struct
{
  const gchar *name;
  const gchar *header;
  guint n_params;
  const Param *params;
  ReturnKind returns;
  GDestroyNotify drop; /* for FULL; NULL: by get_type */
  GType (*get_type) (void);
  gboolean throws;
  void (*call) (const Value *args, Value *result, GError **error);
} Function;

extern const Function functions[];
extern const guint n_functions;

#define MAX_PARAMS 32

/* The only operation without a sample: its results are not initialised. */
#define WITHOUT_SAMPLE "gtorch_empty"

typedef enum
{
  MAY_FAIL,
  MUST_FAIL,     /* with an error */
  MUST_COMPLAIN, /* with a critical message */
  MUST_NOT_WORK, /* with either */
  MAY_COMPLAIN,  /* any outcome is allowed */
} Expectation;

typedef struct
{
  Expectation expect;
  gchar *what;           /* describes the fault */
  gchar *mention;        /* a word that the error must contain, or NULL */
  gboolean is_state;     /* the fault is not a mistake in C */
  gboolean no_place;     /* the pointers for mandatory results are NULL */
  gboolean is_cancelled; /* the error must report cancellation */
  const gchar *begin;    /* the prefix of the error before a colon, or NULL */
} Refusal;

void refusal_clear (Refusal *refusal);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Refusal, refusal_clear)

/* What a library beside this one adds, whose functions are in the table (library-objects.c). */
typedef struct
{
  gpointer (*make) (const gchar *type); /* returns NULL if it does not know the type */
  void (*begin) (void);
  GDestroyNotify drop_context; /* of cairo */
} RefuseLibrary;

extern const RefuseLibrary refuse_library;

/* Makes criticals and warnings counted instead of fatal. */
void refuse_init (void);
/* Returns the first of them since the last call, or NULL; borrowed. */
const gchar *refuse_take_log (void);
/* Like refuse_take_log (), but returns NULL if there were only warnings. */
const gchar *refuse_take_critical (void);
/* Restores the settings of the program and of the thread. */
void refuse_restore (void);
const Function *refuse_find (const gchar *name);
/* Calls the function twice, the second time without pointers for the error and the results; reports
 * deviations. Returns TRUE if the first call succeeded. */
gboolean refuse_call (const Function *function, const Value *args, const Refusal *refusal);
gboolean refuse_call_once (const Function *function, const Value *args, const Refusal *refusal,
                           gboolean wants_error);
/* Creates a valid object or structure for an argument. Returns NULL if the test does not know the type. */
gpointer refuse_make (const Param *param);
/* Returns the m-th unusual value for the argument, which the function will probably refuse, and a
 * description. */
gpointer refuse_make_odd (const Param *param, guint m, const gchar **what);
/* Returns the m-th object that is disposed, or has lost an object that it needs: calls with it are never
 * mistakes of the caller (states.c). */
gpointer refuse_make_state (const Param *param, guint m, const gchar **what);
void refuse_drop (const Param *param, gpointer object);
/* Returns a callback for a function. It succeeds, fails with an error, or fails without one. */
gpointer refuse_func (const Param *param);
typedef enum
{
  CALLBACK_WORKS,
  CALLBACK_FAILS,
  CALLBACK_IS_SILENT,
} CallbackMode;
extern CallbackMode callback_mode;
/* What callbacks do in this mode: returns TRUE if they work. */
gboolean refuse_called_back (GError **error);
gboolean refuse_keep_rate (GTorchLRScheduler *scheduler, gint64 n, guint group, gdouble *factor,
                           gpointer data, GError **error);
/* Returns an object of gtorch/data, or NULL if the type is of another folder. */
gpointer refuse_make_data (const gchar *type);
gpointer refuse_make_distributed (const gchar *type);
gpointer refuse_make_file_object (const gchar *type);
gpointer refuse_make_text_object (const gchar *type);
gpointer refuse_no_proxy (GObject *object);
/* Returns an object that has no type of GTorch. */
gpointer refuse_stranger (void);
/* Objects of the folder train (train-objects.c). */
gpointer refuse_make_accuracy (void);
gpointer refuse_make_confusion_matrix (void);
gpointer refuse_make_mean_squared_error (void);
gpointer refuse_make_precision_score (void);
gpointer refuse_make_recall_score (void);
gpointer refuse_make_f1_score (void);
gpointer refuse_make_csv_log (void);
gpointer refuse_make_json_log (void);
gpointer refuse_make_exporter (void);
gpointer refuse_make_event_writer (void);
gpointer refuse_make_trainer (void);
/* Objects of the folder profiler (profiler-objects.c). */
gpointer refuse_make_profile_list (void);
gpointer refuse_make_profile_range (void);
gpointer refuse_make_profile_row (void);
