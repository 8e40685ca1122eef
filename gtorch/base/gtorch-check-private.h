/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>
#include <stdatomic.h>

G_BEGIN_DECLS

/* What the environment variable GTORCH_CHECK turns on, separated by commas. */
typedef enum
{
  GTORCH_CHECK_ERRORS = 1 << 0,  /* "errors": which work of a device failed, and who called it */
  GTORCH_CHECK_STREAMS = 1 << 1, /* "streams": warnings about work without order */
  GTORCH_CHECK_STREAMS_FATAL = 1 << 2, /* "streams=fatal": errors */
  GTORCH_CHECK_GRAPH = 1 << 3,         /* "graph": work of other threads during a capture */
  GTORCH_CHECK_REPLAY = 1 << 4, /* "replay": replays and what their operations give by themselves */
  GTORCH_CHECK_BLOCKING = 1 << 5, /* "blocking": waits for a device in a main context's thread */
} GTorchCheckFlags;

/* What is on: a set of GTorchCheckFlags, to be changed by gtorch_checks_set () only. Atomic since threads of
 * the library look at it at any time. */
extern _Atomic guint gtorch_checks;

static inline gboolean
gtorch_is_checking (GTorchCheckFlags flag)
{
  return G_UNLIKELY ((atomic_load_explicit (&gtorch_checks, memory_order_relaxed) & flag) != 0);
}

/* Turns on what the environment says; what is on already stays. */
void gtorch_checks_init (void);
/* Turns on these checks and no others. */
void gtorch_checks_set (guint flags);
/* Has the function called whenever other checks are on. The folder of the checks registers it when the
 * library is loaded; it subscribes what is on to the events. */
void gtorch_checks_register (void (*subscribe) (guint flags));

/* --- where a call came from --- */
#define GTORCH_SITE_FRAMES 20

typedef struct
{
  gpointer frames[GTORCH_SITE_FRAMES]; /* return addresses, the innermost first; ended by NULL */
} GTorchSite;

void gtorch_site_take (GTorchSite *site);
/* The first functions outside of the library: "train (program+0x1234), main (program+0x5678)". */
gchar *gtorch_site_to_string (const GTorchSite *site);
/* The function of the library that the program has called, or NULL if its name is not known. */
gchar *gtorch_site_dup_function (const GTorchSite *site);

G_END_DECLS
