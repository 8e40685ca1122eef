/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What the environment may decide, and from where code is loaded. The environment belongs to whoever starts
 * the program: where that person has fewer rights than the program, no variable counts, be it the name of a
 * library or only a switch, so that nobody has to think about which are harmless. All variables are asked for
 * here, and all libraries opened. */

#include "config.h"

#include "base/gtorch-environment-private.h"

#include <dlfcn.h>
#include <glib/gi18n-lib.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/auxv.h>
#endif

static GPrivate refused; /* whether the last library of the thread was */

gboolean
gtorch_is_privileged (void)
{
#ifdef AT_SECURE
  return getauxval (AT_SECURE) != 0;
#else
  return getuid () != geteuid () || getgid () != getegid ();
#endif
}

const gchar *
gtorch_getenv (const gchar *name)
{
  const gchar *text;

  if (gtorch_env_is_ignored (name))
    {
      g_debug ("%s is ignored: this process has rights that its user lacks", name);
      return NULL;
    }
  text = g_getenv (name);
  /* Of the variables of others, an empty one may mean something, as CUDA_VISIBLE_DEVICES does. */
  return text != NULL && *text == '\0' && g_str_has_prefix (name, "GTORCH_") ? NULL : text;
}

/* clang-format off */
const GTorchEnvVariable gtorch_env_variables[] = {
  { "GTORCH_ALLOC",             GTORCH_ENV_TEXT,   NULL, 0 },
  { "GTORCH_ALLOC_CONF",        GTORCH_ENV_TEXT,   NULL, 0 },
  { "GTORCH_CHECK",             GTORCH_ENV_WORDS,  "blocking,errors,graph,replay,streams,streams=fatal", 0 },
  { "GTORCH_CPU_ISA",           GTORCH_ENV_CHOICE, "baseline,v3,v4", 0 },
  { "GTORCH_CUDA_DRIVER",       GTORCH_ENV_TEXT,   NULL, 0 },
  { "GTORCH_CUDA_LIBRARY_PATH", GTORCH_ENV_TEXT,   NULL, 0 },
  { "GTORCH_CUDA_RECORDINGS",   GTORCH_ENV_FLAG,   NULL, 0 },
  { "GTORCH_DEFAULT_STREAM",    GTORCH_ENV_CHOICE, "legacy", 0 },
  { "GTORCH_DISTRIBUTED_DEBUG", GTORCH_ENV_CHOICE, "off,info,detail", 0 },
  { "GTORCH_EXPORT",            GTORCH_ENV_FLAG,   NULL, 0 },
  { "GTORCH_LAUNCH_BLOCKING",   GTORCH_ENV_FLAG,   NULL, 0 },
  { "GTORCH_MEMORY_REPORT",     GTORCH_ENV_TEXT,   NULL, 0 },
  { "GTORCH_MODULE_PATH",       GTORCH_ENV_TEXT,   NULL, 0 },
  { "GTORCH_NO_MEMORY_CACHING", GTORCH_ENV_FLAG,   NULL, 0 },
  { "GTORCH_NUM_THREADS",       GTORCH_ENV_NUMBER, NULL, GTORCH_MAX_THREADS },
  { "GTORCH_STORE_ADDRESS",     GTORCH_ENV_TEXT,   NULL, 0 },
  { "GTORCH_STORE_PREFIX",      GTORCH_ENV_TEXT,   NULL, 0 },
  { "GTORCH_STORE_TOKEN",       GTORCH_ENV_TEXT,   NULL, 0 },
  { "GTORCH_WAIT_POLICY",       GTORCH_ENV_CHOICE, "adaptive,spin,sleep", 0 },
};
/* clang-format on */
const guint gtorch_n_env_variables = G_N_ELEMENTS (gtorch_env_variables);

/* The value, NULL for none. */
static const gchar *
ask (const gchar *name, GTorchEnvKind kind, const GTorchEnvVariable **variable)
{
  const gchar *text = gtorch_getenv (name);
  guint i;

  for (i = 0; i < gtorch_n_env_variables; i++)
    if (strcmp (gtorch_env_variables[i].name, name) == 0)
      break;
  g_assert (i < gtorch_n_env_variables && gtorch_env_variables[i].kind == kind);
  *variable = &gtorch_env_variables[i];
  return text;
}

static gint
find_word (const gchar *words, const gchar *word)
{
  g_auto (GStrv) list = g_strsplit (words, ",", -1);
  gint i;

  for (i = 0; list[i] != NULL; i++)
    if (strcmp (list[i], word) == 0)
      return i;
  return -1;
}

gboolean
gtorch_env_is_news (const gchar *name, const gchar *text)
{
  static GMutex lock;
  static GHashTable *told;
  gchar *key = g_strconcat (name, "=", text, NULL);
  gboolean result;

  g_mutex_lock (&lock);
  if (told == NULL)
    told = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  result = g_hash_table_add (told, key);
  g_mutex_unlock (&lock);
  return result;
}

