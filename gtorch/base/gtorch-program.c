/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "base/gtorch-program-private.h"

#include <errno.h>
#include <string.h>

typedef struct
{
  const gchar *prefix;     /* of the program's name: python3.11, gjs-console */
  const gchar *with_value; /* letters of options whose value may be the next argument */
  const gchar *texts; /* that have the program itself for a value, or end the options otherwise */
  gchar module;       /* runs a module by its name */
  const gchar *const words[5]; /* long options whose value is the next argument */
} Interpreter;

/* clang-format off */
static const Interpreter interpreters[] = {
  { "python", "WX", "c",  'm',  { "--check-hash-based-pycs", NULL } },
  { "pypy",   "WX", "c",  'm',  { "--jit", NULL } },
  { "gjs",    "CI", "c",  '\0', { "--coverage-prefix", "--coverage-output", "--include-path", NULL } },
};
/* clang-format on */

static const gchar *
without_folders (const gchar *program)
{
  const gchar *slash = strrchr (program, '/');

  return slash != NULL && slash[1] != '\0' ? slash + 1 : program;
}

static const Interpreter *
find_interpreter (const gchar *program)
{
  const gchar *name = without_folders (program);

  for (guint i = 0; i < G_N_ELEMENTS (interpreters); i++)
    if (g_str_has_prefix (name, interpreters[i].prefix))
      return &interpreters[i];
  return NULL;
}

/* An argument "-abc": how many of the arguments it takes; 0 if what is run is no script, or is named by the
 * option: @module is that name then. */
static guint
take_letters (const Interpreter *interpreter, const gchar *const *arguments, const gchar **module)
{
  for (const gchar *letter = *arguments + 1; *letter != '\0'; letter++)
    {
      if (strchr (interpreter->texts, *letter) != NULL)
        return 0;
      if (*letter == interpreter->module)
        {
          *module = letter[1] != '\0' ? letter + 1 : arguments[1];
          return 0;
        }
      if (strchr (interpreter->with_value, *letter) != NULL)
        return letter[1] != '\0' || arguments[1] == NULL ? 1 : 2;
    }
  return 1;
}

gchar *
gtorch_program_find_script (const gchar *const *arguments)
{
  const Interpreter *interpreter = *arguments != NULL ? find_interpreter (*arguments) : NULL;
  const gchar *module = NULL;

  if (interpreter == NULL)
    return NULL;
  arguments++;
  while (*arguments != NULL && **arguments == '-')
    {
      guint n = 1;

      if (strcmp (*arguments, "--") == 0)
        {
          arguments++;
          break;
        }
      if (strcmp (*arguments, "--command") == 0 || g_str_has_prefix (*arguments, "--command="))
        return NULL;
      if ((*arguments)[1] != '-')
        n = (*arguments)[1] != '\0' ? take_letters (interpreter, arguments, &module) : 0;
      else if (g_strv_contains (interpreter->words, *arguments) && arguments[1] != NULL)
        n = 2;
      if (n == 0)
        return g_strdup (module);
      arguments += n;
    }
  return *arguments != NULL && **arguments != '\0' ? g_path_get_basename (*arguments) : NULL;
}

/* As the kernel has them; NULL without /proc. */
static gchar **
get_arguments (void)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();
  g_autofree gchar *text = NULL;
  gsize length = 0;

  if (!g_file_get_contents ("/proc/self/cmdline", &text, &length, NULL))
    return NULL;
  /* A zero byte comes after the last one, too. */
  for (const gchar *at = text; at < text + length; at += strlen (at) + 1)
    g_strv_builder_add (builder, at);
  return g_strv_builder_end (builder);
}

gchar *
gtorch_program_dup_name (void)
{
  const gchar *name = g_get_prgname ();
  g_auto (GStrv) arguments = NULL;
  g_autofree gchar *script = NULL;

  if (name == NULL)
    name = program_invocation_short_name;
  if (find_interpreter (name) != NULL)
    arguments = get_arguments ();
  if (arguments != NULL)
    script = gtorch_program_find_script ((const gchar *const *) arguments);
  return g_utf8_make_valid (script != NULL ? script : without_folders (name), -1);
}
