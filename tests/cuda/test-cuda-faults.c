/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Every call of the driver fails once, in small programs: the program gets an error or does not notice,
 * nothing leaks, and the next run is right. Every function that the library calls is covered. */

#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "cuda-test.h"
#include "fault-programs.h"

static const gchar *program_file; /* this file */
static GHashTable *failed;        /* the functions that have failed */

static void
check_run (const FaultProgram *program, const gchar *what, guint nth)
{
  g_autoptr (GError) error = NULL;
  gdouble result = NAN;

  if (!program->run (&result, &error))
    {
      g_assert_nonnull (error);
      g_assert_cmpint (strlen (error->message), >, 0);
    }
  else
    {
      g_assert_no_error (error);
      if (result != program->expected)
        g_test_message ("%s after call %u of %s", program->name, nth, what);
      g_assert_cmpfloat (result, ==, program->expected);
    }
}

/* Repairs the device, which no real device could do. */
static gboolean
heal (void)
{
  gboolean has_failed = fake_cuda_clear_faults ();

  gtorch_device_forget_failure (gpu (0));
  gtorch_device_forget_failure (gpu (1));
  return has_failed;
}

static void
empty_caches (void)
{
  gtorch_device_empty_cache (gpu (0));
  gtorch_device_empty_cache (gpu (1));
}

static void
check_clean_run (const FaultProgram *program, const gchar *what, guint nth)
{
  g_autoptr (GError) error = NULL;
  GTorchHostAllocator *host = gtorch_host_allocator_get_default ();
  FakeCudaAccounts accounts;
  gdouble result = NAN;
  static gsize lost;          /* bytes whose cuMemRelease () failed */
  static guint64 lost_pinned; /* pinned bytes on lost devices */
  static guint n_registered;  /* number of these blocks that are registered memory of the system */

  program->run (&result, &error);
  if (error != NULL || result != program->expected)
    g_test_message ("%s after call %u of %s failed", program->name, nth, what);
  g_assert_no_error (error);
  g_assert_cmpfloat (result, ==, program->expected);
  empty_caches ();
  gtorch_host_allocator_trim (host);
  g_assert_cmpuint (gtorch_device_get_memory_allocated (gpu (0)), ==, 0);
  g_assert_cmpuint (gtorch_device_get_memory_allocated (gpu (1)), ==, 0);
  fake_cuda_get_accounts (&accounts);
  g_assert_cmpuint (accounts.misuses, ==, 0);
  if (g_str_equal (what, "cuMemRelease") || g_str_equal (what, "cuMemFree"))
    {
      lost = accounts.n_bytes;
      n_registered = gtorch_host_get_lost () > lost_pinned ? accounts.registered : n_registered;
      lost_pinned = gtorch_host_get_lost ();
    }
  g_assert_cmpuint (accounts.registered, ==, n_registered);
  g_assert_cmpuint (gtorch_host_get_lost (), ==, lost_pinned);
  g_assert_cmpuint (gtorch_host_allocator_get_reserved (host), ==, lost_pinned);
  if (accounts.n_bytes != lost)
    g_test_message ("%s lost memory after call %u of %s: %u handles, %u mapped, %" G_GUINT64_FORMAT
                    " and %" G_GUINT64_FORMAT " bytes cached",
                    program->name, nth, what, accounts.handles, accounts.mappings,
                    gtorch_device_get_memory_reserved (gpu (0)),
                    gtorch_device_get_memory_reserved (gpu (1)));
  g_assert_cmpuint (accounts.n_bytes, ==, lost);
}

/* --- faults --- */

static gint
result_for (const gchar *function, guint kind)
{
  if (g_str_has_prefix (function, "cuMem") && kind == 0)
    return CUDA_ERROR_OUT_OF_MEMORY;
  return kind == 1 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_LAUNCH_FAILED;
}

