/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A copy of this program that belongs to one user is run by another, once without and once with its
 * setuid bit, with environment variables that name foreign code. */

#include "config.h"

#include <dlfcn.h>
#include <glib/gstdio.h>
#include <grp.h>
#include <gtorch/cuda/driver/gtorch-cuda-private.h>
#include <gtorch/base/gtorch-environment-private.h>
#include <gtorch/gtorch.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define OWNER  12345
#define CALLER 12346

static const gchar *module;

/* --- the copy --- */

static void
probe (void)
{
  const gchar *const names[] = { "GTORCH_CUDA_DRIVER", "GTORCH_CUDA_LIBRARY_PATH",
                                 "CUDA_HOME",          "CUDA_VISIBLE_DEVICES",
                                 "GTORCH_CHECK",       "GTORCH_ALLOC_CONF" };
  g_autofree gchar *reason =
      gtorch_device_manager_dup_reason (gtorch_device_manager_get_default ());
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchMemorySource) source = NULL;
  guint i;

  g_print ("privileged: %d\n", gtorch_is_privileged ());
  g_print ("reason: %s\n", reason);
  for (i = 0; i < G_N_ELEMENTS (names); i++)
    g_print ("%s: %s\n", names[i], gtorch_getenv (names[i]) != NULL ? "counts" : "is ignored");
  /* the module has this name, and is in the folders of both variables */
  if (gtorch_cuda_library_open ("libgtorch-hostile.so", &error) == NULL)
    g_print ("library: %s\n", error->message);
  g_clear_error (&error);
  /* a program may name a library itself, but not relative to the current folder */
  source = gtorch_memory_source_load ("lib64/libgtorch-hostile.so", "a", "b", &error);
  g_print ("relative: %s\n", error->message);
  fflush (stdout);
  _exit (0); /* leak detection does not work in a setuid process */
}

/* --- the test --- */

static void
become_caller (gpointer data)
{
  if (setgroups (0, NULL) != 0 || setgid (CALLER) != 0 || setuid (CALLER) != 0)
    _exit (99);
}

