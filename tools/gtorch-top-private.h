/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>
#include <gtorch/gtorch.h>

G_BEGIN_DECLS

/* --- gtorch-top-state.c: what is shown --- */

#define TOP_HISTORY 512 /* samples of the load that are kept */

typedef struct
{
  GTorchDevice *device;
  gchar *id;                    /* cuda:0 */
  GTorchDeviceMonitor *monitor; /* NULL: it cannot be monitored, error tells why */
  GError *error;
  gint history[TOP_HISTORY]; /* percent, the latest one first; -1: not known */
} TopDevice;

/* A program that exports itself on the session bus. */
typedef struct
{
  gchar *bus_name;
  guint pid;
  gchar *name, *version;
  GVariant *devices, *streams, *scalars; /* what it answered; NULL: not yet, or an error */
  guint n_modules;
  gboolean is_asked; /* an answer is awaited */
} TopProgram;

typedef struct
{
  guint pid;
  gchar *name; /* NULL: not known */
  GString *devices;
  guint64 memory_used; /* on all GPUs */
  TopProgram *program; /* NULL: it does not export itself */
} TopProcess;

typedef enum
{
  TOP_SORT_MEMORY,
  TOP_SORT_PID,
  TOP_SORT_NAME,
  TOP_N_SORTS,
} TopSort;

typedef struct _TopPrograms TopPrograms;

typedef struct
{
  GPtrArray *devices;    /* TopDevice */
  GPtrArray *processes;  /* TopProcess, in the order of sort */
  TopPrograms *programs; /* NULL: they are not asked for */
  gchar *reason;         /* why there is no GPU, or NULL */
  guint interval;        /* ms */
  TopSort sort;
  guint selected_pid; /* 0: none */
} TopState;

/* Opens monitors of the devices that are named, or of all for NULL. */
TopState *top_state_new (gchar **names, guint interval, GError **error);
void top_state_free (TopState *state);
/* Notes the loads and lists the processes anew. */
void top_state_update (TopState *state);
void top_state_sort (TopState *state);
/* The selected process, and its place in the list; NULL if there are none. */
TopProcess *top_state_get_selected (TopState *state, guint *position);
void top_state_move (TopState *state, gint by);

/* --- gtorch-top-programs.c: the programs on the session bus --- */

/* Looks for them from now on. NULL if there is no session bus. */
TopPrograms *top_programs_new (void);
void top_programs_free (TopPrograms *programs);
/* Asks all of them for what changes; the answers come in the main loop. */
void top_programs_ask (TopPrograms *programs);
gboolean top_programs_are_waiting (TopPrograms *programs);
/* The items are TopProgram. */
GPtrArray *top_programs_get_list (TopPrograms *programs);

/* --- gtorch-top-draw.c: the state as text --- */

/* A text for a terminal, or for a file: nothing is cut there, and there are no styles. */
typedef struct
{
  GString *text;
  guint width, height; /* G_MAXUINT: a file */
  guint column, line;
  gboolean is_styled, is_utf8;
} TopCanvas;

void top_draw (TopCanvas *canvas, TopState *state);
void top_draw_json (GString *json, TopState *state);

/* --- gtorch-top-screen.c: the terminal --- */

typedef enum
{
  TOP_KEY_NONE,
  TOP_KEY_QUIT,
  TOP_KEY_SORT,
  TOP_KEY_UP,
  TOP_KEY_DOWN,
  TOP_KEY_PAGE_UP,
  TOP_KEY_PAGE_DOWN,
  TOP_KEY_REDRAW,
} TopKey;

/* Whether the standard output is a terminal that can be drawn on. */
gboolean top_screen_is_usable (void);
/* Takes the terminal, until top_screen_leave (); also given back when the process is stopped or crashes. */
void top_screen_enter (void);
void top_screen_leave (void);
void top_screen_get_size (guint *width, guint *height);
/* Parts of a picture, which begins at the top left. The style is the number of an escape code. The last line
 * of the terminal has no next one. */
void top_screen_begin_picture (GString *picture);
void top_screen_begin_style (GString *picture, const gchar *style);
void top_screen_end_style (GString *picture);
void top_screen_end_line (GString *picture, gboolean has_next);
void top_screen_end_picture (GString *picture);
/* FALSE if the terminal is gone. */
gboolean top_screen_show (const gchar *text);
/* Takes the keys that were pressed and calls func for each; FALSE at the end of the input. */
gboolean top_screen_read_keys (void (*func) (TopKey key, gpointer data), gpointer data);

G_END_DECLS