static void
any_call_may_fail (gconstpointer data)
{
  const FaultProgram *program = data;
  const gchar *const *functions = fake_cuda_get_functions ();
  g_autofree gboolean *has_ever_failed = g_new0 (gboolean, g_strv_length ((gchar **) functions));
  guint i, nth, kind, n_faults = 0;

  check_clean_run (program, "nothing", 0);
  for (kind = 0; kind < 2; kind++)
    for (i = 0; functions[i] != NULL; i++)
      {
        gboolean has_failed = kind == 0 || has_ever_failed[i];

        for (nth = 1; has_failed && nth < 200; nth++)
          {
            fake_cuda_set_seed (nth % 5);
            fake_cuda_fail (functions[i], nth, result_for (functions[i], kind));
            check_run (program, functions[i], nth);
            empty_caches ();
            has_failed = heal ();
            n_faults += has_failed;
            if (!has_failed)
              break;
            has_ever_failed[i] = TRUE;
            g_hash_table_add (failed, (gpointer) functions[i]);
            check_clean_run (program, functions[i], nth);
          }
      }
  g_test_message ("%u faults", n_faults);
  g_assert_cmpuint (n_faults, >, 5);
}

static void
several_calls_may_fail (gconstpointer data)
{
  const FaultProgram *program = data;
  guint32 seed, n_seeds = program == fault_programs ? 150 : 30;

  for (seed = 1; seed <= n_seeds; seed++)
    {
      fake_cuda_set_seed (seed);
      fake_cuda_fail_randomly (seed % 2 ? 0.02 : 0.15, seed,
                               seed % 3 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_LAUNCH_FAILED);
      check_run (program, "random faults", seed);
      heal ();
      check_clean_run (program, "cuMemRelease", seed);
    }
}

/* Lets each piece of work of the device fail; returns how many did. */
static guint
break_work (const FaultProgram *program, guint device)
{
  guint nth;
  gboolean has_failed = TRUE;

  for (nth = 1; nth < 60 && has_failed; nth++)
    {
      g_autoptr (GError) error = NULL;
      gdouble result = 0;

      fake_cuda_set_seed (nth % 7);
      fake_cuda_break (device, nth, CUDA_ERROR_ILLEGAL_ADDRESS);
      has_failed = !program->run (&result, &error);
      if (has_failed)
        {
          g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_LOST);
          g_assert_nonnull (strstr (error->message, "CUDA_ERROR_ILLEGAL_ADDRESS"));
        }
      else
        g_assert_cmpfloat (result, ==, program->expected);
      heal ();
      check_clean_run (program, "cuMemRelease", nth);
    }
  return nth - 1 - !has_failed;
}

/* An error of asynchronous work appears in a later call, and persists. */
static void
work_may_fail (gconstpointer data)
{
  const FaultProgram *program = data;
  const guint n_first = break_work (program, 0), n_second = break_work (program, 1);

  g_test_message ("%u faults, and %u of the second device", n_first, n_second);
  if (program == fault_programs) /* others need not have work, or none on the second device */
    g_assert_cmpuint (MIN (n_first, n_second), >, 0);
}

/* --- code that runs once in a process: a process for each fault --- */

#define NO_FAULT 3 /* exit status: the function was not called that often */

