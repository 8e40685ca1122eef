/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Shows the load, memory and temperature of devices, the processes that use them, and what programs that
 * export themselves tell: in a terminal again and again, otherwise once. */

#include "config.h"

#include <errno.h>
#include <glib-unix.h>
#include <glib/gi18n-lib.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "gtorch-top-private.h"

#define ONCE_TIME 300 /* ms: what two samples of the CPU take, and programs have to answer */

static gboolean show_version, once, as_json;
static gdouble interval = 1;
static gchar **device_names;

static const GOptionEntry entries[] = {
  { "device", 'd', 0, G_OPTION_ARG_STRING_ARRAY, &device_names,
    N_ ("Show this device only; may be given several times"), N_ ("DEVICE") },
  { "interval", 'i', 0, G_OPTION_ARG_DOUBLE, &interval,
    N_ ("Time between two samples, from 0.1 to 3600"), N_ ("SECONDS") },
  { "json", 0, 0, G_OPTION_ARG_NONE, &as_json, N_ ("Print a JSON object once, for programs"),
    NULL },
  { "once", '1', 0, G_OPTION_ARG_NONE, &once, N_ ("Print a table once"), NULL },
  { "version", 0, 0, G_OPTION_ARG_NONE, &show_version, N_ ("Print the version and exit"), NULL },
  { NULL },
};

static gboolean
parse_options (int argc, char *argv[], GError **error)
{
  g_autoptr (GOptionContext) context = g_option_context_new (NULL);

  g_option_context_set_summary (context, _ ("Shows the load, memory and temperature of devices and "
                                            "the processes that use "
                                            "them.\nKeys: q quits, s changes the order, the arrows "
                                            "select a process."));
  g_option_context_set_translation_domain (context, GETTEXT_PACKAGE);
  g_option_context_add_main_entries (context, entries, GETTEXT_PACKAGE);
  if (!g_option_context_parse (context, &argc, &argv, error))
    return FALSE;
  if (argc > 1)
    {
      g_set_error (error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED, _ ("unexpected argument “%s”"),
                   argv[1]);
      return FALSE;
    }
  if (!(interval >= 0.1 && interval <= 3600))
    {
      g_set_error (error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                   _ ("the interval is %g seconds, it must be from 0.1 to 3600"), interval);
      return FALSE;
    }
  return TRUE;
}

/* --- once --- */

static gboolean
quit (gpointer data)
{
  g_main_loop_quit (data);
  return G_SOURCE_REMOVE;
}

/* What was printed may still be on its way: a full disk shows only here. */
static int
finish (void)
{
  if (!ferror (stdout) && fclose (stdout) == 0)
    return 0;
  g_printerr ("gtorch-top: %s: %s\n", _ ("the output cannot be written"), g_strerror (errno));
  return 2;
}

static int
print_once (TopState *state)
{
  g_autoptr (GMainLoop) loop = g_main_loop_new (NULL, FALSE);
  g_autoptr (GString) text = g_string_new (NULL);
  TopCanvas canvas = { text, G_MAXUINT, G_MAXUINT, 0, 0, FALSE, g_get_charset (NULL) };
  gint64 end;

  g_timeout_add (ONCE_TIME, quit, loop);
  g_main_loop_run (loop);
  end = g_get_monotonic_time () + 3 * G_TIME_SPAN_SECOND; /* more than one call may take */
  while (state->programs != NULL && top_programs_are_waiting (state->programs)
         && g_get_monotonic_time () < end)
    g_main_context_iteration (NULL, TRUE);
  top_state_update (state);
  if (as_json)
    {
      top_draw_json (text, state);
      fputs (text->str, stdout); /* JSON is UTF-8, whatever the encoding of the locale */
    }
  else
    {
      top_draw (&canvas, state);
      g_print ("%s", text->str);
    }
  return finish ();
}

/* --- in a terminal --- */

typedef struct
{
  TopState *state;
  GMainLoop *loop;
  int number; /* of the signal that ends the program; 0: none */
  gboolean is_gone;
} Top;

static void
show (Top *top)
{
  g_autoptr (GString) text = g_string_new (NULL);
  TopCanvas canvas = { .text = text };

  canvas.is_styled = g_getenv ("NO_COLOR") == NULL || g_getenv ("NO_COLOR")[0] == '\0';
  canvas.is_utf8 = g_get_charset (NULL);
  top_screen_get_size (&canvas.width, &canvas.height);
  top_screen_begin_picture (text);
  top_draw (&canvas, top->state);
  if (top_screen_show (text->str))
    return;
  top->is_gone = TRUE;
  g_main_loop_quit (top->loop);
}

