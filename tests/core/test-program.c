/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What reports and monitors call a program; tests of the bindings have that of scripts. */

#include "config.h"

#include <gtorch/base/gtorch-program-private.h>
#include <gtorch/gtorch.h>

typedef struct
{
  const gchar *line; /* arguments with | between them */
  const gchar *script;
} Case;

/* clang-format off */
static const Case cases[] = {
  { "python3|train.py",                                   "train.py" },
  { "/usr/bin/python3.11|data/me/ex.py|-m|x",             "ex.py" },
  { "python3|-u|-X|dev|-Wignore|-W|error|ex.py",          "ex.py" },
  { "python3|-uX|dev|ex.py",                              "ex.py" },
  { "python3|--check-hash-based-pycs|always|ex.py",       "ex.py" },
  { "python3|--|-odd.py",                                 "-odd.py" },
  { "python3|-m|pack.train|x",                            "pack.train" },
  { "python3|-Om|pack",                                   "pack" },
  { "python3|-mpack|x",                                   "pack" },
  { "python3|-m",                                         NULL },
  { "python3|-c|import gtorch|x",                         NULL },
  { "python3|-Ec|1|x",                                    NULL },
  { "python3|-|x",                                        NULL },
  { "python3|-X",                                         NULL },
  { "python3|",                                           NULL },
  { "python3",                                            NULL },
  { "pypy3|ex.py",                                        "ex.py" },
  { "gjs|m_js.js",                                        "m_js.js" },
  { "/usr/bin/gjs-console|-m|/tmp/m_js.js|3",             "m_js.js" },
  { "gjs|--module|-I|/lib/x|--include-path|/y|a.js",      "a.js" },
  { "gjs|-I/lib/x|--coverage-output=/tmp|a.js",           "a.js" },
  { "gjs|-mI|/lib/x|a.js",                                "a.js" },
  { "gjs|-c|print(1)|x",                                  NULL },
  { "gjs|--command|print(1)|x",                           NULL },
  { "gjs|--command=print(1)|x",                           NULL },
  { "gjs",                                                NULL },
  { "/usr/bin/train|ex.py",                               NULL },
  { "",                                                   NULL },
};
/* clang-format on */

static void
scripts_are_found (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_auto (GStrv) arguments = g_strsplit (cases[i].line, "|", -1);
      g_autofree gchar *script = gtorch_program_find_script ((const gchar *const *) arguments);

      g_test_message ("%s", cases[i].line);
      g_assert_cmpstr (script, ==, cases[i].script);
    }
}

static void
a_program_has_a_name (void)
{
  g_autofree gchar *name = gtorch_program_dup_name ();
  g_autofree gchar *given = NULL;
  g_autofree gchar *valid = NULL;

  g_assert_cmpstr (name, ==, "test-program");
  g_set_prgname ("mine");
  given = gtorch_program_dup_name ();
  g_assert_cmpstr (given, ==, "mine");
  g_set_prgname ("\xff");
  valid = gtorch_program_dup_name ();
  g_assert_true (g_utf8_validate (valid, -1, NULL));
}

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/Program/scripts_are_found", scripts_are_found);
  g_test_add_func ("/GTorch/Program/a_program_has_a_name", a_program_has_a_name);
  return g_test_run ();
}
