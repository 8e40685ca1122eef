/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

G_BEGIN_DECLS

#define GTORCH_MAX_THREADS 65536 /* of GTORCH_NUM_THREADS and gtorch_set_num_threads () */

/* Whether the process has rights that whoever started it lacks: it is setuid, setgid, has capabilities of its
 * file, or a security module says so. */
gboolean gtorch_is_privileged (void);

/* The value of an environment variable; NULL if there is none, in a privileged process, and if one of the
 * library's own is empty. */
const gchar *gtorch_getenv (const gchar *name);
/* Was nothing said yet of this text in the variable? Then it has been. */
gboolean gtorch_env_is_news (const gchar *name, const gchar *text);
/* What the library's own variables may be. Another value is warned of and ignored; none, and an empty one, is
 * what there is without the variable. Tests compare the list with the manual. */
typedef enum
{
  GTORCH_ENV_FLAG,   /* 0 or 1, no or yes, false or true, off or on */
  GTORCH_ENV_CHOICE, /* one of a few words */
  GTORCH_ENV_WORDS,  /* several of them, with commas between */
  GTORCH_ENV_NUMBER, /* from 1 to limit; further ones behind commas do not count */
  GTORCH_ENV_TEXT,   /* a path, or something with a parser of its own that warns */
} GTorchEnvKind;

typedef struct
{
  const gchar *name;
  GTorchEnvKind kind;
  const gchar *words; /* CHOICE, WORDS: separated by commas */
  guint limit;        /* NUMBER */
} GTorchEnvVariable;

extern const GTorchEnvVariable gtorch_env_variables[];
extern const guint gtorch_n_env_variables;

gboolean gtorch_env_flag (const gchar *name, gboolean otherwise);
/* Its place among the words; -1: none. */
gint gtorch_env_choice (const gchar *name);
/* A bit for each word. */
guint gtorch_env_words (const gchar *name);
guint gtorch_env_number (const gchar *name, guint otherwise);

/* A switch of another library's, which takes everything but 0 for on. */
gboolean gtorch_env_is_on (const gchar *name);

/* Whether there is one that counts for nothing, because the process is privileged. */
gboolean gtorch_env_is_ignored (const gchar *name);

/* The names of the variables that begin with one of the prefixes. */
GStrv gtorch_env_list (const gchar *const *prefixes);
/* Removes those of them that are not in the list: what a library has set for its own processes. */
void gtorch_env_keep_only (const gchar *const *prefixes, GStrv names);

/* dlopen (): in a privileged process only of full paths, and of names that the system's loader looks for. A
 * failure is to be read with gtorch_library_error (). */
gpointer gtorch_library_open (const gchar *path, int flags);
const gchar *gtorch_library_error (void);

G_END_DECLS