static gboolean
tick (gpointer data)
{
  Top *top = data;

  top_state_update (top->state);
  show (top);
  if (top->state->programs != NULL)
    top_programs_ask (top->state->programs);
  return G_SOURCE_CONTINUE;
}

static void
key_pressed (TopKey key, gpointer data)
{
  Top *top = data;

  switch (key)
    {
    case TOP_KEY_QUIT:
      g_main_loop_quit (top->loop);
      return;
    case TOP_KEY_SORT:
      top->state->sort = (top->state->sort + 1) % TOP_N_SORTS;
      break;
    case TOP_KEY_UP:
    case TOP_KEY_DOWN:
      top_state_move (top->state, key == TOP_KEY_UP ? -1 : 1);
      break;
    case TOP_KEY_PAGE_UP:
    case TOP_KEY_PAGE_DOWN:
      top_state_move (top->state, key == TOP_KEY_PAGE_UP ? -10 : 10);
      break;
    case TOP_KEY_REDRAW:
      top_screen_show ("\033[2J");
      break;
    default:
      break;
    }
  top_state_sort (top->state);
  show (top);
}

static gboolean
can_read (gint fd, GIOCondition condition, gpointer data)
{
  Top *top = data;

  if (top_screen_read_keys (key_pressed, top) && (condition & (G_IO_HUP | G_IO_ERR)) == 0)
    return G_SOURCE_CONTINUE;
  if (isatty (STDIN_FILENO)) /* the terminal hung up */
    {
      top->is_gone = TRUE;
      g_main_loop_quit (top->loop);
    }
  return G_SOURCE_REMOVE;
}

static gboolean
resized (gpointer data)
{
  show (data);
  return G_SOURCE_CONTINUE;
}

static gboolean
ended (Top *top, int number)
{
  top->number = number;
  g_main_loop_quit (top->loop);
  return G_SOURCE_CONTINUE;
}

static gboolean
hung_up (gpointer data)
{
  return ended (data, SIGHUP);
}

static gboolean
interrupted (gpointer data)
{
  return ended (data, SIGINT);
}

static gboolean
terminated (gpointer data)
{
  return ended (data, SIGTERM);
}

static int
show_always (TopState *state)
{
  g_autoptr (GMainLoop) loop = g_main_loop_new (NULL, FALSE);
  Top top = { state, loop, 0, FALSE };

  g_unix_signal_add (SIGHUP, hung_up, &top);
  g_unix_signal_add (SIGINT, interrupted, &top);
  g_unix_signal_add (SIGTERM, terminated, &top);
  g_unix_signal_add (SIGWINCH, resized, &top);
  top_screen_enter ();
  if (isatty (STDIN_FILENO))
    g_unix_fd_add (STDIN_FILENO, G_IO_IN | G_IO_HUP | G_IO_ERR, can_read, &top);
  g_timeout_add (state->interval, tick, &top);
  tick (&top);
  g_main_loop_run (loop);
  top_screen_leave ();
  if (top.number != 0)
    {
      signal (top.number, SIG_DFL);
      raise (top.number); /* so that whoever waits for the process sees why it ended */
    }
  return top.is_gone ? 2 : 0;
}

int
main (int argc, char *argv[])
{
  g_autoptr (GError) error = NULL;
  TopState *state;
  int status;

  setlocale (LC_ALL, "");
  g_set_prgname ("gtorch-top");
  if (!parse_options (argc, argv, &error))
    {
      g_printerr ("gtorch-top: %s\n", error->message);
      return 2;
    }
  if (show_version)
    {
      g_print ("gtorch-top %s\n", GTORCH_VERSION);
      return finish ();
    }
  once = once || as_json || !top_screen_is_usable ();
  state = top_state_new (device_names, once ? 100 : (guint) round (interval * 1000), &error);
  if (state == NULL)
    {
      g_printerr ("gtorch-top: %s\n", error->message);
      return 2;
    }
  state->programs = top_programs_new ();
  status = once ? print_once (state) : show_always (state);
  top_state_free (state);
  g_strfreev (device_names);
  return status;
}
