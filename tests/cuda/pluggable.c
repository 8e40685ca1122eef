/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A library with an allocator, like those that programs write: the host cannot read its addresses. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

#define PUBLIC __attribute__ ((visibility ("default")))

PUBLIC void *pluggable_malloc (ssize_t size, int device, void *stream);
PUBLIC void pluggable_free (void *address, ssize_t size, int device, void *stream);
PUBLIC long pluggable_held (void);

/* Calls a function of the test while the loader is active. */
__attribute__ ((constructor)) static void
on_load (void)
{
  const char *address = getenv ("GTORCH_TEST_ON_LOAD");

  if (address != NULL)
    ((void (*) (void)) (uintptr_t) strtoull (address, NULL, 16)) ();
}

static long held;
static uintptr_t next = 1 << 20;

void *
pluggable_malloc (ssize_t size, int device, void *stream)
{
  uintptr_t address = next;

  if (size > 100 << 20 || device != 1 || stream == NULL)
    return NULL;
  next += (size + 255) / 256 * 256;
  held += size;
  return (void *) address;
}

void
pluggable_free (void *address, ssize_t size, int device, void *stream)
{
  if (address != NULL && device == 1 && stream != NULL)
    held -= size;
}

long
pluggable_held (void)
{
  return held;
}
