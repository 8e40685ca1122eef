/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Environment variables: which values are accepted, and which cause a warning. */

#include "config.h"

#include <string.h>

#include <gtorch/base/gtorch-environment-private.h>
#include <gtorch/gtorch.h>

/* Returns the value; -2 stands for no number. */
static gint
read_variable (const GTorchEnvVariable *variable)
{
  switch (variable->kind)
    {
    case GTORCH_ENV_FLAG:
      return gtorch_env_flag (variable->name, -2);
    case GTORCH_ENV_CHOICE:
      return gtorch_env_choice (variable->name);
    case GTORCH_ENV_WORDS:
      return gtorch_env_words (variable->name);
    case GTORCH_ENV_NUMBER:
      return gtorch_env_number (variable->name, -2);
    default:
      return 0;
    }
}

static gint
nothing (const GTorchEnvVariable *variable)
{
  return variable->kind == GTORCH_ENV_CHOICE ? -1 : variable->kind == GTORCH_ENV_WORDS ? 0 : -2;
}

static gint
read_text (const GTorchEnvVariable *variable, const gchar *text)
{
  g_autofree gchar *former = g_strdup (g_getenv (variable->name));
  gint result;

  g_setenv (variable->name, text, TRUE);
  result = read_variable (variable);
  if (former != NULL)
    g_setenv (variable->name, former, TRUE);
  else
    g_unsetenv (variable->name);
  return result;
}

/* The value of a text with this word alone. */
static guint
bit_of (const GTorchEnvVariable *variable, const gchar *word)
{
  g_auto (GStrv) words = g_strsplit (variable->words, ",", -1);
  guint i;

  for (i = 0; words[i] != NULL; i++)
    if (g_str_equal (words[i], word))
      return 1u << i;
  return 0;
}

static void
invalid_values_cause_warnings (gconstpointer data)
{
  static const gchar *const texts[] = {
    "nonsense", "2x",      "-1", "0x1",  "99999999999999999999",
    "\xff\xfe", "Legacy ", " 1", "%s%n", "spin,legacy,v3,errors,7x"
  };
  const GTorchEnvVariable *variable = data;
  g_autofree gchar *pattern = g_strdup_printf ("%s: *ignored", variable->name);
  guint i;

  for (i = 0; i < G_N_ELEMENTS (texts); i++)
    {
      /* a number may have leading blanks; words must be known */
      const gboolean is_one =
          (variable->kind == GTORCH_ENV_NUMBER && g_str_equal (texts[i], " 1"))
          || (variable->kind == GTORCH_ENV_WORDS && i == G_N_ELEMENTS (texts) - 1);
      guint k;
      const guint n_warnings = variable->kind == GTORCH_ENV_WORDS && is_one ? 4 : !is_one;

      for (k = 0; k < n_warnings; k++)
        g_test_expect_message ("GTorch", G_LOG_LEVEL_WARNING, pattern);
      if (is_one)
        g_assert_cmpint (read_text (variable, texts[i]), ==,
                         variable->kind == GTORCH_ENV_WORDS ? bit_of (variable, "errors") : 1);
      else
        g_assert_cmpint (read_text (variable, texts[i]), ==, nothing (variable));
      g_test_assert_expected_messages ();
    }
  g_assert_cmpint (read_text (variable, ""), ==, nothing (variable));
}

static void
valid_values_are_used (gconstpointer data)
{
  static const gchar *const flags[] = { "0", "1", "no", "Yes", "FALSE", "true", "off", "on" };
  const GTorchEnvVariable *variable = data;
  g_auto (GStrv) words = g_strsplit (variable->words != NULL ? variable->words : "", ",", -1);
  g_autofree gchar *limit = g_strdup_printf ("%u", variable->limit);
  guint i;

  switch (variable->kind)
    {
    case GTORCH_ENV_FLAG:
      for (i = 0; i < G_N_ELEMENTS (flags); i++)
        g_assert_cmpint (read_text (variable, flags[i]), ==, i % 2);
      break;
    case GTORCH_ENV_NUMBER:
      g_assert_cmpint (read_text (variable, "1"), ==, 1);
      g_assert_cmpint (read_text (variable, limit), ==, variable->limit);
      break;
    case GTORCH_ENV_WORDS:
      for (i = 0; words[i] != NULL; i++)
        g_assert_cmpint (read_text (variable, words[i]), ==, 1 << i);
      g_assert_cmpint (read_text (variable, variable->words), ==, (1 << i) - 1);
      break;
    default:
      for (i = 0; words[i] != NULL; i++)
        g_assert_cmpint (read_text (variable, words[i]), ==, i);
    }
}

/* Uses everything for which the CPU reads environment variables. */
static void
use_the_library (void)
{
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (1 << 16), GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gtorch_device_cpu (), 0, NULL);
  g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);
  g_autoptr (GTorchTensor) y = gtorch_tensor_add (x, x, 1, NULL);

  g_assert_nonnull (y);
  gtorch_get_num_threads ();
  gtorch_distributed_get_debug_level ();
  gtorch_device_get_wait_policy (gtorch_device_cpu ());
  gtorch_stream_synchronize (stream, NULL, NULL);
}

static void
programs_get_the_warnings (gconstpointer data)
{
  const GTorchEnvVariable *variable = data;
  g_autofree gchar *former = g_strdup (g_getenv (variable->name));
  g_autofree gchar *pattern = g_strdup_printf ("*%s: *nonsense*ignored*", variable->name);

  if (g_test_subprocess ())
    {
      g_log_set_always_fatal (G_LOG_FATAL_MASK);
      use_the_library ();
      return;
    }
#ifdef __SANITIZE_ADDRESS__
  if (g_str_equal (variable->name, "GTORCH_NO_MEMORY_CACHING"))
    {
      g_test_skip ("the sanitizer keeps memory by itself");
      return;
    }
#endif
  g_setenv (variable->name, "nonsense", TRUE);
  g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
  g_test_trap_assert_passed ();
  g_test_trap_assert_stderr (pattern);
  if (former != NULL)
    g_setenv (variable->name, former, TRUE);
  else
    g_unsetenv (variable->name);
}

int
main (int argc, char *argv[])
{
  guint i;

  g_test_init (&argc, &argv, NULL);
  for (i = 0; i < gtorch_n_env_variables; i++)
    {
      const GTorchEnvVariable *variable = &gtorch_env_variables[i];
      g_autofree gchar *nonsense =
          g_strdup_printf ("/GTorch/environment/invalid_values_cause_warnings/%s", variable->name);
      g_autofree gchar *values =
          g_strdup_printf ("/GTorch/environment/valid_values_are_used/%s", variable->name);
      g_autofree gchar *told =
          g_strdup_printf ("/GTorch/environment/programs_get_the_warnings/%s", variable->name);

      if (variable->kind == GTORCH_ENV_TEXT)
        continue;
      g_test_add_data_func (nonsense, variable, invalid_values_cause_warnings);
      g_test_add_data_func (values, variable, valid_values_are_used);
      if (!g_str_equal (variable->name, "GTORCH_CUDA_RECORDINGS")
          && !g_str_equal (variable->name, "GTORCH_DEFAULT_STREAM"))
        g_test_add_data_func (told, variable, programs_get_the_warnings);
    }
  return g_test_run ();
}
