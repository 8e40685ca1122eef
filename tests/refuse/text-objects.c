/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Tokenizers and data sets of images, to pass to functions. */

#include "config.h"

#include <gio/gio.h>

#include "refuse.h"

static GTorchTokenizer *
tokenizer_new (void)
{
  static const gchar *const texts[] = { "a rose is a rose", "is a rose", NULL };

  return gtorch_tokenizer_train_bpe (texts, 300, 1, NULL, FALSE, NULL, NULL);
}

gpointer
refuse_make_text_object (const gchar *type)
{
  if (g_str_equal (type, "GTorchTokenizer"))
    return tokenizer_new ();
  /* without a folder, in which there would have to be images */
  if (g_str_equal (type, "GTorchImageFolder"))
    return g_object_new (GTORCH_TYPE_IMAGE_FOLDER, NULL);
  return NULL;
}