static gint
run_alone (gchar **args)
{
  static const gchar *const final[] = { "cuInit", "cuDriverGetVersion", "cuDeviceGetCount", NULL };
  const FaultProgram *program = fault_programs_once;
  guint nth = atoi (args[2]), i;
  gint result = atoi (args[3]);
  gboolean has_failed;

  while (!g_str_equal (program->name, args[0]))
    program++;
  if (nth == 0)
    {
      const gchar *const *functions = fake_cuda_get_functions ();

      check_clean_run (program, "nothing", 0);
      for (i = 0; functions[i] != NULL; i++)
        printf ("%s%s", fake_cuda_get_calls (functions[i]) > 0 ? functions[i] : "",
                fake_cuda_get_calls (functions[i]) > 0 ? "\n" : "");
      return 0;
    }
  fake_cuda_fail (args[1], nth, result);
  check_run (program, args[1], nth);
  if (!g_strv_contains (final, args[1]))
    empty_caches ();
  has_failed = fake_cuda_clear_faults ();
  if (!has_failed)
    return NO_FAULT;
  if (g_strv_contains (final, args[1]))
    { /* the driver is not initialised again */
      g_autoptr (GError) error = NULL;
      gdouble value;

      g_assert_false (program->run (&value, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE);
      return 0;
    }
  gtorch_device_forget_failure (gpu (0));
  gtorch_device_forget_failure (gpu (1));
  check_clean_run (program, args[1], nth);
  return 0;
}

/* Runs the program in a process and returns its exit status. */
static gint
spawn (const FaultProgram *program, const gchar *function, guint nth, gint result, gchar **output)
{
  g_autofree gchar *number = g_strdup_printf ("%u", nth);
  g_autofree gchar *code = g_strdup_printf ("%d", result);
  g_autofree gchar *fake = g_strdup_printf ("devices=2,seed=%u,memory=1024,borrow=1,%s", nth % 3,
                                            program->fake != NULL ? program->fake : "");
  const gchar *args[] = { program_file, "--alone", program->name, function, number, code, NULL };
  g_autoptr (GError) error = NULL;
  g_auto (GStrv) environment = g_environ_setenv (g_get_environ (), "GTORCH_FAKE_CUDA", fake, TRUE);
  const gchar *options = g_environ_getenv (environment, "TSAN_OPTIONS");
  g_autofree gchar *at_once =
      g_strconcat (options != NULL ? options : "", " atexit_sleep_ms=0", NULL);
  gint status;

  /* ThreadSanitizer would let each of them sleep for a second at exit. */
  environment = g_environ_setenv (environment, "TSAN_OPTIONS", at_once, TRUE);
  /* What programs that share memory keep after a failure was not looked at yet. */
  if (g_str_has_prefix (program->name, "borrow"))
    {
      const gchar *given = g_environ_getenv (environment, "ASAN_OPTIONS");
      g_autofree gchar *without_leaks =
          g_strconcat (given != NULL ? given : "", ":detect_leaks=0", NULL);

      environment = g_environ_setenv (environment, "ASAN_OPTIONS", without_leaks, TRUE);
    }
  if (program->key != NULL)
    environment = g_environ_setenv (environment, program->key, program->value, TRUE);
  g_spawn_sync (NULL, (gchar **) args, environment, G_SPAWN_DEFAULT, NULL, NULL, output, NULL,
                &status, &error);
  g_assert_no_error (error);
  return WIFEXITED (status) ? WEXITSTATUS (status) : -1;
}

static void
any_first_call_may_fail (gconstpointer data)
{
  const FaultProgram *program = data;
  g_autofree gchar *output = NULL;
  g_auto (GStrv) functions = NULL;
  guint i, nth;

  g_assert_cmpint (spawn (program, "", 0, 0, &output), ==, 0);
  functions = g_strsplit (g_strchomp (output), "\n", -1);
  g_assert_cmpuint (g_strv_length (functions), >, 10);
  for (i = 0; functions[i] != NULL; i++)
    for (nth = 1; nth <= 3; nth++)
      {
        gint status;

        if (program != fault_programs_once && g_hash_table_contains (failed, functions[i])
            && (nth > 1 || !g_str_has_prefix (functions[i], "cuMem")))
          break; /* there are many processes already */
        status = spawn (program, functions[i], nth, CUDA_ERROR_LAUNCH_FAILED, NULL);

        if (status == NO_FAULT)
          break;
        if (status != 0)
          g_test_message ("%s: call %u of %s", program->name, nth, functions[i]);
        g_assert_cmpint (status, ==, 0);
        g_hash_table_add (failed, (gpointer) g_intern_string (functions[i]));
      }
}

/* --- coverage --- */

/* Finds the functions of the driver that the files in a folder of the library and its subfolders call. */
static void
find_calls (const gchar *path, GHashTable *calls)
{
  g_autoptr (GDir) dir = g_dir_open (path, 0, NULL);
  g_autofree gchar *text = NULL;
  const gchar *const *functions = fake_cuda_get_functions ();
  const gchar *name;
  guint i;

  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL)
    {
      g_autofree gchar *inner = g_build_filename (path, name, NULL);

      find_calls (inner, calls);
    }
  if (!g_str_has_suffix (path, ".c"))
    return;
  g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
  for (i = 0; functions[i] != NULL; i++)
    {
      g_autofree gchar *call = g_strdup_printf (".%s (", functions[i]);

      if (strstr (text, call) != NULL)
        g_hash_table_add (calls, (gpointer) functions[i]);
    }
}

