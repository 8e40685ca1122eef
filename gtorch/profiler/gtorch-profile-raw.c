/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What a record has of its call: the tensors that it was given, and where the program has called. */

#include "config.h"

#include "profiler/gtorch-profile-buffer-private.h"

#include <string.h>

gsize
gtorch_raw_inputs_size (GTorchImpl *const *inputs, gsize n)
{
  gsize size = n * sizeof (GTorchRawInput);
  gsize i;

  for (i = 0; i < n; i++)
    if (inputs[i] != NULL && !inputs[i]->is_number)
      size += 2 * sizeof (gint64) * inputs[i]->n_dims;
  return size;
}

void
gtorch_raw_write_inputs (char *to, GTorchImpl *const *inputs, gsize n)
{
  gsize i;

  for (i = 0; i < n; i++)
    {
      const GTorchImpl *input = inputs[i];
      GTorchRawInput *raw = (GTorchRawInput *) (void *) to;
      gsize size;

      *raw = (GTorchRawInput){ 0 };
      to += sizeof *raw;
      if (input == NULL)
        continue;
      raw->is_given = TRUE;
      raw->dtype = input->dtype;
      raw->is_number = input->is_number;
      if (input->is_number)
        continue;
      raw->n_dims = input->n_dims;
      size = input->n_dims * sizeof (gint64);
      memcpy (to, input->shape, size);
      memcpy (to + size, input->strides, size);
      to += 2 * size;
    }
}

gchar *
gtorch_raw_take_stack (GTorchSite *site, guint *n_frames)
{
  gchar *text = gtorch_profile_ask_for_stack ();
  guint n = 0;

  if (text == NULL)
    {
      gtorch_site_take (site);
      while (n < GTORCH_SITE_FRAMES && site->frames[n] != NULL)
        n++;
    }
  *n_frames = n;
  return text;
}
