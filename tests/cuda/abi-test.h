/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Compares what the library declares of a binary interface with what a header declares. */

#pragma once

#include <glib.h>

#include "abi.h"

#define V(name)         { #name, (long long) name },
#define S(type)         { "sizeof " #type, sizeof (type) },
#define M(type, member) { #type "." #member, offsetof (type, member) },

G_GNUC_UNUSED static void
assert_values_of_toolkit (const AbiValue *own, guint n, const AbiValue *theirs)
{
  guint i;

  for (i = 0; i < n; i++)
    {
      g_assert_cmpstr (own[i].name, ==, theirs[i].name);
      if (own[i].value == theirs[i].value)
        continue;
      g_test_message ("%s is %lld here and %lld there", own[i].name, own[i].value, theirs[i].value);
      g_test_fail ();
    }
  g_assert_null (theirs[i].name);
}