static void
no_function_is_left_out (void)
{
  g_autofree gchar *folder =
      g_build_filename (g_getenv ("G_TEST_SRCDIR"), "..", "gtorch", "cuda", NULL);
  g_autoptr (GHashTable) calls = g_hash_table_new (g_str_hash, g_str_equal);
  GHashTableIter iter;
  gpointer key;
  guint n_left = 0;

  find_calls (folder, calls);
  g_assert_cmpuint (g_hash_table_size (calls), >, 40);
  /* for kernels with much shared memory; this driver has none */
  g_hash_table_remove (calls, "cuKernelSetAttribute");
  g_hash_table_iter_init (&iter, calls);
  while (g_hash_table_iter_next (&iter, &key, NULL))
    if (!g_hash_table_contains (failed, key))
      {
        g_test_message ("%s has not failed", (const gchar *) key);
        n_left++;
      }
  g_assert_cmpuint (n_left, ==, 0);
}

/* The names of errors, too, come from the driver. */
static void
an_error_may_have_no_name (void)
{
  const gchar *const functions[] = { "cuGetErrorName", "cuGetErrorString" };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (functions); i++)
    {
      g_autoptr (GError) error = NULL;
      gdouble result;

      fake_cuda_fail (functions[i], 1, CUDA_ERROR_INVALID_VALUE);
      fake_cuda_fail_randomly (1, 1, CUDA_ERROR_LAUNCH_FAILED);
      g_assert_false (fault_programs[0].run (&result, &error));
      g_assert_nonnull (error);
      g_assert_true (heal ());
      g_hash_table_add (failed, (gpointer) functions[i]);
      check_clean_run (&fault_programs[0], functions[i], 1);
    }
}

static void
add (const gchar *test, const FaultProgram *program, GTestDataFunc func)
{
  g_autofree gchar *path = g_strconcat ("/GTorchCudaFaults/", test, "/", program->name, NULL);

  g_test_add_data_func (path, program, func);
}

gint
main (gint argc, gchar **argv)
{
  const FaultProgram *program;

  program_file = argv[0];
  if (argc == 6 && g_str_equal (argv[1], "--alone"))
    return run_alone (argv + 2);
  if (argc == 2 && g_str_equal (argv[1], "--lend"))
    return fault_lend ();
  g_test_init (&argc, &argv, NULL);
  failed = g_hash_table_new (g_str_hash, g_str_equal);
  for (program = fault_programs_once; program->name != NULL; program++)
    add ("any_first_call_may_fail", program, any_first_call_may_fail);
  for (program = fault_programs; program->name != NULL; program++)
    {
      add ("any_call_may_fail", program, any_call_may_fail);
      add ("several_calls_may_fail", program, several_calls_may_fail);
      add ("work_may_fail", program, work_may_fail);
    }
  g_test_add_func ("/GTorchCudaFaults/all/an_error_may_have_no_name", an_error_may_have_no_name);
  g_test_add_func ("/GTorchCudaFaults/all/no_function_is_left_out", no_function_is_left_out);
  return g_test_run ();
}
