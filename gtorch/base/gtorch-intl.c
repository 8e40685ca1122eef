/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Tells gettext where the translations of the library are. There is no gtorch_init () that a program
 * could forget, so this happens when the library is loaded; it costs no more than storing two
 * strings. */

#include "config.h"

#include "gtorch-build-config.h"

#include <glib.h>
#include <libintl.h>

static void __attribute__ ((constructor)) gtorch_intl_bind (void)
{
  bindtextdomain (GETTEXT_PACKAGE, GTORCH_LOCALEDIR);
  bind_textdomain_codeset (GETTEXT_PACKAGE, "UTF-8");
}