static void
warn (const GTorchEnvVariable *variable, const gchar *text)
{
  g_auto (GStrv) list = g_strsplit (variable->words != NULL ? variable->words : "", ",", -1);
  g_autofree gchar *words = g_strjoinv (", ", list);
  g_autofree gchar *value = g_utf8_make_valid (text, -1);

  if (!gtorch_env_is_news (variable->name, text))
    return;
  if (variable->kind == GTORCH_ENV_NUMBER)
    g_warning ("%s: “%s” is not a number from 1 to %u, and is ignored", variable->name, value,
               variable->limit);
  else if (variable->kind == GTORCH_ENV_FLAG)
    g_warning ("%s: “%s” is neither 0 nor 1, and is ignored", variable->name, value);
  else if (g_strv_length (list) == 1)
    g_warning ("%s: “%s” is not %s, and is ignored", variable->name, value, words);
  else
    g_warning ("%s: “%s” is not one of %s, and is ignored", variable->name, value, words);
}

gboolean
gtorch_env_flag (const gchar *name, gboolean otherwise)
{
  static const gchar *const words[] = { "0", "1", "no", "yes", "false", "true", "off", "on" };
  const GTorchEnvVariable *variable;
  const gchar *text = ask (name, GTORCH_ENV_FLAG, &variable);
  guint i;

  if (text == NULL)
    return otherwise;
  for (i = 0; i < G_N_ELEMENTS (words); i++)
    if (g_ascii_strcasecmp (text, words[i]) == 0)
      return i % 2;
  warn (variable, text);
  return otherwise;
}

gint
gtorch_env_choice (const gchar *name)
{
  const GTorchEnvVariable *variable;
  const gchar *text = ask (name, GTORCH_ENV_CHOICE, &variable);
  const gint place = text != NULL ? find_word (variable->words, text) : -1;

  if (text != NULL && place < 0)
    warn (variable, text);
  return place;
}

guint
gtorch_env_words (const gchar *name)
{
  const GTorchEnvVariable *variable;
  const gchar *text = ask (name, GTORCH_ENV_WORDS, &variable);
  g_auto (GStrv) words = g_strsplit (text != NULL ? text : "", ",", -1);
  guint i, found = 0;

  for (i = 0; words[i] != NULL; i++)
    {
      const gchar *word = g_strstrip (words[i]);
      const gint place = find_word (variable->words, word);

      if (place >= 0)
        found |= 1u << place;
      else if (*word != '\0')
        warn (variable, word);
    }
  return found;
}

guint
gtorch_env_number (const gchar *name, guint otherwise)
{
  const GTorchEnvVariable *variable;
  const gchar *text = ask (name, GTORCH_ENV_NUMBER, &variable);
  gchar *end = NULL;
  const gint64 number = text != NULL ? g_ascii_strtoll (text, &end, 10) : 0;

  if (text == NULL)
    return otherwise;
  if (number >= 1 && number <= variable->limit && (*end == '\0' || *end == ','))
    return number;
  warn (variable, text);
  return otherwise;
}

/* Of another library: set, and not to 0. */
gboolean
gtorch_env_is_on (const gchar *name)
{
  const gchar *text = gtorch_getenv (name);

  return text != NULL && *text != '\0' && *text != '0';
}

gboolean
gtorch_env_is_ignored (const gchar *name)
{
  return gtorch_is_privileged () && g_getenv (name) != NULL;
}

GStrv
gtorch_env_list (const gchar *const *prefixes)
{
  g_auto (GStrv) all = g_listenv ();
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();
  gsize i, k;

  for (i = 0; all[i] != NULL; i++)
    for (k = 0; prefixes[k] != NULL; k++)
      if (g_str_has_prefix (all[i], prefixes[k]))
        {
          g_strv_builder_add (builder, all[i]);
          break;
        }
  return g_strv_builder_end (builder);
}

void
gtorch_env_keep_only (const gchar *const *prefixes, GStrv names)
{
  g_auto (GStrv) now = gtorch_env_list (prefixes);
  gsize i;

  for (i = 0; now[i] != NULL; i++)
    if (!g_strv_contains ((const gchar *const *) names, now[i]))
      g_unsetenv (now[i]);
}

gpointer
gtorch_library_open (const gchar *path, int flags)
{
  const gboolean is_refused =
      gtorch_is_privileged () && strchr (path, '/') != NULL && !g_path_is_absolute (path);

  g_private_set (&refused, GINT_TO_POINTER (is_refused));
  return is_refused ? NULL : dlopen (path, flags);
}

const gchar *
gtorch_library_error (void)
{
  return g_private_get (&refused) != NULL
             ? _ ("in a privileged process, such as a setuid one, a library must be given "
                  "by its full path")
             : dlerror ();
}
