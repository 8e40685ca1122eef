/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/gtorch.h>

/* Calls of public functions with what they must refuse. Whatever it is given, a function does what it was
 * asked, or sets an error and returns NULL or FALSE, or, for what only a mistake in C can bring about,
 * logs one critical of ours. functions.py writes the table of all of them. */

typedef enum
{
  PARAM_BOOL,
  PARAM_BOOLS, /* a list; its length follows */
  PARAM_DOUBLE,
  PARAM_DOUBLES,
  PARAM_ENUM,
  PARAM_FLOATS,
  PARAM_FOREIGN, /* an object or a structure of GLib's */
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
  RETURN_NONE, /* a pointer that stays the callee's */
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
  gint64 low, high;    /* INT */
  GDestroyNotify drop; /* OUT_FULL; NULL: by get_type */
} Param;

typedef struct
{
  const gchar *name;
  const gchar *header;
  guint n_params;
  const Param *params;
  ReturnKind returns;
  GDestroyNotify drop; /* FULL; NULL: by get_type */
  GType (*get_type) (void);
  gboolean throws;
  void (*call) (const Value *args, Value *result, GError **error);
} Function;

extern const Function functions[];
extern const guint n_functions;

#define MAX_PARAMS 24

/* The only operation without a sample: what it gives has no values. */
#define WITHOUT_SAMPLE "gtorch_empty"

typedef enum
{
  MAY_FAIL,
  MUST_FAIL,     /* with an error */
  MUST_COMPLAIN, /* with a critical */
  MUST_NOT_WORK, /* one of both */
  MAY_COMPLAIN,  /* anything */
} Expectation;

typedef struct
{
  Expectation expect;
  gchar *what;           /* is wrong with the call */
  gchar *mention;        /* what an error must name, or NULL */
  gboolean is_state;     /* what is wrong is no mistake in C */
  gboolean no_place;     /* results that must have one are given none */
  gboolean is_cancelled; /* an error must say that, and nothing else */
  const gchar *begin;    /* what an error must begin with, before a colon, or NULL */
} Refusal;

void refusal_clear (Refusal *refusal);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Refusal, refusal_clear)

/* From now on criticals and warnings are counted; nothing is fatal. */
void refuse_init (void);
/* The first of them since this was asked last, or NULL; borrowed. */
const gchar *refuse_take_log (void);
/* The same, but NULL where there were warnings alone. */
const gchar *refuse_take_critical (void);
/* What is set for the whole program or thread is as at the beginning. */
void refuse_restore (void);
const Function *refuse_find (const gchar *name);
/* Calls twice, the second time without places for the error and the results; says what is not as it should
 * be. Was the first a success? */
gboolean refuse_call (const Function *function, const Value *args, const Refusal *refusal);
gboolean refuse_call_once (const Function *function, const Value *args, const Refusal *refusal,
                           gboolean wants_error);
/* A new object or structure for an argument, in working order; NULL: nobody knows how to make one. */
gpointer refuse_make (const Param *param);
/* The m-th other one, which the function will hardly like, and what is odd about it. */
gpointer refuse_make_odd (const Param *param, guint m, const gchar **what);
/* The m-th one that is disposed, or has lost what it works with: whatever is called with it, nothing is a
 * mistake of the caller's (states.c). */
gpointer refuse_make_state (const Param *param, guint m, const gchar **what);
void refuse_drop (const Param *param, gpointer object);
/* What a function is called back by. It works, fails with an error, or fails without one. */
gpointer refuse_func (const Param *param);
typedef enum
{
  CALLBACK_WORKS,
  CALLBACK_FAILS,
  CALLBACK_IS_SILENT,
} CallbackMode;
extern CallbackMode callback_mode;
/* An object that is no tensor, device or anything else of GTorch's. */
gpointer refuse_stranger (void);