static void
copy_file (const gchar *from, const gchar *to, mode_t mode)
{
  g_autoptr (GFile) source = g_file_new_for_path (from);
  g_autoptr (GFile) target = g_file_new_for_path (to);
  g_autoptr (GError) error = NULL;

  g_file_copy (source, target, G_FILE_COPY_OVERWRITE, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpint (g_chmod (to, mode), ==, 0);
}

static gchar *
run_copy (const gchar *folder, const gchar *program)
{
  const gchar *const argv[] = { program, "--probe", NULL };
  g_auto (GStrv) environment = g_get_environ ();
  g_autofree gchar *library = g_build_filename (folder, "lib64", "libgtorch-hostile.so", NULL);
  g_autofree gchar *libraries = g_path_get_dirname (library);
  g_autoptr (GError) error = NULL;
  gchar *output;
  int status;

  environment = g_environ_setenv (environment, "GTORCH_CUDA_DRIVER", library, TRUE);
  environment = g_environ_setenv (environment, "GTORCH_CUDA_LIBRARY_PATH", libraries, TRUE);
  environment = g_environ_setenv (environment, "CUDA_HOME", folder, TRUE);
  environment = g_environ_setenv (environment, "CUDA_VISIBLE_DEVICES", "", TRUE);
  environment = g_environ_setenv (environment, "GTORCH_CHECK", "errors", TRUE);
  environment = g_environ_setenv (environment, "GTORCH_ALLOC_CONF", "backend:segments", TRUE);
  environment = g_environ_setenv (environment, "G_MESSAGES_DEBUG", "GTorch", TRUE);
  environment = g_environ_setenv (environment, "ASAN_OPTIONS", "detect_leaks=0", TRUE);
  environment = g_environ_unsetenv (environment, "G_DEBUG");
  g_spawn_sync (folder, (gchar **) argv, environment, G_SPAWN_DEFAULT, become_caller, NULL, &output,
                NULL, &status, &error);
  g_assert_no_error (error);
  g_test_message ("%s", output);
  g_assert_cmpint (status, ==, 0);
  return output;
}

static void
no_variable_chooses_code_for_a_setuid_program (void)
{
  g_autofree gchar *folder = NULL;
  g_autofree gchar *program = NULL;
  g_autofree gchar *libraries = NULL;
  g_autofree gchar *library = NULL;
  g_autofree gchar *plain = NULL;
  g_autofree gchar *privileged = NULL;
  struct statvfs info;

  if (geteuid () != 0)
    {
      g_test_skip ("only the administrator can make programs of other users");
      return;
    }
  if (statvfs (g_get_tmp_dir (), &info) != 0 || (info.f_flag & (ST_NOSUID | ST_NOEXEC)) != 0)
    {
      g_test_skip ("the folder for temporary files has no setuid programs");
      return;
    }
  folder = g_dir_make_tmp ("gtorch-setuid-XXXXXX", NULL);
  program = g_build_filename (folder, "probe", NULL);
  libraries = g_build_filename (folder, "lib64", NULL);
  library = g_build_filename (libraries, "libgtorch-hostile.so", NULL);
  g_assert_cmpint (g_chmod (folder, 0755), ==, 0);
  g_assert_cmpint (g_mkdir (libraries, 0755), ==, 0);
  copy_file (module, library, 0755);
  copy_file ("/proc/self/exe", program, 0755);
  g_assert_cmpint (chown (program, OWNER, OWNER), ==, 0);

  /* without the bit all variables take effect: otherwise the test would prove nothing */
  plain = run_copy (folder, program);
  g_assert_nonnull (strstr (plain, "privileged: 0"));
  g_assert_nonnull (strstr (plain, "foreign code runs"));
  g_assert_null (strstr (plain, "is ignored"));

  g_assert_cmpint (g_chmod (program, 04755), ==, 0);
  privileged = run_copy (folder, program);
  g_assert_nonnull (strstr (privileged, "privileged: 1"));
  g_assert_null (strstr (privileged, "foreign code runs"));
  g_assert_null (strstr (privileged, "counts"));
  g_assert_nonnull (strstr (privileged, "GTORCH_CUDA_DRIVER is ignored: "));
  /* the machine has no driver of its own */
  if (strstr (privileged, "driver was not found") != NULL)
    g_assert_nonnull (strstr (privileged, "GTORCH_CUDA_DRIVER is ignored, since"));
  g_assert_nonnull (strstr (privileged, "what the environment says is ignored"));
  g_assert_nonnull (strstr (privileged, "a library must be given by its full path"));

  g_unlink (library);
  g_rmdir (libraries);
  g_unlink (program);
  g_assert_cmpint (g_rmdir (folder), ==, 0);
}

static void
without_privileges_the_environment_counts (void)
{
  g_assert_false (gtorch_is_privileged ());
  g_setenv ("GTORCH_SOMETHING", "value", TRUE);
  g_assert_cmpstr (gtorch_getenv ("GTORCH_SOMETHING"), ==, "value");
  g_assert_false (gtorch_env_is_ignored ("GTORCH_SOMETHING"));
  g_unsetenv ("GTORCH_SOMETHING");
  g_assert_null (gtorch_getenv ("GTORCH_SOMETHING"));
  g_assert_null (gtorch_library_open ("./missing.so", RTLD_NOW | RTLD_LOCAL));
  g_assert_nonnull (strstr (gtorch_library_error (), "missing.so"));
}

int
main (int argc, char **argv)
{
  if (argc > 1 && strcmp (argv[1], "--probe") == 0)
    probe ();
  g_test_init (&argc, &argv, NULL);
  module = argv[1];
  g_assert_nonnull (module);
  g_test_add_func ("/GTorch/privileges/no_variable_chooses_code_for_a_setuid_program",
                   no_variable_chooses_code_for_a_setuid_program);
  g_test_add_func ("/GTorch/privileges/without_privileges_the_environment_counts",
                   without_privileges_the_environment_counts);
  return g_test_run ();
}
